//! A bare repository on this machine as a forge, to try things out without a server.
//!
//! Issues, pull requests and comments are JSON files in a folder beside the repository (`<repository>.forge`), written
//! under a lock. A pull request counts as merged once its branch is contained in its base: plain git merges it.
//!
//! - `files` the files

mod files;

use std::path::{Path, PathBuf};

use host::clock;
use host::git::UserRepo;
use model::id::BranchName;

use crate::attachment::Attachment;
use crate::check_report::CheckReport;
use crate::error::{ForgeError, ForgeResult, ServerMessage};
use crate::http::RetryPolicy;
use crate::provider::{CheckProvider, ForgeProvider, IssueProvider, ReviewProvider};
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{
    Account, Blocker, Comment, CommentKind, Issue, IssueChange, IssueEvent, Numbering, Thread,
    ThreadState,
};
use crate::webhook::{NewWebhook, Webhook};
use files::{CommentFile, ForgeFiles, PullFields, ThreadFile};

/// Repository on this machine, and the account that acts on it.
#[derive(Debug)]
pub struct FolderForge {
    repository: PathBuf,
    files: ForgeFiles,
    login: String,
    retry: RetryPolicy,
}

impl FolderForge {
    /// Opens an existing repository. Nothing is written yet.
    pub(crate) async fn open(repository: &Path, login: &str) -> ForgeResult<Self> {
        UserRepo::discover(repository)
            .await
            .map_err(ForgeError::folder(repository, "open the repository"))?;
        Ok(Self {
            repository: repository.to_path_buf(),
            files: ForgeFiles::beside(repository),
            login: login.to_owned(),
            retry: RetryPolicy::default(),
        })
    }

    /// Creates an issue, since a folder has no web page for it. Returns its number.
    pub async fn add_issue(
        &self,
        title: &str,
        body: &str,
        labels: &[String],
        assignees: &[String],
    ) -> ForgeResult<u64> {
        let _lock = self.files.lock().await?;
        let entry = ThreadFile {
            number: self.files.next_number()?,
            title: title.to_owned(),
            body: body.to_owned(),
            author: self.login.clone(),
            open: true,
            labels: labels.to_vec(),
            assignees: assignees.to_vec(),
            draft: false,
            pull: None,
        };
        self.files.save_entry(&entry)?;
        Ok(entry.number)
    }

    pub async fn add_member(&self, org: &str, user: &str) -> ForgeResult<()> {
        let _lock = self.files.lock().await?;
        self.files.change_orgs(|orgs| {
            orgs.entry(org.to_owned()).or_default().insert(user.to_owned());
        })
    }

    /// Returns the folder, in place of a server's name.
    fn host(&self) -> String {
        self.repository.display().to_string()
    }

    fn not_found(&self, action: String) -> ForgeError {
        ForgeError::NotFound { host: self.host(), action, message: ServerMessage::default() }
    }

    fn load(&self, number: u64, action: &str) -> ForgeResult<ThreadFile> {
        self.files.load_entry(number)?.ok_or_else(|| self.not_found(action.to_owned()))
    }

    fn load_pull(&self, number: u64, action: &str) -> ForgeResult<(ThreadFile, PullFields)> {
        let mut entry = self.load(number, action)?;
        match entry.pull.take() {
            Some(part) => Ok((entry, part)),
            None => Err(self.not_found(action.to_owned())),
        }
    }

    /// Loads an entry under the lock, changes it and saves it.
    async fn change(
        &self,
        number: u64,
        action: &str,
        change: impl FnOnce(&mut ThreadFile),
    ) -> ForgeResult<()> {
        let _lock = self.files.lock().await?;
        let mut entry = self.load(number, action)?;
        change(&mut entry);
        self.files.save_entry(&entry)
    }

    fn show_issue(&self, entry: ThreadFile) -> Issue {
        Issue {
            url: self.page_of(entry.number),
            state: state_of(entry.open),
            number: entry.number,
            title: entry.title,
            body: entry.body,
            author: entry.author,
            labels: entry.labels,
            assignees: entry.assignees,
            comments: None,
        }
    }

    /// Reads the branches, which decide the state of a pull request.
    async fn observe_pull(&self, entry: ThreadFile, part: PullFields) -> ForgeResult<PullRequest> {
        let failed = |action| ForgeError::folder(&self.repository, action);
        let repo = UserRepo::discover(&self.repository).await.map_err(failed("open"))?;
        let tip = |branch: &str| format!("refs/heads/{branch}");
        let head = repo.resolve_commit(&tip(&part.head)).await.map_err(failed("read a branch"))?;
        let base = repo.resolve_commit(&tip(&part.base)).await.map_err(failed("read a branch"))?;
        let merged = match (&head, &base) {
            (Some(head), Some(base)) => {
                repo.is_ancestor(head, base).await.map_err(failed("compare branches"))?
            }
            _ => false,
        };
        Ok(PullRequest {
            url: self.page_of(entry.number),
            state: state_of(entry.open && !merged),
            number: entry.number,
            title: entry.title,
            body: entry.body,
            merged,
            mergeable: None,
            head_sha: head.map(|sha| sha.as_str().to_owned()).unwrap_or(part.head_sha),
            head_branch: part.head,
            from_fork: false,
            base_branch: part.base,
            author: entry.author,
            labels: entry.labels,
            assignees: entry.assignees,
            comments: None,
            draft: entry.draft,
            has_conflicts: None,
            is_behind: false,
            checks: None,
        })
    }

