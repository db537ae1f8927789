//! `bot-bottle prune`: remove old bottles.

use std::time::Duration;

use clap::Args;
use engine::publish::Publication;
use host::git::UserRepo;
use host::lock::FileLock;
use jiff::{SignedDuration, Timestamp};
use model::exit::BottleExit;
use serde_json::json;
use shell::Ui;
use shell::confirm::{ConfirmArgs, Consent};

use super::with_home;
use crate::exit::{Failure, OrGeneral, Outcome};
use crate::flow::bottle::{Bottle, BottleState, NamedBottle, Record};
use crate::flow::home::Home;
use crate::flow::run_record::{BottleRunRecord, load_run};
use crate::flow::store_upkeep::find_old_folders;
use crate::rules::judge::Verdict;
use crate::rules::prune::{
    BottleFate, OldBottle, OldBottleState, OldFolder, PruneOptions, judge_bottles, parse_age,
};

/// Remove old bottles, with the records of their runs
///
/// It lists the bottles, asks, and removes them; --yes removes them without a question. Without a terminal and without
/// --yes nothing is removed and the status is 2.
///
/// A bottle is removed when its last run ended longer ago than --older-than and it is not among the --keep newest. Never
/// removed: a bottle that is in use, or whose last run is not finished. Not removed without --unpublished: a bottle with work
/// that neither origin nor the checkout has. The chain of signed statements about runs stays.
#[derive(Debug, Args)]
pub(crate) struct PruneBottlesArgs {
    /// Remove only bottles whose last run is older: a number and w, d, h or m
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = parse_age)]
    older_than: SignedDuration,
    /// Keep the newest N bottles, however old they are
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: usize,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Remove bottles with unpublished work as well
    #[arg(long)]
    unpublished: bool,
    /// Remove older folders of bottles that went on on another host instead, as far as the store has what is in them
    #[arg(long, conflicts_with_all = ["older_than", "keep"])]
    old_states: bool,
}

/// Judges every bottle, then removes the old ones.
pub(crate) fn cmd_prune(ui: &Ui, args: &PruneBottlesArgs) -> Outcome {
    if args.old_states {
        return prune_old_states(ui, args);
    }
    with_home(ui, async |context| {
        let mut bottles = Vec::new();
        for named in Bottle::all(context.home)? {
            bottles.push(observe(context.home, named).await);
        }
        bottles.sort_by(|one, other| {
            one.facts.age.cmp(&other.facts.age).then(one.name.cmp(&other.name))
        });
        let facts: Vec<OldBottle> = bottles.iter().map(|bottle| bottle.facts).collect();
        let (older_than, keep) = (args.older_than, args.keep);
        let options = PruneOptions { older_than, keep, takes_unpublished: args.unpublished };
        let fates = judge_bottles(&facts, options);
        let old = fates.iter().filter(|fate| **fate == BottleFate::Remove).count();
        let flags = args.confirm.consent();
        if old > 0 && flags.is_none() && !ui.is_json() {
            report(ui, &bottles, &fates, Consent::DryRun);
        }
        let noun = if old == 1 { "bottle" } else { "bottles" };
        let consent = match old {
            0 => flags.unwrap_or(Consent::Given),
            _ => args.confirm.ask(ui, &format!("remove {old} {noun}?"))?,
        };
        if consent == Consent::Given {
            // Said first: what is removed cannot be shown any more.
            report(ui, &bottles, &fates, consent);
            for (bottle, fate) in bottles.into_iter().zip(&fates) {
                if *fate == BottleFate::Remove {
                    remove(bottle)?;
                }
            }
        } else if flags.is_some() || ui.is_json() {
            report(ui, &bottles, &fates, consent);
        }
        let status = match old {
            0 => BottleExit::Success,
            _ => consent.conclude(ui, BottleExit::Success),
        };
        Ok(status.code())
    })
}

/// Removes the older folders of bottles that went on elsewhere. The store is asked about each.
fn prune_old_states(ui: &Ui, args: &PruneBottlesArgs) -> Outcome {
    let folders = find_old_folders(&Home::from_env()?)?;
    let goes = |folder: &OldFolder| folder.kept_because.is_none() || args.unpublished;
    let old = folders.iter().filter(|folder| goes(folder)).count();
    let noun = if old == 1 { "older folder" } else { "older folders" };
    let consent = match old {
        0 => Consent::Given,
        _ => args.confirm.ask(ui, &format!("remove {old} {noun} of bottles that went on?"))?,
    };
    let word = if consent == Consent::Given { "removed" } else { "would go" };
    for folder in &folders {
        match &folder.kept_because {
            Some(why) if !args.unpublished => ui.result("kept", &format!("{}: {why}", folder.name)),
            _ => ui.result(word, &folder.name),
        }
        if consent == Consent::Given && goes(folder) {
            host::file::remove_tree_safely(&folder.path).or_general()?;
        }
    }
    let names = |gone: bool| -> Vec<&str> {
        folders.iter().filter(|it| goes(it) == gone).map(|it| it.name.as_str()).collect()
    };
    let dry_run = consent != Consent::Given;
    ui.event("prune", &json!({"dry_run": dry_run, "removed": names(true), "kept": names(false)}));
    let status = match old {
        0 => BottleExit::Success,
        _ => consent.conclude(ui, BottleExit::Success),
    };
    Ok(status.code())
}

