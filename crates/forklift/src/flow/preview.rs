//! Preview of a fork without a run: the commits as a run would pin them, and a repository of the host with them.

use std::path::Path;

use engine::export::make_import_repo;
use host::git::SealedRepo;
use shell::Ui;
use tempfile::TempDir;

use super::observe::{Observation, ObserveOptions, find_repo, fork_directory, fork_key, observe};
use crate::commands::ForkliftDirs;
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit};
use crate::rules::fork_file::ForkRules;

pub(crate) struct Preview {
    pub(crate) seen: Observation,
    /// Contains exactly what the pinned commits reach. Deleted on drop.
    pub(crate) repo: SealedRepo,
    _folder: TempDir,
}

impl Preview {
    /// Fetches and pins as a run does. Leaves nothing behind when it is dropped.
    pub(crate) async fn make(
        ui: &Ui,
        look: &LookArgs,
        directory: Option<&Path>,
        places: &ForkliftDirs,
    ) -> Result<Self, Failure> {
        let cache = &places.cache;
        let repo = find_repo(&fork_directory(directory)?).await?;
        let options = ObserveOptions {
            remotes: &look.names.remotes(&places.shared),
            main_branch: look.names.main_branch.as_ref(),
            target: look.target.as_ref(),
            forge: None,
            cache,
            checkout: None,
        };
        let seen = observe(ui, repo, options).await?;
        let folder = cache.join("previews");
        host::file::create_dirs(&folder).or_machine()?;
        let folder = TempDir::new_in(&folder).or_machine()?;
        let mirror = cache.join("mirrors").join(format!("{}.git", fork_key(&seen.repo)));
        let pins = [&seen.pins.base, &seen.pins.upstream];
        let path = folder.path().join("repo.git");
        let made = make_import_repo(&path, &seen.repo, &mirror, &pins);
        let repo = made.await.or_machine()?;
        Ok(Self { seen, repo, _folder: folder })
    }

    pub(crate) fn rules(&self) -> ForkRules {
        self.seen.fork_file.as_ref().map(|file| file.rules.clone()).unwrap_or_default()
    }

    /// The target's name with its commit.
    pub(crate) fn target(&self) -> String {
        format!("{} ({})", self.seen.target_name, self.seen.pins.upstream.short())
    }

    pub(crate) fn unrelated(&self) -> Failure {
        Failure::usage(format!(
            "{} and {} have no commit in common, so there is no place where they parted",
            self.seen.fork.origin, self.seen.fork.upstream
        ))
    }
}
