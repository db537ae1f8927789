//! The fork's check judges the result: with files that the agent cannot rewrite, with the number of tests it ran, and before
//! an agent is started. Tests of both sides are in the result by name.

use serde_json::Value;
use testkit::repo::Fork;

use crate::support::{MERGE, Person, field_of, name_of, run_if_needed};

const TESTS_FILE: &str = "tests/test_shared.py";
const ONE: &str = "def test_one():\n    assert one() == 1\n";

/// Path and text.
type File = (&'static str, &'static str);

/// A fork whose main branch has these files and this FORK.md, and an upstream that has the files too and one commit more.
fn with_files(rules: &str, files: &[(&str, &str)]) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        for (path, text) in files {
            fork.upstream_commit(path, text, "a file of both");
        }
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("FORK.md", rules);
        fork.fork_commit("the rules of the fork");
        fork.clean_merge()
    })
}

/// An agent that merges and then does this.
fn merges_and(deed: &str) -> String {
    format!("{MERGE}\n[[step]]\nrun = '''{deed}\ngit add -A && git commit -qm deed'''\n")
}

fn pull_text(person: &Person) -> String {
    std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("the text")
}

const WANTS_REPAIR: &str = "---\ncheck: test -f repaired || { echo the reason; exit 7; }\n---\n";

