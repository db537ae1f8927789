//! How runs end: each verdict with its status, its record and its effect on origin.

use std::os::unix::fs::MetadataExt;

use testkit::hermetic::Hermetic;
use testkit::repo::{Fork, Repo};

use crate::support::{MERGE, Person};

#[test]
fn a_clean_merge_is_verified_and_published_as_a_branch_of_its_own() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("verified"), "{}", output.stdout);
    let published = person.published();
    assert_eq!(published.len(), 1, "{published:?}");
    let tip = person.fork.origin.sha(&published[0]);
    assert_eq!(person.metadata("/evidence/tip"), tip);
    let upstream = person.fork.upstream.sha("main");
    person.fork.origin.git(&["merge-base", "--is-ancestor", &upstream, &tip]);
}

#[test]
fn a_run_directory_has_the_promised_parts_and_is_closed() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let run = person.only_run();
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    let (project, stamp) = name.split_once('_').expect("two parts");
    assert_eq!((project, stamp.len()), ("fork", 15), "{name}");
    for part in [
        "workspace",
        "harness-state",
        "metadata.json",
        "commands.log",
        "env_snapshot.txt",
        "operations.jsonl",
    ] {
        assert!(run.join(part).exists(), "{part} is missing");
    }
    let mode = run.join("metadata.json").metadata().expect("there").mode();
    assert_eq!(mode & 0o222, 0, "the record can still be written");
    let config = std::fs::read_to_string(run.join("workspace/.git/config")).expect("a config");
    assert!(!config.contains("[remote"), "{config}");
}

#[test]
fn nothing_to_do_is_recorded_and_costs_no_agent() {
    let Some(person) = Person::with(Fork::new) else { return };
    let output = person.run("[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("up to date"), "{}", output.stdout);
    assert_eq!(person.metadata("/verdict/kind"), "up-to-date");
    assert!(!person.only_run().join("boxes").exists());
}

#[test]
fn a_stuck_agent_is_heard_and_its_note_stays_as_it_is() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nstuck = \"Which \\u001b[31mauth\\u001b[0m flow?\"\n", &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(!output.stdout.contains('\u{1b}'), "a raw escape reached the terminal");
    assert!(output.stdout.contains("[31mauth"), "{}", output.stdout);
    let note =
        std::fs::read_to_string(person.only_run().join("workspace/STUCK.md")).expect("a note");
    assert!(note.starts_with("Which \u{1b}[31mauth"), "{note:?}");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn the_clock_ends_an_agent_that_will_not_stop() {
    let Some(person) = Person::new() else { return };
    let script =
        "[[step]]\nrun = \"trap '' TERM; git merge --no-edit upstream/main; sleep 600 & wait\"\n";
    let output = person.run(script, &["--timeout", "1"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "timed-out");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn a_failing_agent_is_told_from_a_failing_machine() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nexit = 7\n", &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(output.stdout.contains("status 7"), "{}", output.stdout);
}

#[test]
fn a_lazy_agent_that_claims_success_is_not_believed() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nprint = \"all done\\n\"\n", &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "not-integrated");
}

#[test]
fn p03_resetting_the_fork_to_upstream_is_refused() {
    let Some(person) = Person::new() else { return };
    let act = "git reset --hard upstream/main && git commit --allow-empty -m done";
    let output = person.run(&format!("[[step]]\nrun = \"{act}\"\n"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "fork-lost");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn p18_two_starts_in_one_second_do_not_collide() {
    let Some(person) = Person::new() else { return };
    let mut first = person.start(MERGE, &[]);
    let mut second = person.start(MERGE, &[]);
    let ended = (first.wait().expect("ends"), second.wait().expect("ends"));
    assert!(ended.0.success() && ended.1.success(), "{ended:?}");
    assert_eq!(person.runs().len(), 2);
    assert_eq!(person.published().len(), 1, "the second one finds what the first one published");
}

#[test]
fn json_is_one_object_a_line_and_ends_with_the_verdict() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["--json"]);
    let events: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = events.last().expect("events");
    assert_eq!(last["event"], "verdict");
    assert_eq!(last["verdict"]["kind"], "publish");
    assert_eq!(last["status"], 0);
}

