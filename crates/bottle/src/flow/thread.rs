//! Conversation about an assignment, read by the host for the agent's prompt.

use std::collections::{BTreeMap, BTreeSet};

use forge::{Comment, CommentKind, Forge, Issue, Thread};

use super::access::ForgeAccess;
use crate::exit::{Failure, OrGeneral};
use crate::rules::prompt::ThreadMessage;
use crate::rules::target::{judge_target, parse_labels};
use crate::rules::trust::{AuthorRole, judge_role};

/// An assignment as the forge has it now.
pub(crate) struct Assignment {
    pub(crate) issue: Issue,
    /// Bottles that its labels name, in place of the agent's own.
    pub(crate) bottles: Vec<String>,
    pub(crate) pull: Option<u64>,
    /// Messages of trusted authors and of the agent itself.
    pub(crate) thread: Vec<ThreadMessage>,
    /// Number of comments by others, which are left out.
    pub(crate) left_out: usize,
    pub(crate) seen_comments: BTreeSet<String>,
}

/// Reads the issue, finds its pull request, and gathers the whole conversation. Comments that are not in `seen_comments` are
/// new; without a set, this is the first run, and all of them are.
pub(crate) async fn read_assignment(
    access: &ForgeAccess,
    known_pull: Option<u64>,
    seen: Option<&BTreeSet<String>>,
) -> Result<Assignment, Failure> {
    let forge = access.open().await?;
    let number = access.env.issue;
    let issue = forge.read_issue(number).await.or_general()?;
    let pull = match access.env.pull.or(known_pull) {
        Some(pull) => Some(pull),
        None => forge.get_pr_for_issue(number).await.or_general()?,
    };
    let mut threads = vec![(format!("issue #{number}"), Thread::Issue(number))];
    threads.extend(pull.map(|pull| (format!("pull request #{pull}"), Thread::Pull(pull))));
    let bottles = parse_labels(&issue.labels).bottles;
    let first = ThreadMessage {
        author: issue.author.clone(),
        at: "when it was opened".to_owned(),
        body: format!("{}\n\n{}", issue.title, issue.body),
        is_new: seen.is_none(),
        place: format!("issue #{number}"),
    };
    let thread = vec![first];
    let mut assignment =
        Assignment { issue, bottles, pull, thread, left_out: 0, seen_comments: BTreeSet::new() };
    let mut authors = Authors::new(access, &forge).await?;
    for (place, thread) in threads {
        for comment in forge.read_comments(thread).await.or_general()? {
            let role = authors.role(&comment.author).await?;
            assignment.take(&comment, &place, role, seen);
        }
    }
    Ok(assignment)
}

impl Assignment {
    /// Number of comments for the agent that it has not seen.
    pub(crate) fn new_comments(&self) -> usize {
        self.thread.iter().filter(|message| message.is_new).count()
    }

    fn take(
        &mut self,
        comment: &Comment,
        place: &str,
        role: AuthorRole,
        seen: Option<&BTreeSet<String>>,
    ) {
        let mark = mark(comment);
        let is_new = role == AuthorRole::Trusted && !seen.is_some_and(|it| it.contains(&mark));
        self.seen_comments.insert(mark);
        if role == AuthorRole::Outsider {
            self.left_out += 1;
            return;
        }
        self.thread.push(ThreadMessage {
            place: place.to_owned(),
            author: comment.author.clone(),
            at: comment.created_at.map_or_else(|| "undated".to_owned(), |at| at.to_string()),
            body: comment.body.clone(),
            is_new,
        });
    }
}

/// Id of a comment; forges number comments, reviews and remarks separately.
fn mark(comment: &Comment) -> String {
    let kind = match comment.kind {
        CommentKind::Plain => "plain",
        CommentKind::Review => "review",
        CommentKind::Remark { .. } => "remark",
    };
    format!("{kind}:{}", comment.id)
}

/// Roles of the authors, each queried once.
struct Authors<'a> {
    access: &'a ForgeAccess,
    forge: &'a Forge,
    bot: Option<String>,
    known: BTreeMap<String, AuthorRole>,
}

impl<'a> Authors<'a> {
    async fn new(access: &'a ForgeAccess, forge: &'a Forge) -> Result<Self, Failure> {
        let bot = match &access.bot_login {
            Some(login) => Some(login.clone()),
            None => forge.whoami().await.or_general()?.login,
        };
        Ok(Self { access, forge, bot, known: BTreeMap::new() })
    }

    async fn role(&mut self, login: &str) -> Result<AuthorRole, Failure> {
        if let Some(known) = self.known.get(login) {
            return Ok(*known);
        }
        let env = &self.access.env;
        let judge = |is_member| judge_role(login, self.bot.as_deref(), &env.triggers, is_member);
        let role = match judge(false) {
            AuthorRole::Outsider => {
                judge(self.forge.is_org_member(&env.org, login).await.or_general()?)
            }
            known => known,
        };
        self.known.insert(login.to_owned(), role);
        Ok(role)
    }
}

/// Refuses an issue that no member of the organisation gave to this agent.
pub(crate) async fn check_target(
    access: &ForgeAccess,
    issue: &Issue,
    agent: &str,
) -> Result<(), Failure> {
    let forge = access.open().await?;
    let members = members_of(&forge, &access.env.org, &issue.assignees).await?;
    match judge_target(&parse_labels(&issue.labels), &members, agent, &access.env.org) {
        None => Ok(()),
        Some(why) => {
            let message = format!("issue #{} is not for the agent '{agent}': {why}", issue.number);
            Err(Failure::not_found(message))
        }
    }
}

/// Members of an organisation among these users.
pub(crate) async fn members_of(
    forge: &Forge,
    org: &str,
    users: &[String],
) -> Result<Vec<String>, Failure> {
    let mut members = Vec::new();
    for user in users {
        if forge.is_org_member(org, user).await.or_general()? {
            members.push(user.clone());
        }
    }
    Ok(members)
}
