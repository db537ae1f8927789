//! Checks of statements, in every outcome.

use std::collections::BTreeMap;

use attest::bottle_run::{EventLog, HostPlace};
use attest::bundle::{BundleFault, VerifiedBundle};
use attest::host_chain::{RunChain, RunLink};
use attest::key::SecretKey;
use attest::statement::Resource;

use super::super::attestation::{Witness, render_statements};
use super::super::verification::{
    HomeFacts, LinkedRun, VerificationCheck, judge_events, judge_files, judge_host_chain,
    judge_signature, no_key,
};
use super::sample::metadata;

fn show(check: &VerificationCheck) -> String {
    format!("{}: {}: {}", check.name, check.outcome.word(), check.words)
}

fn log(count: u64, head: &str) -> EventLog {
    EventLog { file: "operations.jsonl".to_owned(), head: head.to_owned(), count }
}

/// A bundle that was verified: run 2 of `host-1`.
fn bundle() -> VerifiedBundle {
    let meta = metadata(|_| ());
    let (provenance, run) = render_statements(&Witness {
        meta: &meta,
        operations: &[],
        events: log(3, "c"),
        place: HostPlace { host: "host-1".to_owned(), seq: 2, prev: "p2".to_owned() },
        byproducts: Vec::new(),
        bundle: None,
    });
    let keyid = SecretKey::generate().expect("a key").public().id();
    VerifiedBundle { provenance, run, keyid, payloads: vec!["d2".to_owned()] }
}

fn link(seq: u64, run: &str) -> RunLink {
    RunLink {
        seq,
        prev: format!("p{seq}"),
        ts: "2026-01-01T10:00:00Z".parse().expect("a time"),
        bottle: "plain".to_owned(),
        run: run.to_owned(),
        events: log(3, "c"),
        statements: vec![format!("d{seq}")],
    }
}

const RUN: &str = "widget_20260101_100000_1";

fn chain() -> RunChain {
    let links = vec![link(1, "first"), link(2, RUN)];
    RunChain { host: "host-1".to_owned(), links, head: "h".to_owned() }
}

fn home(first: LinkedRun) -> HomeFacts {
    let own = LinkedRun::Statements(vec!["d2".to_owned()]);
    HomeFacts { kept: vec![first, own], missing: Vec::new(), unlinked: Vec::new() }
}

fn kept() -> LinkedRun {
    LinkedRun::Statements(vec!["d1".to_owned()])
}

fn check(change: impl FnOnce(&mut RunChain), home: &HomeFacts) -> String {
    let mut found = chain();
    change(&mut found);
    show(&judge_host_chain(&bundle(), &Ok(Some(found)), home))
}

