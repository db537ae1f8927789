//! Questions of a workstream: asking, listing and answering.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::id::ClarificationId;

use super::project_dirs::ProjectDirs;
use super::queue::{QueueEntry, highest_in, load_folder, remove_entry, save_entry};
use super::workstream::Workstream;
use super::{DiskError, names_in};
use crate::rules::clarification::{
    Clarification, ClarificationStatus, NewQuestion, render_clarification,
};
use crate::rules::schema::Schema;

const PREFIX: &str = "CLQ-";
pub(crate) const PENDING: &str = "clarifications/pending";
pub(crate) const ANSWERED: &str = "clarifications/answered";

fn folder(status: ClarificationStatus) -> &'static str {
    match status {
        ClarificationStatus::Pending => PENDING,
        ClarificationStatus::Answered => ANSWERED,
    }
}

/// Reads the questions with this status. A question whose pending file survived a crash after its answer counts as
/// answered.
pub(crate) fn load_questions(
    workstream: &Path,
    status: ClarificationStatus,
) -> Result<Vec<QueueEntry<Clarification>>, DiskError> {
    let mut entries: Vec<QueueEntry<Clarification>> =
        load_folder(&workstream.join(folder(status)), PREFIX, Schema::Clarification)?;
    if status == ClarificationStatus::Pending {
        let answered = names_in(&workstream.join(ANSWERED))?;
        entries.retain(|entry| !answered.contains(&format!("{}.json", name_of(entry))));
    }
    Ok(entries)
}

/// The name of a question, whether it can be read or not.
pub(crate) fn name_of(entry: &QueueEntry<Clarification>) -> String {
    match entry {
        QueueEntry::Good(question) => question.id.to_string(),
        QueueEntry::Bad { name, .. } => name.clone(),
    }
}

/// Lists the questions that block the work: blocking ones, and unreadable ones, because one of those may be blocking.
pub(crate) fn blocking_questions(workstream: &Path) -> Result<Vec<String>, DiskError> {
    let pending = load_questions(workstream, ClarificationStatus::Pending)?;
    let blocks = |entry: &&QueueEntry<Clarification>| match entry {
        QueueEntry::Good(question) => question.is_blocking(),
        QueueEntry::Bad { .. } => true,
    };
    Ok(pending.iter().filter(blocks).map(name_of).collect())
}

/// Adds a question with the next number of the project; closed workstreams count too, so that no number repeats. The
/// caller holds the global lock.
pub(crate) fn ask(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    question: NewQuestion,
    now: Timestamp,
) -> Result<Clarification, DiskError> {
    let number = 1 + highest_in(&all_dirs(dirs)?, &[PENDING, ANSWERED], PREFIX)?;
    let id = ClarificationId::numbered(number);
    let question = Clarification::new(id, &workstream.meta.id, question, now);
    save_question(&workstream.dir, &question)?;
    Ok(question)
}

/// Writes an answered question to its folder and removes the pending one.
pub(crate) fn move_answered(workstream: &Path, question: &Clarification) -> Result<(), DiskError> {
    save_question(workstream, question)?;
    remove_entry(&workstream.join(PENDING), question.id.as_str())
}

fn save_question(workstream: &Path, question: &Clarification) -> Result<(), DiskError> {
    let dir = workstream.join(folder(question.status));
    save_entry(&dir, question.id.as_str(), question, &render_clarification(question))
}

/// The folders of all workstreams, closed ones included.
pub(crate) fn all_dirs(dirs: &ProjectDirs) -> Result<Vec<PathBuf>, DiskError> {
    let open = dirs.workstream_names()?.into_iter().map(|name| dirs.workstreams_dir().join(name));
    let mut all: Vec<PathBuf> = open.collect();
    all.extend(dirs.closed_dirs()?);
    Ok(all)
}
