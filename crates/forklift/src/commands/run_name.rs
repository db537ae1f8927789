//! The run that a command is about.

use std::path::Path;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use model::exit::ForkliftExit;
use run_store::StoreError;
use run_store::run_dir::{self, RunDir};

use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit};
use crate::flow::observe::{find_repo, fork_directory};
use crate::flow::record::ForkRunRecord;

/// Word for the newest run of the fork, or of all forks outside of one.
const LAST: &str = "last";

#[derive(Debug, Args)]
pub(crate) struct RunNameArgs {
    /// The run: its name, the start of its name or of its date, or `last` [default: the newest run of this fork]
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(run_names))]
    run: Option<String>,
}

impl RunNameArgs {
    /// Finds the run. Without a name it is the newest one of the fork at hand.
    pub(crate) fn find(
        &self,
        places: &ForkliftDirs,
        directory: Option<&Path>,
    ) -> Result<RunDir, Failure> {
        self.find_where(places, directory, |_| true)
    }

    /// The same; without a name, the newest one that `counts`. `last` is the newest one, whatever it is.
    pub(crate) fn find_where(
        &self,
        places: &ForkliftDirs,
        directory: Option<&Path>,
        counts: impl Fn(&ForkRunRecord) -> bool,
    ) -> Result<RunDir, Failure> {
        let name = self.run.as_deref();
        if let Some(name) = name.filter(|name| *name != LAST) {
            return run_dir::find(&places.runs, name).map_err(|error| match error {
                StoreError::NoSuchRun { wanted, .. } => Failure::usage(format!(
                    "there is no run '{}'; see: forklift runs",
                    wanted.escape_debug()
                )),
                error => Failure::of(ForkliftExit::Usage, error),
            });
        }
        let here = fork_directory(directory)?;
        let fork = block_on(find_repo(&here));
        let fork = match (&fork, name) {
            (Ok(repo), _) => Some(repo.toplevel().unwrap_or(repo.common_dir())),
            (Err(_), Some(_)) => None,
            (Err(_), None) => {
                let here = here.display();
                let text = format!("{here} is not inside a fork; name a run (see: forklift runs)");
                return Err(Failure::usage(text));
            }
        };
        let is_wanted = |dir: &RunDir| {
            let record = ForkRunRecord::load(dir);
            record.is_ok_and(|it| {
                fork.is_none_or(|fork| it.fork.path == fork) && (name.is_some() || counts(&it))
            })
        };
        let newest = run_dir::list(&places.runs).or_machine()?.into_iter().find(is_wanted);
        newest.ok_or_else(|| Failure::usage("this fork has no such run; see: forklift runs"))
    }
}

/// All runs, for a shell.
fn run_names() -> Vec<CompletionCandidate> {
    let Ok(places) = ForkliftDirs::from_env() else { return Vec::new() };
    let runs = run_dir::list(&places.runs).unwrap_or_default();
    runs.iter().map(|run| CompletionCandidate::new(run.id().as_str())).collect()
}
