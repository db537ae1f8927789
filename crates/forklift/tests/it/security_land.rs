//! `forklift security land`: one fix alone, through the run that every update goes through.

use std::process::Command;

use serde_json::Value;
use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;

use crate::security::{FIXED, Lane, OPEN};
use crate::support::{field_of, name_of};

const FILE: &str = "src/parse.c";

fn command(lane: &Lane, script: &str, flags: &[&str]) -> Command {
    let path = lane.person.hermetic.root().join("agent.toml");
    std::fs::write(&path, script).expect("the script");
    let source = lane.advisories.to_string_lossy().into_owned();
    let land = ["security", "land", "ADV-2024-1", "--advisories", &source];
    let agent = ["--provider", "scripted", "--backend", "bwrap", "--script"];
    let mut command = lane.person.forklift(&land);
    command.args(agent).arg(path).args(flags);
    command
}

/// Lands the fix; an agent that is started all the same fails the run.
fn land(lane: &Lane, flags: &[&str]) -> Output {
    lane.person.hermetic.run(&mut command(lane, "[[step]]\nexit = 9\n", flags))
}

/// The published branch has one commit on top of the fork's, which changes the parser alone.
#[track_caller]
fn check_published(lane: &Lane, expected: &str) -> String {
    let origin = &lane.person.fork.origin;
    let published = lane.person.published();
    assert_eq!(published.len(), 1, "{published:?}");
    let branch = &published[0];
    assert_eq!(origin.sha(&format!("{branch}^")), origin.sha("main"));
    assert_eq!(origin.git(&["rev-list", "--count", &format!("main..{branch}")]).trim(), "1");
    assert_eq!(origin.git(&["diff", "--name-only", "main", branch]).trim(), FILE);
    assert_eq!(origin.git(&["show", &format!("{branch}:{FILE}")]).trim_end(), expected.trim_end());
    let message = origin.git(&["log", "-1", "--format=%B", branch]);
    assert!(message.contains(&format!("(cherry picked from commit {})", lane.fix)), "{message}");
    assert!(message.contains("Security-fix: ADV-2024-1"), "{message}");
    branch.clone()
}

#[test]
fn a_fix_that_applies_is_one_verified_commit_on_a_branch() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let output = land(&lane, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(
        output.stdout.contains("verified: git applied the fix of ADV-2024-1 unchanged"),
        "{}",
        output.stdout
    );
    let branch = check_published(&lane, FIXED);
    let origin = &lane.person.fork.origin;
    let author =
        |rev: &str| lane.person.fork.upstream.git(&["log", "-1", "--format=%an <%ae>", rev]);
    assert_eq!(origin.git(&["log", "-1", "--format=%an <%ae>", &branch]), author(&lane.fix));
    let run = lane.person.only_run();
    assert_eq!(field_of(&run, "/fix/request/id"), "ADV-2024-1");
    assert_eq!(field_of(&run, "/fix/commit"), origin.sha(&branch));
    assert_eq!(field_of(&run, "/publication/commit"), origin.sha(&branch));
    let text = std::fs::read_to_string(run.join("PULL_REQUEST.md")).expect("a text");
    assert!(text.contains("Lands one security fix") && text.contains(&lane.fix), "{text}");
}

#[test]
fn a_fix_that_a_merge_left_out_is_landed() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    crate::security::merge_ours(&lane.person.fork);
    let output = land(&lane, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    check_published(&lane, FIXED);
    let output = land(&lane, &["--commit", &lane.person.fork.upstream.sha("main~2^")]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("applying it again changes nothing"), "{}", output.stderr);
}

#[test]
fn the_fork_keeps_its_own_changes_to_the_same_file() {
    let ours = OPEN.replace("    return length;", "    count_calls();\n    return length;");
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.write(FILE, &ours);
        fork.fork_commit("count calls");
    }) else {
        return;
    };
    let output = land(&lane, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    check_published(
        &lane,
        &FIXED.replace("    return length;", "    count_calls();\n    return length;"),
    );
}

/// The fork changed the line that the fix stands beside, so that it is landed by its commit.
fn conflicting() -> Option<Lane> {
    let lane = Lane::new(|fork| {
        fork.checkout
            .write(FILE, OPEN.replace("copy(buffer, text, length);", "copy(ours, text, length);"));
        fork.fork_commit("a buffer of our own");
    })?;
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    Some(lane)
}

#[test]
fn an_agent_resolves_what_conflicts_and_the_result_is_one_commit_too() {
    let Some(lane) = conflicting() else { return };
    let resolved = FIXED.replace("copy(buffer, text, length);", "copy(ours, text, length);");
    let script = format!(
        "[[step]]\nrun = '''git merge --no-edit upstream/main || true\ncat > {FILE} <<'END'\n{resolved}END\ngit add -A && git commit --no-edit'''\n"
    );
    let output = lane.person.hermetic.run(&mut command(
        &lane,
        &script,
        &["--trust", "1", "--commit", &lane.fix],
    ));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("adapted: the agent"), "{}", output.stdout);
    check_published(&lane, &resolved);
    let log = lane.person.about(&lane.person.only_run(), &["show"]).stdout;
    assert!(log.contains("ADV-2024-1"), "{log}");
}

