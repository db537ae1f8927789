//! What hurt people with an earlier forklift, one test or more for each pain, found by its number.
//!
//! `p01` to `p03`, `p14`, `p15` and parts of others stand with what they are about (`cargo test p02` finds them all). P10 is
//! about the image and is held where that is built.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use testkit::part::{Part, missing, require};
use testkit::repo::{Fork, Repo};
use testkit::tree::files;
use testkit::wait::wait_until;

use crate::support::{MERGE, Person};

/// Every regular file below a folder.
/// P4: success changed the person's checkout, and the next run failed on it.
#[test]
fn p04_a_second_run_in_the_same_checkout_works_like_the_first() {
    let Some(person) = Person::new() else { return };
    let seen = || {
        let checkout = &person.fork.checkout;
        let branches =
            checkout.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
        (checkout.git(&["symbolic-ref", "HEAD"]), branches)
    };
    let before = seen();
    for round in 1..=2 {
        let output = person.run(MERGE, &["--again"]);
        assert_eq!(output.status, Some(0), "round {round}: {}", output.snapshot());
        assert_eq!(seen(), before, "the checkout was changed in round {round}");
        let newest = person.runs().pop().expect("a run");
        let commit = crate::support::field_of(&newest, "/publication/commit");
        assert_eq!(person.fork.origin.sha(&person.published()[0]), commit, "round {round}");
    }
}

/// P5: the workspace shared its objects with the person's repository and showed more of it than was needed.
#[test]
fn p05_the_workspace_shares_no_file_with_the_persons_repository() {
    let Some(person) = Person::new() else { return };
    let checkout = &person.fork.checkout;
    checkout.write("private.txt", "not for the agent\n");
    checkout.git(&["checkout", "--quiet", "-b", "private"]);
    let private = checkout.commit("on another branch");
    checkout.checkout("main");
    checkout.git(&["repack", "--quiet", "-a", "-d"]);
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let inode =
        |path: &PathBuf| path.metadata().map(|facts| (facts.dev(), facts.ino())).expect("there");
    let theirs: BTreeSet<_> = files(&checkout.git_dir()).iter().map(inode).collect();
    let git = person.only_run().join("workspace/.git");
    let ours = files(&git);
    assert!(ours.len() > 3, "{ours:?}");
    for file in &ours {
        assert!(!theirs.contains(&inode(file)), "{} is the person's own", file.display());
        assert_eq!(file.metadata().expect("there").nlink(), 1, "{} is shared", file.display());
    }
    assert!(!git.join("objects/info/alternates").exists());
    let workspace = Repo::open(person.only_run().join("workspace"));
    assert!(workspace.try_git(&["cat-file", "-e", &private]).is_err(), "another branch is there");
    let root = person.hermetic.root().to_string_lossy().into_owned();
    for file in
        ours.iter().filter(|file| file.starts_with(git.join("logs")) || file.ends_with("config"))
    {
        let text = String::from_utf8_lossy(&std::fs::read(file).expect("readable")).into_owned();
        assert!(!text.contains(&root), "{} tells where the host keeps things", file.display());
    }
}

