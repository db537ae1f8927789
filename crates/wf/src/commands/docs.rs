//! `wf docs`: contents of a worktree's documentation, and pictures that no page refers to.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use shell::confirm::ConfirmArgs;

use super::App;
use crate::cli::Which;
use crate::disk::{DiskError, DiskResult, ProjectDirs, read_optional};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::rules::docs::{Coverage, DocFile, is_page, judge_coverage};

const MAX_FILES: usize = 50_000;

/// Documentation of a worktree.
#[derive(Debug, Subcommand)]
pub(crate) enum DocsCommand {
    /// Count pages and pictures of a worktree, or of the repository itself; name pictures that no page mentions
    Status(Which),
    /// Remove pictures that no page mentions, in the workstream's worktree; without --yes only name them
    Cleanup {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        confirm: ConfirmArgs,
        /// The older name of --yes
        #[arg(long, hide = true, conflicts_with = "dry_run")]
        apply: bool,
    },
}

pub(crate) async fn cmd_docs(app: &App, command: &DocsCommand) -> Outcome {
    match command {
        DocsCommand::Status(which) => status(app, which),
        DocsCommand::Cleanup { which, confirm, apply } => {
            cleanup(app, which, *apply || confirm.yes).await
        }
    }
}

fn status(app: &App, which: &Which) -> Outcome {
    let dirs = app.dirs()?;
    let checkout = match app.names_workstream(&dirs, which) {
        true => app.workstream(&dirs, which)?.meta.worktree,
        false => dirs.project.repo.clone(),
    };
    let (folder, coverage) = observe(&dirs, &checkout)?;
    app.ui.result("folder", &folder.display().to_string());
    app.ui.result("pages", &coverage.pages.to_string());
    app.ui.result("pictures", &coverage.assets.to_string());
    for path in &coverage.orphaned {
        app.ui.result("orphaned", path);
    }
    app.ui.document(&json!({"folder": folder, "coverage": coverage}));
    Ok(WfExit::Success)
}

async fn cleanup(app: &App, which: &Which, apply: bool) -> Outcome {
    let (dirs, workstream) = app.open(which)?;
    let _run =
        apply.then(|| dirs.try_lock_workstream(&workstream.meta.id, "docs cleanup")).transpose()?;
    let (folder, coverage) = observe(&dirs, &workstream.meta.worktree)?;
    for path in &coverage.orphaned {
        if apply {
            let file = folder.join(path);
            std::fs::remove_file(&file).map_err(DiskError::io("remove", &file))?;
        }
        app.ui.line(&format!("{} {path}", if apply { "Removed" } else { "Would remove" }));
    }
    if coverage.orphaned.is_empty() {
        app.ui.line("Every picture is mentioned by a page.");
    } else if !apply {
        app.ui.status("nothing was deleted; to delete: wf docs cleanup --yes");
    }
    app.ui.document(&json!({"orphaned": coverage.orphaned, "removed": apply}));
    Ok(WfExit::Success)
}

fn observe(dirs: &ProjectDirs, worktree: &Path) -> WfResult<(PathBuf, Coverage)> {
    let (profile, _) = dirs.load_profile()?;
    if !worktree.is_dir() {
        return Err(Failure::usage(format!("the worktree {} is gone", worktree.display())));
    }
    let folder = worktree.join(&profile.docs_path);
    let mut files = Vec::new();
    walk(&folder, &folder, &mut files)?;
    Ok((folder, judge_coverage(&files)))
}

/// Collects files. Links are not followed, because their targets may lie outside the documentation.
fn walk(root: &Path, dir: &Path, files: &mut Vec<DocFile>) -> DiskResult<()> {
    for name in crate::disk::names_in(dir)? {
        let path = dir.join(&name);
        let facts = path.symlink_metadata().map_err(DiskError::io("look at", &path))?;
        if facts.is_dir() {
            walk(root, &path, files)?;
        } else if facts.is_file() && files.len() < MAX_FILES {
            let text = if is_page(&name) { read_optional(&path)? } else { None };
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            files.push(DocFile { path: relative, text });
        }
    }
    Ok(())
}
