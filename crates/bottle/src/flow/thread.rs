//! Conversation about an assignment, read by the host for the agent's prompt.

use std::collections::{BTreeMap, BTreeSet};

use forge::{
    Attachment, AttachmentScope, Comment, CommentKind, DeliveredText, Forge, ForgeError, ForgeKind,
    Issue, IssueChange, PullRequest, ReviewVerdict, Thread, text_digest,
};
use model::escape::escape_line;
use orchestrator_db::{IssueKey, IssueText, Store};

use super::access::ForgeAccess;
use super::bottle::Record;
use crate::exit::{Failure, OrGeneral};
use crate::rules::command::{CommentCommand, MemberCommand, is_fresh, parse_command};
use crate::rules::forge_env::ForgeEnv;
use crate::rules::issue_text::{ChosenText, TextFacts, choose_text, is_own_mark, text_mark};
use crate::rules::plan_text::is_approval;
use crate::rules::prompt::ThreadMessage;
use crate::rules::target::{judge_target, parse_labels};
use crate::rules::trust::{AuthorRole, judge_role};

/// Author of a text that a member gave to the agent and did not write.
const OUTSIDER: &str = "an account outside the organisation";

/// Digits of a text's digest in a mark.
const MARK_DIGITS: usize = 16;

/// An assignment as the forge has it now.
pub(crate) struct Assignment {
    pub(crate) issue: Issue,
    /// Text of the issue that the agent works by.
    pub(crate) text: IssueText,
    /// Bottles that its labels name, in place of the agent's own.
    pub(crate) bottles: Vec<String>,
    pub(crate) pull: Option<u64>,
    /// The pull request, unless it is gone.
    pub(crate) pull_request: Option<PullRequest>,
    /// Messages of trusted authors and of the agent itself.
    pub(crate) thread: Vec<ThreadMessage>,
    /// Number of comments by others, which are left out.
    pub(crate) left_out: usize,
    /// True if an outsider changed the text of the issue, which is left out.
    pub(crate) text_changed: bool,
    /// Commands of members that no run has seen.
    pub(crate) commands: Vec<CommentCommand>,
    /// New comments of members that say nothing but that they approve.
    pub(crate) approvals: Vec<CommentCommand>,
    /// Texts of the agents' own account, by which an answer is found again.
    pub(crate) own_texts: Vec<String>,
    /// Texts of members whose attachments the agent may read: that of the issue, and their comments.
    approved_texts: Vec<String>,
    pub(crate) seen_comments: BTreeSet<String>,
}

/// Knowledge about an assignment before it is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct AssignmentHistory<'a> {
    pub(crate) pull: Option<u64>,
    /// Marks of the comments that earlier runs have seen; without a set, this is the first run, and all are new.
    pub(crate) seen: Option<&'a BTreeSet<String>>,
    /// Text of the issue in the last run, or when the issue was queued.
    pub(crate) text: Option<&'a IssueText>,
    /// Texts of the issue that stored deliveries have, oldest first.
    pub(crate) delivered: Vec<DeliveredText>,
}

impl<'a> AssignmentHistory<'a> {
    pub(crate) fn of(record: &'a Record, delivered: Vec<DeliveredText>) -> Self {
        Self::with_seen(record, &record.seen_comments, delivered)
    }

    /// History of a bottle with marks of comments that need not be those of its runs.
    pub(crate) fn with_seen(
        record: &'a Record,
        seen: &'a BTreeSet<String>,
        delivered: Vec<DeliveredText>,
    ) -> Self {
        Self { pull: record.pull, seen: Some(seen), text: record.text.as_ref(), delivered }
    }
}

/// Texts of an issue in its stored deliveries, oldest first. The signature of each was verified before it was stored.
pub(crate) fn delivered_texts(
    store: &dyn Store,
    key: &IssueKey,
) -> Result<Vec<DeliveredText>, Failure> {
    let stored = store.issue_deliveries(key).or_general()?;
    let read = |(source, body): (String, Vec<u8>)| {
        ForgeKind::parse(&source).and_then(|kind| kind.read_delivered_text(&body))
    };
    Ok(stored.into_iter().filter_map(read).collect())
}

