//! `wf demo`: the whole way, as a newcomer sees it.

use testkit::demo::Demo;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wf");

/// Takes out the times of runs, and the warning that only root gets.
fn redact(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("warning: wf runs as root"));
    let lines = lines.map(|line| match line.split_once("greeter.ops/runs/") {
        Some((before, run)) => {
            let name = run.split_once('_').map_or(run, |(_, name)| name);
            format!("{before}greeter.ops/runs/[STAMP]_{name}\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn the_demo_shows_the_whole_way_and_leaves_nothing() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    let transcript = redact(&demo.run("").snapshot());
    let (first, rest) = transcript.split_once("# the second one\n").expect("two micro-commits");
    check_first(first);
    check_rest(rest);
    assert_eq!(demo.folders(), 0);
}

/// The way to the approval of the first micro-commit.
fn check_first(transcript: &str) {
    insta::assert_snapshot!(transcript, @r#"
    status: 0
    --- stdout
    > making a product in [ROOT]/work/wf-demo-[RANDOM]
    $ wf project add greeter --repo-path [ROOT]/work/wf-demo-[RANDOM]/greeter
    Remembered [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/workflow as your workflow repository in [ROOT]/work/wf-demo-[RANDOM]/home/.config/wf/config.env
    Registered greeter in [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/workflow/projects/greeter
    $ wf new greet 'Greet people' 'greeter.sh tests.sh'
    Created workstream: greet
      Branch: feat/greet
      Worktree: [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/worktrees/greet
      Plan: [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/workflow/projects/greeter/workstreams/greet/plan.md
    Write the plan, then: wf run greet --loop

    # the plan is written (plan.md): two micro-commits; agents take the first one
    $ wf run greet --once
    > implement
      run: echo 'check "$(sh greeter.sh Ada)" "Hello, Ada"' >> tests.sh
      run: sed -i 's/world/${1:-world}/' greeter.sh
      run: sh check.sh
      run: git commit -qam 'COMMIT-GREET-001: Greet by name'
      print: {"status": "success"}
    > test
    > review
      print: {"version": 1, "decision": "approve", "blockers": []}
    COMMIT-GREET-001: passed
      Run: [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/runs/[STAMP]_greeter_greet_COMMIT-GREET-001
      Next: approve it: wf approve greet, or wf reject greet -m REASON

    # the gate after a micro-commit: you read what it changed, and approve
    $ wf diff --workstream greet
    diff --git a/greeter.sh b/greeter.sh
    index [SHA]..[SHA] 100644
    --- a/greeter.sh
    +++ b/greeter.sh
    @@ -1,3 +1,3 @@
     #!/bin/sh
     # Greets whoever runs it.
    -echo "Hello, world"
    +echo "Hello, ${1:-world}"
    diff --git a/tests.sh b/tests.sh
    index [SHA]..[SHA] 100644
    --- a/tests.sh
    +++ b/tests.sh
    @@ -1 +1,2 @@
     check "$(sh greeter.sh)" "Hello, world"
    +check "$(sh greeter.sh Ada)" "Hello, Ada"
    $ wf approve greet
    Approved COMMIT-GREET-001
    Continue: wf run greet --loop
    "#);
}

/// The way from the second micro-commit to the merge.
fn check_rest(transcript: &str) {
    insta::assert_snapshot!(transcript, @r#"
    $ wf run greet --once
    > implement
      run: echo 'check "$(GREETING=Salut sh greeter.sh Ada)" "Salut, Ada"' >> tests.sh
      run: sed -i 's/Hello/${GREETING:-Hello}/' greeter.sh
      run: sh check.sh
      run: git commit -qam 'COMMIT-GREET-002: Greet in French'
      print: {"status": "success"}
    > test
    > review
      print: {"version": 1, "decision": "approve", "blockers": []}
    COMMIT-GREET-002: passed
      Run: [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/runs/[STAMP]_greeter_greet_COMMIT-GREET-002
      Next: approve it: wf approve greet, or wf reject greet -m REASON
    $ wf approve greet
    Approved COMMIT-GREET-002
    Continue: wf run greet --loop

    # all are done: acceptance waits for you; you try it, and pass it
    $ wf run greet --once
    no micro-commit: blocked at uat: blocked by UAT-001
      Run: [ROOT]/work/wf-demo-[RANDOM]/greeter.ops/runs/[STAMP]_greeter_greet_none
      Next: try it: wf uat show UAT-001 -w greet
    $ wf uat pass UAT-001
    UAT-001 passed; greet is merge-ready
    Next: merge: wf merge greet
    $ wf list
     ID     STATUS       BRANCH      FILES  OVERLAP  WAITS FOR  TITLE
     greet  merge-ready  feat/greet  2                          Greet people

    # it is merge-ready: you merge
    $ wf merge greet
    Merged greet into main at [SHA] (fast-forward)
    Next: wf close greet
    cleaned up     [ROOT]/work/wf-demo-[RANDOM] is removed; --keep keeps it
    --- stderr
    "#);
}

#[test]
fn a_demo_keeps_its_folder_when_asked_or_when_it_fails() {
    let Some(demo) = Demo::new(PROGRAM) else { return };
    demo.keeps_its_folder_when_asked_or_when_it_fails();
}
