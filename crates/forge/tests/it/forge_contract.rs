//! Promises of every kind of forge, the same for all of them.

use forge::{ForgeError, ForgeKind, NewIssue, Numbering, Thread, ThreadState};
use testkit::fake_forge::{GiteaFlavour, GithubFlavour, GitlabFlavour};

use crate::place::{BASE, FakePlace, FolderPlace, LivePlace, Place};
use crate::world::{branch, kind, new_pull};

/// No issue and no pull request has it.
const NOWHERE: u64 = 99_999;

macro_rules! contract {
    ($($promise:ident)*) => {
        contract!(@ gitea FakePlace<GiteaFlavour>: $($promise)*);
        contract!(@ github FakePlace<GithubFlavour>: $($promise)*);
        contract!(@ gitlab FakePlace<GitlabFlavour>: $($promise)*);
        contract!(@ folder FolderPlace: $($promise)*);
        contract!(@ live_gitea LivePlace: $($promise)*);
    };
    (@ $place:ident $kind:ty: $($promise:ident)*) => {
        mod $place {
            use super::*;
            $(
                #[tokio::test]
                async fn $promise() {
                    let Some(place) = <$kind as Place>::make().await else { return };
                    super::$promise(&place).await;
                    place.clear().await;
                }
            )*
        }
    };
}

contract! {
    an_issue_is_read_with_everything_about_it
    what_is_not_there_is_not_found
    an_issue_is_no_pull_request
    a_pull_request_is_opened_and_found_by_its_branch
    a_second_pull_request_for_the_same_branches_is_a_conflict
    an_update_changes_title_and_text
    a_closed_pull_request_is_found_no_more
    a_merged_pull_request_is_closed_and_merged
    open_issues_are_listed_by_label
    an_issue_is_opened_with_its_labels_and_found_by_its_mark
    comments_are_read_in_their_order
    a_new_description_changes_nothing_else
    membership_is_yes_or_no_and_sometimes_not_told
    the_pull_request_of_an_issue_is_the_one_that_closes_it
    the_account_is_known_and_may_push
}

async fn open_pull(place: &impl Place, head: &str) -> u64 {
    place.push_branch(head).await;
    place.forge().create_pull(&new_pull(head)).await.unwrap().number
}

async fn an_issue_is_read_with_everything_about_it(place: &impl Place) {
    let login = place.login();
    let number = place.add_issue("Do it", &["bot-bottle:implementer"], &[&login]).await;
    let issue = place.forge().read_issue(number).await.unwrap();
    assert_eq!((issue.number, issue.title.as_str()), (number, "Do it"));
    assert_eq!((issue.body.as_str(), &issue.state), ("What is wanted.", &ThreadState::Open));
    assert_eq!(issue.labels, ["bot-bottle:implementer"]);
    assert_eq!(issue.assignees, [login]);
    assert!(!issue.author.is_empty() && !issue.url.is_empty());
}

async fn what_is_not_there_is_not_found(place: &impl Place) {
    let forge = place.forge();
    assert_eq!(kind(&forge.read_issue(NOWHERE).await.unwrap_err()), "NotFound");
    assert_eq!(kind(&forge.read_pr(NOWHERE).await.unwrap_err()), "NotFound");
    for thread in [Thread::Issue(NOWHERE), Thread::Pull(NOWHERE)] {
        assert_eq!(kind(&forge.read_comments(thread).await.unwrap_err()), "NotFound");
        assert_eq!(kind(&forge.post_comment(thread, "hello").await.unwrap_err()), "NotFound");
        let error = forge.update_description(thread, "hello").await.unwrap_err();
        assert_eq!(kind(&error), "NotFound");
    }
}

async fn an_issue_is_no_pull_request(place: &impl Place) {
    let issue = place.add_issue("Do it", &[], &[]).await;
    assert_eq!(kind(&place.forge().read_pr(issue).await.unwrap_err()), "NotFound");
    let pull = open_pull(place, "run/one").await;
    if place.forge().numbering() == Numbering::Shared {
        assert_eq!(kind(&place.forge().read_issue(pull).await.unwrap_err()), "NotFound");
    } else {
        assert_eq!((issue, pull), (1, 1));
    }
    let open = place.forge().list_open_issues(&[]).await.unwrap();
    assert_eq!(open.iter().map(|issue| issue.number).collect::<Vec<_>>(), [issue]);
}

