//! The changes of a fork as commits, exported as a patch series, or put on another commit of upstream in memory.

use std::path::{Path, PathBuf};

use host::git::{NewEntry, OldValue, TreeEdit};
use jiff::Timestamp;
use merge::delta::change::NamedChange;
use merge::delta::restack::{Restack, restack};
use merge::delta::stack::{Stack, StepText, make_stack};
use merge::resolver::ResolveOptions;
use merge::resolver::decide::TrustThreshold;
use model::exit::ForkliftExit;
use model::id::BranchName;
use shell::Ui;

use super::ForkDelta;
use crate::commands::ForkliftDirs;
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::flow::resolver::{learn_kept, learned_file};
use crate::rules::delta::series::{PatchHeader, SERIES, commit_message, patch_name, render_header};
use crate::rules::words::counted;

/// Result of an export.
pub(crate) struct ExportedSeries {
    /// The files of patches, in order, with the numbers of their changes.
    pub(crate) patches: Vec<(String, usize)>,
    /// Submodules whose changes no patch has.
    pub(crate) submodules: Vec<String>,
    /// Patches with binary files, which quilt cannot apply and git can.
    pub(crate) binary: usize,
}

impl ForkDelta {
    /// Makes the stack of the changes, and sees that it ends with the fork's tree.
    pub(crate) async fn stack(&self, ui: &Ui) -> Result<Stack, Failure> {
        ui.phase("stack", "making a commit of each change");
        let texts: Vec<StepText> =
            self.assignment.changes.iter().map(|change| self.step_text(change)).collect();
        let (repo, identity) = (&self.past.sealed, host_identity());
        let when = Timestamp::UNIX_EPOCH;
        let made = make_stack(
            repo,
            (&self.delta, &self.assignment),
            (&identity, when),
            &texts,
            |done, all| ui.progress("stack", &format!("made {done} of {all} commits")),
        );
        let stack = made.await.or_machine()?;
        let tree = repo.commit_parts(&self.delta.tip).await.or_machine()?.tree;
        if stack.tree != tree {
            let text = "the changes could not be parted: together they do not make the fork's tree";
            return Err(Failure::new(ForkliftExit::Internal, text));
        }
        Ok(stack)
    }

    /// The author of the newest commit of a change, or the host where no commit is known.
    fn step_text(&self, change: &NamedChange) -> StepText {
        let newest = change.commits.first().map(|&place| &self.delta.history.commits[place]);
        let clean = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
        let identity = host_identity();
        let (name, email, seconds) = match newest {
            Some(commit) => {
                (clean(&commit.author.name), clean(&commit.author.email), commit.authored.max(0))
            }
            None => (identity.name, identity.email, 0),
        };
        let author = format!("{name} <{email}> {seconds} +0000");
        StepText { author, message: commit_message(change) }
    }

    /// Writes the series to a folder that is empty or does not exist, and applies what was written to upstream's commit: it must
    /// give the fork's tree.
    pub(crate) async fn export(&self, ui: &Ui, folder: &Path) -> Result<ExportedSeries, Failure> {
        let stack = self.stack(ui).await?;
        let repo = &self.past.sealed;
        host::file::create_dirs(folder).or_machine()?;
        let (mut patches, mut files, mut binary) = (Vec::new(), Vec::new(), 0);
        let mut below = &stack.base;
        for (number, step) in stack.changes.iter().enumerate() {
            ui.progress("export", &format!("wrote {number} of {} patches", stack.changes.len()));
            let patch = repo.whole_patch(below, &step.commit).await.or_machine()?;
            below = &step.commit;
            if patch.is_empty() {
                continue;
            }
            let change = &self.assignment.changes[step.change];
            let has_binary = patch.split(|&byte| byte == b'\n').any(|it| it == b"GIT binary patch");
            binary += usize::from(has_binary);
            let name = patch_name(patches.len() + 1, &change.name);
            let text = [self.header(change).into_bytes(), patch].concat();
            let file = folder.join(&name);
            host::file::write_atomic(&file, &text, 0o644).or_machine()?;
            files.push(file);
            patches.push((name, step.change));
        }
        let list: String = patches.iter().map(|(name, _)| format!("{name}\n")).collect();
        host::file::write_atomic(&folder.join(SERIES), list.as_bytes(), 0o644).or_machine()?;
        self.prove(ui, &stack, &files).await?;
        let submodules = stack.submodules.iter().map(|(path, _)| path.to_string()).collect();
        Ok(ExportedSeries { patches, submodules, binary })
    }

