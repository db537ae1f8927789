//! A forge for one run: it reads anything and writes to what it was assigned.

use std::collections::BTreeSet;
use std::sync::Arc;

use forge::{RefusalReason, Scope, ScopedForge, Thread, ThreadKind, WriteOutcome};
use model::redact::Redactor;
use model::secret::Secret;
use testkit::fake_forge::FakeGitea;
use testkit::fake_forge::FakeGitlab;
use testkit::fake_forge::{FakeForge, Flavour, Room, TOKEN};

use crate::world::{address, options};

async fn scoped<F: Flavour>(server: &FakeForge<F>, issue: u64) -> ScopedForge {
    scoped_with(server, issue, &[]).await
}

async fn scoped_with<F: Flavour>(server: &FakeForge<F>, issue: u64, pulls: &[u64]) -> ScopedForge {
    let address = address(&server.remote_url());
    let forge = forge::Forge::open(&address, &Secret::new(TOKEN), &options()).await.unwrap();
    let redactor = Arc::new(Redactor::new([Secret::new(TOKEN)]));
    ScopedForge::new(
        forge,
        Scope { issue, pulls: BTreeSet::from_iter(pulls.iter().copied()) },
        redactor,
    )
}

fn reason<T: std::fmt::Debug>(ruling: WriteOutcome<T>) -> RefusalReason {
    match ruling {
        WriteOutcome::Refused(refusal) => refusal.reason,
        WriteOutcome::Done(done) => panic!("{done:?} was done"),
    }
}

#[tokio::test]
async fn writes_outside_the_scope_are_refused_and_nothing_is_sent() {
    let server = FakeGitea::start();
    let (own, other) =
        (server.add_issue("own", "", &[], &[]), server.add_issue("other", "", &[], &[]));
    let scoped = scoped(&server, own).await;
    let before = server.requests().len();
    let refused = scoped.post_comment(Thread::Issue(other), "hello").await.unwrap();
    assert_eq!(reason(refused), RefusalReason::OutOfScope);
    let refused = scoped.update_description(Thread::Pull(other), "hello").await.unwrap();
    assert_eq!(reason(refused), RefusalReason::OutOfScope);
    assert_eq!(server.requests().len(), before);
    assert_eq!(scoped.read_issue(other).await.unwrap().title, "other");
    assert!(matches!(
        scoped.post_comment(Thread::Issue(own), "hello").await.unwrap(),
        WriteOutcome::Done(_)
    ));
}

#[tokio::test]
async fn an_earlier_runs_pull_request_is_in_the_scope_of_the_next() {
    let server = FakeGitea::start();
    let issue = server.add_issue("own", "", &[], &[]);
    let pull = server.add_pull("mine", "topic", "main");
    let before = scoped(&server, issue).await;
    let refused = before.update_description(Thread::Pull(pull), "text").await.unwrap();
    assert_eq!(reason(refused), RefusalReason::OutOfScope);
    let after = scoped_with(&server, issue, &[pull]).await;
    let done = after.update_description(Thread::Pull(pull), "text").await.unwrap();
    assert_eq!(
        (done, server.pulls()[0].body.as_str()),
        (WriteOutcome::Done("text".to_owned()), "text")
    );
}

#[tokio::test]
async fn what_leaves_is_harmless_and_holds_no_secret() {
    let server = FakeGitea::start();
    let issue = server.add_issue("own", "", &[], &[]);
    let scoped = scoped(&server, issue).await;
    let text = format!("fixes #99, @everyone\n/close\n{TOKEN}");
    scoped.post_comment(Thread::Issue(issue), &text).await.unwrap();
    let posted = &server.comments()[0].body;
    assert!(!posted.contains("#99") && !posted.contains("@everyone"), "{posted}");
    assert!(!posted.contains("\n/close") && !posted.contains(TOKEN), "{posted}");
    let long = "x".repeat(forge::BODY_MAX_BYTES + 1);
    let refused = scoped.post_comment(Thread::Issue(issue), &long).await.unwrap();
    assert!(matches!(reason(refused), RefusalReason::TooLong { .. }));
    let refused = scoped.post_comment(Thread::Issue(issue), " \n").await.unwrap();
    assert_eq!(reason(refused), RefusalReason::Empty);
}

#[tokio::test]
async fn where_the_two_are_numbered_apart_a_number_means_the_runs_own() {
    let server = FakeGitlab::start();
    let issue = server.add_issue("own", "", &[], &[]);
    for head in ["one", "two"] {
        server.add_pull("mine", head, "main");
    }
    server.add_comment(Room::Pull, 2, "alice", "on the merge request");
    let scoped = scoped_with(&server, issue, &[2]).await;
    assert_eq!(scoped.choose_thread(1, None), Thread::Issue(1));
    assert_eq!(scoped.choose_thread(2, None), Thread::Pull(2));
    let other = scoped.choose_thread(1, Some(ThreadKind::Pull));
    let refused = scoped.post_comment(other, "hello").await.unwrap();
    assert_eq!(reason(refused), RefusalReason::OutOfScope);
    let read = scoped.read_comments(2, None).await.unwrap();
    assert_eq!(read[0].body, "on the merge request");
}
