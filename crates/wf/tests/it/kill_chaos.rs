//! kill -9 of wf and of its git at every rename, unlink, mkdir and fsync of a command, injected by strace: the same
//! command again ends well and nothing is left. A few points in every run of the suite; `make chaos` takes all of them
//! and prints the counts.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::kill_points::{Ended, Point, Tracer, few_of, temporary_files};
use crate::support::{ONE, ONE_DONE, Person};
use crate::test_interrupted::nothing_is_left;

/// Points of each command without `make chaos`.
const FEW: usize = 6;

/// A command that is killed, on what, and what must hold after it was run again.
struct Victim {
    args: &'static [&'static str],
    /// None where a part is missing.
    person: fn() -> Option<Person>,
    check: fn(&Person, &str),
    /// Statuses with which the same command may end after it.
    again: &'static [i32],
}

fn is_all() -> bool {
    host::env::var("KILL_POINTS").as_deref() == Some("all")
}

/// A copy of a person's folder, so that each round begins with the same.
struct Saved {
    copy: tempfile::TempDir,
}

fn copy(person: &Person, from: &Path, to: &Path) {
    let mut command = person.hermetic.command("cp");
    person.hermetic.run_ok(command.current_dir("/").args(["-a", "-T"]).arg(from).arg(to));
}

impl Saved {
    fn new(person: &Person) -> Self {
        let saved = Self { copy: tempfile::tempdir().expect("a folder") };
        copy(person, person.hermetic.root(), saved.copy.path());
        saved
    }

    fn restore(&self, person: &Person) {
        for entry in std::fs::read_dir(person.hermetic.root()).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).expect("removed"),
                false => std::fs::remove_file(&path).expect("removed"),
            }
        }
        copy(person, self.copy.path(), person.hermetic.root());
    }
}

#[derive(Debug, Default)]
struct Counts {
    own: u32,
    of_git: u32,
    not_reached: u32,
    temporary: usize,
    dead_ends: Vec<String>,
    broken: Vec<String>,
}

/// Kills the command at every point, and says what it found before it fails.
fn play(victim: &Victim) {
    let Some(tracer) = Tracer::new() else { return };
    let Some(person) = (victim.person)() else { return };
    let saved = Saved::new(&person);
    let mut points = tracer.record(&person, victim.args);
    if !is_all() {
        points = few_of(points, FEW);
    }
    let mut counts = Counts::default();
    for point in points {
        saved.restore(&person);
        round(victim, &tracer, &person, &point, &mut counts);
    }
    let Counts { own, of_git, not_reached, temporary, dead_ends, broken } = counts;
    let (name, dead, wrong) = (victim.args.join(" "), dead_ends.len(), broken.len());
    tell(&format!(
        "wf {name}: wf killed at {own} points, its gits at {of_git}, {not_reached} not reached; {dead} dead ends, {wrong} with something left, lost or doubled, {temporary} temporary files"
    ));
    assert!(own > 0, "nothing was killed");
    let problems = [dead_ends, broken].concat();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn round(victim: &Victim, tracer: &Tracer, person: &Person, point: &Point, counts: &mut Counts) {
    let ended = tracer.kill(person, victim.args, point);
    match (ended, point.git) {
        (Ended::Whole, _) => counts.not_reached += 1,
        (_, None) => counts.own += 1,
        (_, Some(_)) => counts.of_git += 1,
    }
    let context = format!("{:?} killed at {point:?}", victim.args);
    if ended == Ended::Killed {
        let mut again = person.command(victim.args);
        let output = person.hermetic.run(again.env("AOS_LOCK_TIMEOUT", "20"));
        if !output.status.is_some_and(|status| victim.again.contains(&status)) {
            tell(&format!("dead end: {context}"));
            return counts.dead_ends.push(format!("{context}: {}", output.snapshot()));
        }
    }
    counts.temporary += temporary_files(&person.ops());
    let holds = || {
        nothing_is_left(person, &context);
        (victim.check)(person, &context);
        person.ok(&["list"]);
        person.ok(&["refresh"]);
    };
    if catch_unwind(AssertUnwindSafe(holds)).is_err() {
        tell(&format!("not as it must be: {context}"));
        counts.broken.push(context);
    }
}

fn tell(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout is open");
}

fn is_clean(person: &Person, context: &str) {
    assert_eq!(person.worktree("tf").git(&["status", "--porcelain"]), "", "{context}");
}

#[test]
fn new() {
    play(&Victim {
        again: &[0],
        args: &["new", "tf", "Test framework", "mk/"],
        person: || Some(Person::new()),
        check: |person, context| {
            assert_eq!(person.meta("tf", "STATUS"), "planning", "{context}");
            assert_eq!(person.worktree("tf").git(&["branch", "--show-current"]), "feat/tf");
            is_clean(person, context);
        },
    });
}

#[test]
fn delete() {
    play(&Victim {
        again: &[0],
        args: &["delete", "tf", "--confirm"],
        // Packed refs have a lock of their own.
        person: || {
            let person = Person::with_plan(ONE);
            person.repo.git(&["pack-refs", "--all"]);
            Some(person)
        },
        check: |person, context| {
            assert!(!person.repo.git_dir().join("packed-refs.lock").exists(), "{context}");
            assert!(!person.workstream_dir("tf").exists(), "{context}");
            assert!(!person.worktree("tf").dir().exists(), "{context}");
            assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "", "{context}");
            person.ok(&["new", "tf", "Again"]);
        },
    });
}

