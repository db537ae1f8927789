//! The memory of a workstream's agent: its own files and its conversation, kept from run to run.

use std::path::{Path, PathBuf};

use agent::{AgentReport, Provider, SessionRequest, Usage};
use sandbox::spec::BoxUser;
use serde::{Deserialize, Serialize};

use super::StageRunError;
use crate::disk::{make_dir, read_optional};
use crate::rules::schema::render_json;

/// The memory of one agent of a workstream.
#[derive(Debug)]
pub(super) struct AgentMemory {
    dir: PathBuf,
    session: Option<SavedSession>,
}

/// A conversation that can be gone on with.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSession {
    id: String,
    /// What it has used so far, from agents that count it in this way.
    #[serde(default)]
    usage: Usage,
}

impl AgentMemory {
    /// The memory of this provider in this workstream; an empty one if there was none. A session file that cannot be read
    /// is an agent that remembers nothing.
    pub(super) fn open(agents_dir: &Path, provider: Provider) -> Result<Self, StageRunError> {
        let dir = agents_dir.join(provider.name());
        make_dir(&dir).map_err(StageRunError::failed)?;
        let memory = Self { dir, session: None };
        engine::workspace::make_harness_state(&memory.state(), BoxUser::of_caller())
            .map_err(StageRunError::failed)?;
        let bytes = read_optional(&memory.file()).map_err(StageRunError::failed)?;
        let session = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self { session: session.filter(|_| provider.can_resume()), ..memory })
    }

    /// The agent's own files.
    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    fn file(&self) -> PathBuf {
        self.dir.join("session.json")
    }

    /// Whether there is a conversation to go on with.
    pub(super) fn is_known(&self) -> bool {
        self.session.is_some()
    }

    /// How the next mission begins.
    pub(super) fn next_session(&self) -> SessionRequest {
        match &self.session {
            Some(session) => SessionRequest::Resume(session.id.clone()),
            None => SessionRequest::Fresh { id: None },
        }
    }

    /// What the conversation used before.
    pub(super) fn used(&self) -> Usage {
        self.session.as_ref().map(|session| session.usage).unwrap_or_default()
    }

    /// The conversation is lost; the next one begins anew.
    pub(super) fn forget(&mut self) {
        self.session = None;
    }

    /// Keeps the conversation for the next run.
    pub(super) fn keep(&self, report: &AgentReport) -> Result<(), StageRunError> {
        let Some(id) = &report.session_id else { return Ok(()) };
        let session =
            SavedSession { id: id.clone(), usage: report.thread_usage.unwrap_or_default() };
        let text = render_json(&session);
        host::file::write_transient(&self.file(), text.as_bytes(), 0o600)
            .map_err(StageRunError::failed)
    }
}
