//! Questions of a workstream: asking and listing.

use std::path::Path;

use jiff::Timestamp;
use model::id::{ClarificationId, IdError};

use super::DiskResult;
use super::project_dirs::ProjectDirs;
use super::queue::{QueueEntry, Queued, load_queue, next_number, save_entry};
use super::workstream::Workstream;
use crate::rules::clarification::{
    Clarification, ClarificationStatus, NewQuestion, render_clarification,
};
use crate::rules::schema::Schema;

pub(crate) const PENDING: &str = "clarifications/pending";
pub(crate) const ANSWERED: &str = "clarifications/answered";

impl Queued for Clarification {
    type Status = ClarificationStatus;
    const NOUN: &'static str = "question";
    const LIST: &'static str = "wf clarify list";
    const PREFIX: &'static str = "CLQ-";
    const SCHEMA: Schema = Schema::Clarification;
    const FOLDERS: &'static [(ClarificationStatus, &'static str)] =
        &[(ClarificationStatus::Pending, PENDING), (ClarificationStatus::Answered, ANSWERED)];

    fn check_id(text: &str) -> Result<(), IdError> {
        ClarificationId::parse(text).map(drop)
    }

    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn status(&self) -> ClarificationStatus {
        self.status
    }

    fn render(&self) -> String {
        render_clarification(self)
    }
}

/// Lists the questions that block the work: blocking ones, and unreadable ones, because one of those may be blocking.
pub(crate) fn blocking_questions(workstream: &Path) -> DiskResult<Vec<String>> {
    let pending = load_queue(workstream, ClarificationStatus::Pending)?;
    let blocks = |entry: &&QueueEntry<Clarification>| match entry {
        QueueEntry::Good(question) => question.is_blocking(),
        QueueEntry::Bad { .. } => true,
    };
    Ok(pending.iter().filter(blocks).map(|entry| entry.name().to_owned()).collect())
}

/// Finds a pending question that is the same in all its words: one that a killed command has asked, or that was asked twice.
pub(crate) fn find_same(
    workstream: &Path,
    question: &NewQuestion,
) -> DiskResult<Option<Clarification>> {
    let pending = load_queue::<Clarification>(workstream, ClarificationStatus::Pending)?;
    let found = pending.into_iter().find_map(|entry| match entry {
        QueueEntry::Good(asked) if asked.is_same(question) => Some(asked),
        QueueEntry::Good(_) | QueueEntry::Bad { .. } => None,
    });
    Ok(found)
}

/// Adds a question with the next number of the project. The caller holds the global lock.
pub(crate) fn ask(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    question: NewQuestion,
    now: Timestamp,
) -> DiskResult<Clarification> {
    let id = ClarificationId::numbered(next_number::<Clarification>(dirs)?);
    let question = Clarification::new(id, &workstream.meta.id, question, now);
    save_entry(&workstream.dir, &question)?;
    Ok(question)
}
