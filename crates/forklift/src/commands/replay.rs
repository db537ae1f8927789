//! `forklift replay`: replays the fork's own merges with the resolver.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use host::git::CommitLine;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::Learned;
use merge::resolver::replayed::ReplayedMerge;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;

use super::history::{ForkHistory, HistoryArgs};
use super::{ForkliftDirs, block_on_stoppable};
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::replay_page::render_html;
use crate::rules::replay_summary::{MergeLine, ReplayReport, ReplayRow, render_text};

/// Repeat the merges of this fork, and show which needed no person
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    fork: HistoryArgs,
    /// Report on the newest N merges; older ones are only learned from
    #[arg(long, value_name = "N")]
    last: Option<NonZeroUsize>,
    /// How sure an answer must be to count, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = TrustThreshold::parse)]
    trust: TrustThreshold,
    /// Write a page to look at in a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn cmd_replay(ui: &Ui, args: &ReplayArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    if let Some(file) = &args.html {
        // Minutes of work must not end at a folder that is not there.
        check_writable(file)?;
    }
    let report = block_on_stoppable(replay(ui, args, directory, &places))?;
    if let Some(file) = &args.html {
        host::file::write_atomic(file, render_html(&report).as_bytes(), 0o644).or_machine()?;
    }
    if ui.is_json() {
        ui.document(&json!({
            "fork": report.fork,
            "upstream": report.upstream,
            "summary": report.summary,
            "merges": report.merges,
        }));
    } else {
        ui.page(&render_text(&report.summary));
    }
    Ok(ForkliftExit::Success)
}

/// Fails if no file can be made in the folder of this one.
pub(super) fn check_writable(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let why = match tempfile::NamedTempFile::new_in(folder) {
        Ok(_) if file.is_dir() => "it is a folder".to_owned(),
        Ok(_) => return Ok(()),
        Err(_) if !folder.is_dir() => format!("there is no folder {}", folder.display()),
        Err(error) => model::error_chain(&error),
    };
    Err(Failure::usage(format!("cannot write {}: {why}", file.display()))
        .with_remedy("name another file with --html FILE"))
}

async fn replay(
    ui: &Ui,
    args: &ReplayArgs,
    directory: Option<&Path>,
    places: &ForkliftDirs,
) -> Result<ReplayReport, Failure> {
    let fork = ForkHistory::find(&args.fork, directory, places).await?;
    let ui = ui.without_events();
    ui.phase("replay", "replaying the fork's merges");
    let Learned { replayed, skipped, one_sided, .. } = fork.learned(&ui, &places.cache).await?;
    let shown = replayed.len().saturating_sub(args.last.map_or(usize::MAX, NonZeroUsize::get));
    let ids: Vec<Sha> = replayed[shown..].iter().map(|one| one.merge.clone()).collect();
    let lines = fork.past.sealed.commit_lines(&ids).await.or_machine()?;
    let line = |CommitLine { sha, seconds, subject }| (sha, (seconds, subject));
    let lines: BTreeMap<Sha, (i64, String)> = lines.into_iter().map(line).collect();
    let row = |one: &ReplayedMerge| {
        let line = lines.get(&one.merge);
        let line = line.map(|(seconds, subject)| MergeLine { seconds: *seconds, subject });
        ReplayRow::new(one, line, args.trust)
    };
    let merges = replayed[shown..].iter().map(row).collect();
    Ok(ReplayReport::new(fork.names, merges, args.trust, skipped, one_sided))
}
