//! A command of the repository's own in a box: its set-up, its check, its tests. No agent, no model; only its exit counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use egress::{EgressConfig, EgressPolicy};
use host::signal::Cancel;
use model::verdict::Ended;
use sandbox::spec::{BoxRelay, ProgramMount};
use serde::{Deserialize, Serialize};

use crate::agent_plan::PROXY;
use crate::agent_run::BoxLayout;
use crate::box_dir::BoxDir;
use crate::launch::{self, BoxEgress, LaunchError, Launcher};
use crate::record::ExitRecord;
use crate::shim::EGRESS_SOCKET;
use crate::test_count::{TestCount, parse_test_output};

/// Bytes at the end of a log that are shown to users and agents.
const TAIL_CAP: usize = 4 * 1024;

#[derive(Debug, Clone)]
pub struct BoxCommand {
    pub layout: BoxLayout,
    pub argv: Vec<String>,
    /// Variables beside those that every box has.
    pub env: BTreeMap<String, String>,
    /// Egress; `None` for nothing.
    pub policy: Option<EgressPolicy>,
    /// Folders that it needs and the box's root lacks.
    pub programs: Vec<ProgramMount>,
}

#[derive(Debug, Clone)]
pub struct BoxCommandResult {
    pub record: ExitRecord,
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

impl BoxCommand {
    pub fn shell(layout: BoxLayout, line: &str) -> Self {
        Self::new(layout, ["/bin/bash", "-c", line].map(str::to_owned).to_vec())
    }

    pub fn new(layout: BoxLayout, argv: Vec<String>) -> Self {
        Self { layout, argv, env: BTreeMap::new(), policy: None, programs: Vec::new() }
    }

    /// Runs it to its end, or until it is cancelled. One that was started before is waited for.
    pub async fn run(
        self,
        launcher: &Launcher,
        cancel: &Cancel,
    ) -> Result<BoxCommandResult, LaunchError> {
        let box_dir = BoxDir::new(&self.layout.box_dir);
        let mut spec = self.layout.spec();
        spec.argv = self.argv;
        spec.programs = self.programs;
        if self.policy.is_some() {
            spec.env.extend(egress::proxy_env(PROXY));
            spec.relays = vec![BoxRelay { listen: PROXY, socket: EGRESS_SOCKET.to_owned() }];
        }
        spec.env.extend(self.env);
        if launch::box_status(&box_dir)? == launch::BoxStatus::NeverStarted {
            let egress = self.policy.map(|policy| {
                let (run, log_path) = (spec.run.to_string(), box_dir.egress_log());
                let config = EgressConfig { run, policy, model: None, log_path };
                BoxEgress { config, keys: Vec::new() }
            });
            launcher.launch(&spec, egress.as_ref())?;
        }
        let record = tokio::select! {
            ended = launch::attach(&box_dir) => ended,
            _reason = cancel.cancelled() => launch::end(&box_dir).await,
        }?;
        Ok(BoxCommandResult {
            record,
            stdout: box_dir.stdout(spec.output),
            stderr: box_dir.stderr(),
        })
    }
}

/// Exit of a command in a box, for a run's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoxCommandSummary {
    #[serde(default)]
    pub command: String,
    pub ended: Ended,
    pub wall_ms: u64,
    pub tail: String,
    /// Tests that its output reports; `None` if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
}

impl BoxCommandSummary {
    pub fn passed(&self) -> bool {
        self.ended == Ended::Exited { code: 0 }
    }

    /// Its exit in a few words.
    pub fn how(&self) -> String {
        match &self.ended {
            Ended::Exited { code } => format!("status {code}"),
            Ended::Signalled { signal } => format!("ended by signal {signal}"),
            Ended::OutOfTime => "out of time".to_owned(),
            Ended::OutOfMemory => "out of memory".to_owned(),
            Ended::OutOfSpace => "out of disk space".to_owned(),
            Ended::Stopped | Ended::Frozen => "stopped".to_owned(),
            Ended::Infra { reason } => reason.clone(),
        }
    }

    pub fn last_line(&self) -> &str {
        self.tail.lines().last().unwrap_or("it printed nothing")
    }
}

impl BoxCommandResult {
    pub fn summary(&self, command: String) -> BoxCommandSummary {
        let ExitRecord { ended, wall_ms, .. } = &self.record;
        let tests = [&self.stdout, &self.stderr].map(|path| tests_in(path)).into_iter().flatten();
        BoxCommandSummary {
            command,
            ended: ended.clone(),
            wall_ms: *wall_ms,
            tail: self.tail(),
            tests: tests.reduce(TestCount::with),
        }
    }

    pub fn passed(&self) -> bool {
        self.record.ended == Ended::Exited { code: 0 }
    }

    /// The end of its output for users and agents: escaped, both streams, standard error last.
    pub fn tail(&self) -> String {
        let text = [&self.stdout, &self.stderr].map(|path| tail_of(path)).concat();
        model::escape::escape_terminal(&text).into_owned()
    }
}

fn tests_in(path: &std::path::Path) -> Option<TestCount> {
    let bytes = std::fs::read(path).unwrap_or_default();
    parse_test_output(&String::from_utf8_lossy(&bytes))
}

fn tail_of(path: &std::path::Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(TAIL_CAP);
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}
