//! `forklift first`: finds the first commit of upstream that conflicts with the fork.

use std::path::Path;

use clap::Args;
use host::git::MergedTree;
use merge::clean::conflicts_of;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;

use super::changelog::show_conflicts;
use super::first_check::{CheckArgs, first_by_check};
use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::preview::Preview;
use crate::rules::search::{Search, SearchMethod};
use crate::rules::words::counted;

/// Find the first commit of upstream's that conflicts with the fork, or that breaks its check
///
/// Commits are tried along first parents, oldest first, by merging each into the fork in memory. Nothing conflicts if
/// the target itself does not.
#[derive(Debug, Args)]
pub(crate) struct FirstArgs {
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    check: CheckArgs,
}

/// Finds the commit. The target is tried first: a conflict that upstream has removed since then does not matter.
pub(crate) fn cmd_first(ui: &Ui, args: &FirstArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        let preview = Preview::make(ui, &args.look, directory, &places).await?;
        let pins = &preview.seen.pins;
        if args.check.is_wanted() {
            return first_by_check(ui, &args.check, &preview, &places).await;
        }
        let parted = preview.repo.merge_base(&pins.base, &pins.upstream).await;
        parted.or_machine()?.ok_or_else(|| preview.unrelated())?;
        let line = preview.repo.first_parents(&pins.upstream, &pins.base).await.or_machine()?;
        let last = merge(&preview, &pins.upstream).await?;
        match Search::new(line.len()) {
            Some(search) if !last.is_clean => report(ui, &preview, &line, search, last).await?,
            _ => {
                let fields =
                    json!({"commit": null, "target": preview.seen.target_name, "of": line.len()});
                ui.event("first", &fields);
                let words = format!("nothing conflicts, up to {}", preview.target());
                ui.result("first", &words);
            }
        }
        Ok(ForkliftExit::Success)
    })
}

async fn report(
    ui: &Ui,
    preview: &Preview,
    line: &[Sha],
    mut search: Search,
    mut merged: MergedTree,
) -> Result<(), Failure> {
    let (mut tried, count) = (1_usize, line.len());
    ui.phase("search", &format!("trying {} of upstream's", counted(count, "commit")));
    while let Some(trial) = search.next_trial() {
        let attempt = merge(preview, &line[trial]).await?;
        search.learn(trial, !attempt.is_clean);
        if !attempt.is_clean {
            merged = attempt;
        }
        tried += 1;
        ui.progress("search", &format!("tried {tried}, at commit {} of {count}", trial + 1));
    }
    let (at, conflicts) = (search.found(), conflicts_of(&merged));
    let facts = preview.repo.new_commits(&line[at], &[], 1).await.or_machine()?.into_iter().next();
    let facts = facts.ok_or_else(|| {
        Failure::new(ForkliftExit::Machine, format!("git knows nothing of commit {}", line[at]))
    })?;
    let exact = search.method() == SearchMethod::OneByOne;
    ui.event(
        "first",
        &json!({
            "commit": facts.sha, "subject": facts.subject, "author": facts.author.name,
            "position": at + 1, "of": count, "tried": tried, "exact": exact,
            "target": preview.seen.target_name, "conflicts": conflicts,
        }),
    );
    ui.result("first", &format!("{} {} ({})", facts.sha.short(), facts.subject, facts.author.name));
    ui.result("place", &format!("{} of {count}, up to {}", at + 1, preview.target()));
    ui.result("conflicts", &conflicts.len().to_string());
    show_conflicts(ui, &conflicts);
    if !exact {
        ui.note("found by bisection: an earlier one may conflict if upstream reverted it");
    }
    Ok(())
}

async fn merge(preview: &Preview, commit: &Sha) -> Result<MergedTree, Failure> {
    let base = &preview.seen.pins.base;
    preview.repo.merge_tree(base, commit).await.or_machine()
}