/// One run in an odd fork: it works, and the checkout is as it was.
fn does_not_matter(make: impl FnOnce(&Hermetic) -> Fork) {
    let Some(person) = Person::with(make) else { return };
    let seen = || {
        let checkout = &person.fork.checkout;
        (checkout.git(&["status", "--porcelain"]), checkout.git(&["rev-parse", "HEAD"]))
    };
    let before = seen();
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(seen(), before, "the checkout was touched");
    assert_eq!(person.published().len(), 1);
}

#[test]
fn p18_blanks_and_plus_signs_in_names_do_not_matter() {
    does_not_matter(|h| Fork::named(h, "my fork + more").clean_merge());
}

#[test]
fn p07_a_dangling_link_in_the_tree_does_not_matter() {
    does_not_matter(|h| Fork::new(h).dangling_symlink().clean_merge());
}

#[test]
fn p04_where_the_checkout_stands_does_not_matter() {
    does_not_matter(|h| Fork::new(h).clean_merge().on_branch("topic"));
    does_not_matter(|h| Fork::new(h).clean_merge().detached());
    does_not_matter(|h| Fork::new(h).clean_merge().dirty());
}

#[test]
fn a_local_branch_behind_origin_does_not_matter() {
    does_not_matter(|h| Fork::new(h).clean_merge().behind_origin());
}

#[test]
fn sha256_does_not_matter() {
    does_not_matter(|h| Fork::sha256(h).clean_merge());
}

#[test]
fn p21_submodules_and_large_files_do_not_matter() {
    does_not_matter(|h| Fork::new(h).submodule().clean_merge());
    does_not_matter(|h| Fork::new(h).lfs().clean_merge());
}

#[test]
fn what_the_workspace_lacks_is_named() {
    let fork = |hermetic: &Hermetic| Fork::new(hermetic).submodule().lfs().clean_merge();
    let Some(person) = Person::with(fork) else { return };
    let output = person.run(MERGE, &[]);
    for words in ["submodule vendor/lib stays empty", "large files (LFS)"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.snapshot());
    }
}

#[test]
fn a_branch_that_origin_rejects_keeps_the_work_and_says_so() {
    let Some(person) = Person::new() else { return };
    person.reject_pushes();
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    let tip = person.metadata("/publication/commit");
    let tip = tip.as_str().expect("a commit");
    let repo = Repo::open(person.only_run().join("repo.git"));
    assert_eq!(repo.sha(tip), tip);
}

#[test]
fn a_log_is_shown_and_followed_to_its_end() {
    let Some(person) = Person::new() else { return };
    let script = format!(
        "[[step]]\nprint = \"first\\n\"\n[[step]]\nsleep = 1.0\n[[step]]\nprint = \"last\\n\"\n{MERGE}"
    );
    let mut child = person.start(&script, &[]);
    person.wait_for_box(&mut child);
    let name = person.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    let followed = person.hermetic.run(&mut person.forklift(&["log", &name, "--follow"]));
    assert!(
        followed.stdout.contains("first") && followed.stdout.contains("last"),
        "{}",
        followed.stdout
    );
    assert!(child.wait().expect("ends").success());
    let shown = person.hermetic.run(&mut person.forklift(&["log", &name]));
    assert_eq!(shown.stdout, followed.stdout);
}

/// The log keeps its start and its end, and the end has the agent's last word.
#[test]
fn an_agent_that_prints_more_than_a_log_keeps_is_published() {
    let Some(person) = Person::new() else { return };
    let talk = "[[step]]\nrun = \"yes 'a line that says little' | head -c 20000000\"\n";
    let output = person.run(&format!("{talk}{MERGE}"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}
