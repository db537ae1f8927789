//! Merging through a forge: push, pull request, merge there, and the end here.

use testkit::fake_forge::{
    FakeForge, Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour, Mishap, TOKEN,
};
use testkit::hermetic::Output;
use testkit::repo::Repo;

use crate::support::{ONE_DONE, Person};

/// A workstream that was accepted, in a product with a remote, and a profile for this forge.
fn ready<F: Flavour>(forge: &FakeForge<F>, mode: &str) -> Person {
    let person = Person::with_plan(ONE_DONE);
    person.worktree("tf").write("feature", "x\n").commit("COMMIT-TF-001: x");
    person.wf(&["run", "tf"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    let origin = person.hermetic.work().join("origin.git");
    person.repo.git(&["init", "-q", "--bare", origin.to_str().expect("UTF-8")]);
    person.repo.git(&["remote", "add", "origin", origin.to_str().expect("UTF-8")]);
    person.profile(&format!("TEST_IN=host\n{mode}FORGE_URL={}\n", forge.remote_url()));
    person
}

fn merge(person: &Person) -> Output {
    person.hermetic.run(person.command(&["merge", "tf"]).env("AOS_FORGE_TOKEN", TOKEN))
}

fn a_whole_merge<F: Flavour>(mode: &str) {
    let forge = FakeForge::<F>::start();
    let person = ready(&forge, &format!("MERGE_MODE={mode}\n"));
    let output = merge(&person);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1);
    assert_eq!((pulls[0].head.as_str(), pulls[0].base.as_str()), ("feat/tf", "main"));
    assert!(pulls[0].body.contains("COMMIT-TF-001: Add test harness"), "{}", pulls[0].body);
    let origin = Repo::open(person.hermetic.work().join("origin.git"));
    assert_eq!(origin.sha("feat/tf"), person.worktree("tf").head());
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    assert_eq!(person.repo.git(&["log", "-1", "--format=%s", "main"]), "start", "not merged here");

    let output = merge(&person);
    assert_eq!(output.status, Some(8), "{}", output.snapshot());
    assert!(output.stderr.contains("waits for its merge"), "{}", output.stderr);
    forge.merge_pull(pulls[0].number);
    let output = merge(&person);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.meta("tf", "STATUS"), "done");
    assert_eq!(forge.pulls().len(), 1);
    person.ok(&["close", "tf"]);
    token_is_nowhere(&person, &output);
}

/// No file of wf and nothing that was printed holds the forge's token.
fn token_is_nowhere(person: &Person, output: &Output) {
    assert!(!output.stdout.contains(TOKEN) && !output.stderr.contains(TOKEN));
    let mut grep = person.hermetic.command("grep");
    let found = person.hermetic.run(grep.args(["-rl", TOKEN]).arg(person.ops()));
    assert_eq!(found.status, Some(1), "the token is in {}", found.stdout);
}

#[test]
fn a_workstream_is_merged_through_github() {
    a_whole_merge::<GithubFlavour>("github_pr");
}

#[test]
fn a_workstream_is_merged_through_gitea() {
    a_whole_merge::<GiteaFlavour>("gitea_pr");
}

#[test]
fn a_workstream_is_merged_through_gitlab() {
    a_whole_merge::<GitlabFlavour>("gitlab_mr");
}

#[test]
fn a_lost_answer_and_more_commits_lead_to_the_same_pull_request() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = ready(&forge, "MERGE_MODE=gitea_pr\n");
    forge.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    assert_eq!(merge(&person).status, Some(0));
    person.worktree("tf").write("feature", "y\n").commit("COMMIT-TF-001: y");
    assert_eq!(merge(&person).status, Some(0));
    assert_eq!(forge.pulls().len(), 1);
    person.worktree("tf").write("feature", "z\n").commit("COMMIT-TF-001: z");
    forge.merge_pull(forge.pulls()[0].number);
    let output = merge(&person);
    assert_eq!(output.status, Some(8), "{}", output.snapshot());
    assert!(output.stderr.contains("commits that are not in it"), "{}", output.stderr);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
}

#[test]
fn what_is_done_to_others_is_written_down_before() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = ready(&forge, "MERGE_MODE=gitea_pr\n");
    forge.fail_next_on("POST", 9, &Mishap::status(422, "no"));
    let output = merge(&person);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert_eq!(
        crate::support::operations(&person),
        [
            "branch.push feat/tf intended",
            "branch.push feat/tf done",
            "pull.open feat/tf intended",
            "pull.open feat/tf failed"
        ]
    );
}

#[test]
fn without_a_mode_a_github_with_a_login_is_found_and_nothing_else() {
    let github = FakeForge::<GithubFlavour>::start();
    let person = ready(&github, "");
    let with_login = |person: &Person| {
        person.hermetic.run(person.command(&["merge", "tf"]).env("GH_ENTERPRISE_TOKEN", TOKEN))
    };
    assert_eq!(with_login(&person).status, Some(0));
    assert_eq!(github.pulls().len(), 1);
    let gitea = FakeForge::<GiteaFlavour>::start();
    let person = ready(&gitea, "");
    let output = with_login(&person);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((gitea.pulls().len(), person.meta("tf", "STATUS").as_str()), (0, "done"));
}

#[test]
fn a_missing_token_or_address_is_told_with_its_remedy() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = ready(&forge, "MERGE_MODE=gitea_pr\n");
    person.refused(&["merge", "tf"], 2, &["AOS_FORGE_TOKEN", "FORGE_TOKEN="]);
    person.profile("TEST_IN=host\nMERGE_MODE=gitea_pr\n");
    person.refused(&["merge", "tf"], 2, &["FORGE_URL", "MERGE_MODE=local"]);
    assert_eq!(forge.requests().len(), 0);
}

/// Dies at this point, is run again, and has done everything once.
fn survives(point: &str) {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = ready(&forge, "MERGE_MODE=gitea_pr\n");
    let mut command = person.command(&["merge", "tf"]);
    command.env("AOS_FORGE_TOKEN", TOKEN).env("BOTTLEWORKS_FAILPOINT", point);
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
    let doctor = person.wf(&["doctor"]).stdout;
    assert!(doctor.contains("interrupted: "), "{point}: {doctor}");
    assert_eq!(merge(&person).status, Some(0), "{point}");
    assert_eq!(forge.pulls().len(), 1, "{point}");
    let doctor = person.wf(&["doctor"]).stdout;
    assert!(doctor.contains("all finished"), "{point}: {doctor}");
}

#[test]
fn a_pull_request_that_was_interrupted_is_finished_by_the_next_command() {
    for point in [
        "wf-branch.push-intended",
        "wf-branch.push-happened",
        "wf-pull.open-intended",
        "wf-pull.open-happened",
    ] {
        survives(point);
    }
}

#[test]
fn a_token_is_not_sent_over_plain_http_unless_that_is_allowed() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = ready(&forge, "MERGE_MODE=gitea_pr\n");
    let url = "http://forge.invalid/alice/hooks.git";
    person.profile(&format!("TEST_IN=host\nMERGE_MODE=gitea_pr\nFORGE_URL={url}\n"));
    let output = merge(&person);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("forge.invalid would travel unencrypted"), "{}", output.stderr);
    assert!(output.stderr.contains("FORGE_ALLOW_HTTP=1"), "{}", output.stderr);
    let mut allowed = person.command(&["merge", "tf"]);
    allowed.env("AOS_FORGE_TOKEN", TOKEN).env("FORGE_ALLOW_HTTP", "1");
    let output = person.hermetic.run(&mut allowed);
    assert!(output.stderr.contains("could not be resolved"), "{}", output.stderr);
}