/// P6: only the user 1000 could run it. Root can (every other test, where root runs them), and anybody else can.
#[test]
fn p06_a_user_with_any_number_can_run_it() {
    let Some(setpriv) = require(Part::Setpriv) else { return };
    let Some(person) = Person::new() else { return };
    if person.hermetic.root().metadata().expect("there").uid() != 0 {
        return missing("root", "another user can only be tried by root");
    }
    let script = person.hermetic.root().join("agent.toml");
    std::fs::write(&script, MERGE).expect("written");
    let root = person.hermetic.root();
    person.hermetic.run_ok(person.hermetic.command("chown").args(["-R", "1001:1001"]).arg(root));
    let mut command = person.hermetic.command(setpriv);
    command
        .args(["--reuid=1001", "--regid=1001", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_forklift"));
    command.args([
        "--provider",
        "scripted",
        "--backend",
        "bwrap",
        "--agent-when",
        "always",
        "--script",
    ]);
    command.arg(script).current_dir(person.fork.checkout.dir());
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

/// P7: giving the folders away followed links out of them.
#[test]
fn p07_a_link_to_a_folder_outside_keeps_that_folder_as_it_is() {
    let Some(person) = Person::with(Fork::new) else { return };
    let outside = person.hermetic.root().join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("file"), "mine\n").expect("written");
    symlink(&outside, person.fork.checkout.dir().join("way-out")).expect("a link");
    person.fork.fork_commit("a link to somewhere else");
    person.fork.upstream_commit("upstream.txt", "1\n2\n", "second");
    let owner = |path: &Path| path.metadata().map(|it| (it.uid(), it.mode())).expect("there");
    let before = (owner(&outside), owner(&outside.join("file")));
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((owner(&outside), owner(&outside.join("file"))), before);
}

/// P8: the container was not confined, and the key was on its command line. (What a box must not allow is tried one by one
/// by the abuse kit; that no key is on a command line is in `secrets`.)
#[test]
fn p08_the_agent_has_no_privileges_and_no_network() {
    let Some(person) = Person::new() else { return };
    let look = "grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status | tr -d '\\\\t' > /harness-state/seen
tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' >> /harness-state/seen";
    person.run(&format!("[[step]]\nrun = '''{look}'''\n{MERGE}"), &[]);
    let seen = std::fs::read_to_string(person.only_run().join("harness-state/seen")).expect("seen");
    let zeros = "0".repeat(16);
    let seen: Vec<String> = seen.lines().map(|line| line.replace('\t', "")).collect();
    assert_eq!(
        seen,
        [
            format!("CapEff:{zeros}"),
            format!("CapBnd:{zeros}"),
            "NoNewPrivs:1".to_owned(),
            "lo".to_owned()
        ]
    );
}

/// P9: a terminated forklift left its container running and its record open.
#[test]
fn p09_sigterm_ends_the_box_and_closes_the_record() {
    let Some(person) = Person::new() else { return };
    let script = "[[step]]\ndaemon = \"while true; do date +%s%N > heartbeat; sleep 0.1; done\"\n[[step]]\nsleep = 600\n";
    let mut child = person.start(script, &[]);
    person.wait_for_box(&mut child);
    let run = person.only_run();
    wait_until("a heartbeat", || {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended too early");
        run.join("workspace/heartbeat").exists()
    });
    let pid = child.id().to_string();
    person.hermetic.run_ok(person.hermetic.command("kill").args(["-TERM", &pid]));
    assert_eq!(child.wait().expect("ends").code(), Some(143));
    assert_eq!(person.metadata("/verdict/kind"), "stopped");
    assert_eq!(person.metadata("/phase"), "closed");
    let last = std::fs::read(run.join("workspace/heartbeat")).expect("it beat");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(std::fs::read(run.join("workspace/heartbeat")).expect("there"), last, "it lives on");
}

/// P11: one failure of the model lost what had been done, with no report and nothing to go on from.
#[test]
fn p11_an_agent_that_failed_leaves_a_record_and_its_work_to_go_on_from() {
    let Some(person) = Person::new() else { return };
    let failing = "[[step]]\nrun = \"echo half > half.txt\"\n[[step]]\nexit = 7\n";
    let output = person.run(failing, &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert_eq!(person.metadata("/phase"), "closed");
    assert_eq!(person.metadata("/box/ended/code"), 7);
    let script = person.hermetic.root().join("second.toml");
    std::fs::write(&script, format!("[[step]]\nrun = \"rm half.txt\"\n{MERGE}")).expect("written");
    let name = person.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    let args = ["resume", &name, "--script", script.to_str().expect("UTF-8")];
    let resumed = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(resumed.status, Some(0), "{}", resumed.snapshot());
}

/// P12: the set-up used up the agent's time, and a run that was out of time had no figures.
#[test]
fn p12_the_set_up_has_a_clock_of_its_own_and_a_late_run_has_its_figures() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", "---\nsetup: sleep 12\n---\n");
        fork.fork_commit("rules");
        fork.clean_merge()
    }) else {
        return;
    };
    let output = person.run(MERGE, &["--timeout", "10"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nsleep = 60\n", &["--timeout", "1"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert!(person.metadata("/box/wall_ms").as_u64() >= Some(1000));
    assert!(person.metadata("/agent_result").is_object(), "what the agent used is not told");
}

/// P13: the base was the local branch, so what only origin had was missing from the result.
#[test]
fn p13_the_base_is_origins_branch_and_not_a_stale_local_one() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).clean_merge().behind_origin())
    else {
        return;
    };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branch = person.published().pop().expect("published");
    let origin = person.fork.origin.sha("main");
    assert_ne!(person.fork.checkout.sha("main"), origin, "the local branch is behind");
    person.fork.origin.git(&["merge-base", "--is-ancestor", &origin, &branch]);
}

