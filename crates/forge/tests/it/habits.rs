//! Peculiarities of single kinds of forge, and traps for a client.

use std::time::Duration;

use forge::{
    Comment, CommentKind, Forge, ForgeError, ForgeOptions, HttpPool, IssueChange, IssueEvent,
    ReviewVerdict, Thread,
};
use model::secret::Secret;
use testkit::fake_forge::{
    FakeForge, FakeGitea, FakeGithub, FakeGitlab, FakeReview, Flavour, GiteaFlavour, GithubFlavour,
    GitlabFlavour, Mishap, Numbering, Room, TOKEN,
};

use crate::world::{address, branch, kind, new_pull, options};

async fn open<F: Flavour>(server: &FakeForge<F>) -> Forge {
    let address = address(&server.remote_url());
    Forge::open(&address, &Secret::new(TOKEN), &options()).await.unwrap()
}

async fn lists_are_read_to_their_end<F: Flavour>() {
    for page_max in [100, 7] {
        let server = FakeForge::<F>::start();
        server.cap_pages_at(page_max);
        let issue = server.add_issue("talked about", "", &[], &[]);
        for number in 0..120 {
            server.add_issue("one of many", "", &["many"], &[]);
            server.add_pull("one of many", &format!("topic/{number}"), "main");
            server.add_comment(Room::Issue, issue, "carol", &number.to_string());
        }
        let forge = open(&server).await;
        let labels = ["many".to_owned()];
        assert_eq!(forge.list_open_issues(&labels).await.unwrap().len(), 120);
        assert_eq!(forge.list_open_pulls_by_prefix("topic/").await.unwrap().len(), 120);
        assert!(forge.find_pull(&branch("topic/119")).await.unwrap().is_some());
        let comments = forge.read_comments(Thread::Issue(issue)).await.unwrap();
        assert_eq!(comments.len(), 120);
        assert_eq!(comments[119].body, "119");
    }
}

#[tokio::test]
async fn every_list_is_read_to_its_end_on_every_kind() {
    lists_are_read_to_their_end::<GiteaFlavour>().await;
    lists_are_read_to_their_end::<GithubFlavour>().await;
    lists_are_read_to_their_end::<GitlabFlavour>().await;
}

async fn reviews_are_read_with_the_comments<F: Flavour>() {
    let server = FakeForge::<F>::start();
    let pull = server.add_pull("t", "topic", "main");
    server.add_comment(Room::Pull, pull, "alice", "please look");
    server.add_review(FakeReview {
        pull,
        author: "alice".to_owned(),
        body: "overall remark".to_owned(),
        path: "a.txt".to_owned(),
        remark: "inline nit".to_owned(),
        state: "REQUEST_CHANGES".to_owned(),
    });
    let comments = open(&server).await.read_comments(Thread::Pull(pull)).await.unwrap();
    let mut bodies: Vec<&str> = comments.iter().map(|comment| comment.body.as_str()).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, ["inline nit", "overall remark", "please look"]);
    let is_remark = |comment: &Comment| {
        let place = matches!(&comment.kind, CommentKind::Remark { path, line: Some(2), .. } if path == "a.txt");
        place && comment.body == "inline nit"
    };
    assert!(comments.iter().any(is_remark), "{comments:?}");
    let verdicts =
        comments.iter().filter(|comment| comment.verdict == Some(ReviewVerdict::ChangesRequested));
    // GitLab's notes have no verdict.
    let expected = if F::NUMBERING == Numbering::Shared { 2 } else { 0 };
    assert_eq!(verdicts.count(), expected, "{comments:?}");
}

async fn the_account_that_labelled_is_known<F: Flavour>() {
    let server = FakeForge::<F>::start();
    let issue = server.add_issue("Do it", "", &["bot-bottle:worker"], &["bot1"]);
    server.change_issue(issue, |issue| "carla".clone_into(&mut issue.set_by));
    let events = open(&server).await.issue_events(issue).await.unwrap();
    let change = IssueChange::Labelled("bot-bottle:worker".to_owned());
    assert!(events.contains(&IssueEvent { actor: "carla".to_owned(), change }), "{events:?}");
}

#[tokio::test]
async fn each_kind_says_who_labelled_an_issue() {
    the_account_that_labelled_is_known::<GiteaFlavour>().await;
    the_account_that_labelled_is_known::<GithubFlavour>().await;
    the_account_that_labelled_is_known::<GitlabFlavour>().await;
}

#[tokio::test]
async fn a_review_is_part_of_the_conversation() {
    reviews_are_read_with_the_comments::<GiteaFlavour>().await;
    reviews_are_read_with_the_comments::<GithubFlavour>().await;
    reviews_are_read_with_the_comments::<GitlabFlavour>().await;
}

async fn strangers_are_not_believed<F: Flavour>() {
    let server = FakeForge::<F>::start();
    let issue = server.add_issue("Do it", "", &[], &[]);
    let closes = format!("closes #{issue}");
    let fork = server.add_pull_from_fork("mine", "topic", "main");
    server.change_pull(fork, |pull| pull.body.clone_from(&closes));
    let theirs = server.add_pull("theirs", "other", "main");
    server.change_pull(theirs, |pull| {
        pull.body = closes;
        pull.author = "carol".to_owned();
    });
    let forge = open(&server).await;
    assert_eq!(forge.get_pr_for_issue(issue).await.unwrap(), None);
    assert_eq!(forge.find_pull(&branch("topic")).await.unwrap(), None);
}

