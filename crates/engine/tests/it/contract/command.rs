//! The command in the box: what it is given, and what comes back of it.

use std::collections::BTreeMap;

use model::verdict::Ended;
use sandbox::spec::BoxOutput;

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    statuses_pass_through,
    a_program_that_is_not_there_is_127,
    a_file_that_is_no_program_is_126,
    the_environment_is_exactly_the_given_one,
    the_command_starts_where_it_was_told,
    standard_input_is_empty,
    no_other_file_is_open,
    both_streams_are_kept_apart,
    output_is_kept_byte_for_byte,
    what_looks_like_a_report_is_only_output,
    words_are_not_taken_apart,
    ordinary_tools_work,
}

async fn statuses_pass_through(rig: &Rig) {
    let scripts = ["exit 0", "exit 3", "kill -KILL $$", "kill -TERM $$"];
    let [zero, three, killed, ended] = scripts.map(|script| rig.sh(script).launch());
    let (zero, three, killed, ended) =
        tokio::join!(zero.end(), three.end(), killed.end(), ended.end());
    for (ran, code) in [(zero, 0), (three, 3), (killed, 128 + 9), (ended, 128 + 15)] {
        assert_eq!(ran.record.ended, Ended::Exited { code }, "{ran:#?}");
    }
}

async fn a_program_that_is_not_there_is_127(rig: &Rig) {
    let ran = rig.argv(&["no-such-program"]).run().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 127 }, "{ran:#?}");
    assert!(ran.stderr.contains("no-such-program"), "{ran:#?}");
}

async fn a_file_that_is_no_program_is_126(rig: &Rig) {
    let ran = rig.argv(&["/etc/passwd"]).run().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 126 }, "{ran:#?}");
}

async fn the_environment_is_exactly_the_given_one(rig: &Rig) {
    let given: BTreeMap<String, String> = [
        ("PATH", "/usr/bin:/bin"),
        ("EMPTY", ""),
        ("WITH SPACE", "two words"),
        ("LINES", "one\ntwo"),
        ("ODD", "a=b \"c\" 'd' $HOME \\ ü"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let ran = rig.argv(&["env", "-0"]).with(|spec| spec.env = given.clone()).run_ok().await;
    let variables = ran.stdout.split_terminator('\0');
    let seen = variables.map(|line| line.split_once('=').expect("a variable"));
    let seen: BTreeMap<String, String> =
        seen.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(seen, given);
}

async fn the_command_starts_where_it_was_told(rig: &Rig) {
    let home = |spec: &mut sandbox::spec::BoxSpec| spec.cwd = "/harness-state/home".to_owned();
    let (workspace, home) = (rig.argv(&["pwd"]).launch(), rig.argv(&["pwd"]).with(home).launch());
    let (workspace, home) = tokio::join!(workspace.end(), home.end());
    assert_eq!(
        (workspace.stdout.as_str(), home.stdout.as_str()),
        ("/workspace\n", "/harness-state/home\n")
    );
}

async fn standard_input_is_empty(rig: &Rig) {
    let ran = rig.sh("readlink /proc/self/fd/0; cat; echo end").run_ok().await;
    assert_eq!(ran.stdout, "/dev/null\nend\n");
}

/// The fourth is the listing itself.
async fn no_other_file_is_open(rig: &Rig) {
    let ran = rig.argv(&["ls", "/proc/self/fd"]).run_ok().await;
    assert_eq!(ran.stdout, "0\n1\n2\n3\n");
}

async fn both_streams_are_kept_apart(rig: &Rig) {
    let ran = rig.sh("echo out; echo err >&2; echo out again; printf 'no line break' >&2").run_ok();
    let ran = ran.await;
    assert_eq!(ran.stdout, "out\nout again\n");
    assert_eq!(ran.stderr, "err\nno line break");
    let told = u64::try_from(ran.stdout.len() + ran.stderr.len()).expect("few");
    assert_eq!((ran.record.output_bytes, ran.record.dropped_bytes), (told, 0));
}

async fn output_is_kept_byte_for_byte(rig: &Rig) {
    let script = r"printf '\000\377\376 \033[2J \r\n half a character \342\202'";
    let bytes = b"\0\xff\xfe \x1b[2J \r\n half a character \xe2\x82";
    let exact = BoxOutput::Exact { cap: 1000 };
    let (log, exact) = (rig.sh(script).launch(), rig.sh(script).output(exact).launch());
    let (log, exact) = tokio::join!(log.end(), exact.end());
    assert_eq!(log.bytes, bytes, "{log:#?}");
    assert_eq!(exact.bytes, bytes, "{exact:#?}");
}

/// The report is the first line, and that one is the guest's.
async fn what_looks_like_a_report_is_only_output(rig: &Rig) {
    let forged = r#"{"bottle":1,"ready":false,"preflight":[],"limits":{"core":0},"uid":0,"problem":"forged"}"#;
    let ran = rig.argv(&["echo", forged]).run_ok().await;
    assert_eq!(ran.stdout, format!("{forged}\n"));
    let report = ran.record.report.expect("a report");
    assert!(report.ready && report.problem.is_none(), "{report:?}");
}

/// What build systems and test suites lean on: pipes with names, threads, links, locks, local sockets.
async fn ordinary_tools_work(rig: &Rig) {
    let script = "set -e; mkfifo pipe; (echo through >pipe &); cat pipe; ln file-of-mine hard 2>/dev/null || \
        { : >file-of-mine; ln file-of-mine hard; }; flock hard true; git init --quiet repo; cd repo; \
        git -c user.name=a -c user.email=b commit --quiet --allow-empty -m one; git log --format=%s; \
        perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die; print \"socket\n\"'";
    let ran = rig.sh(script).run_ok().await;
    assert_eq!(ran.stdout, "through\none\nsocket\n");
}

async fn words_are_not_taken_apart(rig: &Rig) {
    let words = ["", "two words", "--flag", "$HOME", "a'b\"c", "new\nline", "*"];
    let mut argv = vec!["printf", "%s\\0"];
    argv.extend(words);
    let ran = rig.argv(&argv).run_ok().await;
    assert_eq!(ran.stdout.split_terminator('\0').collect::<Vec<_>>(), words);
}
