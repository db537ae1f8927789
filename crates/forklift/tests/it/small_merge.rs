//! A small merge without most of upstream's files is refused; what the fork's rules explain is not.

use testkit::repo::Fork;

use crate::support::Person;

const CI: &str = ".github/workflows/ci.yml";

/// Upstream changed four files and added a CI definition, and the fork has these rules.
fn four_files(rules: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
            fork.upstream_commit(name, "one\ntwo\nthree\n", name);
        }
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("own.txt", "own\n").write("FORK.md", rules);
        fork.fork_commit("the fork's work");
        for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
            fork.upstream_commit(name, "one\ntwo of upstream\nthree\n", name);
        }
        fork.upstream_commit(CI, "on: push\n", "ci");
        fork
    })
}

/// An agent that merges and puts these files back as the fork had them.
fn drops(files: &str) -> String {
    format!(
        "[[step]]\nrun = '''git merge -q --no-edit --no-commit upstream/main
git checkout -q HEAD -- {files}; git commit -q --no-edit'''\n"
    )
}

#[test]
fn a_small_merge_without_most_of_upstreams_files_is_refused_unless_it_is_accepted() {
    let lazy = drops("a.txt b.txt c.txt");
    let Some(person) = four_files("words\n") else { return };
    let output = person.run(&lazy, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "upstream-dropped");
    let words = "its changes in 3 of 4 files (a.txt, b.txt, c.txt)";
    assert!(output.stdout.contains(words), "{}", output.snapshot());
    assert_eq!(person.published(), Vec::<String>::new());
    let published = person.about(&person.only_run(), &["publish", "--accept-dropped"]);
    assert_eq!(published.status, Some(0), "{}", published.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn the_only_file_of_upstream_beside_its_ci_is_not_dropped_unseen() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic).clean_merge();
        fork.upstream_commit(CI, "on: push\n", "ci");
        fork
    }) else {
        return;
    };
    let output = person.run(&drops("upstream.txt"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("1 of 1 file (upstream.txt)"), "{}", output.snapshot());
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn a_rule_explains_a_small_merge_and_half_of_it_is_named() {
    let rules = "---\nresolve:\n  - {path: '[abc].txt', take: ours}\n---\n";
    let Some(person) = four_files(rules) else { return };
    let output = person.run(&drops("a.txt b.txt c.txt"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let Some(person) = four_files("words\n") else { return };
    let output = person.run(&drops("a.txt b.txt"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    // The first one is about the CI definition that upstream changes.
    assert!(output.stdout.contains("3 points to look at first"), "{}", output.snapshot());
}
