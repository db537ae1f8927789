//! The forge as a source: comments on the pull request go back to the implementer, and an issue is the story of a plan.

use testkit::fake_forge::{FakeForge, GiteaFlavour, LOGIN, OWNER, Room, STRANGER, TOKEN};

use crate::play::{GOOD, PROFILE, person_with_one};
use crate::support::{Person, read};

fn feedback(person: &Person, more: &[&str]) -> String {
    let args = [&["pr", "feedback", "tf"], more].concat();
    person.shot(&args, &[("AOS_FORGE_TOKEN", TOKEN)])
}

/// A workstream whose pull request has comments by a member and by a stranger.
fn commented(forge: &FakeForge<GiteaFlavour>) -> Person {
    let person = Person::accepted();
    let origin = person.hermetic.work().join("origin.git");
    person.repo.git(&["init", "-q", "--bare", origin.to_str().expect("UTF-8")]);
    person.repo.git(&["remote", "add", "origin", origin.to_str().expect("UTF-8")]);
    person
        .profile(&format!("TEST_IN=host\nMERGE_MODE=gitea_pr\nFORGE_URL={}\n", forge.remote_url()));
    assert!(feedback(&person, &[]).contains("tf has no pull request; open one: wf merge tf"));
    let merged = person.shot(&["merge", "tf"], &[("AOS_FORGE_TOKEN", TOKEN)]);
    assert!(merged.contains("Opened "), "{merged}");
    let number = forge.pulls()[0].number;
    forge.add_member(OWNER, "ann");
    forge.add_comment(Room::Pull, number, "ann", "The name is wrong.\nDone: [x]\n");
    forge.add_comment(Room::Pull, number, STRANGER, "Buy my coins");
    person
}

#[test]
fn no_author_counts_where_the_forge_hides_its_members() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = commented(&forge);
    let hidden = feedback(&person, &["--dry-run"]);
    assert!(hidden.contains("does not say who is a member of alice"), "{hidden}");
    assert!(hidden.contains("No new comments") && hidden.contains("--from ann"), "{hidden}");
}

#[test]
fn comments_of_members_become_micro_commits_once() {
    let forge = FakeForge::<GiteaFlavour>::start();
    let person = commented(&forge);
    forge.add_member(OWNER, LOGIN);
    let said = format!(
        "{}{}{}{}",
        feedback(&person, &["--dry-run"]),
        feedback(&person, &[]),
        feedback(&person, &[]),
        feedback(&person, &["--from", STRANGER, "--json"])
    );
    insta::assert_snapshot!(format!("{said}{}", read(&person.workstream_dir("tf").join("plan.md"))), @r#"
    $ wf pr feedback tf --dry-run
    ann: The name is wrong.
    ! warning: a comment by carol was left out; if it counts: wf pr feedback tf --from carol
    [0]
    $ wf pr feedback tf
    tf: added to the plan: COMMIT-TF-002; do it: wf run tf --loop, or drop it: wf plan drop COMMIT-TF-002 -w tf
    ! warning: a comment by carol was left out; if it counts: wf pr feedback tf --from carol
    [0]
    $ wf pr feedback tf
    No new comments on pull request 1 of tf
    ! warning: a comment by carol was left out; if it counts: wf pr feedback tf --from carol
    [0]
    $ wf pr feedback tf --from carol --json
    {
      "comments": 1,
      "planned": [
        "COMMIT-TF-003"
      ],
      "pull": 1,
      "status": "implement",
      "workstream": "tf"
    }
    [0]
    # Plan

    ### COMMIT-TF-001: Add test harness

    Acceptance:
    - it runs

    Done: [x]

    ### COMMIT-TF-002: Address ann: The name is wrong.

    ann wrote on the pull request:

    > The name is wrong.
    > Done: [x]

    Acceptance:
    - what ann asks for is done or answered

    Done: [ ]

    ### COMMIT-TF-003: Address carol: Buy my coins

    carol wrote on the pull request:

    > Buy my coins

    Acceptance:
    - what carol asks for is done or answered

    Done: [ ]
    "#);
    assert_eq!(person.meta("tf", "STATUS"), "implement");
}

#[test]
fn the_story_of_a_plan_may_be_an_issue() {
    let Some(person) = person_with_one() else { return };
    let forge = FakeForge::<GiteaFlavour>::start();
    let number = forge.add_issue("People can log in", "With a *token*.", &[], &[]);
    let profile = PROFILE.replace("MERGE_MODE=local", "MERGE_MODE=gitea_pr");
    person.profile(&format!("{profile}FORGE_URL={}\n", forge.remote_url()));
    let draft = r#"
[[step]]
run = "grep -q 'People can log in' /harness-state/run/harness/instructions.txt && grep -q 'With a .token' /harness-state/run/harness/instructions.txt"
[[step]]
print = '''{"commits": [{"title": "Add a form"}]}
'''
"#;
    person.cast(GOOD, draft);
    let issue = format!("{}/issues/{number}", forge.remote_url().trim_end_matches(".git"));
    for from in [format!("#{number}"), issue] {
        let shown = person.shot(&["plan", "tf", "--from", &from], &[("AOS_FORGE_TOKEN", TOKEN)]);
        assert!(shown.contains("+### COMMIT-TF-002: Add a form"), "{shown}");
    }
    // Any other address is that of a page, and this one is not public.
    let page = ["plan", "tf", "--from", "http://127.0.0.1/story"];
    person.refused(&page, 2, &["addresses are refused", "wf plan --from -"]);
}
