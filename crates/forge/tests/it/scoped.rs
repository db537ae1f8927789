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

fn review(pull: u64) -> testkit::fake_forge::FakeReview {
    testkit::fake_forge::FakeReview {
        pull,
        author: "alice".to_owned(),
        body: String::new(),
        state: "REQUEST_CHANGES".to_owned(),
        path: "src/lib.rs".to_owned(),
        remark: "rename it".to_owned(),
    }
}

/// A remark is answered in its thread and resolved, on its own pull request alone.
async fn remarks_are_answered<F: Flavour>(server: FakeForge<F>) {
    let issue = server.add_issue("own", "", &[], &[]);
    let (pull, other) =
        (server.add_pull("mine", "topic", "main"), server.add_pull("x", "y", "main"));
    server.add_review(review(pull));
    server.add_review(review(other));
    let scoped = scoped_with(&server, issue, &[pull]).await;
    let comments = scoped.read_comments(pull, Some(ThreadKind::Pull)).await.unwrap();
    let remark = comments.iter().find(|it| it.body == "rename it").expect("a remark");
    assert!(remark.thread.is_some(), "{remark:?}");
    let own = Thread::Pull(pull);
    let done = scoped.post_reply(own, remark.id, "Renamed, closes #99.", true).await.unwrap();
    assert!(matches!(done, WriteOutcome::Done(answer) if answer.resolved), "{done:?}");
    let answers = server.answers();
    assert_eq!((answers.len(), server.resolved()), (1, vec![1]));
    assert!(!answers[0].body.contains("#99"), "it does nothing else: {}", answers[0].body);
    let foreign = scoped.read_comments(other, Some(ThreadKind::Pull)).await.unwrap();
    let foreign = foreign.iter().find(|it| it.body == "rename it").expect("a remark").id;
    let refused = scoped.post_reply(own, foreign, "x", true).await.unwrap();
    assert_eq!(reason(refused), RefusalReason::NoSuchRemark);
    let refused = scoped.post_reply(Thread::Pull(other), foreign, "x", true).await.unwrap();
    assert_eq!(reason(refused), RefusalReason::OutOfScope);
    assert_eq!((server.answers().len(), server.resolved()), (1, vec![1]));
    // The answer is among the remarks, and lost answers are looked for there.
    let comments = scoped.read_comments(pull, Some(ThreadKind::Pull)).await.unwrap();
    assert!(comments.iter().any(|it| it.author == "bot1" && it.body.contains("Renamed")));
}

#[tokio::test]
async fn remarks_are_answered_on_gitea() {
    remarks_are_answered(FakeGitea::start()).await;
}

#[tokio::test]
async fn remarks_are_answered_on_github() {
    remarks_are_answered(testkit::fake_forge::FakeGithub::start()).await;
}

#[tokio::test]
async fn remarks_are_answered_on_gitlab() {
    remarks_are_answered(FakeGitlab::start()).await;
}
