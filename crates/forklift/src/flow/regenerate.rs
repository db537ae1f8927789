//! Files that a program makes: the fork's own commands run in a box, on the merge as far as it is settled, and the files
//! that the fork ruled about are taken from there. Nothing else that the commands leave is looked at.

use std::path::Path;

use engine::box_command::BoxCommandSummary;
use engine::workspace::{make_checkout, make_harness_state};
use host::git::{CommitDraft, SealedRepo};
use merge::ladder::{Climb, Made, Remade};
use merge::path::TreePath;
use model::exit::ForkliftExit;
use sandbox::spec::BoxUser;

use super::integrate::host_identity;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};

/// Where the commands run; both are removed afterwards.
const WORKSPACE: &str = "regenerate-workspace";
const STATE: &str = "regenerate-state";

/// A larger file is left to the agent.
const FILE_CAP: usize = 64 << 20;

/// Of a command's last words.
const WORDS_CAP: usize = 300;

impl ForkRun<'_> {
    /// Runs each command once, in the order of the files, one after the other in the same copy: a command may need what
    /// another one made.
    pub(super) async fn regenerate(
        &mut self,
        repo: &SealedRepo,
        climb: &Climb,
    ) -> Result<Remade, Failure> {
        let mut commands: Vec<&str> = Vec::new();
        for (_, how) in &climb.regenerate {
            if !commands.contains(&how.command.as_str()) {
                commands.push(&how.command);
            }
        }
        if commands.is_empty() {
            return Ok(Remade::new());
        }
        self.ui.phase("regenerate", "running the commands that make files anew in a box");
        self.lay_out_merge(repo, climb).await?;
        let mut ended = Vec::new();
        for line in commands {
            ended.push(self.run_regeneration(line).await?);
        }
        let made = |(path, how): &(TreePath, merge::ladder::rule::Regenerate)| {
            let end = ended.iter().find(|end| end.command == how.command);
            let failure = end.filter(|end| !end.passed()).map(last_words);
            let workspace = self.run.dir.path().join(WORKSPACE);
            (path.clone(), failure.map_or_else(|| take(&workspace, path), Made::Failed))
        };
        let remade = climb.regenerate.iter().map(made).collect();
        self.run.record.regenerate = ended;
        self.remove_folders(&[WORKSPACE, STATE])?;
        Ok(remade)
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

    /// The merge as far as it is settled, as a checkout where nobody has been; what is open has git's markers in it.
    async fn lay_out_merge(&self, repo: &SealedRepo, climb: &Climb) -> Result<(), Failure> {
        self.remove_folders(&[WORKSPACE, STATE])?;
        let pins = &self.run.record.pins;
        let parents = [pins.base.clone(), pins.upstream.clone()];
        let identity = host_identity();
        let (when, message) = (self.run.record.started_at, "as far as it is settled\n");
        let wish = CommitDraft {
            tree: &climb.tree,
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

/// A file of a folder in which somebody else's program was at work.
fn take(workspace: &Path, path: &TreePath) -> Made {
    let Ok(name) = std::str::from_utf8(path.as_bytes()) else {
        return Made::Failed("its name is no text".to_owned());
    };
    match host::safe_read::read_beneath(workspace, name, FILE_CAP) {
        Ok(Some(file)) if file.truncated => {
            Made::Failed(format!("what it made is larger than {} MiB", FILE_CAP >> 20))
        }
        Ok(Some(file)) => Made::Text(file.bytes),
        Ok(None) => Made::Failed("it took the file away".to_owned()),
        Err(_) => Made::Failed("what it left there is no regular file".to_owned()),
    }
}

fn last_words(end: &BoxCommandSummary) -> String {
    let words = end.tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    let words: String = words.unwrap_or("it said nothing").chars().take(WORDS_CAP).collect();
    format!("{}: {words}", end.how())
}