/// A bottle with its lock, if it could be taken.
struct HeldBottle {
    name: String,
    facts: OldBottle,
    held: Option<(Bottle, Record, FileLock)>,
}

async fn observe(home: &Home, (name, opened): NamedBottle) -> HeldBottle {
    let kept = |state| OldBottle { age: SignedDuration::ZERO, state };
    let Ok((bottle, record)) = opened else {
        return HeldBottle { name, facts: kept(OldBottleState::Unreadable), held: None };
    };
    let Ok(lock) = bottle.take(Duration::ZERO).await else {
        return HeldBottle { name, facts: kept(OldBottleState::Alive), held: None };
    };
    let is_owed = record.runs.iter().any(|run| home.unsigned.join(run.as_str()).exists());
    let facts = match bottle.last_run(&record) {
        Ok(Some(dir)) if is_owed || !dir.is_closed() => kept(OldBottleState::Alive),
        Ok(Some(dir)) => match load_run(&dir) {
            Ok(run) => OldBottle {
                age: age_of(run.finished_at.unwrap_or(run.started_at)),
                state: state_of(&record, &run).await,
            },
            Err(_) => kept(OldBottleState::Unreadable),
        },
        Ok(None) => OldBottle { age: age_of(record.created_at), state: OldBottleState::Done },
        Err(_) => kept(OldBottleState::Unreadable),
    };
    HeldBottle { name, facts, held: Some((bottle, record, lock)) }
}

fn age_of(time: Timestamp) -> SignedDuration {
    host::clock::now().duration_since(time)
}

/// Only what the host knows to be elsewhere counts as published: an agent that did not finish may have left work that it
/// did not commit.
async fn state_of(record: &Record, run: &BottleRunRecord) -> OldBottleState {
    let is_sent = run.publication.as_ref().is_some_and(Publication::is_published);
    let is_whole = match &run.verdict {
        Some(
            Verdict::Publish
            | Verdict::Draft { .. }
            | Verdict::Nothing
            | Verdict::SetupFailed { .. },
        ) => true,
        Some(
            Verdict::Planned
            | Verdict::Unfinished { .. }
            | Verdict::CheckFailed { .. }
            | Verdict::Refused { .. }
            | Verdict::NotRehydrated { .. }
            | Verdict::Infra { .. },
        )
        | None => false,
    };
    let is_elsewhere = match run.tip() {
        // Nothing new in the last run; an earlier one may have left commits.
        None => record.published.is_some() || record.runs.len() == 1,
        Some(_) if is_sent => true,
        Some(tip) => match UserRepo::discover(&record.repo).await {
            Ok(repo) => repo.has_commits(&[tip]).await.unwrap_or(false),
            Err(_) => false,
        },
    };
    let has_all = is_whole && is_elsewhere && run.uncommitted.is_none();
    match (record.state, has_all) {
        (BottleState::Running | BottleState::Frozen, _) if record.forge.is_some() => {
            OldBottleState::Waiting
        }
        (_, false) => OldBottleState::Unpublished,
        (BottleState::Destroyed, true) => OldBottleState::Destroyed,
        (BottleState::Running | BottleState::Frozen, true) => OldBottleState::Done,
    }
}

/// Removes the folder of a bottle. Its record says destroyed from the first moment, so that a removal that is interrupted
/// is finished by the next one.
fn remove(held: HeldBottle) -> Result<(), Failure> {
    let HeldBottle { held: Some((bottle, mut record, lock)), .. } = held else { return Ok(()) };
    record.state = BottleState::Destroyed;
    bottle.save(&record)?;
    for folder in [bottle.workspace(), bottle.harness_state(), bottle.path().to_path_buf()] {
        host::file::remove_tree_safely(&folder).or_general()?;
    }
    drop(lock);
    Ok(())
}

fn report(ui: &Ui, bottles: &[HeldBottle], fates: &[BottleFate], consent: Consent) {
    let all = || bottles.iter().zip(fates.iter().copied());
    if ui.is_json() {
        let removed: Vec<_> = all()
            .filter(|(_, fate)| *fate == BottleFate::Remove)
            .map(|(bottle, _)| &bottle.name)
            .collect();
        let kept: Vec<_> = all()
            .filter(|(_, fate)| *fate != BottleFate::Remove)
            .map(|(it, fate)| json!({"slug": it.name, "kind": fate, "reason": fate.reason()}))
            .collect();
        let dry_run = consent != Consent::Given;
        ui.event("prune", &json!({"dry_run": dry_run, "removed": removed, "kept": kept}));
        return;
    }
    let word = if consent == Consent::Given { "removed" } else { "would go" };
    for (bottle, _) in all().filter(|(_, fate)| *fate == BottleFate::Remove) {
        let lost = bottle.facts.state == OldBottleState::Unpublished;
        let note = if lost { " (with work that is nowhere else)" } else { "" };
        ui.result(word, &format!("{}{note}", bottle.name));
    }
    for (bottle, fate) in all().filter(|(_, fate)| *fate != BottleFate::Remove) {
        ui.result("kept", &format!("{}: {}", bottle.name, fate.reason()));
    }
    if bottles.is_empty() {
        ui.line("There are no bottles. Start one with: bot-bottle start AGENT");
    }
}