async fn a_pull_request_is_opened_and_found_by_its_branch(place: &impl Place) {
    let forge = place.forge();
    place.push_branch("run/one").await;
    let made = forge.create_pull(&new_pull("run/one")).await.unwrap();
    assert_eq!((made.title.as_str(), made.body.as_str()), ("Take in upstream", "Three commits."));
    assert_eq!((made.head_branch.as_str(), made.base_branch.as_str()), ("run/one", BASE));
    assert_eq!((made.author, made.head_sha.len()), (place.login(), 40));
    assert!(!made.merged && !made.from_fork && !made.url.is_empty());
    let found = forge.find_pull(&branch("run/one")).await.unwrap().unwrap();
    assert_eq!(found.number, made.number);
    assert_eq!(forge.find_pull(&branch("run/on")).await.unwrap(), None);
    let listed = forge.list_open_pulls_by_prefix("run/").await.unwrap();
    assert_eq!(listed.iter().map(|pull| pull.number).collect::<Vec<_>>(), [made.number]);
    let read = forge.read_pr(made.number).await.unwrap();
    assert!(read.is_open());
    assert!(forge.kind() != ForgeKind::GitHub || read.mergeable == Some(true));
}

async fn a_second_pull_request_for_the_same_branches_is_a_conflict(place: &impl Place) {
    open_pull(place, "run/one").await;
    let again = place.forge().create_pull(&new_pull("run/one")).await.unwrap_err();
    assert_eq!(kind(&again), "Conflict", "{again}");
    let same = place.forge().create_pull(&new_pull(BASE)).await.unwrap_err();
    assert_eq!(kind(&same), "Invalid", "{same}");
}

async fn an_update_changes_title_and_text(place: &impl Place) {
    let number = open_pull(place, "run/one").await;
    let updated = place.forge().update_pull(number, "after", "new text", false).await.unwrap();
    assert_eq!((updated.title.as_str(), updated.body.as_str()), ("after", "new text"));
    assert_eq!(place.forge().read_pr(number).await.unwrap().body, "new text");
}

async fn a_closed_pull_request_is_found_no_more(place: &impl Place) {
    let number = open_pull(place, "run/one").await;
    for _ in 0..2 {
        let closed = place.forge().close_pull(number).await.unwrap();
        assert_eq!((closed.state, closed.merged), (ThreadState::Closed, false));
    }
    assert!(!place.forge().read_pr(number).await.unwrap().is_open());
    assert_eq!(place.forge().find_pull(&branch("run/one")).await.unwrap(), None);
    // Further work needs another pull request.
    assert_ne!(place.forge().create_pull(&new_pull("run/one")).await.unwrap().number, number);
}

async fn a_merged_pull_request_is_closed_and_merged(place: &impl Place) {
    let number = open_pull(place, "run/one").await;
    place.merge(number).await;
    let read = place.forge().read_pr(number).await.unwrap();
    assert_eq!((read.state, read.merged), (ThreadState::Closed, true));
    assert!(place.forge().close_pull(number).await.unwrap().merged);
}

async fn open_issues_are_listed_by_label(place: &impl Place) {
    let (login, other) = (place.login(), place.other());
    let one = place.add_issue("one", &["bot-bottle:a"], &[&login]).await;
    let two = place.add_issue("two", &["bot-bottle:a", "bot-bottle:b"], &[&other]).await;
    let three = place.add_issue("three", &[], &[&login]).await;
    let list = async |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let issues = place.forge().list_open_issues(&labels).await.unwrap();
        issues.iter().map(|issue| issue.number).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]).await, [one, two, three]);
    assert_eq!(list(&["bot-bottle:a"]).await, [one, two]);
    assert_eq!(list(&["bot-bottle:a", "bot-bottle:b"]).await, [two]);
    // A server that does not know a label may ignore it.
    assert_eq!(list(&["no-such-label"]).await, [0; 0]);
}

async fn an_issue_is_opened_with_its_labels_and_found_by_its_mark(place: &impl Place) {
    let (forge, login) = (place.forge(), place.login());
    place.add_issue("Another one", &[], &[]).await;
    let issue = NewIssue {
        title: "Sort the lists".to_owned(),
        body: "<!-- mark 7f -->\nAll of them.".to_owned(),
        labels: vec!["bot-bottle:worker".to_owned(), "bot-bottle-bottle:rust".to_owned()],
        assignees: vec![login.clone()],
        mark: "<!-- mark 7f -->".to_owned(),
        author: None,
    };
    assert_eq!(forge.find_issue(&issue).await.unwrap(), None);
    let made = forge.create_issue(&issue).await.unwrap();
    let mut labels = made.labels.clone();
    labels.sort();
    assert_eq!(labels, ["bot-bottle-bottle:rust", "bot-bottle:worker"]);
    assert_eq!((made.title.as_str(), &made.assignees), ("Sort the lists", &vec![login.clone()]));
    assert_eq!((made.author.as_str(), &made.state), (login.as_str(), &ThreadState::Open));
    let found = forge.find_issue(&issue).await.unwrap().unwrap();
    assert_eq!((found.number, found.body), (made.number, issue.body.clone()));
    // Its labels exist by now.
    let again = NewIssue { mark: "<!-- mark 80 -->".to_owned(), ..issue };
    assert_eq!(forge.find_issue(&again).await.unwrap(), None);
    assert_ne!(forge.create_issue(&again).await.unwrap().number, made.number);
}

