//! Tests by what ran: a test that ran on a side and does not run on the result is refused by its name.

use std::path::Path;

use serde_json::{Value, json};
use testkit::repo::Fork;
use testkit::wait::wait_until;

use crate::support::{MERGE, Person, field_of};

const RULES: &str = "---\ncheck: sh report.sh\n---\n";

/// Runs the tests `cases/*.t` except for those that the file `off` names, and leaves a JUnit file.
const REPORT: &str = "mkdir -p out
{ echo '<testsuite>'
for f in cases/*.t; do
  n=$(basename $f .t)
  if ! grep -qx $n off; then echo \"<testcase classname='c' name='$n'/>\"; fi
done
echo '</testsuite>'; } > out/junit.xml 2> out/log
";

/// Both sides have the test `both`, the fork has `ours` and upstream has `theirs`; the check is this script.
fn reporting(rules: &str, report: &str, files: &[(&str, &str)]) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        for (path, text) in [("report.sh", report), ("cases/both.t", "")].iter().chain(files) {
            fork.upstream_commit(path, text, "a file of both");
        }
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("FORK.md", rules).write("cases/ours.t", "");
        fork.fork_commit("the fork's work");
        fork.upstream_commit("cases/theirs.t", "", "a test");
        fork.clean_merge()
    })
}

fn merges_and(deed: &str) -> String {
    format!("{MERGE}\n[[step]]\nrun = '''{deed}\ngit add -A && git commit -qm deed'''\n")
}

fn lost(run: &Path) -> Value {
    field_of(run, "/ran_tests/lost/tests")
}

#[test]
fn a_test_that_does_not_run_on_the_result_is_refused_by_its_name() {
    let cases = [
        ("both", "c::both (of both sides, missing)"),
        ("ours", "c::ours (new in the fork, missing)"),
        ("theirs", "c::theirs (new in upstream, missing)"),
    ];
    for (test, expected) in cases {
        let Some(person) = reporting(RULES, REPORT, &[]) else { return };
        let output = person.run(&merges_and(&format!("echo {test} > off")), &[]);
        assert_eq!(output.status, Some(3), "{}", output.snapshot());
        let run = person.only_run();
        assert_eq!(field_of(&run, "/verdict/kind"), "tests-not-run");
        assert_eq!(lost(&run), json!([expected]));
        assert!(output.stdout.contains(expected), "{}", output.snapshot());
        assert_eq!(person.published(), Vec::<String>::new());
        let published = person.about(&run, &["publish", "--accept-dropped"]);
        assert_eq!(published.status, Some(0), "{}", published.snapshot());
        let last = person.runs().pop().expect("a run");
        let text = std::fs::read_to_string(last.join("PULL_REQUEST.md")).expect("the text");
        assert!(text.contains("test that does not run: "), "{text}");
    }
}

#[test]
fn an_honest_merge_is_published_and_each_tree_is_checked_once() {
    let Some(person) = reporting(RULES, REPORT, &[]) else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let first = person.only_run();
    assert_eq!(field_of(&first, "/ran_tests/compared"), 3);
    assert!(first.join("boxes/fork-check").exists() && first.join("boxes/upstream-check").exists());
    let text = std::fs::read_to_string(first.join("PULL_REQUEST.md")).expect("the text");
    assert!(text.contains("3 tests passed on a side, 0 of them do not run"), "{text}");
    person.fork.upstream_commit("more.txt", "more\n", "more");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = person.runs().pop().expect("a run");
    assert!(!last.join("boxes/fork-check").exists(), "the fork was checked again");
    assert!(last.join("boxes/upstream-check").exists());
}

#[test]
fn a_fork_that_does_not_want_the_comparison_has_none() {
    let rules = "---\ncheck: sh report.sh\ncompare-tests: false\n---\n";
    let Some(person) = reporting(rules, REPORT, &[]) else { return };
    let output = person.run(&merges_and("echo both > off"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let run = person.only_run();
    assert_eq!(field_of(&run, "/ran_tests"), Value::Null);
    assert!(!run.join("boxes/fork-check").exists());
}

#[test]
fn a_test_that_one_side_took_away_is_named_and_not_refused() {
    let Some(person) = reporting(RULES, REPORT, &[("cases/old.t", "")]) else { return };
    person.fork.upstream_remove("cases/old.t");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let run = person.only_run();
    assert_eq!(field_of(&run, "/ran_tests/given_up/tests/0"), "c::old (of the fork, missing)");
    assert_eq!(lost(&run), json!([]));
}

#[test]
fn a_report_that_the_agent_commits_is_no_run() {
    let Some(person) = reporting(RULES, REPORT, &[]) else { return };
    let small = "echo \"<testsuite><testcase classname='c' name='both'/></testsuite>\"";
    let large = format!("{{ {small}; yes '<!-- -->' | head -c 9000000; }}");
    for (number, report) in [small, large.as_str()].into_iter().enumerate() {
        let deed = format!("echo both > off; {report} > mine.xml");
        let output = person.run(&merges_and(&deed), &["--accept-loss"]);
        assert_eq!(output.status, Some(3), "{number}: {}", output.snapshot());
        let run = person.runs().pop().expect("a run");
        assert_eq!(lost(&run), json!(["c::both (of both sides, missing)"]), "{number}");
    }
}

#[test]
fn reports_that_are_no_more_left_are_missed() {
    let Some(person) = reporting(RULES, &format!("test -e quiet && exit 0\n{REPORT}"), &[]) else {
        return;
    };
    let output = person.run(&merges_and("touch quiet"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(field_of(&person.only_run(), "/ran_tests/lost/count"), 3);
}

#[test]
fn a_check_without_reports_is_tried_on_the_fork_once() {
    let rules = "---\ncheck: make test\n---\n";
    let makefile = [("Makefile", "test:\n\techo test result: ok\n")];
    let Some(person) = reporting(rules, REPORT, &makefile) else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let first = person.only_run();
    assert!(
        first.join("boxes/fork-check").exists() && !first.join("boxes/upstream-check").exists()
    );
    person.fork.checkout.write("own.txt", "own\n");
    person.fork.fork_commit("more of the fork");
    person.fork.upstream_commit("more.txt", "more\n", "more");
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    assert!(!person.runs().pop().expect("a run").join("boxes/fork-check").exists());
    // A definition that leaves reports from now on is noticed.
    person.fork.checkout.write("Makefile", "test:\n\tsh report.sh\n");
    person.fork.fork_commit("reports");
    person.fork.upstream_commit("yet-more.txt", "more\n", "more");
    let output = person.run(&merges_and("echo ours > off"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = person.runs().pop().expect("a run");
    // Upstream leaves none, so it is not known whether it gave the test up.
    assert_eq!(field_of(&last, "/ran_tests/undecided/tests/0"), "c::ours (of the fork, missing)");
    assert!(output.stdout.contains("c::ours"), "{}", output.snapshot());
}

#[test]
fn many_reports_refuse_no_honest_work_and_hide_nothing() {
    let each = "mkdir -p out; for f in cases/*.t; do n=$(basename $f .t); test \"$n\" = \"$(cat off 2> /dev/null)\" || \
                for i in $(seq 400); do \
                echo \"<testsuite><testcase classname='c$i' name='$n'/></testsuite>\" > out/$n$i.xml; done; done\n";
    let Some(person) = reporting(RULES, each, &[]) else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(field_of(&person.only_run(), "/ran_tests/compared"), 1200);
    assert_eq!(field_of(&person.only_run(), "/ran_tests/is_cut"), false);
    person.fork.upstream_commit("more.txt", "more\n", "more");
    let output = person.run(&merges_and("echo both > off"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(field_of(&person.runs().pop().expect("a run"), "/ran_tests/lost/count"), 400);
}

#[test]
fn a_kill_while_a_side_is_checked_publishes_nothing_that_would_be_refused() {
    // On the fork alone, which has not yet what upstream added, the check waits for the test.
    let waits = format!("until test -e upstream.txt || test -e go; do sleep 0.05; done\n{REPORT}");
    let Some(person) = reporting(RULES, &waits, &[]) else { return };
    let mut child = person.start(&merges_and("echo both > off"), &[]);
    let is_checked = || person.runs().first().map(|run| run.join("fork-check-workspace"));
    wait_until("the check of the fork", || {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended too early");
        let shim = |workspace: &Path| workspace.with_file_name("boxes/fork-check/shim.json");
        is_checked().is_some_and(|it| it.join("report.sh").exists() && shim(&it).exists())
    });
    child.kill().expect("killed");
    child.wait().expect("waited for");
    let run = person.only_run();
    assert_eq!(field_of(&run, "/phase"), "judged");
    std::fs::write(run.join("fork-check-workspace/go"), "").expect("written");
    let output = person.about(&run, &["attach"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(lost(&run), json!(["c::both (of both sides, missing)"]));
    assert_eq!(person.published(), Vec::<String>::new());
}
