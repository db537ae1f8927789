//! A snapshot that is taken while an agent works, because some programs are slow to report their version.

use std::sync::Arc;
use std::time::Duration;

use model::redact::Redactor;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{EnvFacts, observe_env, save_env_snapshot};
use crate::error::StoreError;
use crate::run_dir::RunDir;

/// Delay for the start of the agent: on a small machine the version queries would compete with it.
const HEAD_START: Duration = Duration::from_millis(500);

/// The snapshot of a run, which may be under way.
#[derive(Debug, Default)]
pub struct LaterSnapshot {
    /// The task, and the signal that ends its delay.
    under_way: Option<(JoinHandle<EnvFacts>, Arc<Notify>)>,
}

impl LaterSnapshot {
    /// Begins a little later. Must be called inside a tokio runtime.
    pub fn begin(&mut self) {
        let hurry = Arc::new(Notify::new());
        let hurried = Arc::clone(&hurry);
        let facts = tokio::spawn(async move {
            // Whichever comes first; both outcomes are fine.
            tokio::time::timeout(HEAD_START, hurried.notified()).await.ok();
            observe_env(host::clock::now()).await
        });
        self.under_way = Some((facts, hurry));
    }

    /// Saves the snapshot. An existing one stays: a process that was killed made it. One that was never begun is taken
    /// now.
    pub async fn save(&mut self, run: &RunDir, redactor: &Redactor) -> Result<(), StoreError> {
        if run.env_snapshot().exists() {
            return Ok(());
        }
        let found = match self.under_way.take() {
            Some((facts, hurry)) => {
                hurry.notify_one();
                facts.await.ok()
            }
            None => None,
        };
        let facts = match found {
            Some(facts) => facts,
            None => observe_env(host::clock::now()).await,
        };
        save_env_snapshot(run, redactor, &facts)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::id::ProjectName;

    use super::*;

    fn run_in(root: &std::path::Path) -> RunDir {
        let project = ProjectName::parse("app").unwrap();
        RunDir::create(root, &project, "2025-01-15T12:00:00Z".parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_snapshot_is_there_whether_it_was_begun_or_not() {
        for begun in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let run = run_in(root.path());
            let mut snapshot = LaterSnapshot::default();
            if begun {
                snapshot.begin();
            }
            snapshot.save(&run, &Redactor::new([])).await.unwrap();
            let text = fs::read_to_string(run.env_snapshot()).unwrap();
            assert!(text.starts_with("# Environment Snapshot\n"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_snapshot_of_whoever_was_killed_stays() {
        let root = tempfile::tempdir().unwrap();
        let run = run_in(root.path());
        fs::write(run.env_snapshot(), "earlier").unwrap();
        LaterSnapshot::default().save(&run, &Redactor::new([])).await.unwrap();
        assert_eq!(fs::read_to_string(run.env_snapshot()).unwrap(), "earlier");
    }
}
