//! Promises about run directories, kept on a real disk.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::Barrier;

use super::*;

const NOON: &str = "2025-01-15T12:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).unwrap()
}

fn create(root: &Path, name: &str, time: &str) -> RunDir {
    RunDir::create(root, &project(name), at(time)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn names(runs: &[RunDir]) -> Vec<&str> {
    runs.iter().map(|run| run.id().as_str()).collect()
}

#[test]
fn a_run_is_named_after_its_project_and_moment_in_utc() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", "2025-01-15T14:00:00+02:00");
    assert_eq!(run.id().as_str(), "app_20250115_120000");
    assert_eq!(run.path(), root.path().join("app_20250115_120000"));
}

#[test]
fn the_run_and_the_parents_made_for_it_are_private() {
    let root = tempfile::tempdir().unwrap();
    let runs = root.path().join("forklift/runs");
    let run = create(&runs, "app", NOON);
    for path in [run.path(), &runs, &root.path().join("forklift")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
}

#[test]
fn starts_in_the_same_second_never_collide() {
    const STARTS: usize = 16;
    let root = tempfile::tempdir().unwrap();
    let gate = Barrier::new(STARTS);
    let made: BTreeSet<String> = std::thread::scope(|scope| {
        let start = || {
            gate.wait();
            create(root.path(), "app", NOON).id().to_string()
        };
        let threads: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.len(), STARTS);
    assert!(made.contains("app_20250115_120000"));
    assert!(made.contains("app_20250115_120000-16"));
}

#[test]
fn a_run_after_a_clock_that_was_ahead_is_still_the_newest() {
    let root = tempfile::tempdir().unwrap();
    let before = create(root.path(), "app", NOON);
    let ahead = create(root.path(), "app", "2027-01-15T12:00:00Z");
    let after = create(root.path(), "app", "2025-01-15T13:00:00Z");
    let other = create(root.path(), "another", "2025-01-15T14:00:00Z");
    let expected = [&other, &after, &ahead, &before].map(|run| run.id().as_str());
    assert_eq!(names(&list(root.path()).unwrap()), expected);
    assert!(is_newer(after.id(), ahead.id()) && !is_newer(ahead.id(), after.id()));
}

#[test]
fn a_taken_name_is_left_alone_whatever_it_is() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("app_20250115_120000"), "a file").unwrap();
    symlink("nowhere", root.path().join("app_20250115_120000-2")).unwrap();
    assert_eq!(create(root.path(), "app", NOON).id().as_str(), "app_20250115_120000-3");
}

#[test]
fn everything_has_its_place_below_the_run() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    let places = [
        (run.workspace(), "workspace"),
        (run.harness_state(), "harness-state"),
        (run.metadata_path(), "metadata.json"),
        (run.commands_log(), "commands.log"),
        (run.env_snapshot(), "env_snapshot.txt"),
        (run.operations(), "operations.jsonl"),
        (run.repo(), "repo.git"),
        (run.box_dir(&BoxName::parse("agent").unwrap()), "boxes/agent"),
    ];
    for (place, expected) in places {
        assert_eq!(place, run.path().join(expected));
    }
}

#[test]
fn a_run_is_opened_again_by_its_path() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    assert_eq!(RunDir::open(run.path()).unwrap(), run);
}

#[test]
fn what_is_no_run_directory_is_not_opened() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    let link = root.path().join("link_20250115_120000");
    symlink(run.path(), &link).unwrap();
    let refused = |path: &Path| RunDir::open(path).unwrap_err().to_string();
    assert!(refused(root.path()).contains("its name is not"), "{}", refused(root.path()));
    assert!(refused(&link).contains("it is not a directory"));
    assert!(refused(&root.path().join("b_20250115_120000")).contains("nothing is there"));
}

#[test]
fn runs_are_listed_newest_first_and_strangers_passed_over() {
    let root = tempfile::tempdir().unwrap();
    create(root.path(), "zebra", "2025-01-15T11:00:00Z");
    for _ in 0..2 {
        create(root.path(), "app", NOON);
    }
    create(root.path(), "app", "2025-02-01T00:00:00Z");
    fs::create_dir(root.path().join("notes")).unwrap();
    fs::write(root.path().join("app_20260101_000000"), "").unwrap();
    assert_eq!(
        names(&list(root.path()).unwrap()),
        [
            "app_20250201_000000",
            "app_20250115_120000-2",
            "app_20250115_120000",
            "zebra_20250115_110000"
        ]
    );
}

#[test]
fn a_root_that_is_not_there_yet_has_no_runs() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(list(&root.path().join("none")).unwrap(), []);
}

#[test]
fn a_run_is_found_by_its_name_or_by_enough_of_it() {
    let root = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        create(root.path(), "app", NOON);
    }
    create(root.path(), "bee", NOON);
    let found = |wanted: &str| find(root.path(), wanted).map(|run| run.id().to_string());
    // The whole name of one run may be the start of another's.
    assert_eq!(found("app_20250115_120000").unwrap(), "app_20250115_120000");
    assert_eq!(found("b").unwrap(), "bee_20250115_120000");
    assert_eq!(
        found("app").unwrap_err().to_string(),
        "\"app\" could be any of app_20250115_120000-2, app_20250115_120000; give more of the name"
    );
    let none = found("../app").unwrap_err().to_string();
    assert!(none.contains("is called \"../app\" or starts with it"), "{none}");
}

#[test]
fn closing_leaves_every_record_read_only() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    fs::write(run.commands_log(), "").unwrap();
    fs::write(run.operations(), "").unwrap();
    assert!(!run.is_closed());
    run.close(&Redactor::new([]), &"the end").unwrap();
    assert!(run.is_closed());
    for record in [run.metadata_path(), run.commands_log(), run.operations()] {
        assert_eq!(mode(&record), 0o444, "{}", record.display());
    }
    assert!(!run.env_snapshot().exists());
}

#[test]
fn a_closed_run_cannot_be_closed_again() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    run.close(&Redactor::new([]), &"the end").unwrap();
    let error = run.close(&Redactor::new([]), &"another end").unwrap_err();
    assert_eq!(
        error.to_string(),
        "run app_20250115_120000 is closed and its records never change; start a new run"
    );
    assert_eq!(fs::read_to_string(run.metadata_path()).unwrap(), "\"the end\"\n");
}

#[test]
fn a_box_gets_a_number_that_no_box_had() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), "app", NOON);
    assert_eq!(run.next_box("export"), 1);
    for name in ["export-1", "setup-1", "setup-2"] {
        fs::create_dir_all(run.box_dir(&BoxName::parse(name).unwrap())).unwrap();
    }
    assert_eq!((run.next_box("export"), run.next_box("setup"), run.next_box("bring")), (2, 3, 1));
}
