//! A bare repository on this machine as a forge, for demos, tests and people without a server.
//!
//! Issues, pull requests and comments are JSON files in a folder beside the repository (`<repository>.forge`), written
//! under a lock. A pull request counts as merged once its branch is contained in its base: plain git merges it.
//!
//! - `shelf` the files
//! - `text` where there is no forge at all: a pull request as a page of text

mod shelf;
mod text;

use std::path::{Path, PathBuf};

use host::clock;
use host::git::{GitError, UserRepo};
use model::id::BranchName;

use crate::error::{ForgeError, Said};
use crate::http::Patience;
use crate::provider::{Answer, Provider};
use crate::pull::{NewPull, PullEdit, PullRequest};
use crate::thread::{
    Account, Comment, CommentKind, Issue, IssueFilter, Numbering, Thread, ThreadState,
};
use crate::webhook::{NewWebhook, Webhook};
use shelf::{Entry, Note, PullPart, Shelf};

pub use text::{PULL_TEXT_FILE, render_pull_text, write_pull_text};

/// A repository on this machine, and somebody who acts on it.
#[derive(Debug)]
pub struct Local {
    repository: PathBuf,
    shelf: Shelf,
    login: String,
    patience: Patience,
}

impl Local {
    /// Opens a repository that is there. Nothing is written yet.
    pub(crate) async fn open(repository: &Path, login: &str) -> Result<Self, ForgeError> {
        UserRepo::discover(repository)
            .await
            .map_err(git_error(repository, "open the repository"))?;
        Ok(Self {
            repository: repository.to_path_buf(),
            shelf: Shelf::beside(repository),
            login: login.to_owned(),
            patience: Patience::default(),
        })
    }

    /// Opens an issue: here there is no web page to do it on. Returns its number.
    pub async fn add_issue(
        &self,
        title: &str,
        body: &str,
        labels: &[String],
        assignees: &[String],
    ) -> Result<u64, ForgeError> {
        let _lock = self.shelf.lock().await?;
        let entry = Entry {
            number: self.shelf.next_number()?,
            title: title.to_owned(),
            body: body.to_owned(),
            author: self.login.clone(),
            open: true,
            labels: labels.to_vec(),
            assignees: assignees.to_vec(),
            pull: None,
        };
        self.shelf.save_entry(&entry)?;
        Ok(entry.number)
    }

    /// Makes labels known to the repository.
    pub async fn add_repository_labels(&self, names: &[String]) -> Result<(), ForgeError> {
        let _lock = self.shelf.lock().await?;
        self.shelf.change_labels(|known| known.extend(names.iter().cloned()))
    }

    /// Makes somebody a member of an organisation.
    pub async fn add_member(&self, org: &str, user: &str) -> Result<(), ForgeError> {
        let _lock = self.shelf.lock().await?;
        self.shelf.change_orgs(|orgs| {
            orgs.entry(org.to_owned()).or_default().insert(user.to_owned());
        })
    }

    fn not_found(&self, action: String) -> ForgeError {
        ForgeError::NotFound { host: self.host(), action, said: Said::default() }
    }

    fn load(&self, number: u64, action: &str) -> Answer<Entry> {
        self.shelf.load_entry(number)?.ok_or_else(|| self.not_found(action.to_owned()))
    }

    fn load_pull(&self, number: u64, action: &str) -> Answer<(Entry, PullPart)> {
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
        change: impl FnOnce(&mut Entry),
    ) -> Answer<()> {
        let _lock = self.shelf.lock().await?;
        let mut entry = self.load(number, action)?;
        change(&mut entry);
        self.shelf.save_entry(&entry)
    }

    fn show_issue(&self, entry: Entry) -> Issue {
        Issue {
            url: self.page_of(entry.number),
            state: state_of(entry.open),
            number: entry.number,
            title: entry.title,
            body: entry.body,
            author: entry.author,
            labels: entry.labels,
            assignees: entry.assignees,
        }
    }

