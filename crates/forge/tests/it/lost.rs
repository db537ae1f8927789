//! Answers that get lost: whatever is done is done once.

use std::time::Duration;

use forge::Thread;
use testkit::fake_forge::{FakeGitea, Mishap};

use crate::world::{count, kind, new_pull, open, open_impatient};

#[tokio::test]
async fn a_pull_request_whose_answer_was_lost_is_found_and_not_made_twice() {
    let delay = Mishap::Delay(Duration::from_secs(600));
    for mishap in [Mishap::DropAfterWrite, Mishap::StatusAfterWrite(502), delay] {
        let server = FakeGitea::start();
        let forge = open_impatient(&server).await;
        server.fail_next_on("POST", 1, &mishap);
        let made = forge.create_pull(&new_pull("forklift/x")).await.unwrap();
        assert_eq!(made.number, 1, "{mishap:?}");
        assert_eq!(server.pulls().len(), 1, "{mishap:?}");
        assert_eq!(count(&server, "POST", "/pulls"), 1, "{mishap:?}");
    }
}

#[tokio::test]
async fn a_pull_request_that_was_never_made_is_asked_for_again() {
    for mishap in [Mishap::DropBefore, Mishap::status(503, "")] {
        let server = FakeGitea::start();
        let forge = open(&server).await;
        server.fail_next_on("POST", 2, &mishap);
        forge.create_pull(&new_pull("forklift/x")).await.unwrap();
        assert_eq!(server.pulls().len(), 1, "{mishap:?}");
        assert_eq!(count(&server, "POST", "/pulls"), 3, "{mishap:?}");
    }
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_looked_for() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next_on("POST", 1, &Mishap::StatusAfterWrite(201));
    assert_eq!(forge.create_pull(&new_pull("forklift/x")).await.unwrap().number, 1);
    assert_eq!(server.pulls().len(), 1);
}

#[tokio::test]
async fn an_open_pull_request_into_another_branch_is_not_taken_for_the_lost_one() {
    let server = FakeGitea::start();
    server.add_pull("t", "forklift/x", "stable");
    let forge = open(&server).await;
    server.fail_next_on("POST", 1, &Mishap::DropBefore);
    let made = forge.create_pull(&new_pull("forklift/x")).await.unwrap();
    assert_eq!((made.number, made.base_branch.as_str()), (2, "main"));
}

#[tokio::test]
async fn the_attempts_to_write_are_bounded() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next_on("POST", 50, &Mishap::DropBefore);
    let error = forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
    assert_eq!(kind(&error), "Lost");
    assert_eq!(count(&server, "POST", "/pulls"), 3);
}

#[tokio::test]
async fn when_nothing_can_be_looked_for_any_more_the_person_is_told_to_look() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    server.fail_next_on("GET", 50, &Mishap::DropBefore);
    let error = forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "127.0.0.1 did not say whether it could open the pull request; look there before you try again"
    );
    assert_eq!(count(&server, "POST", "/pulls"), 1);
}

#[tokio::test]
async fn a_comment_whose_answer_was_lost_is_found_and_not_posted_twice() {
    let server = FakeGitea::start();
    let number = server.add_pull("t", "forklift/x", "main");
    let forge = open(&server).await;
    forge.post_comment(Thread::Pull(number), "another").await.unwrap();
    server.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    assert_eq!(forge.post_comment(Thread::Pull(number), "hello").await.unwrap().body, "hello");
    assert_eq!(server.comments().len(), 2);
    server.fail_next_on("POST", 1, &Mishap::DropBefore);
    forge.post_comment(Thread::Pull(number), "bye").await.unwrap();
    assert_eq!(server.comments().len(), 3);
}

/// The server answers 500 there, which alone would say nothing.
#[tokio::test]
async fn a_comment_on_what_is_not_there_says_so() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    let error = forge.post_comment(Thread::Issue(7), "hello").await.unwrap_err();
    assert_eq!(kind(&error), "NotFound");
    assert_eq!(count(&server, "POST", "/comments"), 1);
}

#[tokio::test]
async fn an_edit_is_repeated_because_twice_is_once() {
    for mishap in [Mishap::DropAfterWrite, Mishap::DropBefore, Mishap::status(500, "")] {
        let server = FakeGitea::start();
        let number = server.add_pull("t", "forklift/x", "main");
        let forge = open(&server).await;
        server.fail_next_on("PATCH", 2, &mishap);
        assert_eq!(forge.update_pull(number, "new", "text", false).await.unwrap().title, "new");
        assert_eq!(count(&server, "PATCH", "/pulls/1"), 3, "{mishap:?}");
    }
}