#[test]
fn close() {
    play(&Victim {
        again: &[0],
        args: &["close", "tf", "--force"],
        person: || Some(Person::with_plan(ONE)),
        check: |person, context| {
            assert!(!person.workstream_dir("tf").exists(), "{context}");
            assert!(!person.worktree("tf").dir().exists(), "{context}");
            let closed = person.project_dir().join("workstreams/_closed");
            assert_eq!(std::fs::read_dir(closed).expect("a folder").count(), 1, "{context}");
            assert_ne!(person.repo.git(&["branch", "--list", "feat/tf"]), "", "{context}");
        },
    });
}

#[test]
fn uat() {
    play(&Victim {
        again: &[0],
        args: &["uat", "pass", "UAT-001"],
        person: || {
            let person = Person::with_plan(ONE_DONE);
            person.worktree("tf").write("feature", "x\n").commit("COMMIT-TF-001: x");
            person.wf(&["run", "tf"]);
            Some(person)
        },
        check: |person, context| {
            assert_eq!(person.meta("tf", "STATUS"), "merge-ready", "{context}");
            let uat = person.workstream_dir("tf").join("uat");
            for kind in ["json", "md"] {
                assert!(uat.join(format!("passed/UAT-001.{kind}")).is_file(), "{context}");
                assert!(!uat.join(format!("pending/UAT-001.{kind}")).exists(), "{context}");
            }
        },
    });
}

#[test]
fn clarify() {
    play(&Victim {
        again: &[0],
        args: &["clarify", "answer", "CLQ-001", "jwt"],
        person: || {
            let person = Person::with_plan(ONE);
            person.question("tf", "CLQ-001", "blocking");
            person.wf(&["run", "tf"]);
            Some(person)
        },
        check: |person, context| {
            assert_ne!(person.meta("tf", "STATUS"), "blocked:clarification", "{context}");
            let folder = person.workstream_dir("tf").join("clarifications");
            assert!(folder.join("answered/CLQ-001.json").is_file(), "{context}");
            assert!(!folder.join("pending/CLQ-001.json").exists(), "{context}");
        },
    });
}

#[test]
fn merge() {
    play(&Victim {
        again: &[0],
        args: &["merge", "tf"],
        person: || {
            let person = Person::accepted();
            let tree = person.worktree("tf");
            tree.write("deep/er/new", "x\n")
                .write("README.md", "changed\n")
                .commit("COMMIT-TF-001: y");
            Some(person)
        },
        check: |person, context| {
            assert_eq!(person.meta("tf", "STATUS"), "done", "{context}");
            assert_eq!(person.repo.git(&["status", "--porcelain"]), "", "{context}");
            assert_eq!(person.repo.sha("main"), person.repo.sha("feat/tf"), "{context}");
        },
    });
}

#[test]
fn update() {
    play(&Victim {
        again: &[0],
        args: &["update", "tf"],
        person: || {
            let person = Person::with_plan(ONE);
            person.worktree("tf").write("feature", "x\n").commit("COMMIT-TF-001: x");
            person.repo.write("deep/er/new", "x\n").write("README.md", "changed\n").commit("main");
            Some(person)
        },
        check: |person, context| {
            is_clean(person, context);
            let tree = person.worktree("tf");
            tree.git(&["merge-base", "--is-ancestor", "main", "HEAD"]);
            let merges = tree.git(&["rev-list", "--merges", "--count", "HEAD"]);
            assert_eq!(merges.trim(), "1", "{context}");
        },
    });
}

#[test]
fn open() {
    play(&Victim {
        again: &[0],
        args: &["open", "tf"],
        person: || {
            let person = Person::accepted();
            person.ok(&["close", "tf"]);
            Some(person)
        },
        check: |person, context| {
            assert_eq!(person.meta("tf", "STATUS"), "merge-ready", "{context}");
            assert_eq!(person.meta("tf", "CLOSED_AT"), "", "{context}");
            is_clean(person, context);
            let closed = person.project_dir().join("workstreams/_closed");
            assert_eq!(std::fs::read_dir(closed).expect("a folder").count(), 0, "{context}");
        },
    });
}

#[test]
fn ask() {
    play(&Victim {
        again: &[0],
        args: &["clarify", "ask", "tf", "--question", "Which?", "--option", "a"],
        person: || Some(Person::with_plan(ONE)),
        check: |person, context| {
            assert_eq!(person.meta("tf", "BLOCKED_BY"), "CLQ-001", "{context}");
            let folder = person.workstream_dir("tf").join("clarifications/pending");
            let names = std::fs::read_dir(folder).expect("a folder").flatten();
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
            names.sort();
            assert_eq!(names, ["CLQ-001.json", "CLQ-001.md"], "{context}");
        },
    });
}

#[test]
fn run() {
    play(&Victim {
        // One that was killed after it was accepted finds the gate.
        again: &[0, 8],
        args: &["run", "tf"],
        person: crate::play::person_with_one,
        check: |person, context| {
            let made = person.subjects().into_iter();
            let made = made.filter(|line| line.starts_with("COMMIT-TF-001:")).count();
            assert_eq!(made, 1, "{context}");
            assert_eq!(person.meta("tf", "STATUS"), "uat:pending", "{context}");
            assert_eq!(person.meta("tf", "LAST_COMMIT_SHA"), person.worktree("tf").head());
            is_clean(person, context);
            for run in person.runs() {
                assert!(run.join("result.json").is_file(), "{context}: {run:?}");
            }
        },
    });
}