/// P16: errors came with traces, colours went into pipes, the prompt was echoed, and a stuck run did not say why.
#[test]
fn p16_what_is_said_is_short_plain_and_to_the_point() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nstuck = \"Which auth flow?\"\n", &[]);
    let all = format!("{}{}", output.stdout, output.stderr);
    assert!(all.contains("Which auth flow?"), "{all}");
    assert!(!all.contains('\u{1b}'), "colours in a pipe: {all:?}");
    assert!(!all.contains("You are in a git repository"), "the prompt was echoed: {all}");
    let name = person.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(all.contains(&name), "the run is not named: {all}");
    assert!(all.lines().count() < 20, "{all}");
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    let output = person.run(MERGE, &[]);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

/// P17: what the agent did was nowhere on disk.
#[test]
fn p17_the_transcript_is_on_disk() {
    let Some(person) = Person::new() else { return };
    person.run(&format!("[[step]]\nprint = \"I looked at it\\n\"\n{MERGE}"), &[]);
    let run = person.only_run();
    let logs = files(&run.join("harness-state/logs"));
    let holds = |path: &PathBuf| {
        String::from_utf8_lossy(&std::fs::read(path).expect("readable")).contains("I looked at it")
    };
    assert!(logs.iter().any(holds), "{logs:?}");
    assert!(holds(&run.join("boxes/agent/stdout.log")), "the host's own copy");
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    let shown = person.hermetic.run(&mut person.forklift(&["log", &name]));
    assert!(shown.stdout.contains("I looked at it"), "{}", shown.stdout);
}

/// P18: a long path broke the socket. The way out of a box is a socket, so a run that has one is tried.
#[test]
fn p18_a_path_longer_than_a_sockets_name_does_not_matter() {
    let long = "a-folder-with-quite-a-long-name-that-goes-on-and-on-and-on-for-longer-than-is-reasonable-in-every-respect";
    let Some(person) = Person::with(|hermetic| Fork::named(hermetic, long).clean_merge()) else {
        return;
    };
    let state = person.hermetic.root().join(long).join(long);
    let mut command = person.command(MERGE, &["--egress", "packages"]);
    let output = person.hermetic.run(command.env("XDG_STATE_HOME", &state));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// P19: `files` listed what upstream had deleted, and failed on it when ids were wanted.
#[test]
fn p19_files_with_ids_lists_no_file_of_upstreams_and_takes_deleted_ones() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.git(&["rm", "--quiet", "upstream.txt"]);
        fork.fork_commit("the fork does without");
        fork.upstream_remove("README.md");
        fork
    }) else {
        return;
    };
    let output = person.hermetic.run(&mut person.forklift(&["files", "--hash"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(!output.stdout.contains("README.md"), "{}", output.stdout);
    let deleted = output.stdout.lines().find(|line| line.contains("upstream.txt")).expect("listed");
    assert!(deleted.contains("deleted") && deleted.contains(" - "), "{deleted}");
    let id = person.fork.origin.git(&["rev-parse", "main:FORK.md"]);
    assert!(output.stdout.contains(&id), "{}", output.stdout);
}

/// P19: `files` and `first` looked at the tip while the run took the latest tag.
#[test]
fn p19_looking_ahead_and_running_take_the_same_target() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", "---\ntarget: latest-tag\n---\n");
        fork.checkout.write("after.txt", "the fork's\n");
        fork.fork_commit("follow releases");
        fork.upstream_commit("a.txt", "1\n", "a release");
        fork.upstream.git(&["tag", "v1.0.0", "main"]);
        fork.upstream_commit("after.txt", "upstream's\n", "after the release");
        fork
    }) else {
        return;
    };
    let release = person.fork.upstream.sha("v1.0.0");
    for word in ["changelog", "files"] {
        let output = person.hermetic.run(&mut person.forklift(&[word, "--json"]));
        let last = output.stdout.lines().last().expect("a line");
        let value: serde_json::Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(value["pins"]["upstream"], release, "{word}");
    }
    let output = person.hermetic.run(&mut person.forklift(&["first"]));
    assert!(output.stdout.contains("nothing conflicts, up to v1.0.0"), "{}", output.stdout);
    let output = person.hermetic.run(&mut person.forklift(&["first", "--target", "tip"]));
    assert!(output.stdout.contains("after.txt"), "{}", output.stdout);
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    assert_eq!(person.metadata("/pins/upstream"), release);
}

