//! Rehydration: a box brings new commits of origin into the workspace. The host packs the commits; it never writes where
//! an agent has been, and the agent gets refs and no remote.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use engine::box_command::BoxCommand;
use engine::run::Product;
use guest::BOX_DIR;
use model::id::Sha;

use super::bottle::{BaseSource, SignedTwin};
use super::run::BottleRun;
use crate::exit::{Failure, OrGeneral};

const BRING_SECS: u64 = 300;

impl BottleRun<'_> {
    /// Brings in the commits that the workspace lacks. Returns git's message for a workspace that the agent broke, which
    /// a person has to repair.
    pub(super) async fn bring_news(&self) -> Result<Option<String>, Failure> {
        let pins = &self.run.record.pins;
        if !pins.base_is_new && !pins.branch_is_new && pins.twin.is_none() {
            return Ok(None);
        }
        self.context.ui.phase("rehydrate", "bringing in what is new since");
        let name = format!("bring-{}", self.run.dir.next_box("bring"));
        let layout = self.run.layout(&name, BRING_SECS).map_err(Self::failure)?;
        let folder = layout.box_dir.join("guest/news");
        host::file::create_dirs(&folder).or_general()?;
        let wants = [pins.base.clone(), pins.start.clone()];
        let haves = self.haves().await?;
        self.source.repo.pack_into(&folder, &wants, &haves).await.or_general()?;
        make_readable(&folder)?;
        let command = BoxCommand::shell(layout, &self.bring_line());
        let summary = self.run.run_command(command, "bring").await.map_err(Self::failure)?;
        let failed = !summary.passed();
        Ok(failed.then(|| format!("{}: {}", summary.ended.class(), summary.last_line())))
    }

    /// Commits that the workspace has for certain, if the user's repository still has them.
    async fn haves(&self) -> Result<Vec<Sha>, Failure> {
        let mut haves = Vec::new();
        for sha in [&self.record.base, &self.record.known_base] {
            let found = self.source.repo.resolve_commit(sha.as_str()).await.or_general()?;
            haves.extend(found.filter(|found| !haves.contains(found)));
        }
        Ok(haves)
    }

    /// Checked branch names hold no quotes.
    fn bring_line(&self) -> String {
        let pins = &self.run.record.pins;
        let mut line = format!(
            "set -e\ncd /workspace\nfor pack in {BOX_DIR}/news/*.pack; do\n  \
             [ -e \"$pack\" ] || continue\n  git index-pack --stdin < \"$pack\" > /dev/null\ndone\n"
        );
        let point = |name: &str, sha: &Sha| format!("git update-ref 'refs/remotes/{name}' {sha}\n");
        line += &point(&pins.base_source.name_of(&pins.base_branch), &pins.base);
        if let Some(twin) = &pins.twin {
            line += &take_twin(pins.branch.as_str(), twin);
        }
        if pins.branch_is_new {
            line += &point(&BaseSource::Origin.name_of(&pins.branch), &pins.start);
        }
        line
    }
}

/// Puts the signed twin in the place of the commit that it was made of: their trees are the same, so no file changes. Commits
/// that were made since are put on top of it; where git cannot, the workspace stays as it is.
fn take_twin(branch: &str, SignedTwin { from, to }: &SignedTwin) -> String {
    format!(
        "tip=$(git rev-parse -q --verify 'refs/heads/{branch}' || true)\n\
         if [ \"$tip\" = {from} ]; then\n  git update-ref 'refs/heads/{branch}' {to} {from}\n\
         elif [ -n \"$tip\" ] && git merge-base --is-ancestor {from} \"$tip\"; then\n  \
         git -c core.hooksPath=/dev/null rebase --quiet --rebase-merges --autostash --onto {to} {from} '{branch}' || \
         git rebase --abort || true\nfi\n"
    )
}

/// Makes the packs readable for the box's user: git creates them for their owner alone.
fn make_readable(folder: &std::path::Path) -> Result<(), Failure> {
    let parent = folder.parent().unwrap_or(folder);
    for path in [parent, folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).or_general()?;
    }
    for entry in fs::read_dir(folder).or_general()?.flatten() {
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o644)).or_general()?;
    }
    Ok(())
}