    /// Where the branches are now decides what has become of a pull request.
    async fn observe_pull(&self, entry: Entry, part: PullPart) -> Answer<PullRequest> {
        let failed = |action| git_error(&self.repository, action);
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
        })
    }

    fn page_of(&self, number: u64) -> String {
        format!("file://{}", self.shelf.entry_path(number).display())
    }
}

impl Provider for Local {
    fn numbering(&self) -> Numbering {
        Numbering::Shared
    }

    fn host(&self) -> String {
        self.repository.display().to_string()
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }

    fn push_url(&self) -> String {
        self.repository.display().to_string()
    }

    async fn whoami(&self) -> Answer<Account> {
        Ok(Account { login: Some(self.login.clone()), may_push: true })
    }

    async fn is_org_member(&self, org: &str, user: &str) -> Answer<bool> {
        let orgs = self.shelf.load_orgs()?;
        match orgs.get(org) {
            Some(members) if !members.contains(&self.login) => {
                Err(ForgeError::MembersHidden { host: self.host(), org: org.to_owned() })
            }
            Some(members) => Ok(members.contains(user)),
            None => Ok(false),
        }
    }

    async fn read_issue(&self, number: u64) -> Answer<Issue> {
        let action = format!("read issue #{number}");
        let entry = self.load(number, &action)?;
        match entry.pull {
            None => Ok(self.show_issue(entry)),
            Some(_) => Err(ForgeError::not_an_issue(self.host(), action)),
        }
    }

    async fn open_issues(&self, _filter: &IssueFilter) -> Answer<Vec<Issue>> {
        let entries = self.shelf.load_entries()?.into_iter();
        let issues = entries.filter(|entry| entry.pull.is_none());
        Ok(issues.map(|entry| self.show_issue(entry)).collect())
    }

    async fn read_pr(&self, number: u64) -> Answer<PullRequest> {
        let (entry, part) = self.load_pull(number, &format!("read pull request #{number}"))?;
        self.observe_pull(entry, part).await
    }

    async fn open_pulls(&self, head: Option<&BranchName>) -> Answer<Vec<PullRequest>> {
        let mut pulls = Vec::new();
        for mut entry in self.shelf.load_entries()? {
            let Some(part) = entry.pull.take().filter(|_| entry.open) else { continue };
            if head.is_none_or(|head| part.head == head.as_str()) {
                pulls.push(self.observe_pull(entry, part).await?);
            }
        }
        pulls.retain(PullRequest::is_open);
        Ok(pulls)
    }

    async fn make_pull(&self, pull: &NewPull) -> Answer<PullRequest> {
        let action = "open the pull request".to_owned();
        let (host, said) = (self.host(), Said::default());
        if pull.head == pull.base {
            return Err(ForgeError::Invalid { host, action, said });
        }
        let repo = UserRepo::discover(&self.repository).await;
        let repo = repo.map_err(git_error(&self.repository, "open the repository"))?;
        let tip = repo.resolve_commit(&pull.head.full_ref()).await;
        let tip = tip.map_err(git_error(&self.repository, "read a branch"))?;
        let Some(tip) = tip else { return Err(self.not_found(action)) };
        let _lock = self.shelf.lock().await?;
        let there = self.open_pulls(Some(&pull.head)).await?;
        if there.iter().any(|other| other.base_branch == pull.base.as_str()) {
            return Err(ForgeError::Conflict { host, action, said });
        }
        let entry = Entry {
            number: self.shelf.next_number()?,
            title: pull.title.clone(),
            body: pull.body.clone(),
            author: self.login.clone(),
            open: true,
            labels: Vec::new(),
            assignees: Vec::new(),
            pull: Some(PullPart {
                head: pull.head.as_str().to_owned(),
                base: pull.base.as_str().to_owned(),
                head_sha: tip.as_str().to_owned(),
            }),
        };
        self.shelf.save_entry(&entry)?;
        self.read_pr(entry.number).await
    }

