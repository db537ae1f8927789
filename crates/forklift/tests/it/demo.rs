//! `forklift demo`: the whole way, as a newcomer sees it.

use testkit::hermetic::{Hermetic, Output};
use testkit::part::{Part, require};

/// Both streams in one, as on a terminal.
fn demo(hermetic: &Hermetic, flags: &str) -> Output {
    let mut command = hermetic.command("sh");
    let line = format!("exec '{}' demo {flags} 2>&1", env!("CARGO_BIN_EXE_forklift"));
    hermetic.run(command.args(["-c", &line]).env("TMPDIR", hermetic.work()))
}

fn folders(hermetic: &Hermetic) -> usize {
    std::fs::read_dir(hermetic.work()).expect("the folder").count()
}

#[test]
fn the_demo_shows_the_whole_way_and_leaves_nothing() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let hermetic = Hermetic::new();
    let output = demo(&hermetic, "");
    insta::assert_snapshot!(output.snapshot(), @"");
    assert_eq!(folders(&hermetic), 0);
}

#[test]
fn a_demo_keeps_its_folder_when_asked_or_when_it_fails() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let hermetic = Hermetic::new();
    let kept = demo(&hermetic, "--keep");
    assert_eq!(kept.status, Some(0), "{}", kept.snapshot());
    assert!(kept.stdout.contains("rm -r "), "{}", kept.snapshot());
    assert_eq!(folders(&hermetic), 1);
    let failed = demo(&hermetic, "--backend nonsense");
    assert_ne!(failed.status, Some(0), "{}", failed.snapshot());
    assert_eq!(folders(&hermetic), 2);
}
