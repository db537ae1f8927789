//! The commit of upstream that breaks the fork's check: found by `forklift first --check`, and a step of its own in a train.

use std::time::Instant;

use serde_json::Value;
use testkit::hermetic::{Hermetic, Output};
use testkit::part::{self, Part, require};
use testkit::repo::{Fork, Language, PlantedFork};

use crate::support::Person;
use crate::train::{merged, only_branch, train};

fn first(person: &Person, flags: &[&str]) -> Output {
    let words = [&["first", "--backend", "bwrap"], flags].concat();
    person.hermetic.run(&mut person.forklift(&words))
}

/// The event about the search.
fn found(output: &Output) -> Value {
    let values = output.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut breaks = values.filter(|value| value["event"] == "break");
    breaks.next().unwrap_or_else(|| panic!("{}", output.snapshot()))
}

/// Upstream removes the file that the fork's check needs in the fifth of nine commits; nothing conflicts.
pub(crate) fn nine(check: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", format!("---\ncheck: '{check}'\n---\n"));
        fork.fork_commit("the fork's check");
        for number in 1..=9 {
            if number == 5 {
                fork.upstream_does("drop the old file\n\nNobody needs it.", |author| {
                    author.git(&["rm", "-q", "upstream.txt"]);
                });
            } else {
                fork.upstream_commit(
                    &format!("n{number}.py"),
                    "x = 1\n",
                    &format!("number {number}"),
                );
            }
        }
        fork
    })
}

pub(crate) const CHECK: &str = "test -f upstream.txt || test -f repaired";

