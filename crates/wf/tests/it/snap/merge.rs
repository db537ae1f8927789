//! `wf merge`: local merges, gates, refusals, and the operation log.

use testkit::fake_forge::{FakeForge, GiteaFlavour, TOKEN};
use testkit::repo::Repo;

use crate::support::Person;

fn with_origin(person: &Person) -> Repo {
    let origin = Repo::init_bare(person.hermetic.work().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    origin
}

#[test]
fn a_fast_forward() {
    let person = Person::accepted();
    insta::assert_snapshot!(person.transcript(&[&["merge", "tf"], &["list"], &["merge", "tf"], &["reject", "tf", "-m", "x"]]), @r#"
    $ wf merge tf
    Merged tf into main at [SHA] (fast-forward)
    ! Next: wf close tf
    [0]
    $ wf list
    No active workstreams. Start one: wf new <id> "<title>" "<paths>"
    [0]
    $ wf merge tf
    tf is merged into main already
    ! Next: wf close tf
    [0]
    $ wf reject tf -m x
    ! error: tf is merged already
    [2]
    "#);
}

#[test]
fn a_merge_commit_as_json() {
    let person = Person::accepted();
    person.repo.write("other", "y\n").commit("on main");
    insta::assert_snapshot!(person.transcript(&[&["merge", "tf", "--json"]]), @r#"
    $ wf merge tf --json
    {
      "base_branch": "main",
      "merged": {
        "commit": "[SHA]",
        "is_fast_forward": false,
        "pushed": false
      },
      "workstream": "tf"
    }
    ! Next: wf close tf
    [0]
    "#);
}

#[test]
fn a_merge_that_is_pushed() {
    let person = Person::accepted();
    let origin = with_origin(&person);
    let merged = person.transcript(&[&["merge", "tf", "--push", "--json"]]);
    assert_eq!(origin.sha("main"), person.repo.sha("main"));
    insta::assert_snapshot!(merged, @r#"
    $ wf merge tf --push --json
    {
      "base_branch": "main",
      "merged": {
        "commit": "[SHA]",
        "is_fast_forward": true,
        "pushed": true
      },
      "workstream": "tf"
    }
    ! Next: wf close tf
    [0]
    "#);
}

#[test]
fn workstreams_that_are_not_ready() {
    let person = Person::with_plan(crate::support::ONE);
    let planning = person.shot(&["merge", "tf"], &[]);
    person.set_meta("tf", "STATUS", "blocked:review");
    let review = person.shot(&["merge", "tf"], &[]);
    person.set_meta("tf", "STATUS", "merge-ready");
    person.question("tf", "CLQ-001", "blocking");
    let question = person.shot(&["merge", "tf"], &[]);
    insta::assert_snapshot!([planning, review, question].concat(), @"
    $ wf merge tf
    ! error: tf is not merge-ready: its status is planning; write the plan, then: wf run tf
    [8]
    $ wf merge tf
    ! error: tf is not merge-ready: its status is blocked:review; look at the last run: wf show -w tf
    [8]
    $ wf merge tf
    ! error: tf is not done: COMMIT-TF-001 is still in the plan; do it: wf run tf, or drop it: wf plan drop COMMIT-TF-001 -w tf
    [8]
    ");
}

#[test]
fn uncommitted_changes_and_conflicts() {
    let person = Person::accepted();
    person.repo.write("README.md", "dirty");
    let checkout = person.shot(&["merge", "tf"], &[]);
    person.repo.write("feature", "other\n").commit("on main");
    let conflict = person.shot(&["merge", "tf"], &[]);
    person.worktree("tf").write("stray", "x");
    let worktree = person.shot(&["merge", "tf"], &[]);
    insta::assert_snapshot!([checkout, conflict, worktree].concat(), @"
    $ wf merge tf
    ! error: the checkout [ROOT]/work/app has uncommitted changes, such as README.md
    [8]
    $ wf merge tf
    ! > the agent resolves the conflicts that are left
    ! error: feat/tf conflicts with main in feature, and nothing was changed (no agent can resolve it: the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)); merge it by hand: git -C [ROOT]/work/app.ops/worktrees/tf merge main
    [8]
    $ wf merge tf
    ! error: the worktree [ROOT]/work/app.ops/worktrees/tf has uncommitted changes, such as stray
    [8]
    ");
}

#[test]
fn a_gate_test_that_fails_and_one_that_is_missing() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    let missing = person.shot(&["merge", "tf"], &[]);
    let other = Person::accepted();
    other.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    other.worktree("tf").write("Makefile", "gate:\n\tfalse\n").commit("COMMIT-TF-001: gate");
    let failed = other.shot(&["merge", "tf"], &[]);
    insta::assert_snapshot!([missing, failed].concat(), @"
    $ wf merge tf
    ! error: no gate test ran: Target 'gate' not in Makefile; name one in [ROOT]/work/app.ops/workflow/projects/app/project_profile.env (MAKE_TARGET_MERGE_GATE_TEST, MAKE_TARGET_UNIT or TEST_CMD_UNIT), or merge without: wf merge tf --untested
    [5]
    $ wf merge tf
    tf: the gate test failed; see [ROOT]/work/app.ops/runs/[STAMP]_app_tf_merge/tests/merge-gate/output.log
      added to the plan: COMMIT-TF-002; do it: wf run tf --loop, or drop it: wf plan drop COMMIT-TF-002 -w tf
    ! warning: feat/tf is not what UAT-001 accepted ([SHA]): 1 commit came after it; see: git log [SHA]..[SHA]
    [5]
    ");
}

#[test]
fn a_pull_request_without_a_token_or_an_address() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=gitea_pr\nFORGE_URL=https://git.example.org/a/b\n");
    let token = person.shot(&["merge", "tf"], &[]);
    person.profile("TEST_IN=host\nMERGE_MODE=gitea_pr\n");
    let address = person.shot(&["merge", "tf"], &[("AOS_FORGE_TOKEN", "x")]);
    person.profile("MERGE_MODE=svn\n");
    insta::assert_snapshot!([token, address, person.shot(&["merge", "tf"], &[])].concat(), @"
    $ wf merge tf
    ! error: there is no token for git.example.org; set BOTTLEWORKS_FORGE_TOKEN (or AOS_FORGE_TOKEN), or put FORGE_TOKEN=... into a file in [ROOT]/work/app.ops/secrets
    [2]
    $ wf merge tf
    ! error: origin names no repository on a Gitea; set FORGE_URL in project_profile.env, or MERGE_MODE=local
    [2]
    $ wf merge tf
    ! error: [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: MERGE_MODE must be local, gitea_pr, github_pr or gitlab_mr
    [2]
    ");
}

#[test]
fn a_pull_request_from_its_opening_to_its_merge() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = Person::accepted();
    with_origin(&person);
    let url = forge.remote_url();
    person.profile(&format!("TEST_IN=host\nMERGE_MODE=gitea_pr\nFORGE_URL={url}\n"));
    let merge = || person.shot(&["merge", "tf"], &[("AOS_FORGE_TOKEN", TOKEN)]);
    let (opened, waits) = (merge(), merge());
    forge.merge_pull(forge.pulls()[0].number);
    let text = [opened, waits, merge()].concat();
    let host = url.split("//").nth(1).and_then(|rest| rest.split('/').next()).expect("a host");
    insta::assert_snapshot!(text.replace(host, "[FORGE]"), @"
    $ wf merge tf
    Opened http://[FORGE]/alice/hooks/pulls/1 for tf
    ! When it is merged there: wf merge tf
    [0]
    $ wf merge tf
    ! error: tf waits for its merge at http://[FORGE]/alice/hooks/pulls/1; after that run: wf merge tf
    [8]
    $ wf merge tf
    tf was merged into main at http://[FORGE]/alice/hooks/pulls/1
    ! Next: git pull, then wf close tf
    [0]
    ");
}
