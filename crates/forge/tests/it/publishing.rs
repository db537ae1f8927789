//! Requests to a server, and the parts of its responses that are trusted.

use forge::{Thread, ThreadState};
use serde_json::{Value, json};
use testkit::fake_forge::{FakeGitea, Mishap};

use crate::world::{branch, count, new_pull, open};

#[tokio::test]
async fn a_pull_request_is_opened_and_found_by_its_branch() {
    let server = FakeGitea::start();
    let sha = "33be78b34ed90f637e647f1b97e5033f978586e9";
    server.set_branch("forklift/run-1", sha);
    let forge = open(&server).await;
    let made = forge.create_pull(&new_pull("forklift/run-1")).await.unwrap();
    assert_eq!((made.number, made.title.as_str()), (1, "Take in upstream"));
    assert_eq!(made.url, format!("{}/alice/hooks/pulls/1", server.url()));
    assert_eq!((made.head_branch.as_str(), made.head_sha.as_str()), ("forklift/run-1", sha));
    assert_eq!((made.base_branch.as_str(), made.author.as_str()), ("main", "bot1"));
    assert!(made.is_open() && !made.merged && !made.from_fork);
    assert_eq!(forge.find_pull(&branch("forklift/run-1")).await.unwrap(), Some(made.clone()));
    assert_eq!(forge.find_pull(&branch("forklift/run-10")).await.unwrap(), None);
    assert_eq!(forge.read_pr(1).await.unwrap(), made);
}

#[tokio::test]
async fn only_an_open_pull_request_of_the_repository_itself_is_found() {
    let server = FakeGitea::start();
    let merged = server.add_pull("old", "forklift/x", "main");
    server.merge_pull(merged);
    server.add_pull_from_fork("evil", "forklift/x", "main");
    let forge = open(&server).await;
    assert_eq!(forge.find_pull(&branch("forklift/x")).await.unwrap(), None);
    assert_eq!(forge.list_open_pulls_by_prefix("forklift/").await.unwrap(), []);
    let own = server.add_pull("mine", "forklift/x", "main");
    let found = forge.find_pull(&branch("forklift/x")).await.unwrap().unwrap();
    assert_eq!(found.number, own);
    let read = forge.read_pr(merged).await.unwrap();
    assert_eq!((read.state, read.merged), (ThreadState::Closed, true));
}

#[tokio::test]
async fn a_list_is_read_to_its_end() {
    for page_max in [50, 7] {
        let server = FakeGitea::start();
        server.cap_pages_at(page_max);
        for number in 0..120 {
            let prefix = if number % 3 == 0 { "forklift" } else { "feature" };
            server.add_pull("one of many", &format!("{prefix}/{number}"), "main");
        }
        let forge = open(&server).await;
        let listed = forge.list_open_pulls_by_prefix("forklift/").await.unwrap();
        assert_eq!(listed.len(), 40);
        assert!(listed.is_sorted_by_key(|pull| pull.number));
        for head in ["forklift/0", "feature/1", "feature/119"] {
            assert!(forge.find_pull(&branch(head)).await.unwrap().is_some(), "{head}");
        }
        assert_eq!(forge.find_pull(&branch("feature/120")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_list_that_changes_while_it_is_read_is_read_again() {
    let server = FakeGitea::start();
    server.add_pull("t", "forklift/x", "main");
    let forge = open(&server).await;
    let headers = vec![("x-total-count".to_owned(), "1".to_owned())];
    server.fail_next(1, &Mishap::Status { code: 200, headers, body: "null".to_owned() });
    assert!(forge.find_pull(&branch("forklift/x")).await.unwrap().is_some());
}

#[tokio::test]
async fn an_update_sends_title_and_text_and_nothing_else() {
    let server = FakeGitea::start();
    let number = server.add_pull("before", "forklift/x", "main");
    let forge = open(&server).await;
    let updated = forge.update_pull(number, "after", "new text", false).await.unwrap();
    assert_eq!((updated.title.as_str(), updated.body.as_str()), ("after", "new text"));
    let request = server.requests().pop().unwrap();
    assert_eq!(request.method, "PATCH");
    let sent: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(sent, json!({ "title": "after", "body": "new text" }));
}

#[tokio::test]
async fn closing_twice_is_closing_once() {
    let server = FakeGitea::start();
    let number = server.add_pull("t", "forklift/x", "main");
    let forge = open(&server).await;
    for _ in 0..2 {
        assert_eq!(forge.close_pull(number).await.unwrap().state, ThreadState::Closed);
    }
    assert!(!server.pulls()[0].open);
    assert_eq!(count(&server, "PATCH", "/pulls/1"), 1);
    let merged = server.add_pull("t", "forklift/y", "main");
    server.merge_pull(merged);
    assert!(forge.close_pull(merged).await.unwrap().merged);
}

#[tokio::test]
async fn an_account_is_named_if_the_token_may_say_so() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    let account = forge.whoami().await.unwrap();
    assert_eq!((account.login.as_deref(), account.may_push), (Some("bot1"), true));
    server.hide_account();
    let account = forge.whoami().await.unwrap();
    assert_eq!((account.login, account.may_push), (None, true));
}

#[tokio::test]
async fn an_installation_under_a_path_is_spoken_to_there() {
    let server = FakeGitea::start_under("/tools/git");
    let forge = open(&server).await;
    let made = forge.create_pull(&new_pull("forklift/x")).await.unwrap();
    assert_eq!(made.url, format!("{}/alice/hooks/pulls/1", server.url()));
    let under = |path: &str| path.starts_with("/tools/git/api/v1/");
    assert!(server.requests().iter().all(|request| under(&request.path)));
}

/// Publishing happens on tasks of their own.
#[tokio::test]
async fn every_call_can_be_made_on_a_task_of_its_own() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    let task = tokio::spawn(async move {
        let made = forge.create_pull(&new_pull("forklift/x")).await?;
        forge.post_comment(Thread::Pull(made.number), "hello").await
    });
    task.await.unwrap().unwrap();
}
