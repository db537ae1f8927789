//! `forklift replay`: replays the fork's own merges with the resolver.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::{self, Learned, MergesRead, ReplayedMerge};
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;

use super::history::{ForkHistory, HistoryArgs};
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::progress::Counter;
use crate::rules::replay_page::{ReplaySummary, render_html, render_text};

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
        host::file::write_atomic(file, b"", 0o644).map_err(|error| {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let why = match folder.filter(|folder| !folder.is_dir()) {
                Some(folder) => format!("there is no folder {}", folder.display()),
                None => model::error_chain(&error),
            };
            Failure::usage(format!("cannot write {}: {why}", file.display()))
                .with_remedy("name another file with --html FILE")
        })?;
    }
    let (learned, tried) = block_on(replay(ui, args, directory, &places))?;
    let shown = tried.len().saturating_sub(args.last.map_or(usize::MAX, NonZeroUsize::get));
    let Learned { skipped, one_sided, .. } = learned;
    let replayed = ReplaySummary::new(&tried[shown..], args.trust.share(), skipped, one_sided);
    if let Some(file) = &args.html {
        host::file::write_atomic(file, render_html(&replayed).as_bytes(), 0o644).or_machine()?;
    }
    if ui.is_json() {
        ui.document(&json!({"summary": replayed, "merges": &tried[shown..]}));
    } else {
        ui.page(&render_text(&replayed));
    }
    Ok(ForkliftExit::Success)
}

async fn replay(
    ui: &Ui,
    args: &ReplayArgs,
    directory: Option<&Path>,
    places: &ForkliftDirs,
) -> Result<(Learned, Vec<ReplayedMerge>), Failure> {
    let fork = ForkHistory::find(&args.fork, directory).await?;
    let ui = ui.without_events();
    ui.phase("replay", "replaying the fork's merges");
    let counter = Counter::new(&ui, "replaying");
    let watch = |merges: MergesRead| counter.show(merges.read, merges.of, "merges");
    let replayed = history::replay(&fork.past.sealed, fork.range(), args.trust, watch).await;
    let (learned, tried) = replayed.or_machine()?;
    // The next run starts from this.
    fork.keep(&places.cache, &learned)?;
    Ok((learned, tried))
}
