//! `forklift delta`: the inventory of a fork, and its check.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use merge::delta::state::ChangeState;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;

use super::delta_stack::{ExportArgs, RebaseArgs, cmd_export, cmd_rebase};
use super::replay::check_writable;
use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::LookArgs;
use crate::exit::{OrExit, Outcome};
use crate::flow::delta::ForkDelta;
use crate::rules::delta::check::{DropProposal, check_status, is_lost, propose_drops};
use crate::rules::delta::page::render_page;
use crate::rules::delta::report::DeltaReport;
use crate::rules::delta::table::{
    HEAD, assigned_words, conflict_words, line_words, no_commit_words, row,
};
use crate::rules::words::counted;

/// List what the fork has of its own, as named changes: files, lines, age, state at upstream
///
/// Every line in which the fork's main branch differs from upstream is traced to the commit that wrote or removed it, and named:
/// by FORK.toml beside FORK.md (`[[change]]` with name, intent, paths, commits, upstream, retire_when), by the trailer
/// `Fork-Change: NAME` of its commit, by its commit or the pull request that brought it in, or, where no commit is known, by
/// its folder. Fetches as a run does and changes nothing.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct DeltaArgs {
    #[command(subcommand)]
    command: Option<DeltaCommand>,
    #[command(flatten)]
    list: DeltaListArgs,
    /// Write a page to look at in a browser, with a plot of the delta's size over the past merges of upstream
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DeltaListArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Changes that are listed at most; all are counted, and --json has all
    #[arg(long, value_name = "N", default_value_t = 40)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
enum DeltaCommand {
    Check(DeltaCheckArgs),
    Export(ExportArgs),
    Rebase(RebaseArgs),
}

/// Find the changes that upstream has taken, and those that are changed or gone
///
/// A change is superseded if upstream has all of it: a merge of that change alone gives upstream's files, to the byte, with their
/// modes and names. Superseded changes are proposed for dropping: by reverts that were tried in memory and take away nothing else,
/// or else by the next merge. With less than that, such as a commit of the same patch id, or most of the lines, a change is
/// likely superseded: look at it. Whole, changed and gone compare what the change's commits did, their fix-ups with them, with the
/// fork's tree: lines added and removed, modes, names, and files without lines.
///
/// The status is 3 if a declared change is gone, else 11 if one is superseded, else 0. Changes nothing.
#[derive(Debug, Args)]
struct DeltaCheckArgs {
    #[command(flatten)]
    list: DeltaListArgs,
    /// List changes that are whole as well
    #[arg(long)]
    all: bool,
}

pub(crate) fn cmd_delta(ui: &Ui, args: &DeltaArgs, directory: Option<&Path>) -> Outcome {
    match &args.command {
        None => cmd_list(ui, args, directory),
        Some(DeltaCommand::Check(check)) => cmd_check(ui, check, directory),
        Some(DeltaCommand::Export(export)) => cmd_export(ui, export, directory),
        Some(DeltaCommand::Rebase(rebase)) => cmd_rebase(ui, rebase, directory),
    }
}

fn cmd_list(ui: &Ui, args: &DeltaArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    if let Some(file) = &args.html {
        // Minutes of work must not end at a folder that is not there.
        check_writable(file)?;
    }
    let (html, args) = (args.html.as_deref(), &args.list);
    block_on_stoppable(async {
        let fork = ForkDelta::observe(ui, &args.look, directory, &places).await?;
        let now = host::clock::now();
        let report = fork.report(now);
        if let Some(file) = html {
            let sizes = fork.sizes(ui, &places.cache, now).await?;
            let names = fork.names();
            let page = render_page(&report, [&names[0], &names[1]], &sizes);
            host::file::write_atomic(file, page.as_bytes(), 0o644).or_machine()?;
        }
        ui.event("delta", &json!({ "ends": ends(&fork), "delta": report }));
        if !ui.is_json() {
            show_head(ui, &fork, &report);
            show_changes(ui, &report, args.limit);
        }
        Ok(ForkliftExit::Success)
    })
}

fn ends(fork: &ForkDelta) -> serde_json::Value {
    json!({
        "fork": fork.seen.fork.path, "branch": fork.seen.fork.branch,
        "origin": fork.seen.fork.origin, "upstream": fork.seen.fork.upstream,
        "target": fork.seen.target, "target_name": fork.seen.target_name, "pins": fork.seen.pins,
    })
}

