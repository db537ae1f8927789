//! `forklift train`: bring the fork to upstream in steps.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;
use shell::runtime::unless_stopped;

use super::replay::check_writable;
use super::run::{check_request, observe_for};
use super::train_run::{TrainRun, TrainState};
use super::{ForkliftDirs, block_on};
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::{SyncEnd, SyncNotes, recorded};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::{find_repo, project_of};
use crate::flow::train::store::TrainStore;
use crate::rules::strategy::Strategy;
use crate::rules::train::page::{PlanEnds, render_page};
use crate::rules::train::table::{HEAD, render_legend, render_picture, rows, summary};
use crate::rules::train::{BATCH, PullLayout, TrainPlan};

/// Bring the fork to upstream in steps: clean batches, and single commits where a decision is needed
///
/// Plans first: the longest batches that git merges without a conflict, and between them single commits of upstream that
/// conflict. Then each step is a run of its own: merge, resolver, an agent for that one commit, the fork's check, verdict. The
/// steps grow one branch by merge commits, and one pull request lists them. When the check fails after a batch, the commit that
/// breaks it is searched and named, and becomes a step of its own.
///
/// It stops where a person is needed. Type it again to go on, also after it was killed: a step is done if its commit of upstream
/// is in the train's branch. To decide a step by hand, merge the commit on that branch and push it.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Show the plan and do nothing else
    #[arg(long)]
    plan: bool,
    /// Write the plan as a page to look at in a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Most commits of a clean batch
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(BATCH).unwrap_or(NonZeroUsize::MIN))]
    batch: NonZeroUsize,
    /// Open a pull request for each step instead of one for all
    ///
    /// Each has a branch of its own with the steps before it, and goes to the fork's branch, so that none lands in another's
    /// branch. Merge them in order.
    #[arg(long)]
    stack: bool,
    /// Make so many steps and stop
    #[arg(long, value_name = "N")]
    steps: Option<NonZeroUsize>,
    /// See the check fail on a break that is seeded into the sources, before its success counts
    #[arg(long)]
    prove_check: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn cmd_train(ui: &Ui, args: &TrainArgs, here: Option<&Path>) -> Outcome {
    let run = RunArgs { directory: here.map(Path::to_path_buf), ..args.run.clone() };
    let work = |notes: &SyncNotes| {
        let places = ForkliftDirs::from_env()?;
        if let Some(file) = &args.html {
            check_writable(file)?;
        }
        let run = run.with_config(&places.shared);
        block_on(async {
            let cancel = cancel_on_signals().or_machine()?;
            drive(ui, args, (run, notes), &places, cancel).await
        })
    };
    // A plan alone brings nothing, and is looked at by a person.
    if args.plan {
        work(&SyncNotes::default()).map(|end| end.status)
    } else {
        recorded(ui, &run, work)
    }
}