#[test]
fn a_check_that_fails_on_a_clean_merge_starts_the_agent_with_its_output() {
    let Some(person) = with_files(WANTS_REPAIR, &[]) else { return };
    let script = "[[step]]\nrun = '''set -e
test -f .git/MERGE_HEAD && test -f upstream.txt
grep -q 'the reason' /harness-state/check.md && grep -q 'status 7' /harness-state/check.md
touch repaired && git add repaired && git commit -q --no-edit'''\n";
    let output = run_if_needed(&person, script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/check_on_merge/ended/code"), 7);
    assert_eq!(person.metadata("/check/ended/code"), 0);
    assert_eq!(person.metadata("/merged_alone"), false);
    let text = pull_text(&person);
    assert!(text.contains("so the agent was started"), "{text}");
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_check_that_fails_on_a_resolved_merge_starts_the_agent_from_that_merge() {
    let rules = "---\ncheck: test -f repaired\nresolve:\n  - {path: shared.txt, take: ours}\n---\n";
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", rules);
        fork.fork_commit("the rules of the fork");
        fork.conflicting_merge()
    }) else {
        return;
    };
    let script = "[[step]]\nrun = '''set -e
test -f .git/MERGE_HEAD && test -z \"$(git diff --name-only --diff-filter=U)\" && test -f /harness-state/check.md
touch repaired && git add repaired && git commit -q --no-edit'''\n";
    let output = run_if_needed(&person, script, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/resolver/receipts").as_array().map(Vec::len), Some(1));
}

#[test]
fn a_check_that_still_fails_after_the_agent_is_a_refusal() {
    let Some(person) = with_files(WANTS_REPAIR, &[]) else { return };
    let output = run_if_needed(&person, "[[step]]\nrun = 'git commit -q --no-edit'\n", &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "check-failed");
    assert!(person.published().is_empty());
}

#[test]
fn a_check_that_passes_on_a_clean_merge_runs_once_and_needs_no_agent() {
    let Some(person) = with_files("---\ncheck: echo test result ok\n---\n", &[]) else { return };
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/merged_alone"), true);
    let boxes = person.only_run().join("boxes");
    assert!(boxes.join("merge-check").exists() && !boxes.join("check").exists());
}

const MAKEFILE: &str = "test:\n\ttest ! -e broken\n";

#[test]
fn b12_an_agent_that_rewrites_the_makefile_is_judged_by_the_forks() {
    let rules = "---\ncheck: make test\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    let script = merges_and("touch broken; printf 'test:\\n\\ttrue\\n' > Makefile");
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "check-failed", "{}", output.snapshot());
    assert_eq!(person.metadata("/check_changed/files/0"), "Makefile");
    assert_eq!(person.metadata("/check_changed/with_agent_files/ended/code"), 0);
    assert_eq!(person.metadata("/check/ended/code"), 2);
    assert!(output.stderr.contains("files that define the check (Makefile)"), "{}", output.stderr);
    assert!(person.published().is_empty());
}

#[test]
fn a_person_may_let_the_agents_definition_of_the_check_count() {
    let rules = "---\ncheck: make test\nallow-paths: [Makefile]\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    let script = merges_and("touch broken; printf 'test:\\n\\ttrue\\n' > Makefile");
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "FORK.md is no word about it: {}", output.snapshot());
    let first = person.only_run();
    let next = format!("forklift publish {} --allow-path Makefile", name_of(&first));
    assert!(output.stdout.contains(&next), "{}", output.stdout);
    let output = person.about(&first, &["publish", "--allow-path", "Makefile"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = person.runs().pop().expect("a run");
    assert!(!last.join("boxes/agent").exists(), "an agent was started");
    assert_eq!(field_of(&last, "/check/ended/code"), 0);
    assert_eq!(field_of(&last, "/check_changed/allowed/0"), "Makefile");
    let text = std::fs::read_to_string(last.join("PULL_REQUEST.md")).expect("the text");
    for words in [
        "`Makefile`: changed by the agent, and it defines the check; a person allowed it",
        "changed files that define the check**, and a person allowed it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_changed_check_that_passes_with_both_definitions_is_shown_with_both() {
    let rules = "---\ncheck: make test\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    let script = merges_and("printf '\\techo more\\n' >> Makefile");
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = pull_text(&person);
    assert!(text.contains("`Makefile`: changed by the agent, and it defines the check"), "{text}");
    assert!(
        text.contains("changed files that define the check**: with its files it passed"),
        "{text}"
    );
}

#[test]
fn an_agent_cannot_rewrite_a_script_that_the_check_reaches_through_another() {
    let rules = "---\ncheck: sh ci/run.sh\n---\n";
    let files = [("ci/run.sh", "sh ci/suite.sh\n"), ("ci/suite.sh", "test ! -e broken\n")];
    let Some(person) = with_files(rules, &files) else { return };
    let output =
        person.run(&merges_and("touch broken; echo true > ci/suite.sh"), &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/check_changed/files/0"), "ci/suite.sh");
}

/// A file is a part of the check whatever its name and however the check comes to it.
#[test]
fn an_agent_cannot_rewrite_what_the_check_reads_on_its_way() {
    const PASSES: &str = "test ! -e broken\n";
    let cases: [(&str, &[File], &str); 9] = [
        (
            "sh run.sh",
            &[("run.sh", ". ./env.inc\n$RUN\n"), ("env.inc", "RUN='test ! -e broken'\n")],
            "echo RUN=true > env.inc",
        ),
        (
            "bash run.sh",
            &[("run.sh", "source lib/common\n"), ("lib/common", PASSES)],
            "echo true > lib/common",
        ),
        (
            "make test",
            &[
                ("Makefile", "test:\n\tset -a; . ./.env; $$RUN\n"),
                (".env", "RUN='test ! -e broken'\n"),
            ],
            "echo RUN=true > .env",
        ),
        (
            "sh ci/run.sh",
            &[("ci/run.sh", ". \"$(dirname \"$0\")/env.cfg\"\n"), ("ci/env.cfg", PASSES)],
            "echo true > ci/env.cfg",
        ),
        (
            // What `ctest` does.
            "'sed -n \"s/^add_test(.* COMMAND \\(.*\\))/\\1/p\" CMake*.txt | sh'",
            &[("CMakeLists.txt", "add_test(NAME a COMMAND test ! -e broken)\n")],
            "sed -i /add_test/d CMakeLists.txt; echo project >> CMakeLists.txt",
        ),
        (
            "make -C build test",
            &[("build/Makefile", "test:\n\tcd ..; sh ./x/run\n"), ("x/run", PASSES)],
            "echo true > x/run",
        ),
        (
            "make test",
            &[
                ("Makefile", "test:\n\t$(MAKE) -C sub\n"),
                ("sub/Makefile", "all:\n\tcd ..; sh ./sub/t.sh\n"),
                ("sub/t.sh", PASSES),
            ],
            "echo true > sub/t.sh",
        ),
        (
            "'for f in tests/*.sh; do sh $f || exit 1; done'",
            &[("tests/a.sh", PASSES)],
            "echo true > tests/a.sh",
        ),
        (
            "'PATH=$PWD/bin:$PATH; sh -c \"test ! -e broken || mytest\"'",
            &[("bin/other", PASSES)],
            "printf '#!/bin/sh\\n' > bin/mytest; chmod +x bin/mytest",
        ),
    ];
    for (check, files, trick) in cases {
        let Some(person) = with_files(&format!("---\ncheck: {check}\n---\n"), files) else {
            return;
        };
        let output = person.run(&merges_and(&format!("touch broken; {trick}")), &["--accept-loss"]);
        assert_eq!(output.status, Some(3), "{check}: {}", output.snapshot());
        assert_eq!(person.metadata("/verdict/kind"), "check-failed", "{check}");
    }
}

/// A file that a script of the check imports may be a part of the check or what it is about: people are told.
#[test]
fn what_the_checks_files_name_and_the_agent_changed_stands_first() {
    let cases: [(&str, &[File], &str, &str); 2] = [
        (
            "sh run.sh",
            &[("run.sh", "test \"$(cat wanted.txt)\" = yes\n"), ("wanted.txt", "yes\n")],
            "printf 'yes' > wanted.txt",
            "wanted.txt",
        ),
        (
            "sh run.sh",
            &[
                ("run.sh", "sh tests/all.py\n"),
                ("tests/all.py", "echo import helper\n"),
                ("helper.py", "x = 1\n"),
            ],
            "echo x = 2 > helper.py",
            "helper.py",
        ),
    ];
    for (check, files, change, path) in cases {
        let Some(person) = with_files(&format!("---\ncheck: {check}\n---\n"), files) else {
            return;
        };
        let output = person.run(&merges_and(change), &["--accept-loss"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert_eq!(person.metadata("/check_changed/named/0"), path);
        let text = pull_text(&person);
        let point = "changed by the agent outside of the conflicts, and the check's files name it";
        assert!(text.contains(&format!("`{path}`: {point}")), "{text}");
        assert!(text.contains("**the agent changed files that the check's files name**"), "{text}");
    }
}

/// What is published has to pass as it is, and not only with the files of others.
#[test]
fn a_result_that_fails_with_its_own_files_is_refused() {
    let rules = "---\ncheck: make test\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    let output =
        person.run(&merges_and("printf 'test:\\n\\tfalse\\n' > Makefile"), &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "check-failed");
    assert_ne!(person.metadata("/check_changed/with_agent_files/ended/code"), 0);
}

#[test]
fn an_agent_cannot_add_a_definition_that_nobody_had() {
    let rules = "---\ncheck: test ! -e broken || test -e jest.config.js\n---\n";
    let Some(person) = with_files(rules, &[]) else { return };
    let output = person.run(&merges_and("touch broken jest.config.js"), &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
}

#[test]
fn of_a_package_manifest_only_the_scripts_are_taken_back() {
    let rules = "---\ncheck: grep -q '\"added\"' package.json && cat package.json\n---\n";
    let manifest = "{\"scripts\": {\"check\": \"true-check\"}, \"dependencies\": {}}\n";
    let Some(person) = with_files(rules, &[("package.json", manifest)]) else { return };
    let script = merges_and(
        "printf '{\"scripts\": {\"check\": \"exit 0\"}, \"dependencies\": {\"added\": \"1\"}}' > package.json",
    );
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let has = |place: &str, word: &str| {
        person.metadata(place).as_str().is_some_and(|it| it.contains(word))
    };
    assert!(has("/check/tail", "true-check") && !has("/check/tail", "exit 0"));
    assert!(has("/check_changed/with_agent_files/tail", "exit 0"));
}

#[test]
fn a_test_script_that_neither_side_has_waits_for_a_person() {
    let manifest = "{\"scripts\": {\"test\": \"true-test\"}}\n";
    let Some(person) = with_files("words\n", &[("package.json", manifest)]) else { return };
    let script = merges_and("printf '{\"scripts\": {\"test\": \"exit 0\"}}' > package.json");
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(
        output.stdout.contains("waits for a person: package.json (install or test script)"),
        "{}",
        output.snapshot()
    );
}

#[test]
fn a_definition_that_both_sides_changed_may_be_resolved_by_the_agent() {
    let rules = "---\ncheck: make test\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    let fork = &person.fork;
    fork.checkout.write("Makefile", "test:\n\ttest ! -e broken && echo fork\n");
    fork.fork_commit("the fork's test");
    fork.upstream_commit(
        "Makefile",
        "test:\n\ttest ! -e broken && echo upstream\n",
        "upstream's test",
    );
    let resolves = "[[step]]\nrun = '''git merge -q --no-edit upstream/main
printf 'test:\\n\\ttest ! -e broken && echo fork && echo upstream\\n' > Makefile
git add -A && git commit -q --no-edit'''\n";
    let output = person.run(resolves, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/check_changed/files/0"), "Makefile");
}

#[test]
fn what_upstream_changed_in_a_definition_counts() {
    let rules = "---\ncheck: make test\n---\n";
    let Some(person) = with_files(rules, &[("Makefile", MAKEFILE)]) else { return };
    person.fork.upstream_commit("Makefile", "test:\n\ttest -f upstream.txt\n", "a new test");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/check_changed"), Value::Null);
}

#[test]
fn the_number_of_tests_is_read_from_the_output_and_from_reports() {
    let counted = "---\ncheck: 'echo \"test result: ok. 3 passed; 0 failed; 1 ignored\"'\n---\n";
    let report = "<testsuite><testcase/><testcase/></testsuite>";
    let reported = format!("---\ncheck: mkdir -p out && echo '{report}' > out/TEST-a.xml\n---\n");
    let silent = format!("---\ncheck: 'true'\n---\n{report}\n");
    let cases = [
        (counted, "passed, 3 tests", Value::from(3)),
        (reported.as_str(), "passed, 2 tests", Value::from(2)),
        (silent.as_str(), "passed, no test was seen", Value::Null),
    ];
    for (rules, words, passed) in cases {
        let Some(person) = with_files(rules, &[("fixture.xml", report)]) else { return };
        let output = person.run(MERGE, &[]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert_eq!(person.metadata("/check/tests/passed"), passed, "{rules}");
        let text = pull_text(&person);
        assert!(text.contains(words), "{words}: {text}");
        let run = person.only_run();
        let name = run.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let shown = person.hermetic.run(&mut person.forklift(&["show", &name]));
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
}

/// A file of tests to which the fork and upstream add one each.
fn with_tests() -> Option<Person> {
    let person = with_files("words\n", &[(TESTS_FILE, ONE)])?;
    let fork = &person.fork;
    let ours =
        format!("def test_fork():\n    assert fork() == 1\n    assert fork() != 2\n\n\n{ONE}");
    fork.checkout.write(TESTS_FILE, &ours);
    fork.fork_commit("a test of the fork");
    let theirs =
        format!("{ONE}\n\ndef test_upstream():\n    assert up() == 1\n    assert up() != 2\n");
    fork.upstream_commit(TESTS_FILE, &theirs, "a test of upstream");
    Some(person)
}

#[test]
fn an_honest_merge_has_the_tests_of_both_sides() {
    let Some(person) = with_tests() else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for kind in ["missing", "skipped", "weakened"] {
        let found = person.metadata(&format!("/tests/{kind}"));
        assert_eq!(found.as_array().map(Vec::len), Some(0), "{kind}: {found}");
    }
}

#[test]
fn a_test_that_is_missing_or_skipped_is_refused_by_name() {
    for (deed, kind) in [
        ("sed -i s/test_upstream/not_a_test/ tests/test_shared.py", "missing"),
        ("sed -i 's/^def test_upstream/@pytest.mark.skip\\n&/' tests/test_shared.py", "skipped"),
        ("sed -i 's/^def test_upstream.*/&\\n    return/' tests/test_shared.py", "skipped"),
        ("git mv tests/test_shared.py tests/shared.py", "skipped"),
        ("git mv tests/test_shared.py tests/test_shared.txt", "missing"),
    ] {
        let Some(person) = with_tests() else { return };
        let output = person.run(&merges_and(deed), &[]);
        assert_eq!(output.status, Some(3), "{deed}: {}", output.snapshot());
        let named = person.metadata(&format!("/tests/{kind}"));
        let names: Vec<&str> =
            named.as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
        assert!(names.contains(&"test_upstream"), "{deed}: {named}");
        assert!(output.stdout.contains("test_upstream"), "{deed}: {}", output.stdout);
        assert!(person.published().is_empty(), "{deed}");
    }
}

#[test]
fn a_lost_test_that_the_user_accepts_is_published_and_named() {
    let Some(person) = with_tests() else { return };
    let script = merges_and("sed -i s/test_upstream/not_a_test/ tests/test_shared.py");
    let output = person.run(&script, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = pull_text(&person);
    assert!(
        text.contains("missing test: tests/test") && text.contains("upstream (of upstream)"),
        "{text}"
    );
}

#[test]
fn a_test_that_asserts_less_is_published_and_named() {
    let Some(person) = with_tests() else { return };
    let output = person.run(&merges_and("sed -i '/up() != 2/d' tests/test_shared.py"), &[]);
    let weakened = person.metadata("/tests/weakened/0");
    assert_eq!(weakened["name"], "test_upstream", "{}", output.snapshot());
    assert!(weakened["note"].as_str().is_some_and(|it| it.contains("1 of 2")), "{weakened}");
}
