//! `forklift status` about syncs that fail where nobody looks: each way to fail is seen, and what brings nothing is not good.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};
use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::{MERGE, Person};
use crate::train::{KEEPS_BOTH, seven, train};

fn status(person: &Person, flags: &[&str]) -> Output {
    let mut command = person.forklift(&[&["status"], flags].concat());
    person.hermetic.run(command.current_dir(person.hermetic.root()))
}

fn row(person: &Person, flags: &[&str]) -> Value {
    let output = status(person, &[&["--json"], flags].concat());
    let rows: Value = serde_json::from_str(&output.stdout).expect("JSON");
    rows[0].clone()
}

/// How a sync is started: as a timer would, from a folder that is not the fork.
#[derive(Clone, Copy)]
enum Started {
    Alone(&'static [&'static str]),
    All,
    List,
    Train,
}

impl Started {
    fn command(self, person: &Person) -> Command {
        let root = person.hermetic.root();
        let fork = person.fork.checkout.dir().to_str().expect("UTF-8");
        let list = root.join("forks.list");
        let list = format!("@{}", list.display());
        let mut command = match self {
            Self::Alone(flags) => person.alone(&[&["-C", fork], flags].concat()),
            Self::All => person.alone(&["--all", fork]),
            Self::List => person.alone(&["--all", &list]),
            Self::Train => person.forklift(&["-C", fork, "train", "--backend", "bwrap"]),
        };
        command.current_dir(root);
        command
    }
}

/// A way in which every sync fails, and the words that say so.
struct Planted {
    what: &'static str,
    plant: fn(&Person),
    started: Started,
    words: &'static str,
}

fn set_url(person: &Person, remote: &str) {
    person.fork.checkout.git(&["remote", "set-url", remote, "/nowhere/gone"]);
}

const PLAIN: Started = Started::Alone(&[]);

const PLANTED: &[Planted] = &[
    Planted {
        what: "upstream cannot be fetched",
        plant: |person| set_url(person, "upstream"),
        started: PLAIN,
        words: "cannot fetch upstream",
    },
    Planted {
        what: "origin cannot be fetched, as a row of --all",
        plant: |person| set_url(person, "origin"),
        started: Started::All,
        words: "cannot fetch origin",
    },
    Planted {
        what: "a remote was removed",
        plant: |person| drop(person.fork.checkout.git(&["remote", "remove", "upstream"])),
        started: PLAIN,
        words: "no remote 'upstream'",
    },
    Planted {
        what: "the folder is gone",
        plant: |person| fs::remove_dir_all(person.fork.checkout.dir()).expect("removed"),
        started: PLAIN,
        words: "there is no folder",
    },
    Planted {
        what: "the folder is no repository any more",
        plant: |person| fs::remove_dir_all(person.fork.checkout.git_dir()).expect("removed"),
        started: PLAIN,
        words: "is not inside a git repository",
    },
    Planted {
        what: "the rules of the fork are wrong",
        plant: |person| {
            person.fork.checkout.write("FORK.md", "---\nno-such-rule: 1\n---\n");
            person.fork.fork_commit("wrong rules");
        },
        started: PLAIN,
        words: "FORK.md on the fork's main branch",
    },
    Planted {
        what: "the branch is gone",
        plant: |_| {},
        started: Started::Alone(&["--main-branch", "gone"]),
        words: "has no branch 'gone'",
    },
    Planted {
        what: "the target is gone",
        plant: |_| {},
        started: Started::Alone(&["--target", "no-such-release"]),
        words: "no-such-release",
    },
    Planted {
        what: "a train cannot fetch",
        plant: |person| set_url(person, "upstream"),
        started: Started::Train,
        words: "cannot fetch upstream",
    },
    Planted {
        what: "the list of forks cannot be read",
        plant: |_| {},
        started: Started::List,
        words: "could not read the list",
    },
    Planted {
        what: "the token cannot be read",
        plant: |person| {
            let config = person.hermetic.home().join(".config/forklift");
            fs::create_dir_all(&config).expect("a folder");
            let token = config.join("forge-token");
            fs::write(&token, "a token").expect("written");
            fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).expect("set");
        },
        started: PLAIN,
        words: "forge-token",
    },
];

#[test]
fn no_planted_failure_goes_unseen() {
    let (mut seen, mut count) = (0, 0);
    for planted in PLANTED {
        let Some(person) = Person::new() else { return };
        // The fork was in order once, so that an old success could hide what fails now.
        assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
        assert_eq!(status(&person, &[]).status, Some(0), "{}", planted.what);
        (planted.plant)(&person);
        for _ in 0..2 {
            let output = person.hermetic.run(&mut planted.started.command(&person));
            assert_ne!(output.status, Some(0), "{}: {}", planted.what, output.snapshot());
        }
        let output = status(&person, &[]);
        count += 1;
        let is_seen = output.status == Some(3) && output.stdout.contains(planted.words);
        seen += usize::from(is_seen);
        if !is_seen {
            println!("{}: {}", planted.what, output.snapshot());
        }
    }
    assert_eq!((seen, count), (PLANTED.len(), PLANTED.len()), "some failed unseen");
}

#[test]
fn a_sync_that_was_killed_before_it_had_a_run_is_seen() {
    let Some(person) = Person::new() else { return };
    for _ in 0..2 {
        let mut command = person.alone(&[]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "sync-begun"));
        assert_eq!(output.signal, Some(9), "{}", output.snapshot());
        let output = status(&person, &[]);
        assert!(output.stdout.contains("kill -9"), "{}", output.snapshot());
    }
    let output = status(&person, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    assert_eq!(status(&person, &[]).status, Some(0), "{}", status(&person, &[]).snapshot());
}

