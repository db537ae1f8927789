//! Generated files: the fork's `regenerate` commands run in a box on the merge so far, and the files with such a rule are
//! taken from there. Other changes of the commands are ignored.

use std::path::Path;

use engine::box_command::BoxCommandSummary;
use engine::run::Product;
use host::git::{CommitDraft, SealedRepo};
use merge::path::TreePath;
use merge::resolver::{RegeneratedFile, RegeneratedFiles, ResolvedMerge};
use model::id::Sha;

use super::integrate::host_identity;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};

/// Largest file that is taken; a larger one is left to the agent.
const FILE_CAP: usize = 64 << 20;

/// Most characters of a command's last line.
const LINE_CAP: usize = 300;

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
        let scratch = self.scratch("regenerate");
        let merge = self.commit_merge(repo, resolved).await?;
        scratch.check_out(repo, &merge).await.map_err(Self::failure)?;
        let mut ended = Vec::new();
        for line in commands {
            let name = format!("regenerate-{}", self.run.dir.next_box("regenerate"));
            let secs = self.run.record.settings.rules.regenerate_secs();
            let layout = scratch.layout(&name, secs).map_err(Self::failure)?;
            ended.push(self.run_line(layout, line).await?);
        }
        let made = |(path, how): &(TreePath, merge::resolver::rule::Regenerate)| {
            let end = ended.iter().find(|end| end.command == how.command);
            let failure = end.filter(|end| !end.passed()).map(last_line);
            let workspace = scratch.folder("workspace");
            (path.clone(), failure.map_or_else(|| take(&workspace, path), RegeneratedFile::Failed))
        };
        let regenerated = resolved.regenerate.iter().map(made).collect();
        scratch.remove().or_machine()?;
        self.run.record.regenerate = ended;
        Ok(regenerated)
    }

    /// Commits the merge so far. Open conflicts have git's markers.
    async fn commit_merge(
        &self,
        repo: &SealedRepo,
        resolved: &ResolvedMerge,
    ) -> Result<Sha, Failure> {
        let pins = &self.run.record.pins;
        let draft = CommitDraft {
            tree: &resolved.tree,
            parents: &[pins.base.clone(), pins.upstream.clone()],
            identity: &host_identity(),
            when: self.run.record.started_at,
            message: "merge so far\n",
        };
        repo.commit_tree(draft).await.or_machine()
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

fn last_line(end: &BoxCommandSummary) -> String {
    let line = end.tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    let line: String = line.unwrap_or("no output").chars().take(LINE_CAP).collect();
    format!("{}: {line}", end.how())
}