#[test]
fn chains_of_the_host() {
    let whole = home(kept());
    let all = [
        check(|_| (), &whole),
        check(|it| drop(it.links.pop()), &whole),
        check(|it| it.host = "host-2".to_owned(), &whole),
        check(|it| it.links[1].prev = "x".to_owned(), &whole),
        check(|it| it.links[1].seq = 3, &whole),
        check(|it| it.links[1].statements = vec!["x".to_owned()], &whole),
        check(|it| it.links[1].events = log(2, "b"), &whole),
        show(&judge_host_chain(&bundle(), &Ok(None), &whole)),
        show(&judge_host_chain(&bundle(), &Err("line 3 is not JSON".to_owned()), &whole)),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    host chain: ok: run 2 of 2 on this host, none of them missing
    host chain: FAILED: widget_20260101_100000_1 is not in it: its end was cut off
    host chain: FAILED: the run was signed at another place of another chain
    host chain: FAILED: the run was signed at another place of another chain
    host chain: FAILED: the run was signed at another place of another chain
    host chain: FAILED: its line names other statements than these
    host chain: FAILED: its line names other statements than these
    host chain: FAILED: this home has no chain, and the statements name a place in one
    host chain: FAILED: line 3 is not JSON
    ");
}

#[test]
fn other_runs_of_the_host() {
    let other = LinkedRun::Statements(vec!["x".to_owned()]);
    let lost = |missing: &[&str], unlinked: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        HomeFacts { missing: own(missing), unlinked: own(unlinked), ..home(kept()) }
    };
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    let all = [
        check(|_| (), &home(other)),
        check(|_| (), &home(LinkedRun::NoStatements)),
        check(|_| (), &home(LinkedRun::Gone)),
        check(|_| (), &lost(&["third"], &[])),
        check(|_| (), &lost(&["first"], &[])),
        check(|_| (), &lost(&[], &["stray"])),
        check(|_| (), &lost(&many, &[])),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    host chain: FAILED: run 1 (first) has other statements
    host chain: FAILED: run 1 (first) has lost its statements
    host chain: FAILED: run 1 (first) was deleted
    host chain: FAILED: third was deleted, and its line too
    host chain: ok: run 2 of 2 on this host, none of them missing
    host chain: FAILED: stray has no line in the chain
    host chain: FAILED: a was deleted, and its line too; b was deleted, and its line too; c was deleted, and its line too; d was deleted, and its line too; e was deleted, and its line too; and 2 more
    ");
}

#[test]
fn logs() {
    let all = [
        judge_events(&log(3, "c"), &Ok(log(3, "c"))),
        judge_events(&log(3, "c"), &Ok(log(2, "b"))),
        judge_events(&log(3, "c"), &Ok(log(3, "x"))),
        judge_events(&log(3, "c"), &Ok(log(4, "d"))),
        judge_events(&log(3, "c"), &Err("line 2 does not follow line 1".to_owned())),
    ];
    insta::assert_snapshot!(all.iter().map(show).collect::<Vec<_>>().join("\n"), @"
    events: ok: 3 lines, an unbroken chain that ends as signed
    events: FAILED: 3 lines were signed and 2 are there: its end was cut off
    events: FAILED: the log does not end with the line that was signed
    events: FAILED: the log does not end with the line that was signed
    events: FAILED: operations.jsonl: line 2 does not follow line 1
    ");
}

#[test]
fn files() {
    let signed = ["a", "b", "c"].map(|name| Resource::new(name, "sha256", "11"));
    let of = |found: [Option<&str>; 3]| {
        let names = ["a", "b", "c"].map(str::to_owned);
        let digests = found.map(|it| it.map(str::to_owned));
        let found: BTreeMap<_, _> = names.into_iter().zip(digests).collect();
        let at_home = show(&judge_files(&signed, &found, true));
        format!("{}\n  at home {at_home}", show(&judge_files(&signed, &found, false)))
    };
    let all = [
        of([Some("11"), Some("11"), Some("11")]),
        of([Some("11"), None, Some("11")]),
        of([None, None, None]),
        of([Some("11"), Some("12"), Some("11")]),
        of([Some("12"), None, Some("12")]),
        show(&judge_files(&[], &BTreeMap::new(), true)),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    files: ok: 3 files, each as it was signed
      at home files: ok: 3 files, each as it was signed
    files: not checked: 2 files as they were signed; not here: b
      at home files: FAILED: removed since they were signed: b
    files: not checked: none of the files is here
      at home files: FAILED: removed since they were signed: a, b, c
    files: FAILED: changed since they were signed: b
      at home files: FAILED: changed since they were signed: b
    files: FAILED: changed since they were signed: a, c
      at home files: FAILED: changed since they were signed: a, c
    files: ok: 0 files, each as it was signed
    ");
}

#[test]
fn signatures() {
    let keyid = bundle().keyid;
    let retired = "2026-01-01T09:00:00Z".parse().expect("a time");
    let faults = [
        BundleFault::Version { found: 9 },
        BundleFault::Pending { reason: "there was no key".to_owned() },
        BundleFault::Apart { what: "run" },
        BundleFault::Retired { keyid: keyid.clone(), retired },
    ];
    let line = |fault| show(&judge_signature(&Err(fault), "this home's key"));
    let mut lines: Vec<String> = faults.into_iter().map(line).collect();
    lines.push(show(&judge_signature(&Ok(bundle()), "this home's key")));
    lines.push(show(&no_key("there is none here")));
    let text = lines.join("\n").replace(keyid.as_str(), "KEY");
    insta::assert_snapshot!(testkit::redact_snapshot(&text), @"
    signature: FAILED: its version is 9; this program knows 1
    signature: FAILED: it is not signed yet: there was no key; the next bot-bottle command that can will sign it
    signature: FAILED: its two statements are not about the same run
    signature: FAILED: key KEY was replaced at [TIME], before this run ended
    signature: ok: both statements, by key [SHA] (this home's key)
    signature: FAILED: there is no key to check with: there is none here; or name one with --key
    ");
}
