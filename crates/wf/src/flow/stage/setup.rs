//! Set-up of a workspace before an agent works or tests run in it: ignored files that it needs, and the profile's
//! `SETUP_CMD`, whose folders are kept by the lock files.
//!
//! A set-up that all workstreams share is made from a commit of the default branch. One that the accepted commits of a
//! workstream changed is kept for that workstream alone. One that a micro-commit changed runs in its own workspace and
//! nothing of it is kept, so that a micro-commit that is not accepted leaves nothing for later ones. Before a merge the
//! set-up runs anew: it may depend on more files than are known.

use std::fs;
use std::path::{Path, PathBuf};

use engine::box_command::BoxCommand;
use engine::workspace::{copy_folder, give};
use host::file::{append_line, remove_tree_safely};
use host::lock::{FileLock, LockKind};
use model::id::Sha;
use model::verdict::Ended;
use sandbox::spec::{BoxUser, ProgramMount};

use super::resolve_agent::policy_of;
use super::{SetupUse, StageContext, StageResult, StageRunError};
use crate::disk::{ProjectDirs, make_dir};
use crate::flow::include::{IncludedFiles, check_linked, find_beneath};
use crate::rules::profile::TestIn;
use crate::rules::workspace_setup::{WorkspaceSetup, digest_setup};

/// The copy of the accepted commit in which a set-up is made.
pub(super) const SETUP_WORKSPACE: &str = "setup-workspace";
/// Name of a set-up that all workstreams share; no workstream has it.
const SHARED: &str = "*";
/// Largest lock file that is read.
const LOCK_CAP: usize = 64 << 20;
/// Folder of a kept set-up for parts of the box's home.
const HOME_PART: &str = "home";
const WORKSPACE_PART: &str = "workspace";