    fn page_of(&self, number: u64) -> String {
        format!("file://{}", self.files.entry_path(number).display())
    }
}

impl ForgeProvider for FolderForge {
    fn numbering(&self) -> Numbering {
        Numbering::Shared
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    async fn whoami(&self) -> ForgeResult<Account> {
        Ok(Account { login: Some(self.login.clone()), may_push: true })
    }

    async fn is_org_member(&self, org: &str, user: &str) -> ForgeResult<bool> {
        let orgs = self.files.load_orgs()?;
        match orgs.get(org) {
            Some(members) if !members.contains(&self.login) => {
                Err(ForgeError::members_hidden(&self.host(), org))
            }
            Some(members) => Ok(members.contains(user)),
            None => Ok(false),
        }
    }

    async fn read_issue(&self, number: u64) -> ForgeResult<Issue> {
        let action = format!("read issue #{number}");
        let entry = self.load(number, &action)?;
        match entry.pull {
            None => Ok(self.show_issue(entry)),
            Some(_) => Err(ForgeError::not_an_issue(&self.host(), action)),
        }
    }

    async fn open_issues(&self, _labels: &[String]) -> ForgeResult<Vec<Issue>> {
        let entries = self.files.load_entries()?.into_iter();
        let issues = entries.filter(|entry| entry.pull.is_none());
        Ok(issues.map(|entry| self.show_issue(entry)).collect())
    }

    async fn read_pr(&self, number: u64) -> ForgeResult<PullRequest> {
        let (entry, part) = self.load_pull(number, &format!("read pull request #{number}"))?;
        self.observe_pull(entry, part).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> ForgeResult<Vec<PullRequest>> {
        let mut pulls = Vec::new();
        for mut entry in self.files.load_entries()? {
            let Some(part) = entry.pull.take().filter(|_| entry.open) else { continue };
            if head.is_none_or(|head| part.head == head.as_str()) {
                pulls.push(self.observe_pull(entry, part).await?);
            }
        }
        pulls.retain(PullRequest::is_open);
        Ok(pulls)
    }

    async fn make_pull(&self, pull: &NewPull) -> ForgeResult<PullRequest> {
        let action = "open the pull request".to_owned();
        let (host, message) = (self.host(), ServerMessage::default());
        if pull.head == pull.base {
            return Err(ForgeError::Invalid { host, action, message });
        }
        let repo = UserRepo::discover(&self.repository).await;
        let repo = repo.map_err(ForgeError::folder(&self.repository, "open the repository"))?;
        let tip = repo.resolve_commit(&pull.head.full_ref()).await;
        let tip = tip.map_err(ForgeError::folder(&self.repository, "read a branch"))?;
        let Some(tip) = tip else { return Err(self.not_found(action)) };
        let _lock = self.files.lock().await?;
        let there = self.open_pulls(Some(&pull.head)).await?;
        if there.iter().any(|other| other.is_between(&pull.head, &pull.base)) {
            return Err(ForgeError::Conflict { host, action, message });
        }
        let entry = ThreadFile {
            number: self.files.next_number()?,
            title: pull.title.clone(),
            body: pull.body.clone(),
            author: self.login.clone(),
            open: true,
            labels: Vec::new(),
            assignees: Vec::new(),
            draft: pull.draft,
            pull: Some(PullFields {
                head: pull.head.as_str().to_owned(),
                base: pull.base.as_str().to_owned(),
                head_sha: tip.as_str().to_owned(),
            }),
        };
        self.files.save_entry(&entry)?;
        self.read_pr(entry.number).await
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> ForgeResult<PullRequest> {
        let action = format!("update pull request #{number}");
        self.load_pull(number, &action)?;
        self.change(number, &action, |entry| {
            entry.title = edit.title.map_or_else(|| entry.title.clone(), str::to_owned);
            entry.body = edit.body.map_or_else(|| entry.body.clone(), str::to_owned);
            entry.open = entry.open && !edit.close;
            entry.draft = edit.draft.unwrap_or(entry.draft);
        })
        .await?;
        self.read_pr(number).await
    }

    async fn plain_comments(&self, thread: Thread) -> ForgeResult<Vec<Comment>> {
        let number = thread.number();
        self.load(number, &format!("read the comments on #{number}"))?;
        let notes = self.files.load_notes(number)?.into_iter();
        let into_comment = |note: CommentFile| Comment {
            id: note.id,
            kind: CommentKind::Plain,
            url: format!("file://{}", self.files.note_path(number, note.id).display()),
            author: note.author,
            body: note.body,
            created_at: Some(note.created_at),
            verdict: None,
            thread: None,
        };
        Ok(notes.map(into_comment).collect())
    }

    async fn review_comments(&self, _thread: Thread) -> ForgeResult<Vec<Comment>> {
        Ok(Vec::new())
    }

    /// A folder has no accounts but the one that acts: whoever may write to it may give its agents work.
    async fn issue_events(&self, number: u64) -> ForgeResult<Vec<IssueEvent>> {
        let entry = self.load(number, &format!("read the events of #{number}"))?;
        let event = |label: String| IssueEvent {
            actor: self.login.clone(),
            change: IssueChange::Labelled(label),
        };
        Ok(entry.labels.into_iter().map(event).collect())
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> ForgeResult<Comment> {
        let number = thread.number();
        let action = format!("comment on #{number}");
        let _lock = self.files.lock().await?;
        self.load(number, &action)?;
        let note = CommentFile {
            id: self.files.next_note(number)?,
            author: self.login.clone(),
            body: body.to_owned(),
            created_at: clock::now(),
        };
        self.files.save_note(number, &note)?;
        let mut comments = self.plain_comments(thread).await?;
        comments.pop().ok_or_else(|| self.not_found(action))
    }

    async fn edit_comment(&self, thread: Thread, id: u64, body: &str) -> ForgeResult<()> {
        let number = thread.number();
        let action = format!("edit a comment on #{number}");
        let _lock = self.files.lock().await?;
        let notes = self.files.load_notes(number)?;
        let found = notes.into_iter().find(|note| note.id == id);
        let note = found.ok_or_else(|| self.not_found(action))?;
        self.files.save_note(number, &CommentFile { body: body.to_owned(), ..note })
    }

    async fn set_description(&self, thread: Thread, body: &str) -> ForgeResult<()> {
        let action = format!("update the description of #{}", thread.number());
        self.change(thread.number(), &action, |entry| body.clone_into(&mut entry.body)).await
    }

    async fn webhooks(&self) -> ForgeResult<Vec<Webhook>> {
        Ok(Vec::new())
    }

    async fn make_webhook(&self, _hook: &NewWebhook) -> ForgeResult<Webhook> {
        Err(ForgeError::NoWebhooks { path: self.repository.clone() })
    }

    async fn edit_webhook(&self, _id: u64, _hook: &NewWebhook) -> ForgeResult<Option<Webhook>> {
        Ok(None)
    }

    async fn drop_webhook(&self, _id: u64) -> ForgeResult<()> {
        Ok(())
    }
}

/// Nothing checks the commits in a folder.
impl CheckProvider for FolderForge {
    async fn checks(&self, _pull: &PullRequest) -> ForgeResult<Vec<CheckReport>> {
        Ok(Vec::new())
    }

    async fn check_log(
        &self,
        _pull: &PullRequest,
        _report: &CheckReport,
    ) -> ForgeResult<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// A folder has comments and no reviews.
impl IssueProvider for FolderForge {
    async fn blockers(&self, _number: u64) -> ForgeResult<Vec<Blocker>> {
        Ok(Vec::new())
    }

    async fn attachment(&self, attachment: &Attachment) -> ForgeResult<Vec<u8>> {
        let action = format!("read the attachment {}", attachment.name);
        let reason = "a folder has no attachments".to_owned();
        Err(ForgeError::Unreadable { host: self.host(), action, reason })
    }
}

impl ReviewProvider for FolderForge {
    async fn make_reply(&self, pull: u64, _remark: &Comment, body: &str) -> ForgeResult<()> {
        self.make_comment(Thread::Pull(pull), body).await.map(drop)
    }

    async fn resolve_thread(&self, _pull: u64, _remark: &Comment) -> ForgeResult<bool> {
        Ok(false)
    }

    async fn thumbs_up(&self, _thread: Thread, _comment: u64) -> ForgeResult<Vec<String>> {
        Ok(Vec::new())
    }

    async fn request_reviewers(&self, _pull: u64, _logins: &[String]) -> ForgeResult<()> {
        Ok(())
    }

    async fn add_labels(&self, pull: u64, labels: &[String]) -> ForgeResult<()> {
        let action = format!("label pull request #{pull}");
        let add = |entry: &mut ThreadFile| add_names(&mut entry.labels, labels);
        self.change(pull, &action, add).await
    }

    async fn add_assignees(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        let action = format!("assign pull request #{pull}");
        let add = |entry: &mut ThreadFile| add_names(&mut entry.assignees, logins);
        self.change(pull, &action, add).await
    }
}

fn add_names(list: &mut Vec<String>, names: &[String]) {
    for name in names {
        if !list.contains(name) {
            list.push(name.clone());
        }
    }
}

fn state_of(open: bool) -> ThreadState {
    if open { ThreadState::Open } else { ThreadState::Closed }
}
