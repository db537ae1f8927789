//! What goes wrong out there: one clear message, the right status, and the work kept and named.
//!
//! A missing remote and an empty repository are in `usage`, a detached HEAD is in `outcome`.

use std::os::unix::fs::PermissionsExt;

use testkit::fake_forge::{FakeGitea, Mishap, TOKEN};
use testkit::hermetic::Output;
use testkit::part::{Part, missing, require};
use testkit::repo::{Fork, Repo};

use crate::support::{MERGE, Person};

/// The error line, which must be the only one.
fn error_line(output: &Output) -> &str {
    let errors: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{}", output.snapshot());
    errors[0]
}

/// The commit of the only run is in its own repository and named on the terminal.
fn work_is_kept_and_named(person: &Person, output: &Output) {
    let tip = person.metadata("/evidence/tip");
    let tip = tip.as_str().expect("a commit");
    let repo = Repo::open(person.only_run().join("repo.git"));
    assert_eq!(repo.sha(tip), tip);
    let run = person.only_run();
    assert!(output.stdout.contains(run.to_str().expect("UTF-8")), "{}", output.stdout);
}

#[test]
fn a_shallow_clone_is_refused_also_where_no_agent_is_needed() {
    let Some(person) = Person::with(|hermetic| Fork::shallow(hermetic).clean_merge()) else {
        return;
    };
    for mut command in
        [person.alone(&[]), person.forklift(&["changelog"]), person.forklift(&["first"])]
    {
        let output = person.hermetic.run(&mut command);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let line = error_line(&output);
        assert!(line.contains("shallow") && line.contains("--unshallow"), "{line}");
    }
}

#[test]
fn a_detached_head_does_not_matter_to_those_who_only_look() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).clean_merge().detached()) else {
        return;
    };
    for word in ["changelog", "files", "first"] {
        let output = person.hermetic.run(&mut person.forklift(&[word]));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    }
}

/// Git cannot merge what has nothing in common; an agent may know a way, and this one does not.
#[test]
fn unrelated_histories_are_told_before_an_agent_is_started() {
    let Some(person) = Person::with(Fork::unrelated) else { return };
    let output = person.hermetic.run(&mut person.alone(&["--allow-unrelated"]));
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(output.stderr.contains("nothing in common"), "{}", output.stderr);
    assert!(person.published().is_empty());
}

/// Upstream rewrote its history after the fork had taken the old one: the new tip is what counts.
#[test]
fn an_upstream_that_was_force_pushed_is_taken_as_it_is_now() {
    let Some(person) = Person::new() else { return };
    let first = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(first.status, Some(0), "{}", first.snapshot());
    let branch = person.published().pop().expect("published");
    person.fork.origin.git(&["update-ref", "refs/heads/main", &branch]);
    let rewritten =
        person.fork.upstream_rewrite("upstream.txt", "1\n2\nthree\n", "second, said better");
    let output = person.run(
        "[[step]]\nrun = '''git merge --no-edit upstream/main || { git checkout --theirs . && git add -A && git commit --no-edit; }'''\n",
        &["--accept-loss"],
    );
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let newest = person.runs().pop().expect("a run");
    let text = std::fs::read_to_string(newest.join("metadata.json")).expect("metadata");
    assert!(text.contains(&rewritten), "the new tip was not pinned");
}

/// A protected branch, as a server's `update` hook refuses it.
#[test]
fn a_branch_that_the_server_protects_keeps_the_work_and_says_why() {
    let Some(person) = Person::new() else { return };
    let hook = person.fork.origin.git_dir().join("hooks/update");
    std::fs::create_dir_all(hook.parent().expect("a parent")).expect("made");
    std::fs::write(&hook, "#!/bin/sh\necho \"$1 is protected\" >&2\nexit 1\n").expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("set");
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("not published: origin rejected"), "{}", output.stdout);
    assert!(output.stdout.contains("is kept in"), "{}", output.stdout);
    work_is_kept_and_named(&person, &output);
}

