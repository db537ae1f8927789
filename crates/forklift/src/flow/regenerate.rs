//! Generated files: the fork's `regenerate` commands run in a box on the merge so far, and the files with such a rule are
//! taken from there. Other changes of the commands are ignored.

use std::path::Path;

use engine::box_command::BoxCommandSummary;
use engine::workspace::{make_checkout, make_harness_state};
use host::git::{CommitDraft, SealedRepo};
use merge::path::TreePath;
use merge::resolver::{RegeneratedFile, RegeneratedFiles, ResolvedMerge};
use model::exit::ForkliftExit;
use sandbox::spec::BoxUser;

use super::integrate::host_identity;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};

/// Folders of the box; both are removed afterwards.
const WORKSPACE: &str = "regenerate-workspace";
const STATE: &str = "regenerate-state";

/// Largest file that is taken; a larger one is left to the agent.
const FILE_CAP: usize = 64 << 20;

/// Most characters of a command's last line.
const WORDS_CAP: usize = 300;

impl ForkRun<'_> {
    /// Runs each command once, in the order of the files and in the same checkout: a command may need the output of another.
    pub(super) async fn regenerate(
        &mut self,
        repo: &SealedRepo,
        resolved: &ResolvedMerge,
    ) -> Result<RegeneratedFiles, Failure> {
        let mut commands: Vec<&str> = Vec::new();
        for (_, how) in &resolved.regenerate {
            if !commands.contains(&how.command.as_str()) {
                commands.push(&how.command);
            }
        }
        if commands.is_empty() {
            return Ok(RegeneratedFiles::new());
        }
        self.ui.phase("regenerate", "running the regenerate commands in a box");
        self.lay_out_merge(repo, resolved).await?;
        let mut ended = Vec::new();
        for line in commands {
            ended.push(self.run_regeneration(line).await?);
        }
        let made = |(path, how): &(TreePath, merge::resolver::rule::Regenerate)| {
            let end = ended.iter().find(|end| end.command == how.command);
            let failure = end.filter(|end| !end.passed()).map(last_words);
            let workspace = self.run.dir.path().join(WORKSPACE);
            (path.clone(), failure.map_or_else(|| take(&workspace, path), RegeneratedFile::Failed))
        };
        let regenerated = resolved.regenerate.iter().map(made).collect();
        self.run.record.regenerate = ended;
        self.remove_folders(&[WORKSPACE, STATE])?;
        Ok(regenerated)
    }

    async fn run_regeneration(&self, line: &str) -> Result<BoxCommandSummary, Failure> {
        let timeout_secs = self.run.record.settings.rules.regenerate_secs();
        let name = format!("regenerate-{}", self.run.dir.next_box("regenerate"));
        let layout = self.run.layout(&name, timeout_secs);
        let mut layout = layout.or_exit(ForkliftExit::Machine)?;
        layout.workspace = self.run.dir.path().join(WORKSPACE);
        layout.harness_state = self.run.dir.path().join(STATE);
        self.run_line(layout, line).await
    }

    /// Checks out the merge so far. Open conflicts have git's markers.
    async fn lay_out_merge(
        &self,
        repo: &SealedRepo,
        resolved: &ResolvedMerge,
    ) -> Result<(), Failure> {
        self.remove_folders(&[WORKSPACE, STATE])?;
        let pins = &self.run.record.pins;
        let parents = [pins.base.clone(), pins.upstream.clone()];
        let identity = host_identity();
        let (when, message) = (self.run.record.started_at, "merge so far\n");
        let wish = CommitDraft {
            tree: &resolved.tree,
            parents: &parents,
            identity: &identity,
            when,
            message,
        };
        let commit = repo.commit_tree(wish).await.or_exit(ForkliftExit::Machine)?;
        let workspace = self.run.dir.path().join(WORKSPACE);
        make_checkout(
            repo,
            &self.run.record.fork.branch,
            &commit,
            &workspace,
            BoxUser::of_caller(),
        )
        .await
        .or_exit(ForkliftExit::Machine)?;
        make_harness_state(&self.run.dir.path().join(STATE), BoxUser::of_caller())
            .or_exit(ForkliftExit::Machine)
    }
}

/// Reads a file from a folder that an untrusted command wrote to.
fn take(workspace: &Path, path: &TreePath) -> RegeneratedFile {
    let Ok(name) = std::str::from_utf8(path.as_bytes()) else {
        return RegeneratedFile::Failed("its name is not UTF-8".to_owned());
    };
    match host::safe_read::read_beneath(workspace, name, FILE_CAP) {
        Ok(Some(file)) if file.truncated => {
            RegeneratedFile::Failed(format!("what it made is larger than {} MiB", FILE_CAP >> 20))
        }
        Ok(Some(file)) => RegeneratedFile::Text(file.bytes),
        Ok(None) => RegeneratedFile::Failed("it removed the file".to_owned()),
        Err(_) => RegeneratedFile::Failed("the result is not a regular file".to_owned()),
    }
}

fn last_words(end: &BoxCommandSummary) -> String {
    let words = end.tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    let words: String = words.unwrap_or("no output").chars().take(WORDS_CAP).collect();
    format!("{}: {words}", end.how())
}