#[test]
fn a_result_that_drops_the_fix_is_refused() {
    let Some(lane) = conflicting() else { return };
    let script = "[[step]]\nrun = \"git merge -s ours --no-edit upstream/main\"\n";
    let output = lane.person.hermetic.run(&mut command(
        &lane,
        script,
        &["--trust", "1", "--commit", &lane.fix],
    ));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(lane.person.published().is_empty());
}

/// Lands the conflicting fix with these files as the agent's result.
fn adapt(lane: &Lane, text: &str, flags: &[&str]) -> Output {
    let script = format!(
        "[[step]]\nrun = '''git merge --no-edit upstream/main || true\ncat > {FILE} <<'END'\n{text}END\ngit add -A && git commit --no-edit'''\n"
    );
    let flags = [&["--trust", "1", "--again", "--no-push", "--commit", &lane.fix], flags].concat();
    lane.person.hermetic.run(&mut command(lane, &script, &flags))
}

/// The host cannot know that code works.
#[test]
fn an_adapted_fix_is_for_a_person_and_is_never_said_to_be_in() {
    let Some(lane) = conflicting() else { return };
    let fixed = FIXED.replace("copy(buffer, text, length);", "copy(ours, text, length);");
    for text in [
        fixed
            .replace("    if (length", "#if 0\n    if (length")
            .replace("    copy(", "#endif\n    copy("),
        fixed.replace("    if (length", "    return length;\n    if (length"),
        fixed,
    ] {
        let output = adapt(&lane, &text, &[]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.contains("adapted: the agent"), "{}", output.stdout);
        assert!(output.stdout.contains("a person has to judge"), "{}", output.stdout);
        assert!(output.stdout.contains("still closes the hole is not known"), "{}", output.stdout);
        assert!(output.stdout.contains("2 of its 2 new lines are there"), "{}", output.stdout);
        let runs = lane.person.hermetic.run(&mut lane.person.forklift(&["runs"])).stdout;
        assert!(runs.contains("adapted") && !runs.contains("verified"), "{runs}");
        for word in ["verified", "is in;"] {
            assert!(!output.stdout.contains(word), "{word}: {}", output.stdout);
        }
    }
}

#[test]
fn a_result_that_lacks_most_of_the_fix_is_refused_unless_a_person_accepts_it() {
    let Some(lane) = conflicting() else { return };
    let open = OPEN.replace("copy(buffer, text, length);", "copy(ours, text, length);");
    let comment = open.replace("return length", "/* the caller checks */ return length");
    let inverted = FIXED
        .replace("length > BUFFER_SIZE", "length < BUFFER_SIZE")
        .replace("ERROR_TOO_LONG", "length")
        .replace("copy(buffer, text, length);", "copy(ours, text, length);");
    for text in [&comment, &inverted] {
        let output = adapt(&lane, text, &[]);
        assert_eq!(output.status, Some(3), "{}", output.snapshot());
        assert!(output.stdout.contains("most of the fix of ADV-2024-1"), "{}", output.stdout);
        assert!(output.stdout.contains("--accept-dropped"), "{}", output.stdout);
    }
    let output = adapt(&lane, &comment, &["--accept-dropped"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("adapted: the agent"), "{}", output.stdout);
}

#[test]
fn a_fix_on_which_the_check_fails_is_not_published() {
    let rules = "---\ncheck: \"! grep -q BUFFER_SIZE src/parse.c\"\n---\n";
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.write("FORK.md", rules);
        fork.fork_commit("a check");
    }) else {
        return;
    };
    let script = "[[step]]\nrun = \"git commit -q --no-edit || git status\"\n";
    let output = lane.person.hermetic.run(&mut command(&lane, script, &[]));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(lane.person.published().is_empty());
}

#[test]
fn a_second_try_waits_for_the_review_of_the_first() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    assert_eq!(land(&lane, &[]).status, Some(0));
    let output = land(&lane, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("waits for review"), "{}", output.stdout);
    assert_eq!(lane.person.published().len(), 1);
}

#[test]
fn a_fix_and_an_update_have_branches_of_their_own() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    assert_eq!(land(&lane, &[]).status, Some(0));
    let fix = check_published(&lane, FIXED);
    let at = lane.person.fork.origin.sha(&fix);
    let update = lane.person.hermetic.run(&mut lane.person.alone(&[]));
    assert_eq!(update.status, Some(0), "{}", update.snapshot());
    assert_eq!(lane.person.published().len(), 2);
    assert_eq!(lane.person.fork.origin.sha(&fix), at);
}

