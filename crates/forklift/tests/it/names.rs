//! Names that are found or given: branches, remotes, folders, runs.

use testkit::hermetic::Hermetic;
use testkit::repo::Fork;

use crate::support::{MERGE, Person, field_of, name_of};

/// A fork on `main` whose upstream is on `master`.
fn on_master(hermetic: &Hermetic) -> Fork {
    with_master(Fork::new(hermetic))
}

fn with_master(fork: Fork) -> Fork {
    let fork = fork.clean_merge();
    fork.upstream.git(&["branch", "-m", "main", "master"]);
    fork.upstream.git(&["symbolic-ref", "HEAD", "refs/heads/master"]);
    fork.checkout.git(&["update-ref", "-d", "refs/remotes/upstream/main"]);
    fork
}

fn subject(person: &Person) -> String {
    let branch = person.published().pop().expect("published");
    person.fork.origin.git(&["log", "-1", "--format=%s", &branch])
}

#[test]
fn each_remote_has_its_own_default_branch() {
    let Some(person) = Person::with(on_master) else { return };
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(subject(&person), "Merge upstream/master into main");
    assert_eq!(person.metadata("/fork/branch"), "main");
    assert_eq!(person.metadata("/fork/upstream_branch"), "master");
    for word in ["changelog", "files", "first"] {
        let output = person.hermetic.run(&mut person.forklift(&[word]));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    }
}

#[test]
fn an_agent_merges_the_branch_that_upstream_has() {
    let Some(person) = Person::with(on_master) else { return };
    let merge = "[[step]]\nrun = \"git merge --no-edit upstream/master\"\n";
    let output = person.run(merge, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_branch_that_upstream_lacks_names_the_flag_that_helps() {
    let Some(person) = Person::with(on_master) else { return };
    let output = person.hermetic.run(&mut person.alone(&["--main-branch", "main"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("'upstream' has no branch 'main'"), "{}", output.stderr);
    assert!(output.stderr.contains("--target"), "{}", output.stderr);
    let flags = ["--main-branch", "main", "--target", "master"];
    let output = person.hermetic.run(&mut person.alone(&flags));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(subject(&person), "Merge upstream/master into main");
}

#[test]
fn the_remotes_may_have_other_names() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.git(&["remote", "rename", "origin", "mine"]);
    person.fork.checkout.git(&["remote", "rename", "upstream", "theirs"]);
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("--remote-origin"), "{}", output.stderr);
    let names = ["--remote-origin", "mine", "--remote-upstream", "theirs"];
    let output = person.hermetic.run(&mut person.alone(&[&names[..], &["--no-push"]].concat()));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let output = person.hermetic.run(&mut person.forklift(&["publish"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert!(output.stdout.contains("git fetch mine"), "{}", output.stdout);
    for word in ["changelog", "trust"] {
        let output = person.hermetic.run(person.forklift(&[word]).args(names));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    }
}

#[test]
fn several_forks_may_have_different_branches() {
    let Some(person) = Person::new() else { return };
    let other = with_master(Fork::named(&person.hermetic, "other"));
    let mut command = person.alone(&["--all"]);
    command.arg(person.fork.checkout.dir()).arg(other.checkout.dir());
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    let listed = other.origin.git(&["for-each-ref", "refs/heads/forklift"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn a_folder_goes_before_and_after_every_subcommand() {
    let Some(person) = Person::new() else { return };
    let fork = person.fork.checkout.dir().to_str().expect("UTF-8").to_owned();
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    for words in [&["changelog"][..], &["files"], &["show"], &["runs"], &["trust"], &["status"]] {
        for args in [[&["-C", &fork][..], words].concat(), [words, &["-C", &fork]].concat()] {
            let mut command = person.forklift(&args);
            let output = person.hermetic.run(command.current_dir(person.hermetic.root()));
            assert_eq!(output.status, Some(0), "{args:?}: {}", output.snapshot());
        }
    }
    let output = person.hermetic.run(&mut person.forklift(&["--json", "runs"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn options_of_a_run_do_not_go_before_a_subcommand() {
    let Some(person) = Person::new() else { return };
    for args in [&["--timeout", "5", "runs"][..], &["--dry-run", "changelog"]] {
        let output = person.hermetic.run(&mut person.forklift(args));
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("do not go before a subcommand"), "{}", output.stderr);
    }
}

#[test]
fn a_run_is_found_by_little_of_its_name() {
    let Some(person) = Person::new() else { return };
    for _ in 0..2 {
        assert_eq!(person.run(MERGE, &["--again"]).status, Some(0));
    }
    let (first, last) = (name_of(&person.runs()[0]), name_of(&person.runs()[1]));
    let date = first.rsplitn(3, '_').take(2).collect::<Vec<_>>();
    let date = format!("{}_{}", date[1], date[0]);
    let shown = |words: &[&str]| {
        let mut command = person.forklift(&[&["show", "--json"][..], words].concat());
        let output = person.hermetic.run(&mut command);
        let shown: serde_json::Value = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", output.snapshot()));
        shown["run"].as_str().map(str::to_owned)
    };
    assert_eq!(shown(&[]), Some(last.clone()));
    assert_eq!(shown(&["last"]), Some(last));
    if !person.runs()[1].to_string_lossy().ends_with("-2") {
        assert_eq!(shown(&[&date]), Some(first.clone()));
    }
    assert_eq!(shown(&[&first]), Some(first));
    let output = person.hermetic.run(&mut person.forklift(&["show", &date[..4]]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    for run in person.runs() {
        assert!(output.stderr.contains(&name_of(&run)), "{}", output.stderr);
    }
}

#[test]
fn outside_of_a_fork_a_run_has_to_be_named() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let at_root = |words: &[&str]| {
        let mut command = person.forklift(words);
        person.hermetic.run(command.current_dir(person.hermetic.root()))
    };
    let output = at_root(&["show"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("forklift runs"), "{}", output.stderr);
    let output = at_root(&["show", "last"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(field_of(&person.only_run(), "/verdict/kind"), "publish");
}
