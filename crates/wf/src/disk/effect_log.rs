//! Operation log of a project: every effect on branches, remotes, forges and people, recorded as an intent before it
//! happens and with its outcome after. An intent without an outcome is what a crash leaves; `wf doctor` names it, and
//! running the command again finishes it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::chain::{ChainHead, ChainLine, verify_chain};
use model::id::WorkstreamId;
use model::redact::Redactor;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use serde::Deserialize;
use serde_json::json;

use super::project_dirs::ProjectDirs;
use super::secrets::load_secrets;
use super::{DiskError, DiskResult, make_dir, read_optional};
use crate::exit::{OrExit, WfExit, WfResult};

/// Time limit for another command that appends a line.
const WAIT: Duration = Duration::from_secs(10);

/// An effect on something outside the project's own files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect<'a> {
    /// Kind of the effect, such as `branch.push`.
    pub(crate) op: &'static str,
    pub(crate) target: &'a str,
    pub(crate) workstream: Option<&'a WorkstreamId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnfinishedEffect {
    pub(crate) op: String,
    pub(crate) target: String,
    pub(crate) workstream: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ProjectEffects {
    path: PathBuf,
    seed: String,
    redactor: Arc<Redactor>,
}

#[derive(Debug, Deserialize)]
struct EffectLine {
    seq: u64,
    prev: String,
    op: String,
    target: String,
    outcome: OperationOutcome,
    #[serde(default)]
    detail: serde_json::Value,
}

impl ChainLine for EffectLine {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn prev(&self) -> &str {
        &self.prev
    }
}

impl ProjectEffects {
    pub(crate) fn of(dirs: &ProjectDirs) -> WfResult<Self> {
        make_dir(&dirs.state_dir())?;
        let project = &dirs.project.name;
        Ok(Self {
            path: dirs.state_dir().join(format!("{project}.operations.jsonl")),
            seed: format!("wf project {project}"),
            redactor: Arc::new(Redactor::new(load_secrets(dirs)?)),
        })
    }

    /// Performs an effect. It does not happen if its intent cannot be recorded.
    pub(crate) async fn record<T, E>(
        &self,
        effect: Effect<'_>,
        act: impl Future<Output = Result<T, E>>,
    ) -> WfResult<Result<T, E>> {
        self.append(effect, OperationOutcome::Intended)?;
        host::failpoint::hit(&format!("wf-{}-intended", effect.op));
        let done = act.await;
        host::failpoint::hit(&format!("wf-{}-happened", effect.op));
        let outcome = if done.is_ok() { OperationOutcome::Done } else { OperationOutcome::Failed };
        self.append(effect, outcome)?;
        Ok(done)
    }

    /// Records the outcome of an effect that an interrupted command had performed without recording it.
    pub(crate) fn confirm(&self, effect: Effect<'_>) -> WfResult<()> {
        let is_it = |open: &UnfinishedEffect| open.op == effect.op && open.target == effect.target;
        match self.unfinished()?.iter().any(is_it) {
            true => self.append(effect, OperationOutcome::Done),
            false => Ok(()),
        }
    }

    /// Appends one line. The log is open only for this moment, because another command may append meanwhile.
    fn append(&self, effect: Effect<'_>, outcome: OperationOutcome) -> WfResult<()> {
        let redactor = Arc::clone(&self.redactor);
        let log = OperationLog::open_shared(&self.path, &self.seed, redactor, WAIT);
        let log = log.or_exit(WfExit::General)?;
        let detail = json!({"workstream": effect.workstream});
        let line = Operation::new(effect.op, effect.target, outcome).with_detail(detail);
        log.append(&line).map(drop).or_exit(WfExit::General)
    }

    /// Lists the intents without an outcome. A later outcome of the same effect settles all earlier intents.
    pub(crate) fn unfinished(&self) -> DiskResult<Vec<UnfinishedEffect>> {
        let bytes = read_optional(&self.path)?.unwrap_or_default();
        let genesis = ChainHead::genesis(self.seed.as_bytes());
        let chain =
            verify_chain::<EffectLine>(&bytes, genesis).map_err(DiskError::in_file(&self.path))?;
        let mut open: Vec<UnfinishedEffect> = Vec::new();
        for line in chain.lines {
            let workstream = line.detail["workstream"].as_str().unwrap_or_default().to_owned();
            let effect = UnfinishedEffect { op: line.op, target: line.target, workstream };
            open.retain(|other| *other != effect);
            if line.outcome == OperationOutcome::Intended {
                open.push(effect);
            }
        }
        Ok(open)
    }
}
