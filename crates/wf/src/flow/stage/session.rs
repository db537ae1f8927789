//! Memory of a workstream's agent: its home directory and its session, kept across runs.

use std::path::{Path, PathBuf};

use agent::{AgentReport, Provider, SessionRequest, Usage};
use sandbox::spec::BoxUser;
use serde::{Deserialize, Serialize};

use super::StageResult;
use crate::disk::{make_dir, read_optional};
use crate::rules::schema::render_json;

#[derive(Debug)]
pub(super) struct AgentMemory {
    dir: PathBuf,
    session: Option<SavedSession>,
    can_resume: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSession {
    id: String,
    /// Usage so far, for agents that report it per session.
    #[serde(default)]
    usage: Usage,
}

impl AgentMemory {
    /// Opens the memory of a provider in a workstream. An unreadable session file counts as no session.
    pub(super) fn open(agents_dir: &Path, provider: Provider) -> StageResult<Self> {
        let dir = agents_dir.join(provider.name());
        make_dir(&dir)?;
        let memory = Self { dir, session: None, can_resume: provider.can_resume() };
        engine::workspace::make_harness_state(&memory.state(), BoxUser::of_caller())?;
        let bytes = read_optional(&memory.file())?;
        let session = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self { session: session.filter(|_| provider.can_resume()), ..memory })
    }

    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    fn file(&self) -> PathBuf {
        self.dir.join("session.json")
    }

    pub(super) fn is_known(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn next_session(&self) -> SessionRequest {
        match &self.session {
            Some(session) => SessionRequest::Resume(session.id.clone()),
            None => SessionRequest::Fresh { id: None },
        }
    }

    pub(super) fn used(&self) -> Usage {
        self.session.as_ref().map(|session| session.usage).unwrap_or_default()
    }

    /// Drops the session; the next run starts a new one.
    pub(super) fn forget(&mut self) {
        self.session = None;
    }

    /// Keeps the session and goes on with it, for a second try in the same stage.
    pub(super) fn adopt(&mut self, report: &AgentReport) -> StageResult<()> {
        self.keep(report)?;
        if let Some(id) = report.session_id.clone().filter(|_| self.can_resume) {
            let usage = report.thread_usage.unwrap_or_default();
            self.session = Some(SavedSession { id, usage });
        }
        Ok(())
    }

    pub(super) fn keep(&self, report: &AgentReport) -> StageResult<()> {
        let Some(id) = &report.session_id else { return Ok(()) };
        let session =
            SavedSession { id: id.clone(), usage: report.thread_usage.unwrap_or_default() };
        let text = render_json(&session);
        Ok(host::file::write_transient(&self.file(), text.as_bytes(), 0o600)?)
    }
}
