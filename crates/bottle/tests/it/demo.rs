//! `bot-bottle demo`: the whole way, as a newcomer sees it.

use testkit::demo::Demo;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bot-bottle");

#[test]
fn the_demo_shows_the_whole_way_and_leaves_nothing() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    let output = demo.run("");
    insta::assert_snapshot!(output.snapshot(), @r#"
    status: 0
    --- stdout
    > making a forge with an issue in [ROOT]/work/bot-bottle-demo-[RANDOM]

    # you/greeter#1 "Greet by name" is assigned to bot-bottle and labelled bot-bottle:worker;
    # FORGE_URL, FORGE_OWNER, FORGE_REPO and FORGE_ISSUE_NUMBER name it
    $ bot-bottle orchestrate start --agent worker --prompt 'Work on your issue' --backend bwrap
      you/greeter#1, organisation 'bot-bottle'
    > fetching origin
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    > pushing the branch and opening the pull request
    bottle      worker-issue-1
    run         [ROOT]/work/bot-bottle-demo-[RANDOM]/home/.bot-bottle/cellar/worker-issue-1/runs/worker-issue-1_[STAMP]
    done        success: greeter.sh greets by name
    verdict     the work holds
    pull        #2 file://[ROOT]/work/bot-bottle-demo-[RANDOM]/forge/you/greeter.git.forge/threads/000002.json

    # the bottle is frozen while people review; the record of its run is signed
    $ bot-bottle list
     SLUG            STATE   AGENT   RUNS  PULL  REPOSITORY
     worker-issue-1  frozen  worker  1     #2    [ROOT]/work/bot-bottle-demo-[RANDOM]/greeter
    $ bot-bottle provenance verify worker-issue-1
    run         worker-issue-1_[STAMP]
    signature   ok: both statements, by key [SHA] (this home's)
    events      ok: 10 lines, an unbroken chain that ends as signed
    files       ok: 10 files, each as it was signed
    host chain  ok: run 1 of 1 on this host, none of them missing
    verified    yes
    pull        #2 Greet by name (bot-bottle/worker-issue-1)
      What the agent says:
      > greeter.sh greets by name
      Commits:
      - [SHA] `Greet by name`
      Size: 1 file, 1 line added, 1 removed.
      Made by the agent `worker` in under a minute.
      Closes #1
    cleaned up  [ROOT]/work/bot-bottle-demo-[RANDOM] is removed; --keep keeps it
    --- stderr
    "#);
    assert_eq!(demo.folders(), 0);
}

#[test]
fn a_demo_keeps_its_folder_when_asked_or_when_it_fails() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    demo.keeps_its_folder_when_asked_or_when_it_fails();
}
