//! `wf conflicts` and `wf update`: overlaps, forecasts and merges of the base branch.

use crate::support::Person;

#[test]
fn paths_that_both_expect() {
    let person = Person::with_two();
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"], &["conflicts", "one", "--exit-code"]]), @"
    $ wf conflicts one
    Conflicts for one:

      vs two:
        Both expect: src/ and src/api
    Against main: merges cleanly
    [0]
    $ wf conflicts one --exit-code
    Conflicts for one:

      vs two:
        Both expect: src/ and src/api
    Against main: merges cleanly
    [1]
    ");
}

#[test]
fn nothing_in_common() {
    let person = Person::new();
    person.ok(&["new", "one", "One", "src/"]);
    person.ok(&["new", "two", "Two", "docs/"]);
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"], &["conflicts", "one", "--exit-code"]]), @"
    $ wf conflicts one
    No conflicts detected for one
    Against main: merges cleanly
    [0]
    $ wf conflicts one --exit-code
    No conflicts detected for one
    Against main: merges cleanly
    [0]
    ");
}

#[test]
fn lists_that_are_older_than_their_branches() {
    let person = Person::with_two();
    person.worktree("two").write("src/api/x", "2\n").commit("COMMIT-T-001: x");
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"]]), @"
    $ wf conflicts one
    Conflicts for one:

      vs two:
        Both expect: src/ and src/api
    Against main: merges cleanly
    ! warning: the lists of two are older than their branches; run: wf refresh
    [0]
    ");
}

#[test]
fn files_that_both_touched_and_their_forecast() {
    let person = Person::with_two();
    for (id, text) in [("one", "1\n"), ("two", "2\n")] {
        let worktree = person.worktree(id);
        worktree.write("src/api/x", text).write("src2/y", "same").commit("COMMIT-X-001: x");
    }
    person.ok(&["refresh"]);
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"], &["conflicts", "two"]]), @"
    $ wf conflicts one
    Conflicts for one:

      vs two:
        Actual overlap (2 files):
          - src/api/x
          - src2/y
        Predicted overlap:
          src/: 1 files
        Predicted by the other:
          src/api: 1 files
        Both expect: src/ and src/api
        Forecast: conflicts in src/api/x
    Against main: merges cleanly
    [0]
    $ wf conflicts two
    Conflicts for two:

      vs one:
        Actual overlap (2 files):
          - src/api/x
          - src2/y
        Predicted overlap:
          src/api: 1 files
        Predicted by the other:
          src/: 1 files
        Both expect: src/api and src/
        Forecast: conflicts in src/api/x
    Against main: merges cleanly
    [0]
    ");
}

#[test]
fn a_long_list_is_cut() {
    let person = Person::with_two();
    for id in ["one", "two"] {
        let worktree = person.worktree(id);
        for n in 0..13 {
            worktree.write(&format!("src/f{n:02}"), "same\n");
        }
        worktree.commit("COMMIT-X-001: many");
    }
    person.ok(&["refresh"]);
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"]]), @"
    $ wf conflicts one
    Conflicts for one:

      vs two:
        Actual overlap (13 files):
          - src/f00
          - src/f01
          - src/f02
          - src/f03
          - src/f04
          - src/f05
          - src/f06
          - src/f07
          - src/f08
          - src/f09
          ... and 3 more
        Predicted overlap:
          src/: 13 files
        Both expect: src/ and src/api
        Forecast: merges cleanly
    Against main: merges cleanly
    [0]
    ");
}

#[test]
fn the_base_branch_conflicts() {
    let person = Person::with_two();
    person.worktree("one").write("README.md", "mine\n").commit("COMMIT-O-001: x");
    person.repo.write("README.md", "theirs\n").commit("on main");
    person.ok(&["refresh"]);
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "one"], &["conflicts", "two"], &["update", "one"]]), @"
    $ wf conflicts one
    Conflicts for one:

      vs two:
        Both expect: src/ and src/api
    Against main: conflicts in README.md
    [0]
    $ wf conflicts two
    Conflicts for two:

      vs one:
        Both expect: src/api and src/
    Against main: merges cleanly
    [0]
    $ wf update one
    ! > the agent resolves the conflicts that are left
    ! error: feat/one conflicts with main in README.md, and nothing was changed (no agent can resolve it: the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)); merge it by hand: git -C [ROOT]/work/app.ops/worktrees/one merge main
    [8]
    ");
}

#[test]
fn an_update_merges_forwards_and_repeats() {
    let person = Person::with_two();
    person.worktree("one").write("mine", "x\n").commit("COMMIT-O-001: x");
    person.repo.write("theirs", "y\n").commit("on main");
    insta::assert_snapshot!(person.transcript(&[&["update", "one"], &["update", "two"], &["update", "one"]]), @"
    $ wf update one
    Merged main into one at [SHA]
    [0]
    $ wf update two
    two is at main now: [SHA]
    [0]
    $ wf update one
    one contains main already
    [0]
    ");
}

#[test]
fn an_update_with_uncommitted_files() {
    let person = Person::with_two();
    person.repo.write("theirs", "y\n").commit("on main");
    person.worktree("one").write("stray", "x");
    insta::assert_snapshot!(person.transcript(&[&["update", "one"]]), @"
    $ wf update one
    ! error: the worktree [ROOT]/work/app.ops/worktrees/one has uncommitted changes, such as stray
    [8]
    ");
}
