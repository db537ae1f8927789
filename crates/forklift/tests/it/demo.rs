//! `forklift demo`: the whole way, as a newcomer sees it.

use testkit::demo::Demo;

const PROGRAM: &str = env!("CARGO_BIN_EXE_forklift");

#[test]
fn the_demo_shows_the_whole_way_and_leaves_nothing() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    let output = demo.run("");
    insta::assert_snapshot!(output.snapshot(), @"
    status: 0
    --- stdout
    > making a fork and its upstream in [ROOT]/work/forklift-demo-[RANDOM]
    > fetching origin and upstream
    > trying to merge without an agent
      conflicts (1): greeter.sh (content)
      0 of 1 conflicts resolved without a model
    > copying the fork into a workspace of its own
    > starting scripted in a sealed bwrap box, 480 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    > pushing the branch to origin
    verdict     verified: both histories are in the result; 1 point to look at first
    needs look  1 point
      greeter.sh: inside the conflict: 1 line that neither side has as it is; conflict decided by the agent (both)
    run         [ROOT]/work/forklift-demo-[RANDOM]/state/forklift/runs/fork_[STAMP]
    pull text   [ROOT]/work/forklift-demo-[RANDOM]/state/forklift/runs/fork_[STAMP]/PULL_REQUEST.md
    branch      forklift/fork_[STAMP] at [SHA] on origin
      fork contract: 1 commit (1 changed); 1 path (1 changed)
        changed     [SHA] Greet the harbour
        changed     greeter.sh: 0 of 1 line, 1 adapted
    next        git fetch origin && git diff origin/main...origin/forklift/fork_[STAMP]
    cleaned up  [ROOT]/work/forklift-demo-[RANDOM] is removed; --keep keeps it
    --- stderr
    ");
    assert_eq!(demo.folders(), 0);
}

#[test]
fn a_demo_keeps_its_folder_when_asked_or_when_it_fails() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    demo.keeps_its_folder_when_asked_or_when_it_fails();
}
