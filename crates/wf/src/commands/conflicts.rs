//! `wf conflicts`: overlaps of a workstream with others, and forecasts of the merges.

use clap::Args;
use model::id::Sha;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::touched::TouchedLists;
use crate::disk::{Workstream, is_active};
use crate::exit::{Outcome, WfExit};
use crate::flow::forecast::forecast_all;
use crate::flow::product::open_product;
use crate::flow::refresh::Tips;
use crate::rules::branch_forecast::BranchForecast;
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
    let tried = choose_merges(&tips, &target, &others, &overlaps);
    let base_pair = base_pair(&tips, &target);
    let moved = base_pair.as_ref().filter(|(base, _)| *base != target.meta.base_sha);
    let moved = moved.map(|(base, tip)| (tip.clone(), base.clone()));
    let pairs: Vec<(Sha, Sha)> =
        tried.iter().map(|(_, pair)| pair.clone()).chain(moved.clone()).collect();
    let mut forecasts = forecast_all(&dirs, &product, &pairs).await?;
    let base = match (base_pair, moved) {
        (None, _) => None,
        (Some(_), None) => Some(BranchForecast::Clean),
        (Some(_), Some(_)) => forecasts.pop(),
    };
    let names = tried.into_iter().map(|(name, _)| name);
    let merges: Vec<(String, BranchForecast)> = names.zip(forecasts).collect();
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

/// The tips of the base branch and of the workstream's own.
fn base_pair(tips: &Tips, target: &Workstream) -> Option<(Sha, Sha)> {
    Some((tips.base_tip(target)?.clone(), tips.branch_tip(target)?.clone()))
}

/// Chooses the merges that are worth trying: without a file in common there is nothing to try.
fn choose_merges(
    tips: &Tips,
    target: &Workstream,
    others: &[&Workstream],
    overlaps: &[Overlap],
) -> Vec<(String, (Sha, Sha))> {
    let mut worth: Vec<&Overlap> =
        overlaps.iter().filter(|overlap| !overlap.actual.is_empty()).collect();
    worth.sort_by_key(|overlap| std::cmp::Reverse(overlap.actual.len()));
    let pair = |overlap: &Overlap| {
        let other = others.iter().find(|ws| ws.meta.id.as_str() == overlap.workstream)?;
        let pair = (tips.branch_tip(target)?.clone(), tips.branch_tip(other)?.clone());
        Some((overlap.workstream.clone(), pair))
    };
    worth.into_iter().take(TRIED).filter_map(pair).collect()
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
