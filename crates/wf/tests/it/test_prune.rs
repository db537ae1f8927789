//! `wf prune`: copies of failed runs go once they are worth nothing, and never before.

use std::path::Path;

use crate::play::{APPROVE, GOOD, person_with_one};
use crate::support::{Person, result};

/// An agent that makes something and gives up.
const GIVES_UP: &str = r#"
[[step]]
run = "mkdir -p mk && echo half > mk/half"
[[step]]
print = '''{"status": "failure", "notes": "too hard"}
'''
"#;

fn failed_run(person: &Person) -> std::path::PathBuf {
    person.cast(GIVES_UP, APPROVE);
    person.run_once(4);
    let run = person.last_run();
    assert!(has_work(&run), "the work of a failed run is kept");
    run
}

fn has_work(run: &Path) -> bool {
    run.join("workspace/mk/half").is_file()
}

#[test]
fn work_that_may_exist_nowhere_else_is_kept() {
    let Some(person) = person_with_one() else { return };
    let run = failed_run(&person);
    assert!(person.ok(&["prune", "--apply"]).contains("may be the only copy"));
    assert!(has_work(&run));
    // A micro-commit that somebody skipped was not made by anybody.
    person.ok(&["skip", "tf"]);
    person.ok(&["prune", "--apply"]);
    assert!(has_work(&run));
}

#[test]
fn the_copy_goes_and_the_record_stays_once_the_micro_commit_is_accepted() {
    let Some(person) = person_with_one() else { return };
    let run = failed_run(&person);
    person.cast(GOOD, APPROVE);
    person.run_once(0);
    assert!(person.ok(&["prune", "--dry-run"]).contains("Would remove"));
    person.refused(&["prune"], 2, &["nothing was deleted", "to delete: wf prune --yes"]);
    assert!(has_work(&run), "nothing goes before --yes");
    let rows = person.json(&["prune", "--yes"]);
    assert_eq!((&rows[0]["fate"], &rows[0]["removed"]), (&"superseded".into(), &true.into()));
    assert!(!run.join("workspace").exists() && !run.join("repo.git").exists());
    assert_eq!(result(&run)["status"], "failed");
    assert!(person.ok(&["prune"]).contains("No run has a copy left"));
}