/// A run without an agent whose pull request goes to this forge.
fn on_forge(person: &Person, url: &str) -> Output {
    let mut command = person.alone(&["--forge-url", url]);
    person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN))
}

/// The branch is on origin, the text of the pull request is beside the run, and the terminal says why and where.
fn only_the_pull_request_is_missing(person: &Person, output: &Output, word: &str) {
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains(word), "{word}: {}", output.stdout);
    assert_eq!(person.published().len(), 1, "the branch was not pushed");
    let text = person.only_run().join("PULL_REQUEST.md");
    assert!(text.is_file() && output.stdout.contains("PULL_REQUEST.md"), "{}", output.stdout);
    work_is_kept_and_named(person, output);
}

#[test]
fn a_forge_that_is_down_costs_only_the_pull_request() {
    let Some(person) = Person::new() else { return };
    let url = FakeGitea::start().remote_url();
    only_the_pull_request_is_missing(&person, &on_forge(&person, &url), "could not be reached");
}

/// A forge that answers every request to write something like this.
fn answers(code: u16, word: &str) {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let mut mishap = Mishap::status(code, "no, said the forge");
    if let Mishap::Status { headers, .. } = &mut mishap {
        headers.extend((code == 429).then(|| ("Retry-After".to_owned(), "3600".to_owned())));
    }
    forge.fail_next_on("POST", 100, &mishap);
    only_the_pull_request_is_missing(&person, &on_forge(&person, &forge.remote_url()), word);
    assert_eq!(forge.pulls().len(), 0);
}

#[test]
fn a_forge_that_answers_401() {
    answers(401, "token");
}

#[test]
fn a_forge_that_answers_404() {
    answers(404, "127.0.0.1");
}

#[test]
fn a_forge_that_answers_409() {
    answers(409, "127.0.0.1");
}

#[test]
fn a_forge_that_answers_422() {
    answers(422, "127.0.0.1");
}

#[test]
fn a_forge_that_answers_429() {
    answers(429, "try again");
}

#[test]
fn a_forge_that_answers_500() {
    answers(500, "500");
}

/// Runs forklift with its state on a file system of this size, in a mount namespace of its own.
fn on_a_small_disk(person: &Person, size: &str, script: &str) -> Option<Output> {
    require(Part::Setpriv)?; // It comes from the same package as `unshare`.
    let state = person.hermetic.root().join("small");
    std::fs::create_dir(&state).expect("made");
    let own = person.command(script, &[]);
    let mut command = person.hermetic.command("unshare");
    let act = "mount -t tmpfs -o size=$0,mode=755 tmpfs \"$1\" || exit 77; shift; exec \"$@\"";
    command.args(["--mount", "sh", "-c", act, size]).arg(&state);
    command.arg(own.get_program()).args(own.get_args());
    command.env("XDG_STATE_HOME", &state).current_dir(person.fork.checkout.dir());
    let output = person.hermetic.run(&mut command);
    if output.status == Some(77) || output.stderr.starts_with("unshare:") {
        missing("mount", "a small file system cannot be mounted here");
        return None;
    }
    Some(output)
}

#[test]
fn a_disk_that_is_full_before_the_agent_starts_is_one_clear_line() {
    let Some(person) = Person::new() else { return };
    let Some(output) = on_a_small_disk(&person, "28k", MERGE) else { return };
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    let line = error_line(&output);
    assert!(line.contains("No space left") && line.contains("/small/"), "{line}");
    assert!(person.published().is_empty());
}

#[test]
fn an_agent_that_fills_the_disk_is_ended_and_its_run_is_named() {
    let Some(person) = Person::new() else { return };
    let fill =
        "[[step]]\nrun = \"dd if=/dev/zero of=big bs=1M count=600; sleep 30\"\nexpect = \"any\"\n";
    let Some(output) = on_a_small_disk(&person, "700m", fill) else { return };
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(
        output.stdout.contains("disk space") && output.stdout.contains("/small/"),
        "{}",
        output.stdout
    );
    assert!(person.published().is_empty());
}
