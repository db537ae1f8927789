//! Several branches of a fork, as FORK.md lists them; several forks at once; and the page about all of them.

use serde_json::Value;
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::Person;

const PAIRS: &str = "---\nbranches:\n  - {upstream: v1, ours: stable-1}\n  - {upstream: main, ours: main}\n---\nKeep it.\n";

/// A fork whose FORK.md lists `v1` into `stable-1`, then `main`; both of upstream's branches have one new commit more.
fn with_pairs(rules: &str) -> Option<Person> {
    let person = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", rules);
        fork.fork_commit("fork: its branches");
        fork.origin.git(&["branch", "stable-1", "main"]);
        fork.upstream_commit("fix", "fixed\n", "upstream: a fix");
        fork.upstream.git(&["branch", "v1", "main"]);
        fork.upstream_commit("feature", "new\n", "upstream: a feature");
        fork
    })?;
    Some(person)
}

fn summary(output: &Output) -> Value {
    let last = output.stdout.lines().last().expect("an event");
    serde_json::from_str(last).expect("JSON")
}

fn run(person: &Person, flags: &[&str]) -> Output {
    person.hermetic.run(&mut person.alone(flags))
}

fn status(person: &Person) -> Value {
    let output = person.hermetic.run(&mut person.forklift(&["status", "--json"]));
    serde_json::from_str(&output.stdout).expect("JSON")
}

/// Files of a published branch that goes into a branch of the fork.
fn published_into(person: &Person, row: &Value) -> String {
    let branch = row["branch"].as_str().expect("a branch");
    person.fork.origin.git(&["ls-tree", "--name-only", branch])
}