    async fn edit_pull(&self, number: u64, edit: &PullEdit<'_>) -> Answer<PullRequest> {
        let action = format!("update pull request #{number}");
        self.load_pull(number, &action)?;
        self.change(number, &action, |entry| {
            entry.title = edit.title.map_or_else(|| entry.title.clone(), str::to_owned);
            entry.body = edit.body.map_or_else(|| entry.body.clone(), str::to_owned);
            entry.open = entry.open && !edit.close;
        })
        .await?;
        self.read_pr(number).await
    }

    async fn plain_comments(&self, thread: Thread) -> Answer<Vec<Comment>> {
        let number = thread.number();
        self.load(number, &format!("read the comments on #{number}"))?;
        let notes = self.shelf.load_notes(number)?.into_iter();
        let into_comment = |note: Note| Comment {
            id: note.id,
            kind: CommentKind::Plain,
            url: format!("file://{}", self.shelf.note_path(number, note.id).display()),
            author: note.author,
            body: note.body,
            created_at: Some(note.created_at),
        };
        Ok(notes.map(into_comment).collect())
    }

    async fn review_comments(&self, _thread: Thread) -> Answer<Vec<Comment>> {
        Ok(Vec::new())
    }

    async fn make_comment(&self, thread: Thread, body: &str) -> Answer<Comment> {
        let number = thread.number();
        let action = format!("comment on #{number}");
        let _lock = self.shelf.lock().await?;
        self.load(number, &action)?;
        let note = Note {
            id: self.shelf.next_note(number)?,
            author: self.login.clone(),
            body: body.to_owned(),
            created_at: clock::now(),
        };
        self.shelf.save_note(number, &note)?;
        let mut comments = self.plain_comments(thread).await?;
        comments.pop().ok_or_else(|| self.not_found(action))
    }

    async fn set_description(&self, thread: Thread, body: &str) -> Answer<()> {
        let action = format!("update the description of #{}", thread.number());
        self.change(thread.number(), &action, |entry| body.clone_into(&mut entry.body)).await
    }

    async fn label_names(&self) -> Answer<Vec<String>> {
        Ok(self.shelf.load_labels()?.into_iter().collect())
    }

    async fn put_labels(&self, thread: Thread, names: &[String]) -> Answer<()> {
        let action = format!("label #{}", thread.number());
        self.change(thread.number(), &action, |entry| {
            entry.labels.extend(names.iter().cloned());
            entry.labels.sort_unstable();
            entry.labels.dedup();
        })
        .await
    }

    async fn drop_label(&self, thread: Thread, name: &str) -> Answer<()> {
        let action = format!("take a label off #{}", thread.number());
        self.change(thread.number(), &action, |entry| entry.labels.retain(|own| own != name)).await
    }

    async fn webhooks(&self) -> Answer<Vec<Webhook>> {
        Ok(Vec::new())
    }

    async fn make_webhook(&self, _hook: &NewWebhook) -> Answer<Webhook> {
        Err(ForgeError::NoWebhooks { path: self.repository.clone() })
    }

    async fn edit_webhook(&self, _id: u64, _hook: &NewWebhook) -> Answer<Option<Webhook>> {
        Ok(None)
    }

    async fn drop_webhook(&self, _id: u64) -> Answer<()> {
        Ok(())
    }

    async fn set_assignees(&self, thread: Thread, logins: &[String]) -> Answer<()> {
        let action = format!("assign #{}", thread.number());
        self.change(thread.number(), &action, |entry| entry.assignees = logins.to_vec()).await
    }
}

fn state_of(open: bool) -> ThreadState {
    if open { ThreadState::Open } else { ThreadState::Closed }
}

fn git_error(path: &Path, action: &'static str) -> impl FnOnce(GitError) -> ForgeError {
    let path = path.to_path_buf();
    move |source| ForgeError::Shelf { path, action: action.to_owned(), source: source.into() }
}