    fn header(&self, change: &NamedChange) -> String {
        let commits = change.commits.iter().map(|&place| &self.delta.history.commits[place]);
        let newest = commits.clone().next();
        let author = newest.map(|it| format!("{} <{}>", it.author.name, it.author.email));
        let ids: Vec<String> = commits.map(|commit| commit.sha.to_string()).collect();
        render_header(PatchHeader {
            change,
            author: author.as_deref(),
            updated: newest.map(|commit| commit.authored),
            commits: &ids,
        })
    }

    /// Applies the files as they are on disk. Submodules are not in patches, so they stay as upstream has them.
    async fn prove(&self, ui: &Ui, stack: &Stack, files: &[PathBuf]) -> Result<(), Failure> {
        ui.phase("prove", "applying the series to upstream's commit");
        let repo = &self.past.sealed;
        let base = repo.commit_parts(&stack.base).await.or_machine()?.tree;
        let files: Result<Vec<PathBuf>, _> = files.iter().map(std::fs::canonicalize).collect();
        let made = repo.apply_patches(&base, &files.or_machine()?).await.or_machine()?;
        let kept = |(path, old): &(merge::path::TreePath, Option<host::git::TreeEntry>)| TreeEdit {
            path: path.as_bytes().to_vec(),
            entry: match old {
                Some(old) => NewEntry::Object { mode: old.mode, id: old.id.clone() },
                None => NewEntry::Nothing,
            },
        };
        let edits: Vec<TreeEdit> = stack.submodules.iter().map(kept).collect();
        let expected = match edits.is_empty() {
            true => stack.tree.clone(),
            false => repo.edit_tree(&stack.tree, &edits).await.or_machine()?,
        };
        if made != expected {
            let text = "the series that was written does not give the fork's tree";
            return Err(Failure::new(ForkliftExit::Internal, text));
        }
        Ok(())
    }

    /// Puts the stack on the target, in memory, with the resolver at the fork's trust threshold.
    pub(crate) async fn rebase(
        &self,
        ui: &Ui,
        places: &ForkliftDirs,
        when: Timestamp,
    ) -> Result<(Stack, Restack), Failure> {
        let stack = self.stack(ui).await?;
        let file = self.seen.fork_file.as_ref();
        let rules = file.map(|file| file.rules.clone()).unwrap_or_default();
        let share = rules.trust.and_then(|share| TrustThreshold::new(share).ok());
        let pins = &self.seen.pins;
        let range = self.past.range(&pins.base, &pins.upstream);
        let kept = learned_file(&places.cache, &self.seen.repo);
        let learned = learn_kept(ui, &self.past.sealed, range, &kept).await?;
        let resolve_rules = rules.resolve_rules();
        let options = ResolveOptions {
            rules: &resolve_rules,
            knowledge: &learned.knowledge,
            ..ResolveOptions::at(share.unwrap_or(TrustThreshold::DEFAULT))
        };
        let count = counted(stack.changes.len(), "change");
        ui.phase("rebase", &format!("applying {count} to {}", self.seen.target_name));
        let identity = host_identity();
        let done = restack(
            &self.past.sealed,
            &stack,
            &pins.upstream,
            (&identity, when),
            options,
            |done| ui.progress("rebase", &format!("applied {done} of {count}")),
        );
        Ok((stack.clone(), done.await.or_machine()?))
    }

    /// Leaves the result of a rebase as a branch of the user's repository, which does not exist yet. The checkout stays as it is.
    pub(crate) async fn leave_branch(
        &self,
        branch: &BranchName,
        done: &Restack,
    ) -> Result<(), Failure> {
        let repo = &self.seen.repo;
        let onto = std::slice::from_ref(&self.seen.pins.upstream);
        if done.tip != self.seen.pins.upstream {
            let packs = repo.objects_dir().join("pack");
            std::fs::create_dir_all(&packs).or_machine()?;
            let tip = std::slice::from_ref(&done.tip);
            self.past.sealed.pack_into(&packs, tip, onto).await.or_machine()?;
        }
        repo.move_branch(branch, &done.tip, OldValue::Missing).await.or_machine()
    }
}