async fn comments_are_read_in_their_order(place: &impl Place) {
    let forge = place.forge();
    let issue = Thread::Issue(place.add_issue("Do it", &[], &[]).await);
    let pull = Thread::Pull(open_pull(place, "run/one").await);
    for thread in [issue, pull] {
        place.comment(thread, "please rename foo").await;
        let posted = forge.post_comment(thread, "Renamed.\n\n- `foo` → `bar`").await.unwrap();
        assert_eq!(posted.author, place.login());
        let read = forge.read_comments(thread).await.unwrap();
        let bodies: Vec<&str> = read.iter().map(|comment| comment.body.as_str()).collect();
        assert_eq!(bodies, ["please rename foo", "Renamed.\n\n- `foo` → `bar`"]);
        assert_ne!(read[0].author, place.login());
        assert!(read.iter().all(|comment| comment.created_at.is_some()));
        forge.edit_comment(thread, posted.id, "Renamed twice.").await.unwrap();
        let read = forge.read_comments(thread).await.unwrap();
        let bodies: Vec<&str> = read.iter().map(|comment| comment.body.as_str()).collect();
        assert_eq!(bodies, ["please rename foo", "Renamed twice."]);
        let error = forge.edit_comment(thread, 99_999, "nothing").await.unwrap_err();
        assert!(matches!(error, ForgeError::NotFound { .. }), "{error}");
    }
}

async fn a_new_description_changes_nothing_else(place: &impl Place) {
    let login = place.login();
    let issue = place.add_issue("Do it", &["keep"], &[&login]).await;
    place.forge().update_description(Thread::Issue(issue), "new text").await.unwrap();
    let read = place.forge().read_issue(issue).await.unwrap();
    assert_eq!((read.title.as_str(), read.body.as_str()), ("Do it", "new text"));
    assert_eq!((read.labels, read.assignees), (vec!["keep".to_owned()], vec![login]));
    let pull = open_pull(place, "run/one").await;
    place.forge().update_description(Thread::Pull(pull), "newer text").await.unwrap();
    let read = place.forge().read_pr(pull).await.unwrap();
    assert_eq!((read.title.as_str(), read.body.as_str()), ("Take in upstream", "newer text"));
    assert!(read.is_open());
}

async fn membership_is_yes_or_no_and_sometimes_not_told(place: &impl Place) {
    let org = place.own_org().await;
    let forge = place.forge();
    assert!(forge.is_org_member(&org, &place.other()).await.unwrap());
    assert!(!forge.is_org_member(&org, "nobody-of-this-name").await.unwrap());
    let (outsider, org) = place.foreign_org().await;
    let error = outsider.is_org_member(&org, &place.other()).await.unwrap_err();
    assert_eq!(kind(&error), "MembersHidden", "{error}");
}

async fn the_pull_request_of_an_issue_is_the_one_that_closes_it(place: &impl Place) {
    let issue = place.add_issue("Do it", &[], &[]).await;
    assert_eq!(place.forge().get_pr_for_issue(issue).await.unwrap(), None);
    let number = open_pull(place, "run/one").await;
    assert_eq!(place.forge().get_pr_for_issue(issue).await.unwrap(), None);
    let body = format!("It is done.\n\nCloses #{issue}");
    place.forge().update_pull(number, "It", &body, false).await.unwrap();
    assert_eq!(place.forge().get_pr_for_issue(issue).await.unwrap(), Some(number));
    place.forge().close_pull(number).await.unwrap();
    assert_eq!(place.forge().get_pr_for_issue(issue).await.unwrap(), None);
}

async fn the_account_is_known_and_may_push(place: &impl Place) {
    let account = place.forge().whoami().await.unwrap();
    assert_eq!((account.login, account.may_push), (Some(place.login()), true));
}