async fn drive(
    ui: &Ui,
    args: &TrainArgs,
    (run, notes): (RunArgs, &SyncNotes),
    places: &ForkliftDirs,
    cancel: Cancel,
) -> Result<SyncEnd, Failure> {
    let (request, choice) = check_request(ui, &run, places, false, &cancel).await?;
    let user = find_repo(&request.directory).await?;
    let looking = async {
        let fork_lock = acquire_fork_lock(ui, &user, &places.cache, run.wait).await?;
        let store = TrainStore::open(places, &user).await?;
        let mut seen = observe_for(ui, store.repo.clone(), &run, places, Some(&user)).await?;
        seen.fork.path = user.toplevel().unwrap_or(user.common_dir()).to_path_buf();
        seen.project = project_of(&seen.fork.path);
        Ok((fork_lock, store, seen))
    };
    let (_fork_lock, store, seen) = unless_stopped::<_, ForkliftExit>(&cancel, looking).await?;
    notes.note_branch(&seen.fork.branch);
    let ruled = seen.fork_file.as_ref().and_then(|file| file.rules.strategy);
    if run.strategy.or(ruled) == Some(Strategy::Rebase) {
        return Err(Failure::usage("a train grows by merge commits, and the strategy is rebase")
            .with_remedy("say --strategy merge, or update without a train: forklift"));
    }
    let common = store.repo.merge_base(&seen.pins.base, &seen.pins.upstream).await.or_machine()?;
    if common.is_none() {
        return Err(Failure::usage(
            "the fork and its upstream have no commit in common, so there is nothing to plan",
        ));
    }
    let layout = if args.stack { PullLayout::Stack } else { PullLayout::Single };
    let mut train = TrainRun {
        ui,
        args: run,
        places,
        request,
        choice,
        store,
        seen,
        batch: args.batch.get(),
        prove_check: args.prove_check,
        user,
        cancel,
        notes,
    };
    let Some(mut state) = train.find_state(layout, args.plan).await? else {
        ui.event("train", &json!({"name": null, "steps_done": 0, "is_complete": true}));
        ui.result("train", "nothing to do: the fork has all of upstream's target");
        return Ok(SyncEnd { status: ForkliftExit::Success, is_up_to_date: true });
    };
    if args.plan {
        let tip = train.known_tip(&state).await?;
        let plan = train.plan(&state, &tip).await?;
        show_plan(ui, args, &state, &plan)?;
        return Ok(ForkliftExit::Success.into());
    }
    run_steps(args, &mut train, &mut state).await.map(SyncEnd::from)
}

/// Makes the steps that are left, as far as they can be made without a person.
async fn run_steps(args: &TrainArgs, train: &mut TrainRun<'_>, state: &mut TrainState) -> Outcome {
    let ui = train.ui;
    let mut is_shown = false;
    let mut made = 0_usize;
    train.meet_origin(state).await?;
    loop {
        let tip = train.settle(state).await?;
        if let Some(status) = train.publish_pending(state, &tip).await? {
            return Ok(status);
        }
        if let Some(status) = train.finish_open_run(state).await? {
            match status {
                ForkliftExit::Success => continue,
                other => return Ok(other),
            }
        }
        if train.is_complete(state, &tip).await? {
            break;
        }
        let plan = train.plan(state, &tip).await?;
        if !std::mem::replace(&mut is_shown, true) {
            show_plan(ui, args, state, &plan)?;
            train.prove(state).await?;
        }
        if args.steps.is_some_and(|most| made >= most.get()) {
            ui.result("next", "forklift train");
            break;
        }
        let status = train.make_step(state, &tip, &plan).await?;
        if status != ForkliftExit::Success {
            return Ok(status);
        }
        made += 1;
    }
    train.show_end(state).await?;
    Ok(ForkliftExit::Success)
}

fn show_plan(
    ui: &Ui,
    args: &TrainArgs,
    state: &TrainState,
    plan: &TrainPlan,
) -> Result<(), Failure> {
    let TrainState { record, done } = state;
    if let Some(file) = &args.html {
        let fork = record.fork.path.display().to_string();
        let page = render_page(plan, PlanEnds { fork: &fork, target: &record.target_name });
        host::file::write_atomic(file, page.as_bytes(), 0o644).or_machine()?;
    }
    ui.event(
        "plan",
        &json!({
            "train": record.name, "base": record.base, "target": record.target, "target_name": record.target_name,
            "steps_done": done, "commits": plan.commits, "batch": plan.batch, "merges": plan.merges,
            "first_conflict": plan.first_conflict, "asking": plan.asking(), "steps": plan.steps,
        }),
    );
    let target = format!("{} ({})", record.target_name, short(&record.target));
    ui.result("target", &target);
    ui.result("plan", &summary(plan));
    ui.line("");
    ui.line(&render_picture(plan));
    ui.line(&render_legend(plan));
    ui.line("");
    ui.table(&HEAD, rows(plan, done + 1));
    Ok(())
}

fn short(sha: &Sha) -> &str {
    sha.short()
}
