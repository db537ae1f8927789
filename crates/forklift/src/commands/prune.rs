//! `forklift prune`: remove old runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use engine::launch::has_running_box;
use engine::publish::Publication;
use host::lock::FileLock;
use jiff::SignedDuration;
use model::exit::ForkliftExit;
use run_store::run_dir::{self, BOXES, RunDir};
use serde_json::json;
use shell::Ui;
use shell::confirm::{ConfirmArgs, Consent};

use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::fork_lock::try_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::progress::Counter;
use crate::flow::record::ForkRunRecord;
use crate::rules::judge::Verdict;
use crate::rules::prune::{
    Fate, OldRun, PruneOptions, RunState, Unpublished, judge_runs, parse_age,
};
use crate::rules::publish_mode::PublishMode;
use crate::rules::words::counted;

/// Extension of a run that is being removed: an interrupted removal is not taken for a run.
const REMOVING: &str = "removing";

/// Most entries of a run that are counted for its size.
const MOST_COUNTED: u64 = 5_000_000;

/// Remove old runs
///
/// It lists the runs, asks, and removes them; --yes removes them without a question. Without a terminal and without --yes
/// nothing is removed and the status is 2.
///
/// A run is removed when it is both older than --older-than and not among the --keep newest runs of its fork. To go by
/// age alone give --keep 0; to go by number alone give --older-than 0d. The newest published run of a fork stays unless --keep
/// is 0, because the next run renews its branch. Never removed: a run that is not finished, one
/// whose box still runs, and the runs of a fork that a forklift is at work on. Not removed without --unpublished: a run
/// with work that is published nowhere, which is the workspace of an agent that was stuck, out of time, refused or
/// failed, or a verified commit that could not be published.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove only runs that are older: a number and w, d, h or m
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = parse_age)]
    older_than: SignedDuration,
    /// Keep the newest N runs of every fork, however old they are
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: usize,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Remove runs with unpublished work as well
    #[arg(long)]
    unpublished: bool,
}

/// Judges every run, then removes the old ones.
pub(crate) fn cmd_prune(ui: &Ui, args: &PruneArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    block_on(async {
        let dirs = run_dir::list(&places.runs).or_machine()?;
        let (fates, locks) = judge(args, &dirs, &places.cache).await?;
        let flags = args.confirm.consent();
        // A question waits for a person, and a forklift must not wait for the answer.
        let locks = flags.is_some().then_some(locks);
        let mut pruned: Vec<PrunedRun<'_>> = measure(&dirs, &fates)?;
        let old = pruned.iter().filter(|run| run.fate == Fate::Remove).count();
        if old == 0 {
            let consent = flags.unwrap_or(Consent::Given);
            if consent == Consent::Given {
                finish_removals(&places.runs)?;
            }
            report(ui, &pruned, consent);
            return Ok(ForkliftExit::Success);
        }
        if flags.is_none() && !ui.is_json() {
            report(ui, &pruned, Consent::DryRun);
        }
        let consent = args.confirm.ask(ui, &format!("remove {}?", counted(old, "run")))?;
        if consent == Consent::Given {
            let _locks = match locks {
                Some(locks) => locks,
                None => judge_again(args, &dirs, &places.cache, &mut pruned).await?,
            };
            finish_removals(&places.runs)?;
            remove(ui, &places.runs, &pruned)?;
        }
        if flags.is_some() || ui.is_json() || consent == Consent::Given {
            report(ui, &pruned, consent);
        }
        Ok(consent.conclude(ui, ForkliftExit::Success))
    })
}

/// Decides about every run, with the locks of their forks.
async fn judge<'a>(
    args: &PruneArgs,
    dirs: &[RunDir],
    cache: &'a Path,
) -> Result<(Vec<Fate>, ForkLocks<'a>), Failure> {
    let mut locks = ForkLocks { cache, taken: BTreeMap::new() };
    let mut runs = Vec::new();
    for dir in dirs {
        runs.push(observe_run(dir, &mut locks).await?);
    }
    let unpublished = if args.unpublished { Unpublished::Remove } else { Unpublished::Keep };
    let options = PruneOptions { older_than: args.older_than, keep: args.keep, unpublished };
    Ok((judge_runs(&runs, options), locks))
}

/// Decides again about the runs that the person saw: a run that was continued meanwhile stays.
async fn judge_again<'a>(
    args: &PruneArgs,
    dirs: &[RunDir],
    cache: &'a Path,
    pruned: &mut [PrunedRun<'_>],
) -> Result<ForkLocks<'a>, Failure> {
    let (fates, locks) = judge(args, dirs, cache).await?;
    for (run, fate) in pruned.iter_mut().zip(fates) {
        if run.fate == Fate::Remove {
            run.fate = fate;
        }
    }
    Ok(locks)
}

/// A run, its fate, and its size if it is old.
struct PrunedRun<'a> {
    dir: &'a RunDir,
    fate: Fate,
    bytes: u64,
}

/// The locks of the forks whose runs are observed, held to the end: no forklift continues a run that is being removed.
struct ForkLocks<'a> {
    cache: &'a Path,
    /// `None` for a fork that another forklift works on; a fork that is gone needs no lock.
    taken: BTreeMap<PathBuf, Option<Vec<FileLock>>>,
}