#[tokio::test]
async fn a_stranger_cannot_attach_a_pull_request_to_an_issue() {
    strangers_are_not_believed::<GiteaFlavour>().await;
    strangers_are_not_believed::<GithubFlavour>().await;
    strangers_are_not_believed::<GitlabFlavour>().await;
}

async fn what_is_lost_is_looked_for<F: Flavour>() {
    for mishap in [Mishap::DropAfterWrite, Mishap::StatusAfterWrite(502), Mishap::DropBefore] {
        let server = FakeForge::<F>::start();
        let forge = open(&server).await;
        server.fail_next_on("POST", 1, &mishap);
        let made = forge.create_pull(&new_pull("topic")).await.unwrap();
        assert_eq!(server.pulls().len(), 1, "{mishap:?}");
        server.fail_next_on("POST", 1, &mishap);
        forge.post_comment(Thread::Pull(made.number), "hello").await.unwrap();
        assert_eq!(server.comments().len(), 1, "{mishap:?}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_done_once_on_every_kind() {
    what_is_lost_is_looked_for::<GiteaFlavour>().await;
    what_is_lost_is_looked_for::<GithubFlavour>().await;
    what_is_lost_is_looked_for::<GitlabFlavour>().await;
}

fn forbidden(headers: &[(&str, String)]) -> Mishap {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Mishap::Status { code: 403, headers: headers.collect(), body: String::new() }
}

#[tokio::test]
async fn a_limit_that_looks_like_forbidden_is_waited_for_or_told() {
    let server = FakeGithub::start();
    let number = server.add_pull("t", "topic", "main");
    let forge = open(&server).await;
    let now = host::clock::now().as_second();
    let used_up = |wait: i64| {
        let reset = (now + wait).to_string();
        forbidden(&[("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset)])
    };
    server.fail_next(1, &used_up(1));
    forge.read_pr(number).await.unwrap();
    server.fail_next(1, &used_up(3600));
    let error = forge.read_pr(number).await.unwrap_err();
    assert!(matches!(error, ForgeError::RateLimited { until: Some(_), .. }), "{error:?}");
    server.fail_next(1, &forbidden(&[("x-ratelimit-remaining", "4999".to_owned())]));
    assert_eq!(kind(&forge.read_pr(number).await.unwrap_err()), "Forbidden");
}

#[tokio::test]
async fn membership_that_is_forbidden_is_an_error_and_no_answer() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    for (code, expected) in [(403, "Forbidden"), (401, "Unauthorized"), (301, "Moved")] {
        server.fail_next(1, &Mishap::status(code, "no"));
        let error = forge.is_org_member("bot-bottle", "alice").await.unwrap_err();
        assert_eq!(kind(&error), expected);
    }
    server.fail_next(2, &Mishap::status(502, ""));
    assert!(!forge.is_org_member("bot-bottle", "alice").await.unwrap());
}

#[tokio::test]
async fn the_headers_are_those_that_each_kind_wants() {
    let (github, gitlab) = (FakeGithub::start(), FakeGitlab::start());
    open(&github).await.whoami().await.unwrap();
    open(&gitlab).await.whoami().await.unwrap();
    let last = github.requests().pop().unwrap();
    assert_eq!(last.header("accept"), Some("application/vnd.github+json"));
    assert_eq!(last.header("x-github-api-version"), Some("2022-11-28"));
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(last.header("authorization"), Some(bearer.as_str()));
    let last = gitlab.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(bearer.as_str()));
}

/// On one thread, as the products run it.
async fn requests_share_one_connection<F: Flavour>() {
    let server = FakeForge::<F>::start();
    let number = server.add_pull("t", "topic", "main");
    let pool = HttpPool::new(None, Duration::from_secs(2));
    let options = ForgeOptions { pool: Some(pool), ..options() };
    for _ in 0..2 {
        let remote = address(&server.remote_url());
        let forge = Forge::open(&remote, &Secret::new(TOKEN), &options).await.unwrap();
        for _ in 0..10 {
            forge.read_pr(number).await.unwrap();
            forge.is_org_member("nowhere", "alice").await.ok();
            forge.post_comment(Thread::Pull(number), "hello").await.unwrap();
        }
    }
    assert!(server.requests().len() > 60);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn many_requests_of_many_clients_share_one_connection() {
    requests_share_one_connection::<GiteaFlavour>().await;
    requests_share_one_connection::<GithubFlavour>().await;
    requests_share_one_connection::<GitlabFlavour>().await;
}

/// A connection that the server has closed is replaced, and nothing is done twice.
#[tokio::test]
async fn a_connection_that_was_closed_is_replaced() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    for count in 1..=5 {
        let number = server.add_pull("t", &format!("topic/{count}"), "main");
        forge.read_pr(number).await.unwrap();
        server.fail_next(1, &Mishap::DropBefore);
        forge.read_pr(number).await.unwrap();
        forge.post_comment(Thread::Pull(number), "hello").await.unwrap();
        assert_eq!(server.comments().len(), count);
    }
    assert!(server.connections() <= 7, "{}", server.connections());
}

#[tokio::test]
async fn threads_are_named_as_people_name_them_there() {
    let (gitea, gitlab) = (FakeGitea::start(), FakeGitlab::start());
    let (gitea, gitlab) = (open(&gitea).await, open(&gitlab).await);
    assert_eq!(gitea.reference(Thread::Pull(3)), "#3");
    assert_eq!(gitlab.reference(Thread::Pull(3)), "!3");
    assert_eq!(gitlab.reference(Thread::Issue(3)), "#3");
}