impl StageContext<'_> {
    /// Makes a copy of the commit and everything that the profile says it needs. `state` is the folder with the box's home.
    pub(super) async fn checkout_ready(&self, folder: &str, state: &Path) -> StageResult<()> {
        self.checkout(folder).await?;
        let workspace = self.run_dir.join(folder);
        self.include_files(&workspace).await?;
        if self.profile.test_in == TestIn::Host || self.profile.setup.command.is_empty() {
            return Ok(());
        }
        self.set_up(folder, state).await
    }

    /// Folders of the user's checkout that boxes see at their place in the workspace, read-only.
    pub(super) fn linked_mounts(&self) -> Vec<ProgramMount> {
        let repo = &self.runner.dirs.project.repo;
        let mut mounts = Vec::new();
        for path in self.profile.setup.link.iter().filter(|path| repo.join(path).exists()) {
            match check_linked(repo, path, self.redactor, &self.profile.forbidden_paths) {
                Ok(note) => {
                    note.into_iter().for_each(|note| self.runner.note(note));
                    let inside = format!("/workspace/{path}");
                    mounts.push(ProgramMount { host: repo.join(path), inside });
                }
                Err(why) => self.runner.note(format!("{path} is not in the box: {why}")),
            }
        }
        mounts
    }

    async fn include_files(&self, workspace: &Path) -> StageResult<()> {
        let worktree = &self.workstream.meta.worktree;
        let repo = &self.runner.dirs.project.repo;
        let found = IncludedFiles::observe(self.product, repo, worktree, self.profile).await;
        let found = found.map_err(|failure| StageRunError::Failed(failure.to_string()))?;
        let (files, notes) = found.without_secrets(self.redactor, &self.profile.forbidden_paths);
        notes.into_iter().for_each(|note| self.runner.note(note));
        for note in files.copy_into(workspace) {
            self.runner.note(note);
        }
        exclude(workspace, files.paths.iter().map(String::as_str))?;
        exclude(workspace, self.profile.setup.link.iter().map(String::as_str))?;
        let kept = self.profile.setup.keep.iter().filter(|path| !path.starts_with('~'));
        exclude(workspace, kept.map(String::as_str))?;
        let WorkspaceSetup { keep, link, .. } = &self.profile.setup;
        if !(files.paths.is_empty() && keep.is_empty() && link.is_empty()) {
            give(workspace, BoxUser::of_caller())?;
        }
        Ok(())
    }

    async fn set_up(&self, folder: &str, state: &Path) -> StageResult<()> {
        let setup = &self.profile.setup;
        let workspace = self.run_dir.join(folder);
        if !setup.is_kept() {
            return self.run_setup(folder, state).await;
        }
        if self.setup == SetupUse::Anew {
            return self.run_setup(folder, state).await;
        }
        let wanted = self.setup_digest(self.head, SHARED).await?;
        let id = self.workstream.meta.id.as_str();
        let own = self.setup_digest(self.head, id).await?;
        let [shared, own_kept] = [&wanted, &own].map(|digest| self.runner.dirs.setup_dir(digest));
        let common = self.common_commit().await?;
        let is_common = match &common {
            Some(common) => self.setup_digest(common, SHARED).await? == wanted,
            None => false,
        };
        let accepted = self.accepted();
        let kept = match common.filter(|_| is_common) {
            Some(common) => {
                self.keep_setup(&common, &wanted, &shared).await?;
                shared
            }
            None if self.setup_digest(&accepted, id).await? == own => {
                self.keep_setup(&accepted, &own, &own_kept).await?;
                own_kept
            }
            None => {
                self.runner.note(format!(
                    "set-up: {} ran again, because what it depends on is changed and not accepted yet",
                    setup.command.join(" ")
                ));
                return self.run_setup(folder, state).await;
            }
        };
        self.restore_setup(&kept, &workspace, state).await
    }

    /// The last commit that the branch shares with the default branch.
    async fn common_commit(&self) -> StageResult<Option<Sha>> {
        let branch = &self.runner.dirs.project.default_branch;
        match self.product.branch_tip(branch).await? {
            Some(tip) => Ok(self.product.merge_base(self.head, &tip).await?),
            None => Ok(None),
        }
    }

    /// The commit that everything new is compared with: the last accepted one, or the base.
    fn accepted(&self) -> Sha {
        let meta = &self.workstream.meta;
        meta.last_commit_sha.clone().unwrap_or_else(|| meta.base_sha.clone())
    }

    /// Digest of the set-up of a commit, for everybody or for one workstream.
    async fn setup_digest(&self, commit: &Sha, whose: &str) -> StageResult<String> {
        let setup = &self.profile.setup;
        let mut inputs = Vec::new();
        for path in setup.inputs() {
            let blob = self.product.user().read_blob(commit, &path, LOCK_CAP).await?;
            inputs.push((path, blob.map(|blob| blob.bytes)));
        }
        let place = format!("{whose} {}", self.box_place().await?);
        Ok(digest_setup(setup, &place, &inputs))
    }

    /// Makes the set-up in a copy of the commit and moves its folders to the place where they are kept, unless they are
    /// there. Another run that needs the same waits.
    async fn keep_setup(&self, accepted: &Sha, digest: &str, kept: &Path) -> StageResult<()> {
        if kept.exists() {
            return Ok(());
        }
        let dirs = &self.runner.dirs;
        make_dir(&dirs.locks_dir())?;
        let lock = dirs.locks_dir().join(format!("setup.{}.lock", &digest[..16]));
        let note = format!("set-up for {}", self.workstream.meta.id);
        let wait = self.profile.setup.timeout * 2;
        let _lock = FileLock::acquire(&lock, LockKind::Exclusive { note: &note }, wait).await?;
        if kept.exists() {
            return Ok(());
        }
        let state = self.blank_state("setup")?;
        let stage = StageContext { head: accepted, ..*self };
        stage.checkout(SETUP_WORKSPACE).await?;
        let workspace = self.run_dir.join(SETUP_WORKSPACE);
        stage.include_files(&workspace).await?;
        stage.run_setup(SETUP_WORKSPACE, &state).await?;
        let unfinished = kept.with_extension("new");
        remove_tree_safely(&unfinished)?;
        for path in &self.profile.setup.keep {
            let (from, to) = match path.strip_prefix("~/") {
                Some(name) => {
                    (find_beneath(&state.join("home"), name), Path::new(HOME_PART).join(name))
                }
                None => (find_beneath(&workspace, path), Path::new(WORKSPACE_PART).join(path)),
            };
            let Some(from) = from.filter(|from| from.symlink_metadata().is_ok()) else {
                self.runner.note(format!("set-up: it made no {path}, which SETUP_KEEP names"));
                continue;
            };
            let to = unfinished.join(to);
            make_dir(to.parent().unwrap_or(&unfinished))?;
            fs::rename(&from, &to)?;
        }
        make_dir(&unfinished)?;
        host::failpoint::hit("wf-setup-kept");
        fs::rename(&unfinished, kept)?;
        remove_tree_safely(&workspace)?;
        Ok(())
    }

    /// Copies the kept folders into a workspace and a home. What is there already stays.
    async fn restore_setup(&self, kept: &Path, workspace: &Path, state: &Path) -> StageResult<()> {
        for path in &self.profile.setup.keep {
            let (from, above, path) = match path.strip_prefix("~/") {
                Some(name) => (kept.join(HOME_PART).join(name), state.join("home"), name),
                None => {
                    (kept.join(WORKSPACE_PART).join(path), workspace.to_path_buf(), path.as_str())
                }
            };
            if from.symlink_metadata().is_err() {
                continue;
            }
            let Some(to) = find_beneath(&above, path) else {
                self.runner
                    .note(format!("set-up: {path} leads out of the workspace and was left out"));
                continue;
            };
            if to.symlink_metadata().is_ok() {
                continue;
            }
            make_dir(to.parent().unwrap_or(&above))?;
            copy_folder(&from, &to).await?;
        }
        Ok(())
    }

    /// Runs the set-up command in a folder of the run.
    async fn run_setup(&self, folder: &str, state: &Path) -> StageResult<()> {
        let setup = &self.profile.setup;
        let line = setup.command.join(" ");
        self.runner.ui.status(&format!("Setting up: {line}"));
        let name = format!("setup-{folder}");
        let secs = setup.timeout.as_secs();
        let layout = self.box_layout(&name, folder, state.to_path_buf(), secs).await?;
        let mut command = BoxCommand::new(layout, setup.command.clone());
        command.env = [("LC_ALL", "C.UTF-8"), ("CI", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        command.policy = policy_of(&setup.egress)?;
        command.programs = self.linked_mounts();
        let launcher = self.launcher(Vec::new()).await?;
        let end = command.run(&launcher, self.cancel).await?;
        let printed =
            [&end.stdout, &end.stderr].map(|path| fs::read(path).unwrap_or_default()).concat();
        let log = self.run_dir.join(format!("{name}.log"));
        host::file::write_atomic(&log, &printed, 0o600)?;
        self.record(&setup.command, &end.record, &printed);
        let failed = |how: String| {
            let message = format!("the set-up {how}: {line}: {}", end.tail().trim());
            Err(StageRunError::Failed(message))
        };
        match &end.record.ended {
            Ended::Exited { code: 0 } => Ok(()),
            Ended::Exited { code } => failed(format!("ended with status {code}")),
            Ended::OutOfTime => failed(format!("was out of time after {secs} s")),
            Ended::Stopped | Ended::Frozen => Err(self.stopped("the set-up was stopped")),
            Ended::OutOfSpace | Ended::Infra { .. } if self.disk_full().is_some() => {
                Err(self.disk_full().unwrap_or_else(|| self.stopped("the disk is full")))
            }
            other => failed(format!("failed ({other:?})")),
        }
    }
}

impl ProjectDirs {
    /// The place of a kept set-up.
    fn setup_dir(&self, digest: &str) -> PathBuf {
        self.ops.join("setups").join(format!("{}.{digest}", self.project.name))
    }
}

/// Makes git in a workspace ignore paths that are not part of the repository. No agent has been there yet.
fn exclude<'a>(workspace: &Path, paths: impl Iterator<Item = &'a str>) -> StageResult<()> {
    let folder = workspace.join(".git/info");
    for path in paths {
        make_dir(&folder)?;
        append_line(&folder.join("exclude"), &format!("/{}", escape_pattern(path)))?;
    }
    Ok(())
}

/// Escapes what a `.gitignore` would read as a pattern.
fn escape_pattern(path: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '!' | '#' | ' ');
    path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_excluded_by_its_letters() {
        assert_eq!(escape_pattern("a b/[x]*.env"), "a\\ b/\\[x\\]\\*.env");
        assert_eq!(escape_pattern("node_modules"), "node_modules");
    }
}
