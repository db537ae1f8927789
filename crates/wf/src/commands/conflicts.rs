//! `wf conflicts`: overlaps of a workstream with others, and forecasts of the merges.

use clap::Args;
use host::git::WorktreeRepo;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::touched::TouchedLists;
use crate::disk::{Workstream, is_active};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::flow::forecast::{BranchForecast, forecast};
use crate::flow::product::open_product;
use crate::flow::refresh::Tips;
use crate::rules::conflict::{Overlap, WorkstreamPaths, find_overlaps};

const SHOWN: usize = 10;
/// Limit on trial merges; those with the most files in common come first.
const TRIED: usize = 20;

/// Show where a workstream overlaps with others, and what merging would bring
#[derive(Debug, Args)]
pub(crate) struct ConflictsArgs {
    #[command(flatten)]
    which: Which,
    /// End with status 1 if there is any overlap
    #[arg(long)]
    exit_code: bool,
}

pub(crate) async fn cmd_conflicts(app: &App, args: &ConflictsArgs) -> Outcome {
    let (dirs, target) = app.open(&args.which)?;
    let (all, faults) = dirs.load_workstreams()?;
    let others: Vec<&Workstream> = all.iter().filter(|ws| is_active(ws)).collect();
    let touched = TouchedLists::load(&others)?;
    let own = target.touched()?;
    let paths = WorkstreamPaths {
        id: target.meta.id.as_str(),
        touched: &own,
        expected: &target.meta.expected_paths,
    };
    let overlaps = find_overlaps(&paths, &touched.paths(&others));
    let product = open_product(&dirs).await?;
    let tips = Tips::observe_branches(&product).await?;
    warn_stale(
        app,
        &tips,
        std::iter::once(&target)
            .chain(others.iter().copied().filter(|it| it.meta.id != target.meta.id)),
    );
    let base = base_forecast(&product, &tips, &target).await?;
    let merges = try_merges(&product, &tips, &target, &others, &overlaps).await?;
    show(app, &target, &overlaps, &base, &merges);
    app.warn_faults(&faults);
    let trouble = !overlaps.is_empty() || matches!(base, Some(BranchForecast::Conflicts { .. }));
    Ok(if args.exit_code && trouble { WfExit::General } else { WfExit::Success })
}

fn warn_stale<'a>(app: &App, tips: &Tips, all: impl Iterator<Item = &'a Workstream>) {
    let is_stale = |ws: &&Workstream| {
        tips.branch_tip(ws).is_some_and(|tip| ws.meta.touched_head.as_ref() != Some(tip))
    };
    let stale: Vec<&str> = all.filter(is_stale).map(|ws| ws.meta.id.as_str()).take(SHOWN).collect();
    if !stale.is_empty() {
        app.ui.warn(&format!(
            "the lists of {} are older than their branches; run: wf refresh",
            stale.join(", ")
        ));
    }
}

async fn base_forecast(
    product: &WorktreeRepo,
    tips: &Tips,
    target: &Workstream,
) -> WfResult<Option<BranchForecast>> {
    match (tips.base_tip(target), tips.branch_tip(target)) {
        (Some(base), Some(tip)) if *base != target.meta.base_sha => {
            forecast(product, tip, base).await.map(Some)
        }
        (Some(_), Some(_)) => Ok(Some(BranchForecast::Clean)),
        _ => Ok(None),
    }
}

/// Tries a merge with each workstream that touched the same files: without a file in common there is nothing to try.
async fn try_merges(
    product: &WorktreeRepo,
    tips: &Tips,
    target: &Workstream,
    others: &[&Workstream],
    overlaps: &[Overlap],
) -> WfResult<Vec<(String, BranchForecast)>> {
    let mut worth: Vec<&Overlap> =
        overlaps.iter().filter(|overlap| !overlap.actual.is_empty()).collect();
    worth.sort_by_key(|overlap| std::cmp::Reverse(overlap.actual.len()));
    let mut merges = Vec::new();
    for overlap in worth.into_iter().take(TRIED) {
        let other = others.iter().find(|ws| ws.meta.id.as_str() == overlap.workstream);
        let tips =
            other.and_then(|other| Some((tips.branch_tip(target)?, tips.branch_tip(other)?)));
        if let Some((ours, theirs)) = tips {
            merges.push((overlap.workstream.clone(), forecast(product, ours, theirs).await?));
        }
    }
    Ok(merges)
}

fn show(
    app: &App,
    target: &Workstream,
    overlaps: &[Overlap],
    base: &Option<BranchForecast>,
    merges: &[(String, BranchForecast)],
) {
    let id = &target.meta.id;
    let merge_with =
        |other: &str| merges.iter().find(|(name, _)| name == other).map(|(_, forecast)| forecast);
    if app.ui.is_json() {
        let rows: Vec<_> = overlaps
            .iter()
            .map(|overlap| json!({"overlap": overlap, "forecast": merge_with(&overlap.workstream)}))
            .collect();
        app.ui.document(&json!({"workstream": id, "base": base, "conflicts": rows}));
        return;
    }
    if overlaps.is_empty() {
        app.ui.line(&format!("No conflicts detected for {id}"));
    } else {
        app.ui.line(&format!("Conflicts for {id}:"));
    }
    for overlap in overlaps {
        app.ui.page(&render_overlap(overlap));
        if let Some(forecast) = merge_with(&overlap.workstream) {
            app.ui.line(&format!("    Forecast: {}", forecast.words()));
        }
    }
    if let Some(base) = base {
        app.ui.line(&format!("Against {}: {}", target.meta.base_branch, base.words()));
    }
}

fn render_overlap(overlap: &Overlap) -> String {
    let mut page = format!("\n  vs {}:\n", overlap.workstream);
    if !overlap.actual.is_empty() {
        page.push_str(&format!("    Actual overlap ({} files):\n", overlap.actual.len()));
        for file in overlap.actual.iter().take(SHOWN) {
            page.push_str(&format!("      - {file}\n"));
        }
        if overlap.actual.len() > SHOWN {
            page.push_str(&format!("      ... and {} more\n", overlap.actual.len() - SHOWN));
        }
    }
    for (words, paths) in
        [("Predicted overlap", &overlap.predicted), ("Predicted by the other", &overlap.reverse)]
    {
        if !paths.is_empty() {
            page.push_str(&format!("    {words}:\n"));
            for (prefix, files) in paths {
                page.push_str(&format!("      {prefix}: {} files\n", files.len()));
            }
        }
    }
    for (one, other) in &overlap.expected {
        page.push_str(&format!("    Both expect: {one} and {other}\n"));
    }
    page
}
