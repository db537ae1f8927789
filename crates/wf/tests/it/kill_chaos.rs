//! kill -9 of wf and of its git at the n-th rename, unlink, mkdir and fsync of a command, injected by strace: the same
//! command again ends well and nothing is left. A few points in every run of the suite; `make chaos` takes all of them
//! and prints the counts.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{ONE, ONE_DONE, Person, read};
use crate::test_interrupted::nothing_is_left;

/// System calls that change folders or wait for the disk, by group.
const GROUPS: [&str; 4] =
    ["rename,renameat,renameat2", "unlink,unlinkat,rmdir", "mkdir,mkdirat", "fsync,fdatasync"];

/// Points of each group without `make chaos`.
const FEW: [u32; 2] = [2, 5];
/// More than any command has.
const MOST: u32 = 200;

/// A command that is killed, on what, and what must hold after it was run again.
struct Victim {
    args: &'static [&'static str],
    /// None where a part is missing.
    person: fn() -> Option<Person>,
    check: fn(&Person, &str),
    /// Statuses with which the same command may end after it.
    again: &'static [i32],
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    rounds: u32,
    killed: u32,
    temporary: usize,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// No process was killed.
    Whole,
    /// A git was killed, and the command succeeded all the same.
    Survived,
    Killed,
}

/// Runs the command with a kill at the n-th call of a group in any of its processes.
fn kill(person: &Person, strace: &Path, args: &[&str], (group, at): (&str, u32)) -> Ended {
    let log = person.hermetic.root().join("strace.log");
    let mut command = person.hermetic.command(strace);
    command.current_dir(person.repo.dir()).env("USER", "ada");
    command.args(["-f", "-qq", "-o"]).arg(&log).args(["-e", &format!("trace={group}")]);
    command.args(["-e", &format!("inject={group}:signal=KILL:when={at}")]);
    command.arg(env!("CARGO_BIN_EXE_wf")).args(args);
    let output = person.hermetic.run(&mut command);
    let was_killed = read(&log).contains("killed by SIGKILL");
    std::fs::remove_file(&log).expect("removed");
    match (was_killed, output.status) {
        (false, _) => Ended::Whole,
        (true, Some(0)) => Ended::Survived,
        (true, _) => Ended::Killed,
    }
}

/// Hidden files of writes that never happened. They are harmless, and counted.
fn temporary_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            found.extend(temporary_files(&path));
        } else if name.starts_with(".new-") {
            found.push(path);
        }
    }
    found
}

fn play(victim: &Victim) {
    let Some(strace) = host::tool::which("strace") else {
        return testkit::part::missing("strace", "install strace");
    };
    let Some(person) = (victim.person)() else { return };
    let saved = Saved::new(&person);
    let mut counts = Counts::default();
    for group in GROUPS {
        let points: Vec<u32> = if is_all() { (1..MOST).collect() } else { FEW.to_vec() };
        for at in points {
            saved.restore(&person);
            counts.rounds += 1;
            let ended = kill(&person, &strace, victim.args, (group, at));
            if ended == Ended::Whole {
                break;
            }
            counts.killed += 1;
            let context = format!("{:?} killed at {group} {at}", victim.args);
            if ended == Ended::Killed {
                let mut again = person.command(victim.args);
                let output = person.hermetic.run(again.env("AOS_LOCK_TIMEOUT", "20"));
                let is_well = output.status.is_some_and(|status| victim.again.contains(&status));
                assert!(is_well, "{context}: {}", output.snapshot());
            }
            counts.temporary += temporary_files(&person.ops()).len();
            nothing_is_left(&person, &context);
            (victim.check)(&person, &context);
            person.ok(&["list"]);
            person.ok(&["refresh"]);
        }
    }
    let Counts { rounds, killed, temporary } = counts;
    let name = victim.args.join(" ");
    let line = format!(
        "wf {name}: {rounds} rounds, {killed} killed, 0 dead ends, 0 leftovers ({temporary} temporary files)"
    );
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