/// P20: the documentation told of things that were no longer there.
#[test]
fn p20_every_flag_and_command_of_the_documentation_exists() {
    let Some(person) = Person::new() else { return };
    let help = |args: &[&str]| person.hermetic.run(&mut person.forklift(args)).stdout;
    let main = help(&["--help"]);
    let listed = main.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty())
        })
        .collect();
    assert!(commands.contains(&"prune"), "{commands:?}");
    let helps: String = commands.iter().map(|word| help(&[word, "--help"])).collect();
    let all = format!("{main}{helps}");
    let texts = [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/forklift.md"),
        include_str!("../../../../docs/box.md"),
        include_str!("../../../../docs/cron.md"),
    ];
    for text in texts {
        let ours =
            text.lines().filter(|line| !line.contains("systemctl") && !line.contains("git --"));
        for word in
            ours.flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')))
        {
            let is_flag = word.starts_with("--") && word.len() > 3;
            assert!(!is_flag || all.contains(word), "{word} is no flag of forklift's");
        }
        for after in text.split("`forklift ").skip(1) {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let word = after.split(|c: char| !is_part(c)).next().unwrap_or_default();
            let word = if word.starts_with("--") { "" } else { word };
            let known = word.is_empty() || commands.contains(&word);
            assert!(known, "'forklift {word}' is no command");
        }
    }
}

/// P21: a remote that wants a password hung a run that nobody watched.
#[test]
fn p21_a_remote_that_asks_for_a_password_hangs_nobody() {
    let Some(person) = Person::new() else { return };
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            drop(stream.read(&mut request));
            let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    let url = format!("http://{address}/upstream.git");
    person.fork.checkout.git(&["remote", "set-url", "upstream", &url]);
    let mut command = person.command(MERGE, &[]);
    let output = person.hermetic.run(command.env_remove("GIT_TERMINAL_PROMPT"));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(
        output.stderr.lines().last().is_some_and(|line| line.starts_with("error: ")),
        "{}",
        output.stderr
    );
}

/// P21: merges in the fork's history were flattened.
#[test]
fn p21_merges_of_the_forks_own_stay_merges() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.git(&["checkout", "--quiet", "-b", "side"]);
        fork.checkout.write("side.txt", "side\n").commit("on the side");
        fork.checkout.checkout("main").merge("side");
        fork.fork_commit("after the merge");
        fork.clean_merge()
    }) else {
        return;
    };
    let merge = person.fork.origin.git(&["rev-list", "--merges", "main"]);
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let branch = person.published().pop().expect("published");
    let merges = person.fork.origin.git(&["rev-list", "--merges", &branch]);
    assert!(merges.lines().any(|line| line == merge), "{merges}");
}

/// P21: there was no command to list, show, go on from or tidy up runs.
#[test]
fn p21_runs_can_be_listed_and_shown() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &["--target", "tip"]);
    let name = person.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    let listed = person.hermetic.run(&mut person.forklift(&["runs"])).stdout;
    for words in ["AGE", &name, "closed", &format!("forklift/{name}"), "verified"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let shown = person.hermetic.run(&mut person.forklift(&["show", &name])).stdout;
    for words in
        ["target      tip (tip of main)", "strategy    merge", "scripted on bwrap", "verified"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// P6: what a run leaves is its owner's, whoever that is, and nobody else's.
#[test]
fn p06_the_folder_of_a_run_is_its_owners_alone() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let mode = person.only_run().metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}
