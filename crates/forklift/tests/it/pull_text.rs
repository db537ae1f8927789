//! Pull requests to merge by: what needs a look first, each conflict with who decided it, and nothing that acts.

use std::path::Path;

use testkit::repo::Fork;

use crate::support::{Person, THEIRS, run_if_needed as run, two_conflicts};

fn text_of(run: &Path) -> String {
    std::fs::read_to_string(run.join("PULL_REQUEST.md")).expect("the text")
}

/// The text without what differs from run to run. A bar stands for the invisible break.
fn snapshot(person: &Person, run: &Path) -> String {
    let text = person.hermetic.redact(&text_of(run)).replace('\u{200b}', "¦");
    let line = |line: &str| {
        let rest = |rest: &str| rest.split_once(", ").map(|(_, rest)| rest.to_owned());
        let sum = line.split_once(" together: ").and_then(|(start, end)| Some((start, rest(end)?)));
        match (line.strip_prefix("- time: "), sum) {
            (Some(_), _) => "- time: [TIME]\n".to_owned(),
            (None, Some((start, rest))) => format!("{start} together: [TIME], {rest}\n"),
            (None, None) => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn a_clean_merge_says_that_nothing_needs_a_look() {
    let Some(person) = Person::new() else { return };
    let output = run(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(!output.stdout.contains("look"), "{}", output.stdout);
    insta::assert_snapshot!(snapshot(&person, &person.only_run()), @r"
    # Merge upstream main at [SHA] (1 commit)

    Merge `forklift/fork_[STAMP]` into `main`.

    <!-- forklift --> <!-- forklift: update -->

    Brings `main` up to date with upstream `[SHA]`. Made by git alone, without an agent; judged by the host against the commits it pinned before the run.

    ### Needs a look

    Nothing: the result has the changes of both sides, but for what the fork's rules leave out, and the agent decided nothing.

    ### Conflicts

    None: git merges the two sides without a conflict.

    ### What comes from upstream

    - `[SHA]` `second`

    ### How it was made and checked

    - agent: none was needed
    - the fork's own check: none is set (`check` in FORK.md)
    - tests of both sides: 0 missing, 0 skipped, 0 weakened
    - upstream's commit is contained: yes
    - the fork's history is contained: yes
    - conflict markers left: 0
    - links out of the tree: 0
    - commits not by the box's own identity: 0

    ### What became of the fork's own changes

    **Fork contract:** 1 commit (1 kept); 1 path (1 kept)

    Run `fork_[STAMP]` in `~/.local/state/forklift/runs/fork_[STAMP]`.
    ");
}

/// The same for a merge with conflicts, without the checks, which a clean merge shows.
fn conflict_snapshot(person: &Person, run: &Path) -> String {
    snapshot(person, run).replace(CHECKS, "[CHECKS]\n")
}

const CHECKS: &str = "- the fork's own check: none is set (`check` in FORK.md)\n\
     - tests of both sides: 0 missing, 0 skipped, 0 weakened\n- upstream's commit is contained: yes\n\
     - the fork's history is contained: yes\n- conflict markers left: 0\n- links out of the tree: 0\n\
     - commits not by the box's own identity: 0\n";

/// Both conflicts fall to rules of the fork.
fn ruled() -> Option<Person> {
    let rules = "---\nresolve:\n  - {path: ruled.txt, take: theirs}\n  - {path: shared.txt, take: ours}\n---\n";
    let person = two_conflicts(rules)?;
    let output = run(&person, "[[step]]\nexit = 9\n", &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

#[test]
fn a_merge_by_rules_names_the_rule_of_each_conflict() {
    let Some(person) = ruled() else { return };
    insta::assert_snapshot!(conflict_snapshot(&person, &person.only_run()), @r"
    # Merge upstream main at [SHA] (2 commits)

    Merge `forklift/fork_[STAMP]` into `main`.

    <!-- forklift --> <!-- forklift: update -->

    Brings `main` up to date with upstream `[SHA]`. Made by git, the fork's rules and its past, without an agent; judged by the host against the commits it pinned before the run.

    ### Needs a look

    Nothing: the result has the changes of both sides, but for what the fork's rules leave out, and the agent decided nothing.

    ### Conflicts

    | path | conflict | decided by | result | sure |
    |---|---|---|---|---|
    | `ruled.txt` | content | rule | theirs | 100 % |
    | `shared.txt` | content | rule | ours | 100 % |

    <details><summary>ruled.txt</summary>

    ```text
    <<<<<<< fork
    ours
    ||||||| merge base
    two
    ======= upstream
    theirs
    >>>>>>> result
    theirs
    ```

    </details>

    <details><summary>shared.txt</summary>

    ```text
    <<<<<<< fork
    two, said the fork
    ||||||| merge base
    two
    ======= upstream
    two, said upstream
    >>>>>>> result
    two, said the fork
    ```

    </details>

    ### What comes from upstream

    - `[SHA]` `upstream's two`
    - `[SHA]` `upstream's way`

    Left out of it by the fork's rules and earlier merges:

    - `shared.txt`, by resolve: shared.txt

    ### How it was made and checked

    - agent: none was needed
    [CHECKS]

    ### What became of the fork's own changes

    **Fork contract:** 3 commits (2 kept, 1 changed); 3 paths (2 kept, 1 changed)

    | state | what | why |
    |---|---|---|
    | changed | `[SHA] the fork's way` |  |
    | changed | `ruled.txt` | 0 of 1 line; resolve: ruled.txt |

    Run `fork_[STAMP]` in `~/.local/state/forklift/runs/fork_[STAMP]`.
    ");
}

/// Merges, decides the conflict anew, and leaves out what upstream wrote into another file.
const DROPS: &str = "[[step]]\nrun = '''git merge -q --no-edit upstream/main || true
git show HEAD:README.md > README.md; printf 'one\\ntwo, said both\\nthree\\n' > shared.txt
git add -A && git commit -q --no-edit'''\n";

fn dropping() -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.upstream_commit("README.md", "# Project\n\nRead this.\n", "a line to read");
        fork.conflicting_merge()
    })
}

#[test]
fn a_dropped_hunk_of_upstream_stands_first() {
    let Some(person) = dropping() else { return };
    let output = run(&person, DROPS, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    insta::assert_snapshot!(conflict_snapshot(&person, &person.only_run()), @r"
    # Merge upstream main at [SHA] (2 commits)

    Merge `forklift/fork_[STAMP]` into `main`.

    <!-- forklift --> <!-- forklift: update -->

    Brings `main` up to date with upstream `[SHA]`. Made by `scripted` in a sealed box; judged by the host against the commits it pinned before the run.

    ### Needs a look

    - `README.md`: upstream's change is dropped: 1 of 1 hunk dropped, 1 line missing
    - `shared.txt`: upstream's change is there in part or in another form: 1 of 1 hunk adapted, 1 line missing; the fork's change is there in part or in another form: 1 of 1 hunk adapted, 1 line missing; inside the conflict: 1 line that neither side has as it is; conflict decided by the agent (new)

    ### Conflicts

    | path | conflict | decided by | result | sure |
    |---|---|---|---|---|
    | `shared.txt` | content | agent | new | – |

    <details><summary>shared.txt</summary>

    ```text
    <<<<<<< fork
    two, said the fork
    ||||||| merge base
    two
    ======= upstream
    two, said upstream
    >>>>>>> result
    two, said both
    ```

    </details>

    ### What comes from upstream

    - `[SHA]` `upstream's two`
    - `[SHA]` `a line to read`

    ### How it was made and checked

    - agent: `scripted` in a sealed bwrap box
    - model: unknown
    - time: [TIME]
    - tokens: unknown
    - cost: unknown
    [CHECKS]

    ### What became of the fork's own changes

    **Fork contract:** 2 commits (1 kept, 1 changed); 2 paths (1 kept, 1 changed)

    | state | what | why |
    |---|---|---|
    | changed | `[SHA] the fork's two` |  |
    | changed | `shared.txt` | 0 of 1 line, 1 adapted |

    Run `fork_[STAMP]` in `~/.local/state/forklift/runs/fork_[STAMP]`.
    ");
}

#[test]
fn the_terminal_and_scripts_get_the_same_points() {
    let Some(person) = dropping() else { return };
    let output = run(&person, DROPS, &[]);
    let name = person.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    let shown = person.hermetic.run(&mut person.forklift(&["show", &name]));
    for text in [&output.stdout, &shown.stdout] {
        let points: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("needs look")).collect();
        assert!(points.first().is_some_and(|line| line.ends_with("2 points")), "{text}");
        assert!(points[1].starts_with("  README.md: upstream's change is dropped"), "{text}");
        assert!(points[2].starts_with("  shared.txt: "), "{text}");
        assert!(points[2].contains("conflict decided by the agent"), "{text}");
    }
    let document = person.hermetic.run(&mut person.forklift(&["show", &name, "--json"])).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["needs_look"][0]["path"], "README.md", "{document}");
    assert_eq!(document["run"], name.as_str());
}

/// An agent that asks, and after the answer finishes what the rules left.
fn resumed() -> Option<Person> {
    let person = two_conflicts(THEIRS)?;
    let stuck =
        run(&person, "[[step]]\nrun = \"echo which one? > STUCK.md\"\n", &["--accept-loss"]);
    assert_eq!(stuck.status, Some(4), "{}", stuck.snapshot());
    let first = person.only_run();
    let script = person.hermetic.root().join("second.toml");
    let finishes = "[[step]]\nrun = '''set -e
sed -i '/^[<=>]\\{7\\}/d' shared.txt && git add shared.txt && git commit -q --no-edit'''\n";
    std::fs::write(&script, finishes).expect("the script");
    let name = first.file_name().expect("a name").to_string_lossy().into_owned();
    let mut command = person.forklift(&["resume", &name, "--answer", "both", "--script"]);
    let output = person.hermetic.run(command.arg(&script));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

#[test]
fn a_resumed_run_still_says_who_resolved_what() {
    let Some(person) = resumed() else { return };
    insta::assert_snapshot!(conflict_snapshot(&person, &person.runs()[1]), @r"
    # Merge upstream main at [SHA] (2 commits)

    Merge `forklift/fork_[STAMP]` into `main`.

    <!-- forklift --> <!-- forklift: update -->

    Brings `main` up to date with upstream `[SHA]`. Made by `scripted` in a sealed box; judged by the host against the commits it pinned before the run.

    ### Needs a look

    - `shared.txt`: conflict decided by the agent (both)

    ### Conflicts

    | path | conflict | decided by | result | sure |
    |---|---|---|---|---|
    | `ruled.txt` | content | rule | theirs | 100 % |
    | `shared.txt` | content | agent | both | – |

    <details><summary>ruled.txt</summary>

    ```text
    <<<<<<< fork
    ours
    ||||||| merge base
    two
    ======= upstream
    theirs
    >>>>>>> result
    theirs
    ```

    </details>

    <details><summary>shared.txt</summary>

    ```text
    <<<<<<< fork
    two, said the fork
    ||||||| merge base
    two
    ======= upstream
    two, said upstream
    >>>>>>> result
    two, said the fork
    two, said upstream
    ```

    </details>

    ### What comes from upstream

    - `[SHA]` `upstream's two`
    - `[SHA]` `upstream's way`

    ### How it was made and checked

    - agent: `scripted` in a sealed bwrap box
    - model: unknown
    - time: [TIME]
    - tokens: unknown
    - cost: unknown
    - continues run `fork_[STAMP]`; all 2 runs together: [TIME], tokens unknown, cost unknown
    [CHECKS]

    ### What became of the fork's own changes

    **Fork contract:** 3 commits (2 kept, 1 changed); 3 paths (2 kept, 1 changed)

    | state | what | why |
    |---|---|---|
    | changed | `[SHA] the fork's way` |  |
    | changed | `ruled.txt` | 0 of 1 line; resolve: ruled.txt |

    Run `fork_[STAMP]` in `~/.local/state/forklift/runs/fork_[STAMP]`.
    ");
}

#[test]
fn where_the_agent_began_the_conflicts_are_those_of_gits_own_merge() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let script = "[[step]]\nrun = '''git merge -q --no-edit upstream/main || true
sed -i '/^[<=>]\\{7\\}/d' shared.txt; git add -A && git commit -q --no-edit'''\n";
    let output = run(&person, script, &["--agent-when", "always"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = text_of(&person.only_run());
    assert!(text.contains("| `shared.txt` | content | agent | both | – |"), "{text}");
}

#[test]
fn the_words_of_others_do_nothing_on_a_forge() {
    let words = "Fixes https://github.com/o/r/issues/3, GH-12, #4 and !1; &commat;victim &num;7 ~l %m @victim \
                 ![p](https://evil.example/p.png) [l](https://evil.example) <b>";
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.upstream_commit("upstream.txt", "1\n2\n", words);
        fork.upstream_commit("closes #5, GH-6.txt", "x\n", "/merge");
        fork
    }) else {
        return;
    };
    let output = run(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = text_of(&person.only_run());
    for live in ["://", "GH-1", "#4", "!1", "#5", "GH-6", "\n/merge"] {
        assert!(!text.contains(live), "{live}: {text}");
    }
    let line = text.lines().find(|line| line.contains("victim")).expect("the subject");
    let inside = line.rsplit_once("` `").map(|(_, rest)| rest);
    assert!(inside.is_some_and(|rest| rest.ends_with('`') && rest.contains("@victim")), "{line}");
}

#[test]
fn messages_of_upstream_that_close_issues_of_the_fork_are_named_first() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.upstream_commit(
            "upstream.txt",
            "1\n2\n",
            "a repair (#13)\n\nFixes #5\nSee upstream/project#6",
        );
        fork.upstream_commit("other.txt", "1\n", "closes upstream/project#7");
        fork
    }) else {
        return;
    };
    let output = run(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = text_of(&person.only_run());
    let point =
        "merging may close or reopen issues of the fork, by 1 message of upstream's commits: ";
    assert!(text.contains(point) && !text.contains("Fixes #5"), "{text}");
    assert!(output.stdout.contains(point), "{}", output.snapshot());
}

#[test]
fn very_large_messages_of_upstream_are_said_to_be_unread() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        let message = hermetic.root().join("message");
        std::fs::write(&message, "fixes #5\n".repeat(3 << 20)).expect("written");
        fork.upstream_does("more", |author| {
            author.write("upstream.txt", "1\n2\n").git(&["add", "upstream.txt"]);
            author.git(&["commit", "-q", "-F", message.to_str().expect("UTF-8")]);
            author.write("more.txt", "1\n");
        });
        fork
    }) else {
        return;
    };
    let output = run(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let unread = "not all messages of upstream's commits could be read";
    assert!(output.stdout.contains(unread), "{}", output.snapshot());
}