/// Reads the issue, finds its pull request, and gathers the whole conversation.
pub(crate) async fn read_assignment(
    access: &ForgeAccess,
    history: AssignmentHistory<'_>,
) -> Result<Assignment, Failure> {
    let forge = access.open().await?;
    let number = access.env.issue;
    let issue = forge.read_issue(number).await.or_general()?;
    let pull = match access.env.pull.or(history.pull) {
        Some(pull) => Some(pull),
        None => forge.get_pr_for_issue(number).await.or_general()?,
    };
    read_conversation(access, &forge, issue, pull, history).await
}

/// Gathers the conversation about an issue, and about its pull request if it has one.
pub(crate) async fn read_conversation(
    access: &ForgeAccess,
    forge: &Forge,
    issue: Issue,
    pull: Option<u64>,
    history: AssignmentHistory<'_>,
) -> Result<Assignment, Failure> {
    let number = issue.number;
    let mut authors = Authors::new(access, forge).await?;
    let chosen = choose_issue_text(&issue, &history, &mut authors).await?;
    let author = match authors.role(&issue.author).await? {
        // An account may be named like an instruction.
        AuthorRole::Outsider => OUTSIDER.to_owned(),
        AuthorRole::Trusted | AuthorRole::Bot => issue.author.clone(),
    };
    let now = IssueText { title: issue.title.clone(), body: issue.body.clone() };
    let seen = history.seen;
    let own = seen.into_iter().flatten().filter(|mark| is_own_mark(mark)).cloned();
    let mut assignment = Assignment {
        bottles: parse_labels(&issue.labels).bottles,
        pull,
        pull_request: match pull {
            Some(number) => read_pull(forge, number).await?,
            None => None,
        },
        thread: vec![ThreadMessage {
            author,
            at: "when it was opened".to_owned(),
            body: format!("{}\n\n{}", chosen.text.title, chosen.text.body),
            is_new: chosen.is_new,
            place: format!("issue #{number}"),
            quoted: None,
        }],
        left_out: 0,
        text_changed: chosen.was_changed,
        commands: Vec::new(),
        approvals: Vec::new(),
        own_texts: Vec::new(),
        approved_texts: vec![chosen.text.body.clone()],
        seen_comments: own.chain([text_mark(&now)]).collect(),
        text: chosen.text,
        issue,
    };
    let comments = match assignment.issue.comments {
        Some(0) => Vec::new(),
        _ => forge.read_plain_comments(Thread::Issue(number)).await.or_general()?,
    };
    let place = format!("issue #{number}");
    assignment.take_all(&comments, &place, &mut authors, seen).await?;
    if let Some(pull) = assignment.pull_request.clone() {
        let comments = read_pull_comments(forge, &pull).await?;
        let place = format!("pull request #{}", pull.number);
        assignment.take_all(&comments, &place, &mut authors, seen).await?;
    }
    Ok(assignment)
}

/// Reads a pull request; `None` if it is gone.
async fn read_pull(forge: &Forge, number: u64) -> Result<Option<PullRequest>, Failure> {
    match forge.read_pr(number).await {
        Err(ForgeError::NotFound { .. }) => Ok(None),
        read => read.or_general().map(Some),
    }
}

/// Reads the conversation and the reviews of a pull request, oldest first. Most have no comments, and say so.
async fn read_pull_comments(forge: &Forge, pull: &PullRequest) -> Result<Vec<Comment>, Failure> {
    let thread = Thread::Pull(pull.number);
    let mut comments = match pull.comments {
        Some(0) => Vec::new(),
        _ => forge.read_plain_comments(thread).await.or_general()?,
    };
    comments.extend(forge.read_review_comments(thread).await.or_general()?);
    comments.sort_by_key(|comment| comment.created_at);
    Ok(comments)
}

/// Text of an issue that its agent would get.
pub(crate) async fn approved_text(
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
    history: &AssignmentHistory<'_>,
) -> Result<IssueText, Failure> {
    let mut authors = Authors::new(access, forge).await?;
    Ok(choose_issue_text(issue, history, &mut authors).await?.text)
}

/// Chooses the text that the agent gets: texts of members count, later ones of others do not.
async fn choose_issue_text(
    issue: &Issue,
    history: &AssignmentHistory<'_>,
    authors: &mut Authors<'_>,
) -> Result<ChosenText, Failure> {
    let now = IssueText { title: issue.title.clone(), body: issue.body.clone() };
    let is_members = authors.role(&issue.author).await? != AuthorRole::Outsider;
    let mut approved = Vec::new();
    if !is_members {
        for text in &history.delivered {
            if authors.role(&text.sender).await? == AuthorRole::Trusted {
                let DeliveredText { title, body, .. } = text.clone();
                approved.push(IssueText { title, body });
            }
        }
    }
    let facts = TextFacts {
        now: &now,
        known: history.text,
        approved: &approved,
        is_members,
        seen: history.seen,
    };
    Ok(choose_text(&facts))
}