#[test]
fn each_pair_of_branches_has_its_own_result() {
    let Some(person) = with_pairs(PAIRS) else { return };
    let output = run(&person, &["--branches", "--json"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let summary = summary(&output);
    let rows = summary["forks"].as_array().expect("rows");
    let pairs: Vec<_> = rows.iter().map(|row| (&row["from"], &row["into"])).collect();
    assert_eq!(pairs, [(&"v1".into(), &"stable-1".into()), (&"main".into(), &"main".into())]);
    let stable = published_into(&person, &rows[0]);
    assert!(stable.contains("fix") && !stable.contains("feature"), "{stable}");
    assert!(published_into(&person, &rows[1]).contains("feature"));
    assert_eq!(person.published().len(), 2);
    // Each waits for its own review now, and nothing is published twice.
    let again = run(&person, &["--branches", "--json"]);
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert_eq!(person.published().len(), 2);
    let status = status(&person);
    let branches: Vec<_> =
        status.as_array().expect("rows").iter().map(|row| &row["branch"]).collect();
    assert!(branches.contains(&&"stable-1".into()) && branches.contains(&&"main".into()));
}

#[test]
fn a_branch_that_fails_keeps_no_other_from_being_done() {
    let rules = PAIRS.replace("{upstream: v1, ours: stable-1}", "{upstream: v1, ours: gone}");
    let Some(person) = with_pairs(&rules) else { return };
    let output = run(&person, &["--branches", "--json"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let summary = summary(&output);
    let rows = summary["forks"].as_array().expect("rows");
    let words = rows[0]["words"].as_str().expect("words");
    assert!(words.contains("no branch 'gone'"), "{words}");
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&2.into(), &0.into()));
    assert_eq!(person.published().len(), 1);
    // The failure is on record for this branch. Origin does not have it, so it is one that nobody keeps.
    let status = status(&person);
    let row = status.as_array().expect("rows").iter().find(|row| row["branch"] == "gone");
    let next = row.expect("the branch")["next"].as_str().expect("a command").to_owned();
    assert!(next.contains(" status --forget ") && next.ends_with(" --branch gone"), "{next}");
}

#[test]
fn a_fork_that_lists_no_branches_is_told_how() {
    let Some(person) = with_pairs("Keep it.\n") else { return };
    let output = run(&person, &["--branches"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("lists no branches"), "{}", output.stderr);
    assert!(output.stderr.contains("branches: [{upstream"), "{}", output.stderr);
    let output = run(&person, &["--branches", "--main-branch", "main"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(person.runs().is_empty());
}

#[test]
fn one_branch_that_stands_twice_is_refused() {
    let rules = PAIRS.replace("ours: main", "ours: stable-1");
    let Some(person) = with_pairs(&rules) else { return };
    let output = run(&person, &["--branches"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("'stable-1' stands twice"), "{}", output.stderr);
}

#[test]
fn several_forks_are_done_at_once_and_told_apart() {
    let Some(person) = Person::new() else { return };
    let others = ["b", "c"].map(|name| Fork::named(&person.hermetic, name).clean_merge());
    // A second checkout of the first fork: both have one lock.
    let linked = person.hermetic.work().join("linked");
    let path = linked.to_str().expect("text").to_owned();
    person.fork.checkout.git(&["worktree", "add", "-q", "--detach", &path]);
    let folders: Vec<String> = [person.fork.checkout.dir(), others[0].checkout.dir(), &linked]
        .into_iter()
        .chain([others[1].checkout.dir()])
        .map(|dir| dir.display().to_string())
        .collect();
    let page = person.hermetic.work().join("page.html");
    let page_text = page.display().to_string();
    let mut args = vec!["--json", "--wait", "0", "--jobs", "3", "--html", &page_text, "--all"];
    args.extend(folders.iter().map(String::as_str));
    let output = run(&person, &args);
    let summary = summary(&output);
    let rows = summary["forks"].as_array().expect("rows");
    let order: Vec<&str> = rows.iter().map(|row| row["fork"].as_str().expect("a folder")).collect();
    assert_eq!(order, folders);
    for row in [&rows[0], &rows[1], &rows[3]] {
        assert_eq!(row["status"], 0, "{row:#}");
    }
    let busy =
        rows.iter().filter(|row| row["words"].as_str().is_some_and(|it| it.contains("at work")));
    assert_eq!(busy.count(), 0, "{summary:#}");
    let abouts: std::collections::BTreeSet<String> = output
        .stdout
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<Value>(line).ok()?["about"].as_str().map(str::to_owned)
        })
        .collect();
    assert!(
        abouts.contains("b") && abouts.contains("c") && abouts.contains("linked"),
        "{abouts:?}"
    );
    let html = std::fs::read_to_string(&page).expect("the page");
    for folder in &folders {
        assert!(html.contains(folder.as_str()), "{folder} is not on the page");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_is_done() {
    let Some(person) = with_pairs(PAIRS) else { return };
    let output = run(&person, &["--branches", "--html", "/no/such/folder/page.html"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("/no/such/folder"), "{}", output.stderr);
    assert!(person.published().is_empty());
    let alone = run(&person, &["--html", "page.html"]);
    assert_eq!(alone.status, Some(2), "{}", alone.snapshot());
    assert!(alone.stderr.contains("--all or --branches"), "{}", alone.stderr);
}

/// People's answer on one branch is the answer on the next, where the trust asks for no more than a new fork can have.
#[test]
fn a_conflict_that_people_resolved_on_one_branch_is_known_on_the_next() {
    let Some(person) = with_pairs(PAIRS) else { return };
    let fork = &person.fork;
    let both_change = |text: &str| {
        fork.checkout.git(&["fetch", "-q", "--all"]);
        fork.checkout.write("shared.txt", text);
        fork.fork_commit("fork: its own words")
    };
    fork.upstream_commit("shared.txt", "one\ntwo, said upstream\nthree\n", "upstream's two");
    fork.upstream.git(&["branch", "-f", "v1", "main"]);
    let ours = both_change("one\ntwo, said the fork\nthree\n");
    fork.origin.git(&["branch", "-f", "stable-1", &ours]);
    fork.checkout.git(&["fetch", "-q", "--all"]);
    fork.checkout.git(&["checkout", "-q", "-b", "by-hand", "origin/stable-1"]);
    fork.checkout.try_git(&["merge", "-q", "upstream/v1"]).expect_err("a conflict");
    fork.checkout.write("shared.txt", "one\ntwo, said both\nthree\n");
    fork.checkout.commit("Merge v1");
    fork.checkout.git(&["push", "-q", "origin", "by-hand:stable-1"]);
    let output = run(&person, &["--branches", "--json", "--trust", "0.5"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let summary = summary(&output);
    assert_eq!(summary["forks"][0]["verdict"]["kind"], "up-to-date");
    let branch = summary["forks"][1]["branch"].as_str().expect("a branch");
    let merged = fork.origin.git(&["show", &format!("{branch}:shared.txt")]);
    assert_eq!(merged, "one\ntwo, said both\nthree");
}

/// A run that could not begin is taken away, and its name may be that of the next one.
#[test]
fn a_run_that_could_not_begin_is_not_named() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let folder = person.fork.checkout.dir().display().to_string();
    let mut command = person.forklift(&["--json", "--all", &folder]);
    let output = person.hermetic.run(command.env("PATH", "/usr/bin:/bin"));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(person.runs().is_empty());
    assert!(summary(&output)["forks"][0]["run"].is_null(), "{}", output.stdout);
}
