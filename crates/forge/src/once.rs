//! Writes that are done once: when the effect of one is unknown, its result is looked up before it is repeated.

use jiff::{SignedDuration, Timestamp};

use crate::error::{ForgeError, ForgeResult};
use crate::http::RetryPolicy;
use crate::organisation::NewIssue;
use crate::provider::{ForgeProvider, OrganisationProvider, ReviewProvider};
use crate::pull::{NewPull, PullRequest};
use crate::thread::{Comment, Issue, Thread};
use crate::webhook::{NewWebhook, Webhook};

/// Largest difference between the server's clock and ours.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);

/// Opens a pull request, recognised by its branches: a server has at most one open for the two.
pub(crate) async fn create_pull<P: ForgeProvider>(
    forge: &P,
    pull: &NewPull,
) -> ForgeResult<PullRequest> {
    let find_created = || async {
        let pulls = forge.own_pulls(Some(&pull.head)).await?;
        Ok(pulls.into_iter().find(|there| there.is_between(&pull.head, &pull.base)))
    };
    write_once(forge.retry(), || forge.make_pull(pull), find_created).await
}

/// Opens an issue, recognised by its mark.
pub(crate) async fn create_issue<P: ForgeProvider + OrganisationProvider>(
    forge: &P,
    issue: &NewIssue,
) -> ForgeResult<Issue> {
    let find_created = || find_issue(forge, issue);
    write_once(forge.retry(), || forge.make_issue(issue), find_created).await
}

/// Finds the oldest open issue of the token's own account with a mark: others may copy it.
pub(crate) async fn find_issue<P: ForgeProvider>(
    forge: &P,
    wanted: &NewIssue,
) -> ForgeResult<Option<Issue>> {
    let login = forge.whoami().await?.login.or_else(|| wanted.author.clone());
    let is_own = |issue: &Issue| {
        login.as_ref().is_none_or(|login| login.eq_ignore_ascii_case(&issue.author))
    };
    let issues = forge.open_issues(&[]).await?.into_iter();
    Ok(issues.filter(|it| it.body.contains(&wanted.mark) && is_own(it)).min_by_key(|it| it.number))
}

/// Posts a comment, recognised by its text and its time.
pub(crate) async fn post_comment<P: ForgeProvider>(
    forge: &P,
    thread: Thread,
    body: &str,
) -> ForgeResult<Comment> {
    let began = host::clock::now();
    let find_created = || async {
        let comments = forge.plain_comments(thread).await?;
        Ok(comments.into_iter().rev().find(|comment| may_be(comment, body, began)))
    };
    write_once(forge.retry(), || forge.make_comment(thread, body), find_created).await
}

/// Answers in the thread of a remark. The answer is recognised by its text and its time, among all comments of the pull
/// request: some forges show answers among the comments and some among the reviews.
pub(crate) async fn post_reply<P: ForgeProvider + ReviewProvider>(
    forge: &P,
    pull: u64,
    remark: &Comment,
    body: &str,
) -> ForgeResult<()> {
    let began = host::clock::now();
    let find_created = || async {
        let mut comments = forge.review_comments(Thread::Pull(pull)).await?;
        comments.extend(forge.plain_comments(Thread::Pull(pull)).await?);
        Ok(comments.iter().any(|comment| may_be(comment, body, began)).then_some(()))
    };
    write_once(forge.retry(), || forge.make_reply(pull, remark, body), find_created).await
}

/// Makes a webhook, recognised by its address: one that leads there and is not among those `before`.
pub(crate) async fn create_webhook<P: ForgeProvider>(
    forge: &P,
    hook: &NewWebhook,
    before: &[Webhook],
) -> ForgeResult<Webhook> {
    let find_created = || async {
        let is_old = |there: &Webhook| before.iter().any(|old| old.id == there.id);
        let hooks = forge.webhooks().await?;
        Ok(hooks.into_iter().find(|there| there.url == hook.url && !is_old(there)))
    };
    write_once(forge.retry(), || forge.make_webhook(hook), find_created).await
}

/// Creates something, unless an earlier attempt turns out to have created it.
async fn write_once<T, C, F>(
    retry: &RetryPolicy,
    create: impl Fn() -> C,
    find_created: impl Fn() -> F,
) -> ForgeResult<T>
where
    C: Future<Output = ForgeResult<T>>,
    F: Future<Output = ForgeResult<Option<T>>>,
{
    let mut unclear = match create().await {
        Err(error) if leaves_doubt(&error) => error,
        result => return result,
    };
    for attempt in 1..=retry.attempts {
        retry.pause(attempt).await;
        match find_created().await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // The lookup fails too, and the first error is the one that matters.
            Err(error) if leaves_doubt(&error) => return Err(unclear),
            Err(error) => return Err(error),
        }
        // The last lookup comes after the last attempt.
        if attempt == retry.attempts {
            break;
        }
        match create().await {
            Err(error) if leaves_doubt(&error) => unclear = error,
            // The conflict is with the first attempt, which was slow and not lost.
            Err(error @ ForgeError::Conflict { .. }) => {
                return find_created().await?.ok_or(error);
            }
            result => return result,
        }
    }
    Err(unclear)
}

/// Returns whether a comment can be the one that was posted with this text since then.
fn may_be(comment: &Comment, body: &str, began: Timestamp) -> bool {
    let is_recent = comment.created_at.is_some_and(|at| at.duration_since(began) > -CLOCK_SKEW);
    is_recent && comment.body.trim_end() == body.trim_end()
}

/// Returns whether a write may have taken effect in spite of this error.
fn leaves_doubt(error: &ForgeError) -> bool {
    match error {
        ForgeError::Lost { .. }
        | ForgeError::Server { .. }
        | ForgeError::Unreachable { .. }
        | ForgeError::Unreadable { .. } => true,
        ForgeError::Unauthorized { .. }
        | ForgeError::Forbidden { .. }
        | ForgeError::NotFound { .. }
        | ForgeError::Conflict { .. }
        | ForgeError::Invalid { .. }
        | ForgeError::RateLimited { .. }
        | ForgeError::Moved { .. }
        | ForgeError::MembersHidden { .. }
        | ForgeError::UnknownForge { .. }
        | ForgeError::LoginWanted { .. }
        | ForgeError::BadToken { .. }
        | ForgeError::PlainHttp { .. }
        | ForgeError::Tls(_)
        | ForgeError::NoWebhooks { .. }
        | ForgeError::Folder { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::CommentKind;

    #[test]
    fn a_comment_is_recognised_by_its_text_and_its_time() {
        let posted: Timestamp = "2026-11-15T08:06:07Z".parse().unwrap();
        let comment = Comment {
            id: 1,
            kind: CommentKind::Plain,
            url: String::new(),
            author: "bot1".to_owned(),
            body: "hello".to_owned(),
            created_at: Some(posted),
            verdict: None,
            thread: None,
        };
        assert!(may_be(&comment, "hello\n", posted));
        assert!(!may_be(&comment, "hello there", posted));
        assert!(!may_be(&comment, "hello", posted + SignedDuration::from_hours(1)));
        assert!(!may_be(&Comment { created_at: None, ..comment }, "hello", posted));
    }
}