fn show_head(ui: &Ui, fork: &ForkDelta, report: &DeltaReport) {
    let branch = &fork.seen.fork.branch;
    ui.result("fork", &format!("{branch} at {}", report.tip.short()));
    ui.result("upstream", &format!("{}, which the fork has taken last", report.parted.short()));
    let commits = format!(
        "{}, {} of them merges; of {} no line is in the tree",
        counted(report.commits, "commit"),
        report.merges,
        report.without_lines
    );
    ui.result("own", &commits);
    let lines = line_words(report.lines);
    ui.result("lines", &format!("{lines} in {}", counted(report.files, "file")));
    ui.result("assigned", &assigned_words(report));
    if let Some(words) = no_commit_words(report) {
        ui.result("no commit", &words);
    }
    if report.past_merges > 0 {
        ui.result("conflicts", &conflict_words(report));
    }
    if report.unread > 0 {
        let files = counted(report.unread, "file");
        ui.warn(&format!(
            "the lines of {files} are not counted: too large, or git cannot read them"
        ));
    }
}

fn show_changes(ui: &Ui, report: &DeltaReport, limit: usize) {
    if report.changes.is_empty() {
        return ui.result("changes", "none: the fork is what it was made from");
    }
    ui.result("changes", &report.changes.len().to_string());
    ui.line("");
    ui.table(&HEAD, report.changes.iter().take(limit).map(row));
    more(ui, report.changes.len().saturating_sub(limit));
}

fn more(ui: &Ui, count: usize) {
    if count > 0 {
        ui.item(&format!("and {} more (--limit)", counted(count, "change")));
    }
}

fn cmd_check(ui: &Ui, args: &DeltaCheckArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        let fork = ForkDelta::observe(ui, &args.list.look, directory, &places).await?;
        let report = fork.checked(ui, host::clock::now()).await?;
        let proposal = propose_drops(&report, &fork.reverts(ui, &report).await?);
        ui.event(
            "delta-check",
            &json!({ "ends": ends(&fork), "delta": report, "proposal": proposal }),
        );
        if !ui.is_json() {
            show_head(ui, &fork, &report);
            show_states(ui, &report, args);
            show_proposal(ui, &fork, &proposal);
        }
        Ok(check_status(&report))
    })
}

fn show_states(ui: &Ui, report: &DeltaReport, args: &DeltaCheckArgs) {
    let count = |state| report.changes.iter().filter(|it| it.state() == Some(state)).count();
    let counts = ChangeState::ALL.map(|state| format!("{} {}", count(state), state.as_str()));
    ui.result("changes", &counts.join(", "));
    let mut shown: Vec<_> = report
        .changes
        .iter()
        .filter(|change| args.all || change.state() != Some(ChangeState::Whole))
        .collect();
    shown.sort_by_key(|change| (!is_lost(change), change.state()));
    if shown.is_empty() {
        return;
    }
    ui.line("");
    let rows = shown.iter().take(args.list.limit).filter_map(|change| {
        let judged = change.judged.as_ref()?;
        let lines = line_words(change.lines);
        Some(vec![judged.state.as_str().to_owned(), change.name.clone(), lines, judged.why.clone()])
    });
    ui.table(&["STATE", "CHANGE", "LINES", "REASON"], rows);
    more(ui, shown.len().saturating_sub(args.list.limit));
}

fn show_proposal(ui: &Ui, fork: &ForkDelta, proposal: &DropProposal) {
    let target = &fork.seen.target_name;
    if !proposal.drops.is_empty() || !proposal.look_at.is_empty() {
        ui.line("");
    }
    if !proposal.drops.is_empty() {
        let count = counted(proposal.drops.len(), "change");
        let (after, remaining) =
            (line_words(proposal.after_reverts), line_words(proposal.remaining));
        let has_reverts = proposal.drops.iter().any(|drop| !drop.reverts.is_empty());
        let words = match has_reverts && proposal.after_reverts != proposal.remaining {
            true => format!(
                "{after} would remain after the reverts, {remaining} after a merge of upstream's {target}"
            ),
            false if has_reverts => format!("{remaining} would remain"),
            false => format!("{remaining} would remain after a merge of upstream's {target}"),
        };
        ui.result("drop", &format!("{count} that upstream has; {words}"));
        for drop in &proposal.drops {
            let how = match drop.reverts.is_empty() {
                true => format!("no revert takes away just this; merge upstream's {target}"),
                false => format!("git revert {}", drop.reverts.join(" ")),
            };
            ui.item(&format!("{} ({}): {how}", drop.name, line_words(drop.lines)));
        }
    }
    if !proposal.look_at.is_empty() {
        let count = counted(proposal.look_at.len(), "change");
        ui.result("look at", &format!("{count} that upstream seems to have, perhaps otherwise"));
    }
}