impl Assignment {
    /// Authors of what causes a run or an answer.
    pub(crate) fn acting_authors(&self) -> Vec<&str> {
        let messages = self.thread.iter().filter(|message| message.is_new);
        let messages = messages.map(|message| message.author.as_str());
        let commands = self.commands.iter().map(|command| command.author.as_str());
        let all: BTreeSet<&str> = messages.chain(commands).collect();
        all.into_iter().collect()
    }

    /// Attachments that members named, on their own forge.
    pub(crate) fn attachments(&self, env: &ForgeEnv) -> Vec<Attachment> {
        let full_name = format!("{}/{}", env.owner, env.repo);
        let scope = AttachmentScope { kind: env.kind, web: &env.web, full_name: &full_name };
        scope.find(self.approved_texts.iter().map(String::as_str))
    }

    /// Number of messages for the agent that it has not seen.
    pub(crate) fn new_comments(&self) -> usize {
        self.thread.iter().filter(|message| message.is_new).count()
    }

    async fn take_all(
        &mut self,
        comments: &[Comment],
        place: &str,
        authors: &mut Authors<'_>,
        seen: Option<&BTreeSet<String>>,
    ) -> Result<(), Failure> {
        for comment in comments {
            let role = authors.role(&comment.author).await?;
            self.take(comment, place, role, seen);
        }
        Ok(())
    }

    fn take(
        &mut self,
        comment: &Comment,
        place: &str,
        role: AuthorRole,
        seen: Option<&BTreeSet<String>>,
    ) {
        let (id, mark) = (comment_id(comment), comment_mark(comment));
        // Records of earlier versions have the id alone.
        let is_seen = seen.is_some_and(|it| it.contains(&mark) || it.contains(&id));
        // An approval asks for nothing, and a command is for the orchestrator.
        let command = match (&comment.kind, role) {
            (CommentKind::Plain, AuthorRole::Trusted) => parse_command(&comment.body),
            _ => None,
        };
        let asks = comment.verdict != Some(ReviewVerdict::Approved)
            && command.is_none()
            && !is_resolved(comment);
        let is_new = role == AuthorRole::Trusted && asks && !is_seen;
        let fresh = !is_seen && is_fresh(comment.created_at, host::clock::now());
        self.commands.extend(command.filter(|_| fresh).map(|command| CommentCommand {
            mark: mark.clone(),
            author: comment.author.clone(),
            command,
        }));
        if is_new && comment.kind == CommentKind::Plain && is_approval(&comment.body) {
            self.approvals.push(CommentCommand {
                mark: mark.clone(),
                author: comment.author.clone(),
                command: MemberCommand::Approve,
            });
        }
        match role {
            AuthorRole::Bot => self.own_texts.push(comment.body.clone()),
            AuthorRole::Trusted => self.approved_texts.push(comment.body.clone()),
            AuthorRole::Outsider => {}
        }
        self.seen_comments.insert(mark);
        if role == AuthorRole::Outsider {
            self.left_out += 1;
            return;
        }
        self.thread.push(ThreadMessage {
            place: format!("{place}{}", render_place(comment)),
            author: comment.author.clone(),
            at: comment.created_at.map_or_else(|| "undated".to_owned(), |at| at.to_string()),
            body: comment.body.clone(),
            is_new,
            quoted: match &comment.kind {
                CommentKind::Remark { hunk, .. } => hunk.clone(),
                CommentKind::Plain | CommentKind::Review => None,
            },
        });
    }
}

/// File, line and verdict of a comment, as the end of the words for its thread.
fn render_place(comment: &Comment) -> String {
    let verdict = match comment.verdict {
        Some(ReviewVerdict::Approved) => ", in a review that approves",
        Some(ReviewVerdict::ChangesRequested) => ", in a review that requests changes",
        Some(ReviewVerdict::Commented) | None => "",
    };
    match &comment.kind {
        CommentKind::Plain | CommentKind::Review => verdict.to_owned(),
        CommentKind::Remark { path, line, .. } => {
            let line = line.map_or_else(String::new, |line| format!(" line {line}"));
            let state = if is_resolved(comment) { ", resolved" } else { "" };
            format!(", {}{line}, remark {}{state}{verdict}", escape_line(path), comment.id)
        }
    }
}