#[test]
fn fixes_and_an_update_that_wait_for_review_do_not_close_one_another() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let other = lane.person.fork.upstream_commit("src/other.c", "int other;\n", "fix CVE-2024-7");
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    let forge = FakeGitea::start();
    let url = forge.remote_url();
    let on_forge = |mut command: Command| {
        let output = lane.person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    };
    on_forge(command(&lane, "[[step]]\nexit = 9\n", &["--forge-url", &url]));
    let mut second = lane.person.forklift(&["security", "land", "CVE-2024-7", "--commit", &other]);
    second.args(["--forge-url", &url]);
    on_forge(second);
    on_forge(lane.person.alone(&["--forge-url", &url]));
    lane.person.fork.upstream_commit("more.txt", "more\n", "more");
    on_forge(lane.person.alone(&["--forge-url", &url]));
    assert_eq!(forge.pulls().iter().filter(|pull| pull.open).count(), 3, "{:?}", forge.pulls());
    assert!(forge.comments().is_empty(), "{:?}", forge.comments());
    assert_eq!(lane.person.published().len(), 3);
}

#[test]
fn the_pull_request_names_the_fix_and_its_source() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let forge = FakeGitea::start();
    let mut command = command(&lane, "[[step]]\nexit = 9\n", &["--forge-url", &forge.remote_url()]);
    let output = lane.person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1);
    assert_eq!(pulls[0].title, "Security fix ADV-2024-1: Buffer overflow in parse");
    for words in ["Lands one security fix", "2024-1.json", "CVE-2024-1010", "critical", &lane.fix] {
        assert!(pulls[0].body.contains(words), "{words}: {}", pulls[0].body);
    }
    assert!(!pulls[0].body.contains("/advisories"), "a folder: {}", pulls[0].body);
}

#[test]
fn a_commit_of_upstream_is_landed_by_its_id_without_an_advisory() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    let commit = &lane.fix[..10];
    let output = land(&lane, &["--commit", commit]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    check_published(&lane, FIXED);
}

#[test]
fn what_the_fork_has_needs_nothing_and_what_is_unknown_is_said() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let wrong = |args: &[&str], words: &str| {
        let args = [&["security", "land"], args].concat();
        let output = lane.person.hermetic.run(&mut lane.person.forklift(&args));
        assert_eq!(output.status, Some(2), "{args:?}: {}", output.snapshot());
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    };
    wrong(&["CVE-2000-1111"], "no fix is known as CVE-2000-1111");
    wrong(&["../x"], "cannot be the identifier");
    wrong(&["ADV-2024-1", "--commit", "zzz"], "give the id of a commit");
    wrong(&["ADV-2024-1", "--commit", "0123456789"], "has no commit 0123456789");
    wrong(&["ADV-2024-1", "--target", "v1"], "have no meaning here");
    let own = lane.person.fork.checkout.head();
    wrong(&["ADV-2024-1", "--commit", &own], "applying it again changes nothing");
    assert!(lane.person.runs().is_empty());
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    lane.person.fork.checkout.git(&["cherry-pick", &lane.fix]);
    lane.person.fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    let output = land(&lane, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("nothing to do"), "{}", output.stdout);
    assert!(lane.person.runs().is_empty());
}

fn finishes_after(phase: &str) {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let mut command = command(&lane, "[[step]]\nexit = 9\n", &[]);
    let output = lane.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", phase));
    assert_eq!(output.signal, Some(9), "not killed at {phase}: {}", output.snapshot());
    // What no ref names may be gone by then.
    lane.person.fork.checkout.git(&["gc", "--quiet", "--prune=now"]);
    let run = lane.person.only_run();
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&["attach", &name_of(&run)]));
    assert_eq!(output.status, Some(0), "after {phase}: {}", output.snapshot());
    check_published(&lane, FIXED);
    assert_eq!(lane.person.metadata("/phase"), Value::from("closed"));
}

#[test]
fn killed_after_the_commits_were_pinned_the_fix_is_landed_once() {
    finishes_after("pinned");
}

#[test]
fn killed_after_the_verdict_the_fix_is_landed_once() {
    finishes_after("judged");
}

#[test]
fn killed_after_publishing_the_fix_is_landed_once() {
    finishes_after("published");
}

#[test]
fn a_fix_that_was_kept_here_is_published_later_as_the_same_commit() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let output = land(&lane, &["--no-push"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let kept = field_of(&lane.person.only_run(), "/publication/commit");
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&["publish"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branch = check_published(&lane, FIXED);
    assert_eq!(kept, lane.person.fork.origin.sha(&branch));
}

#[test]
fn a_fix_of_two_commits_is_landed_as_one() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let text =
        FIXED.replace("    return length;", "    wipe_the_rest(buffer);\n    return length;");
    let second = lane.person.fork.upstream_commit(FILE, &text, "parse: wipe the rest");
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    let output = land(&lane, &["--commit", &lane.fix, "--commit", &second]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    check_published(&lane, &text);
}
