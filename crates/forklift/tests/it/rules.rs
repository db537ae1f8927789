//! FORK.md: the rules that a fork sets are kept, and a rule that cannot be kept stops the run before it starts.

use testkit::repo::Fork;

use crate::support::{MERGE, Person};

/// A fork whose main branch has this FORK.md, and an upstream that merges cleanly.
fn with_rules(text: &str) -> Option<Person> {
    with_file("FORK.md", text)
}

fn with_file(name: &str, text: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.git(&["rm", "-q", "FORK.md"]);
        fork.checkout.write(name, text);
        fork.fork_commit("say what the fork is");
        fork.clean_merge()
    })
}

#[test]
fn a_check_that_passes_is_told_and_the_result_is_published() {
    let Some(person) = with_rules("---\ncheck: test -f upstream.txt && test -d .git\n---\n") else {
        return;
    };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/check/ended/kind"), "exited", "{}", output.snapshot());
    let run = person.only_run();
    let text = std::fs::read_to_string(run.join("PULL_REQUEST.md")).expect("the text");
    assert!(text.contains("own check passed, no test was seen"), "{text}");
    assert!(!run.join("check-workspace").exists(), "the copy was to be removed");
}

#[test]
fn p03_a_check_that_fails_blocks_the_pull_request_and_shows_why() {
    let Some(person) = with_rules("---\ncheck: |\n  echo the reason; exit 7\n---\n") else {
        return;
    };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("status 7"), "{}", output.stdout);
    assert!(output.stdout.contains("| the reason"), "{}", output.stdout);
    assert_eq!(person.metadata("/verdict/kind"), "check-failed");
    assert!(person.published().is_empty());
}

#[test]
fn p02_an_agent_cannot_change_the_check_that_judges_it_nor_help_it_with_untracked_files() {
    let Some(person) = with_rules("---\ncheck: test -f helped\n---\nwords\n") else { return };
    let script = "[[step]]\nrun = '''git merge -q --no-edit upstream/main
{ echo ---; echo 'check: test 1'; echo ---; } > FORK.md; git add FORK.md; git commit -qm 'ease the check'
touch helped; mkdir -p .git/info; echo helped >> .git/info/exclude'''\n";
    let output = person.run(script, &["--accept-loss", "--allow-path", "FORK.md"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "check-failed");
}

#[test]
fn a_check_that_hangs_is_ended_by_its_own_clock() {
    let Some(person) = with_rules("---\ncheck: sleep 60\ncheck-timeout: 1\n---\n") else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("out of time"), "{}", output.stdout);
}

#[test]
fn the_set_up_runs_before_the_agent_in_the_same_workspace() {
    let Some(person) = with_rules("---\nsetup: echo ready > made-by-setup\n---\n") else { return };
    let script = format!("[[step]]\nrun = \"test -f made-by-setup && rm made-by-setup\"\n{MERGE}");
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_set_up_that_fails_starts_no_agent() {
    let Some(person) = with_rules("---\nsetup: echo no compiler >&2; exit 3\n---\n") else {
        return;
    };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("no compiler"), "{}", output.stdout);
    assert_eq!(person.metadata("/verdict/kind"), "setup-failed");
    assert!(!person.only_run().join("boxes/agent").exists());
}

#[test]
fn a_result_is_set_up_anew_before_it_is_checked() {
    let rules = "---\nsetup: echo tool > tool\ncheck: grep -qx tool tool\n---\n";
    let Some(person) = with_rules(rules) else { return };
    let script = format!("[[step]]\nrun = \"echo forged > tool\"\n{MERGE}");
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_protected_path_must_survive_as_the_fork_has_it() {
    let Some(person) = with_rules("---\nprotect: [FORK.md]\n---\nmine\n") else { return };
    let script =
        format!("{MERGE}\n[[step]]\nrun = \"echo other > FORK.md && git commit -qam other\"\n");
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "work-lost", "{}", output.snapshot());
}

#[test]
fn rules_that_are_not_known_stop_the_run_before_it_starts() {
    let Some(person) = with_rules("---\nchek: make test\n---\n") else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stderr.contains("FORK.md") && output.stderr.contains("chek"),
        "{}",
        output.stderr
    );
    assert_eq!(output.stderr.trim_end().lines().count(), 2, "{}", output.stderr);
    assert!(person.runs().is_empty());
}

#[test]
fn the_words_are_mirrored_and_the_other_place_works_too() {
    let Some(person) = with_file(".agents/FORK.md", "---\nsetup: 'true'\n---\nKeep the harbour.\n")
    else {
        return;
    };
    let script = format!(
        "[[step]]\nrun = \"cp /harness-state/fork-context.md /harness-state/seen\"\n{MERGE}"
    );
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let state = person.only_run().join("harness-state");
    for name in ["fork-context.md", "seen"] {
        let text = std::fs::read_to_string(state.join(name)).expect("there");
        assert_eq!(text, "Keep the harbour.\n", "{name}");
    }
    let told = std::fs::read_to_string(state.join("instructions.txt")).expect("instructions");
    assert!(told.contains("Keep the harbour.") && told.contains("upstream/main"), "{told}");
}

/// P15: what lies about in the checkout is the person's business.
#[test]
fn p15_an_edited_uncommitted_fork_file_does_not_matter() {
    let Some(person) = with_rules("committed words\n") else { return };
    person.fork.checkout.write("FORK.md", "---\nnonsense: 1\n---\nnot committed\n");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let seen = person.only_run().join("harness-state/fork-context.md");
    assert_eq!(std::fs::read_to_string(seen).expect("there"), "committed words\n");
}

#[test]
fn an_instruction_is_for_this_run_alone_and_reaches_the_agent() {
    let Some(person) = with_rules("words\n") else { return };
    let output = person.run(MERGE, &["--instruction", "Take theirs in docs."]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let told = person.only_run().join("harness-state/instructions.txt");
    assert!(std::fs::read_to_string(told).expect("there").contains("Take theirs in docs."));
}