#[test]
fn the_commit_that_breaks_the_check_is_named_with_its_message_and_patch() {
    let Some(person) = nine(CHECK) else { return };
    let planted = person.fork.upstream.sha("main~4");
    let output = first(&person, &["--check", "--json"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let value = found(&output);
    assert_eq!(value["commit"], planted);
    assert_eq!((&value["position"], &value["of"]), (&5.into(), &9.into()));
    assert!(value["message"].as_str().expect("text").contains("Nobody needs it"), "{value}");
    assert!(value["patch"].as_str().expect("text").contains("deleted file"), "{value}");
    let text = first(&person, &["--check"]);
    assert!(
        text.stdout.contains("drop the old file") && text.stdout.contains("as known")
            || text.stderr.contains("as known before"),
        "{}",
        text.snapshot()
    );
    // What is known leads the search; the commit is named only after all commits, the fork and both sides were red and green again.
    assert!(text.stdout.contains("found with 8 checks"), "{}", text.snapshot());
    assert_eq!(person.runs().len(), 0);
}

/// Changes what is stored about the check of a tree to the opposite.
fn flip_stored(person: &Person, wants: impl Fn(&str) -> bool) -> usize {
    let checks = person.hermetic.home().join(".local/state/forklift/checks");
    let forks = std::fs::read_dir(checks).expect("the results");
    let files =
        forks.flat_map(|fork| std::fs::read_dir(fork.expect("a folder").path()).expect("files"));
    let mut flipped = 0;
    for file in files.map(|file| file.expect("a file").path()) {
        let text = std::fs::read_to_string(&file).expect("a result");
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        if !wants(value["tree"].as_str().expect("a tree")) {
            continue;
        }
        let code = &mut value["summary"]["ended"]["code"];
        *code = if *code == 0 { 1.into() } else { 0.into() };
        std::fs::write(&file, value.to_string()).expect("written");
        flipped += 1;
    }
    flipped
}

#[test]
fn a_check_that_was_red_once_is_run_again_before_a_commit_is_blamed() {
    let Some(person) = nine("true") else { return };
    assert_eq!(first(&person, &["--check"]).status, Some(0));
    assert_eq!(flip_stored(&person, |_| true), 1);
    let output = first(&person, &["--check"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("red once, green again"), "{}", output.stderr);
    assert!(!output.stdout.contains("number "), "a commit was named: {}", output.stdout);
    let output = first(&person, &["--check"]);
    assert_eq!(output.status, Some(0), "what was red by chance is still believed");
    assert!(output.stdout.contains("nothing: the check passed"), "{}", output.stdout);
}

#[test]
fn a_check_that_ends_in_two_ways_on_the_same_files_is_flaky_and_blames_no_commit() {
    let Some(person) = nine(CHECK) else { return };
    let output = first(&person, &["--check", "--json"]);
    assert_eq!((output.status, &found(&output)["first"]), (Some(0), &false.into()));
    let checkout = &person.fork.checkout;
    let end = checkout.git(&["merge-tree", "--write-tree", "main", "upstream/main"]);
    let base = checkout.git(&["rev-parse", "main^{tree}"]);
    let (end, base) = (end.trim(), base.trim());
    assert!(flip_stored(&person, |tree| tree != end && tree != base) >= 2);
    let output = first(&person, &["--check"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("flaky, and no commit is named"), "{}", output.stderr);
    let output = first(&person, &["--check", "--json"]);
    assert_eq!(found(&output)["commit"], person.fork.upstream.sha("main~4"));
}

#[test]
fn an_earlier_break_that_upstream_mended_is_not_denied() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", "---\ncheck: '! grep -q BREAK *.txt'\n---\n");
        fork.fork_commit("the fork's check");
        for (number, text) in ["one", "BREAK", "fine", "four", "five", "six"].iter().enumerate() {
            fork.upstream_commit("bad.txt", text, &format!("number {number}"));
        }
        fork.upstream_commit("worse.txt", "BREAK\n", "breaks again");
        fork
    }) else {
        return;
    };
    let output = first(&person, &["--check"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("one before it may break the check too"), "{}", output.stdout);
}

#[test]
fn a_check_that_passes_blames_nothing_and_one_that_is_red_before_blames_no_commit() {
    let Some(person) = nine("true") else { return };
    let output = first(&person, &["--check", "--json"]);
    assert_eq!(found(&output)["commit"], Value::Null);
    let output = first(&person, &["--check=false"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("no commit of upstream is to blame"), "{}", output.stderr);
    let output = first(&person, &["--check=test -f upstream.txt", "--json"]);
    assert_eq!(found(&output)["commit"], person.fork.upstream.sha("main~4"));
    let Some(person) = Person::new() else { return };
    let output = first(&person, &["--check"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("FORK.md"), "{}", output.stderr);
}

#[test]
fn a_check_that_cannot_fail_is_refused_where_a_proof_is_wanted() {
    let Some(person) = nine("true") else { return };
    person.fork.checkout.write("own.py", "y = 1\n");
    person.fork.fork_commit("a source file");
    let output = first(&person, &["--check", "--prove-check"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("says nothing"), "{}", output.stderr);
    let output =
        first(&person, &["--check=for f in *.py; do python3 $f || exit 1; done", "--prove-check"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("red on a seeded break"), "{}", output.stderr);
}

#[test]
fn a_train_names_the_break_and_lets_an_agent_adapt_the_fork_to_that_commit_alone() {
    let Some(person) = nine(CHECK) else { return };
    let script = "[[step]]\nrun = '''set -e
test -f .git/MERGE_HEAD && grep -q 'status 1' /harness-state/check.md
touch repaired && git add -A && git commit -q --no-edit'''\n";
    let output = train(&person, script, &["--accept-dropped"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("drop the old file"), "{}", output.stdout);
    assert!(output.stdout.contains("broke the check"), "{}", output.stdout);
    let steps = [5, 4, 0].map(|before| person.fork.upstream.sha(&format!("main~{before}")));
    assert_eq!(merged(&person, &only_branch(&person)), steps);
}

#[test]
fn without_an_agent_that_can_help_the_train_stops_before_the_break() {
    let Some(person) = nine(CHECK) else { return };
    let output = train(&person, "[[step]]\nexit = 3\n", &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert_eq!(merged(&person, &only_branch(&person)), [person.fork.upstream.sha("main~5")]);
    assert!(output.stdout.contains("by hand"), "{}", output.stdout);
}

#[test]
fn a_check_that_is_red_once_and_green_again_blames_no_commit() {
    // It depends on the message of the merge, which the search does not repeat.
    let Some(person) = nine("! git log -1 --format=%s | grep -qi upstream") else { return };
    let output = train(&person, "[[step]]\nexit = 3\n", &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(
        output.stdout.contains("red once, green again; no commit is named"),
        "{}",
        output.stdout
    );
    assert_eq!(person.runs().len(), 1, "{}", output.snapshot());
    assert!(!output.stdout.contains("broke the check"), "{}", output.stdout);
}

#[test]
fn a_train_runs_the_check_again_whatever_is_kept_about_it() {
    let Some(person) = nine(CHECK) else { return };
    let agent = "[[step]]\nexit = 3\n";
    assert_eq!(train(&person, agent, &[]).status, Some(6));
    let checkout = &person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    let end = checkout.git(&["merge-tree", "--write-tree", "main", "upstream/main"]);
    assert_eq!(flip_stored(&person, |tree| tree == end.trim()), 1);
    let output = train(&person, agent, &["--again"]);
    assert!(!output.stdout.contains("green again"), "{}", output.snapshot());
    assert!(output.stdout.contains("drop the old file"), "{}", output.snapshot());
}

#[test]
fn commits_of_which_one_breaks_the_check_are_named_together() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", format!("---\ncheck: '{CHECK}'\n---\n"));
        fork.checkout.write("shared.txt", "one\ntwo, said the fork\nthree\n");
        fork.fork_commit("the fork's way");
        let before = fork.upstream.git(&["show", "main:shared.txt"]);
        fork.upstream_commit("n1.txt", "x\n", "number 1");
        fork.upstream_commit("shared.txt", "one\ntwo, said upstream\nthree\n", "upstream's two");
        fork.upstream_does("drop the old file", |author| {
            author.git(&["rm", "-q", "upstream.txt"]);
        });
        fork.upstream_commit("shared.txt", &format!("{}\n", before.trim_end()), "as it was");
        fork.upstream_commit("n5.txt", "x\n", "number 5");
        fork
    }) else {
        return;
    };
    let names = [3, 2, 1].map(|before| person.fork.upstream.sha(&format!("main~{before}")));
    let output = train(&person, crate::train::KEEPS_BOTH, &["--accept-dropped"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let line = output.stdout.lines().find(|line| line.contains("broke the check"));
    let line = line.unwrap_or_else(|| panic!("{}", output.snapshot()));
    assert!(line.contains("one of "), "{line}");
    for name in &names {
        assert!(line.contains(&name[..12]), "{name}: {line}");
    }
}

/// Searches a made fork, with a break in one of 300 commits. Fails where the box lacks the compiler.
fn search_planted(language: Language, position: usize) -> Result<String, String> {
    let hermetic = Hermetic::new();
    let rustc = host::env::var("BOX_RUSTC");
    let PlantedFork { fork, planted } =
        PlantedFork::make(&hermetic, language, (300, position), rustc.as_deref());
    let person = Person { hermetic, fork };
    let began = Instant::now();
    let output = first(&person, &["--check", "--json"]);
    if output.status == Some(3) && output.stderr.contains("status 127") {
        return Err(format!("the compiler of {language:?} is not in the box"));
    }
    assert_eq!(output.status, Some(0), "{language:?} {position}: {}", output.snapshot());
    let value = found(&output);
    assert_eq!(value["commit"], planted, "{language:?} {position}: {value}");
    // All commits, the fork itself, and both sides of the break three times, are checked once more before the commit is named.
    let checks = 1 + value["checks"].as_u64().expect("a number");
    assert!(checks <= 18, "{language:?} {position}: {checks} checks");
    let seconds = began.elapsed().as_secs_f64();
    Ok(format!(
        "{language:?}, commit {position} of 300: named with {checks} checks in {seconds:.1} s"
    ))
}

/// `make bench-train` searches 30 made forks.
#[test]
fn a_break_planted_in_one_of_300_commits_is_named_with_at_most_ten_checks_and_eight_repeats() {
    let forks: usize =
        host::env::var("TRAIN_FORKS").map_or(3, |text| text.parse().expect("a number"));
    let languages: Vec<Language> = match forks {
        0..=3 => vec![Language::C, Language::Python],
        _ => Language::ALL.to_vec(),
    };
    if require(Part::Bwrap).is_none() {
        return;
    }
    let (mut named, mut missing) = (Vec::new(), Vec::new());
    for number in 0..forks {
        let language = languages[number % languages.len()];
        let position = [1, 300, 150, 299, 2][number % 5] + if number < 5 { 0 } else { number };
        let position = position.min(300);
        // Anything but a compiler that is missing fails the search itself.
        match search_planted(language, position) {
            Ok(words) => {
                println!("{words}");
                named.push(language);
            }
            Err(why) => {
                part::missing(&format!("compiler_{language:?}"), &why);
                missing.push(language);
            }
        }
    }
    println!("{} of {forks} named", named.len());
    assert_eq!(named.len() + missing.len(), forks);
    assert!(!named.is_empty(), "no compiler is in the box");
    let both: Vec<_> = named.iter().filter(|language| missing.contains(language)).collect();
    assert!(both.is_empty(), "{both:?} have a compiler, and breaks in them were not named");
}