impl ForkLocks<'_> {
    async fn is_busy(&mut self, fork: &Path) -> Result<bool, Failure> {
        if !self.taken.contains_key(fork) {
            let lock = match find_repo(fork).await {
                Ok(repo) => try_fork_lock(&repo, self.cache)?.map(|lock| vec![lock]),
                Err(_) => Some(Vec::new()),
            };
            self.taken.insert(fork.to_path_buf(), lock);
        }
        Ok(matches!(self.taken.get(fork), Some(None)))
    }
}

async fn observe_run(dir: &RunDir, locks: &mut ForkLocks<'_>) -> Result<OldRun, Failure> {
    let run = dir.id().clone();
    let Ok(meta) = ForkRunRecord::load(dir) else {
        let state = if has_running_box(&dir.path().join(BOXES)).or_machine()? {
            RunState::Alive
        } else {
            RunState::Unreadable
        };
        let age = jiff::SignedDuration::ZERO;
        return Ok(OldRun { run, fork: None, age, state, resumed_from: None });
    };
    let state = if has_running_box(&dir.path().join(BOXES)).or_machine()?
        || locks.is_busy(&meta.fork.path).await?
    {
        RunState::Alive
    } else if dir.is_closed() {
        state_of(dir, &meta)
    } else {
        RunState::Unfinished
    };
    Ok(OldRun {
        run,
        fork: Some(meta.fork.path.display().to_string()),
        age: host::clock::now().duration_since(meta.started_at),
        state,
        resumed_from: meta.product.resumed_from.or(meta.product.publishes),
    })
}

fn state_of(dir: &RunDir, meta: &ForkRunRecord) -> RunState {
    let sent = meta.publication.as_ref();
    match &meta.verdict {
        Some(Verdict::Publish) if sent.is_some_and(Publication::is_published) => {
            RunState::Published
        }
        // What a dry run made was never meant to be kept.
        Some(Verdict::Publish) if meta.settings.publish_mode == PublishMode::DryRun => {
            RunState::Empty
        }
        Some(Verdict::Publish) => RunState::UnpublishedCommit,
        None | Some(Verdict::UpToDate) => RunState::Empty,
        Some(_) if meta.agent_box.is_some() && dir.workspace().exists() => {
            RunState::UnpublishedWork
        }
        Some(_) => RunState::Empty,
    }
}

fn measure<'a>(dirs: &'a [RunDir], fates: &[Fate]) -> Result<Vec<PrunedRun<'a>>, Failure> {
    let size = |(dir, fate): (&'a RunDir, &Fate)| {
        let bytes = match fate {
            Fate::Remove => host::file::tree_size(dir.path(), MOST_COUNTED).or_machine()?.bytes,
            _ => 0,
        };
        Ok(PrunedRun { dir, fate: *fate, bytes })
    };
    dirs.iter().zip(fates).map(size).collect()
}

/// Finishes what an earlier prune left half-done.
fn finish_removals(root: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == REMOVING) {
            host::file::remove_tree_safely(&entry.path()).or_machine()?;
        }
    }
    Ok(())
}

fn remove(ui: &Ui, root: &Path, runs: &[PrunedRun<'_>]) -> Result<(), Failure> {
    let old: Vec<_> = runs.iter().filter(|run| run.fate == Fate::Remove).collect();
    let counter = Counter::new(ui, "removing");
    for (number, run) in old.iter().enumerate() {
        counter.show(number, old.len(), "runs");
        let doomed = root.join(format!("{}.{REMOVING}", run.dir.id()));
        std::fs::rename(run.dir.path(), &doomed).or_machine()?;
        host::file::remove_tree_safely(&doomed).or_machine()?;
    }
    Ok(())
}

fn report(ui: &Ui, runs: &[PrunedRun<'_>], consent: Consent) {
    let (gone, kept): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.fate == Fate::Remove);
    let bytes: u64 = gone.iter().map(|run| run.bytes).sum();
    if ui.is_json() {
        let removed: Vec<_> =
            gone.iter().map(|run| json!({"run": run.dir.id(), "bytes": run.bytes})).collect();
        let kept: Vec<_> = kept
            .iter()
            .map(|run| json!({"run": run.dir.id(), "kind": run.fate, "reason": run.fate.reason()}))
            .collect();
        let dry_run = consent != Consent::Given;
        let fields = json!({"dry_run": dry_run, "removed": removed, "kept": kept, "bytes": bytes});
        ui.event("prune", &fields);
        return;
    }
    let (word, sum) = match consent {
        Consent::Given => ("removed", "freed"),
        Consent::DryRun | Consent::Declined | Consent::Missing => ("would go", "would free"),
    };
    for run in &gone {
        ui.result(word, &format!("{} ({})", run.dir.id(), render_size(run.bytes)));
    }
    for run in &kept {
        ui.result("kept", &format!("{}: {}", run.dir.id(), run.fate.reason()));
    }
    ui.result(sum, &format!("{} in {}", render_size(bytes), counted(gone.len(), "run")));
}

fn render_size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