#[test]
fn the_user_is_notified_once_until_the_failure_changes() {
    let Some(person) = Person::new() else { return };
    let notes = person.hermetic.root().join("notes");
    let command = format!("cat >> {}", notes.display());
    let told = || -> Vec<Value> {
        let text = fs::read_to_string(&notes).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let sync = |expected: usize| {
        let output = person.hermetic.run(&mut person.alone(&["--notify-cmd", &command]));
        assert_eq!(told().len(), expected, "{}", output.snapshot());
    };
    let upstream = person.fork.checkout.git(&["remote", "get-url", "upstream"]);
    set_url(&person, "upstream");
    sync(1);
    sync(1);
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    sync(2);
    sync(2);
    person.fork.checkout.git(&["remote", "add", "upstream", upstream.trim()]);
    // The run itself is notified about.
    sync(3);
    set_url(&person, "upstream");
    sync(4);
    let events = told();
    assert_eq!(events[0]["event"], "sync_failed");
    assert!(events[0]["problem"].as_str().expect("text").contains("cannot fetch"), "{events:?}");
    assert_ne!(events[2]["event"], "sync_failed");
}

#[test]
fn a_fork_that_is_kept_no_longer_is_forgotten_until_it_is_synced_again() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let moved = person.hermetic.root().join("moved");
    let folder = person.fork.checkout.dir().to_path_buf();
    fs::rename(&folder, &moved).expect("moved");
    let output = status(&person, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("the folder of the fork is gone"), "{}", output.stdout);
    assert!(output.stdout.contains("forklift status --forget"), "{}", output.stdout);
    let forget = ["--forget", folder.to_str().expect("UTF-8")];
    assert_eq!(status(&person, &forget).status, Some(0));
    let output = status(&person, &[]);
    assert_eq!((output.status, output.stdout.contains("No fork")), (Some(0), true));
    assert_eq!(status(&person, &forget).status, Some(2));
    fs::rename(&moved, &folder).expect("moved back");
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    assert!(status(&person, &[]).stdout.contains("(main)"));
}

#[test]
fn a_folder_that_is_no_fork_leaves_no_record() {
    let Some(person) = Person::new() else { return };
    let folder = person.hermetic.root().join("elsewhere");
    fs::create_dir_all(&folder).expect("a folder");
    let mut command = person.forklift(&[]);
    let output = person.hermetic.run(command.current_dir(&folder));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(row(&person, &[]), Value::Null);
}

#[test]
fn what_was_held_back_or_waits_for_review_is_no_good_sync() {
    let Some(person) = Person::new() else { return };
    for flag in ["--no-push", "--dry-run"] {
        let output = person.hermetic.run(&mut person.alone(&[flag]));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        let row = row(&person, &["--max-days", "9"]);
        assert_eq!(
            (&row["last_good"], &row["overdue"]),
            (&Value::Null, &json!("no good sync yet"))
        );
        assert!(row["blocked"].as_str().expect("text").contains("held back"), "{row}");
    }
    let forge = FakeGitea::start();
    let sync = || {
        let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
        let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        row(&person, &[])
    };
    let opened = sync();
    assert_ne!(opened["last_good"], Value::Null, "{opened}");
    let waiting = sync();
    assert_eq!(waiting["verdict"]["kind"], "awaiting-review", "{waiting}");
    assert_eq!(waiting["last_good"], opened["last_good"], "its opening counts");
    assert!(waiting["blocked"].as_str().expect("text").contains("waits for review"), "{waiting}");
}

#[test]
fn a_fork_that_trains_keep_is_seen_by_what_they_fetched() {
    let Some(person) = seven("words\n") else { return };
    // The checkout has never seen upstream.
    let output = train(&person, KEEPS_BOTH, &["--steps", "1"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let begun = row(&person, &["--max-days", "9"]);
    assert_eq!(begun["behind"], 7, "{begun}");
    assert_eq!(begun["overdue"], "no good sync yet", "one step is not the target: {begun}");
    let stuck = "[[step]]\nrun = \"echo what now > STUCK.md\"\n";
    for _ in 0..2 {
        assert_eq!(train(&person, stuck, &[]).status, Some(4));
    }
    let output = status(&person, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("2 syncs in a row"), "{}", output.stdout);
    let folder = person.fork.checkout.dir().display().to_string();
    assert!(output.stdout.contains(&format!("forklift -C {folder} train")), "{}", output.stdout);
    let output = train(&person, KEEPS_BOTH, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let done = row(&person, &["--max-days", "9"]);
    assert_eq!((&done["overdue"], &done["missed"]), (&Value::Null, &json!(0)), "{done}");
}

#[test]
fn the_next_command_of_every_fork_can_be_typed_anywhere() {
    let person = Person::with(|hermetic| Fork::named(hermetic, "my fork").clean_merge());
    let Some(person) = person else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let next = |person: &Person| row(person, &[])["next"].as_str().expect("text").to_owned();
    let quoted = format!("'{}'", person.fork.checkout.dir().display());
    assert!(next(&person).starts_with(&format!("git -C {quoted} fetch origin && git -C")));
    let run = |words: &str| {
        let mut command = person.hermetic.command("sh");
        person.hermetic.run(command.current_dir("/").args(["-c", words]))
    };
    let output = run(&next(&person));
    assert!(output.success() && output.stdout.contains("diff --git"), "{}", output.snapshot());
    person.fork.origin.git(&["update-ref", "refs/heads/main", &person.published()[0]]);
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    assert_eq!(next(&person), format!("forklift -C {quoted}"));
}