/// True if a remark's thread is resolved: then it asks for nothing any more.
fn is_resolved(comment: &Comment) -> bool {
    comment.thread.as_ref().is_some_and(|thread| thread.resolved == Some(true))
}

/// Id of a comment; forges number comments, reviews and remarks separately.
fn comment_id(comment: &Comment) -> String {
    let kind = match comment.kind {
        CommentKind::Plain => "plain",
        CommentKind::Review => "review",
        CommentKind::Remark { .. } => "remark",
    };
    format!("{kind}:{}", comment.id)
}

/// Mark of a comment with its text, so that an edited one is new.
fn comment_mark(comment: &Comment) -> String {
    let digest: String = text_digest(&comment.body).chars().take(MARK_DIGITS).collect();
    format!("{}@{digest}", comment_id(comment))
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
                judge(self.access.members.is_member(self.forge, &env.org, login).await?)
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
    let members = members_of(access, &forge, &issue.assignees).await?;
    match judge_target(&parse_labels(&issue.labels), &members, agent, &access.env.org) {
        None => Ok(()),
        Some(why) => {
            let message = format!("issue #{} is not for the agent '{agent}': {why}", issue.number);
            Err(Failure::not_found(message))
        }
    }
}

/// Approvals of a plan by a thumbs-up of someone who may set agents to work.
pub(crate) async fn thumbs_of_members(
    access: &ForgeAccess,
    comment: u64,
) -> Result<Vec<CommentCommand>, Failure> {
    let forge = access.open().await?;
    let thread = Thread::Issue(access.env.issue);
    let logins = match forge.thumbs_up(thread, comment).await {
        // A person deleted the comment.
        Err(ForgeError::NotFound { .. }) => Vec::new(),
        read => read.or_general()?,
    };
    let mut authors = Authors::new(access, &forge).await?;
    let mut approvals = Vec::new();
    for author in logins {
        if authors.role(&author).await? == AuthorRole::Trusted {
            let mark = format!("thumb:{comment}@{author}");
            approvals.push(CommentCommand { mark, author, command: MemberCommand::Approve });
        }
    }
    Ok(approvals)
}

/// Members of the organisation among these users.
pub(crate) async fn members_of(
    access: &ForgeAccess,
    forge: &Forge,
    users: &[String],
) -> Result<Vec<String>, Failure> {
    let mut members = Vec::new();
    for user in users {
        if access.members.is_member(forge, &access.env.org, user).await? {
            members.push(user.clone());
        }
    }
    Ok(members)
}

/// The account that gave an issue to its agent and may not: neither its label nor an assignment is a member's. `None` if
/// the issue was given by a member, or by the agents' own account, which only its operator can use for that.
pub(crate) async fn given_by_outsider(
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
) -> Result<Option<String>, Failure> {
    let mut authors = Authors::new(access, forge).await?;
    let events = match forge.issue_events(issue.number).await {
        Ok(events) => events,
        // A server that does not tell: then the author counts.
        Err(ForgeError::NotFound { .. } | ForgeError::Forbidden { .. }) => Vec::new(),
        Err(error) => return Err(error).or_general(),
    };
    // The last change of each label and assignee that the issue has.
    let mut actors: BTreeMap<String, String> = BTreeMap::new();
    for event in events {
        let what = match event.change {
            IssueChange::Labelled(label) if issue.labels.contains(&label) => {
                parse_labels(&[label]).agents.into_iter().next().map(|name| format!("label {name}"))
            }
            IssueChange::Assigned(user) if issue.assignees.contains(&user) => {
                Some(format!("assignee {user}"))
            }
            IssueChange::Labelled(_) | IssueChange::Assigned(_) => None,
        };
        if let Some(what) = what {
            actors.insert(what, event.actor);
        }
    }
    if actors.is_empty() {
        actors.insert(String::new(), issue.author.clone());
    }
    let mut outsider = None;
    for actor in actors.into_values() {
        match authors.role(&actor).await? {
            AuthorRole::Trusted | AuthorRole::Bot => return Ok(None),
            AuthorRole::Outsider => outsider = Some(actor),
        }
    }
    Ok(outsider)
}
