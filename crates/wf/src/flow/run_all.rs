//! `wf run --all`: observes all workstreams, runs each in a process of its own, and looks again after every end.
//!
//! A process for each: a signal, a panic or a lock of one does not touch the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use host::git::WorktreeRepo;
use host::process::{RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::exit::ExitStatus;
use model::id::WorkstreamId;
use serde::Serialize;
use shell::Ui;
use shell::start::MULTI_CALL;

use super::base::find_lost;
use super::product::open_product;
use crate::disk::question::blocking_questions;
use crate::disk::{OpenRun, ProjectDirs, StateFile, Workstream, is_active};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::schedule::{
    LowerPlan, PlanFacts, Predecessor, Readiness, ScheduleFacts, aggregate, choose_next,
    judge_order, judge_readiness,
};
use crate::rules::status::WorkstreamStatus;
use crate::rules::touched::parse_touched;

/// Time for a run to finish its record after a signal.
const GRACE: Duration = Duration::from_secs(120);
/// Pause between two looks at the journals of the runs.
const LOOK: Duration = Duration::from_millis(300);
const OUTPUT_CAP: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) struct RunAllOptions {
    pub(crate) jobs: usize,
    /// Arguments of `wf run` that each run gets.
    pub(crate) args: Vec<String>,
}

/// Part of a workstream in `wf run --all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WorkstreamReport {
    pub(crate) workstream: String,
    /// Status of its run; none if it did not run.
    pub(crate) exit_code: Option<i32>,
    /// Micro-commits that were accepted.
    pub(crate) done: Vec<String>,
    pub(crate) status: WorkstreamStatus,
    /// The last line of its run, or the reason why it did not run.
    pub(crate) message: String,
}

/// Runs everything that is ready until nothing is. Returns a report on each workstream and the aggregated status.
pub(crate) async fn run_all(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    ui: &Ui,
    options: &RunAllOptions,
    cancel: &Cancel,
) -> WfResult<(Vec<WorkstreamReport>, WfExit)> {
    let mut ran: BTreeMap<String, RunEnd> = BTreeMap::new();
    let mut running: BTreeMap<String, ScheduleFacts> = BTreeMap::new();
    let mut work: FuturesUnordered<BoxFuture<'_, (String, WfResult<RunEnd>)>> =
        FuturesUnordered::new();
    let mut shown = BTreeMap::new();
    let mut has_changed = true;
    loop {
        if std::mem::take(&mut has_changed) && cancel.reason().is_none() {
            let facts = observe(dirs, product).await?;
            let is_new = |facts: &&ScheduleFacts| {
                !ran.contains_key(&facts.id)
                    && !running.contains_key(&facts.id)
                    && judge_readiness(facts) == Readiness::Ready
            };
            let ready: Vec<&ScheduleFacts> = facts.iter().filter(is_new).collect();
            let busy: Vec<&ScheduleFacts> = running.values().collect();
            let next: Vec<ScheduleFacts> =
                choose_next(&ready, &busy, options.jobs).into_iter().cloned().collect();
            for facts in next {
                ui.status(&format!("{}: starts", facts.id));
                let id = facts.id.clone();
                running.insert(id.clone(), facts);
                let job = async move {
                    let end = run_one(dirs, product, &id, options, cancel).await;
                    (id, end)
                };
                work.push(job.boxed());
            }
        }
        tokio::select! {
            ended = work.next() => match ended {
                None => break,
                Some((id, end)) => {
                    let end = end?;
                    ui.status(&format!("{id}: {}", end.message));
                    has_changed = true;
                    running.remove(&id);
                    ran.insert(id, end);
                }
            },
            () = tokio::time::sleep(LOOK) => show_progress(dirs, ui, running.keys(), &mut shown),
        }
    }
    let reports = report(dirs, product, &ran).await?;
    let statuses = ran.values().map(|end| end.exit);
    let waits =
        reports.iter().any(|report| report.exit_code.is_none() && !report.message.is_empty());
    let status = aggregate(statuses.chain(waits.then_some(WfExit::Blocked)));
    Ok((reports, status))
}

/// End of one workstream's run.
#[derive(Debug, Clone)]
struct RunEnd {
    exit: WfExit,
    done: Vec<String>,
    message: String,
}

/// Reads all open workstreams. The order is that of their creation, then of their names.
async fn observe(dirs: &ProjectDirs, product: &WorktreeRepo) -> WfResult<Vec<ScheduleFacts>> {
    let (mut all, _) = dirs.load_workstreams()?;
    all.sort_by(|one, other| {
        let key = |it: &Workstream| (it.meta.created_at.clone(), it.meta.id.to_string());
        key(one).cmp(&key(other))
    });
    let closed = dirs.load_closed()?.0;
    let named = all.iter().flat_map(|it| &it.meta.after).map(String::as_str).collect();
    let lost = find_lost(product, all.iter().chain(&closed), &named).await?;
    let others = Others { all: &all, closed: &closed, lost: &lost };
    all.iter().filter(|it| is_active(it)).map(|it| facts_of(it, others)).collect()
}

/// Workstreams of the project, as one of them sees them.
#[derive(Clone, Copy)]
struct Others<'a> {
    all: &'a [Workstream],
    closed: &'a [Workstream],
    /// Those that are done, and whose commits are not where they were merged into.
    lost: &'a BTreeSet<String>,
}

/// Returns why a workstream has to wait for those that it runs after, if it has to.
pub(crate) async fn find_wait(
    dirs: &ProjectDirs,
    workstream: &Workstream,
) -> WfResult<Option<String>> {
    if workstream.meta.after.is_empty() {
        return Ok(None);
    }
    let (all, closed) = (dirs.load_workstreams()?.0, dirs.load_closed()?.0);
    let product = open_product(dirs).await?;
    let named = workstream.meta.after.iter().map(String::as_str).collect();
    let lost = find_lost(&product, all.iter().chain(&closed), &named).await?;
    let others = Others { all: &all, closed: &closed, lost: &lost };
    Ok(match judge_order(&predecessors(workstream, others)) {
        Some(Readiness::Waits { reason } | Readiness::NeedsPerson { reason }) => Some(reason),
        Some(Readiness::Ready | Readiness::Finished) | None => None,
    })
}

fn predecessors(workstream: &Workstream, others: Others<'_>) -> Vec<(String, Predecessor)> {
    let Others { all, closed, lost } = others;
    let predecessor = |id: &String| {
        let is_it = |other: &&Workstream| other.meta.id.as_str() == id;
        let is_done = |other: &Workstream| other.meta.status == WorkstreamStatus::Done;
        match (all.iter().find(is_it), closed.iter().rfind(is_it)) {
            (Some(open), _) if !is_done(open) => Predecessor::Open,
            (Some(it), _) | (None, Some(it)) if is_done(it) && lost.contains(id) => {
                Predecessor::Lost
            }
            (Some(_), _) => Predecessor::Merged,
            (None, Some(closed)) if is_done(closed) => Predecessor::Merged,
            (None, _) => Predecessor::Gone,
        }
    };
    workstream.meta.after.iter().map(|id| (id.clone(), predecessor(id))).collect()
}

fn facts_of(workstream: &Workstream, others: Others<'_>) -> WfResult<ScheduleFacts> {
    let meta = &workstream.meta;
    let lower = others.all.iter().find(|other| {
        other.meta.branch == meta.base_branch && other.meta.status != WorkstreamStatus::Done
    });
    let mut paths = meta.expected_paths.clone();
    let touched = workstream.touched()?;
    paths.extend(parse_touched(&touched).map(|path| String::from_utf8_lossy(path).into_owned()));
    Ok(ScheduleFacts {
        id: meta.id.to_string(),
        status: meta.status,
        plan: plan_facts(workstream),
        questions: blocking_questions(&workstream.dir)?,
        after: predecessors(workstream, others),
        lower: lower.map(|lower| {
            let is_done = matches!(plan_facts(lower), PlanFacts::Left(0));
            let plan = if is_done { LowerPlan::Done } else { LowerPlan::Unfinished };
            (lower.meta.id.to_string(), plan)
        }),
        paths,
    })
}

fn plan_facts(workstream: &Workstream) -> PlanFacts {
    match workstream.load_plan() {
        Err(error) => PlanFacts::Unreadable(model::error_chain(&error)),
        Ok(plan) if plan.wanted_count() == 0 => PlanFacts::Empty,
        Ok(plan) => PlanFacts::Left(plan.open_count()),
    }
}

/// Prints a line for each run that has come to another stage.
fn show_progress<'a>(
    dirs: &ProjectDirs,
    ui: &Ui,
    running: impl Iterator<Item = &'a String>,
    shown: &mut BTreeMap<String, String>,
) {
    for id in running {
        let Ok(parsed) = WorkstreamId::parse(id) else { continue };
        let Ok(Some(run)) = OpenRun::load(dirs, &parsed) else { continue };
        let Some(commit) = run.micro_commit else { continue };
        if !["implement", "test", "review"].contains(&run.stage.as_str()) {
            continue;
        }
        let line = format!("{id}: {commit} {}", run.stage);
        if shown.get(id) != Some(&line) {
            ui.status(&line);
            shown.insert(id.clone(), line);
        }
    }
}

/// Brings a workstream that follows another one up to date, then runs it.
async fn run_one(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    id: &str,
    options: &RunAllOptions,
    cancel: &Cancel,
) -> WfResult<RunEnd> {
    let workstream = dirs.find_workstream(id)?;
    let before = done_commits(&workstream);
    if follows_another(dirs, &workstream)? && is_behind(product, &workstream).await? {
        let words = ["update".to_owned(), id.to_owned()];
        let (exit, message) = run_wf(dirs, &words, cancel).await?;
        if exit != WfExit::Success {
            return Ok(RunEnd { exit, done: Vec::new(), message });
        }
    }
    let words = [vec!["run".to_owned(), id.to_owned()], options.args.clone()].concat();
    let (exit, message) = run_wf(dirs, &words, cancel).await?;
    // It may have been closed meanwhile.
    let after = dirs.find_workstream(id).map(|it| done_commits(&it)).unwrap_or_default();
    Ok(RunEnd { exit, done: after.difference(&before).cloned().collect(), message })
}

fn done_commits(workstream: &Workstream) -> BTreeSet<String> {
    let plan = workstream.load_plan().unwrap_or_default();
    let done = plan.commits.iter().filter(|commit| commit.is_done);
    done.map(|commit| commit.id.to_string()).collect()
}

fn follows_another(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<bool> {
    if !workstream.meta.after.is_empty() {
        return Ok(true);
    }
    let all = dirs.load_workstreams()?.0;
    Ok(all.iter().any(|other| other.meta.branch == workstream.meta.base_branch))
}

async fn is_behind(product: &WorktreeRepo, workstream: &Workstream) -> WfResult<bool> {
    let meta = &workstream.meta;
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let (Some(base), Some(head)) = (base, head) else { return Ok(false) };
    Ok(!product.user().is_ancestor(&base, &head).await.or_exit(WfExit::General)?)
}

/// Runs a command of this program to its end. Returns its status and the last line that it printed about its result.
async fn run_wf(
    dirs: &ProjectDirs,
    words: &[String],
    cancel: &Cancel,
) -> WfResult<(WfExit, String)> {
    let program = host::env::current_exe().or_exit(WfExit::General)?;
    let is_multi_call = program.file_name().is_some_and(|name| name == MULTI_CALL);
    let mut spec = CommandSpec::new(program).cwd(&dirs.project.repo);
    spec.env = host::env::vars_os();
    let spec = spec.args(is_multi_call.then_some("wf"));
    let spec = spec.args(["--project", dirs.project.name.as_str()]).args(words);
    let limits = RunLimits {
        stdout_cap: OUTPUT_CAP,
        stderr_cap: OUTPUT_CAP,
        grace: GRACE,
        leftovers: host::process::Leftovers::Leave,
        ..RunLimits::default()
    };
    let output = run(&spec, &limits, cancel).await.or_exit(WfExit::General)?;
    let CommandExit::Exited(code) = output.exit else {
        let message = format!("wf {} was killed; run it again to go on", words.join(" "));
        return Ok((WfExit::General, message));
    };
    let exit = WfExit::ALL.iter().find(|exit| i32::from(exit.code()) == code).copied();
    let exit = exit.ok_or_else(|| {
        Failure::new(WfExit::Internal, format!("wf {} ended with {code}", words.join(" ")))
    })?;
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    let result = text[0].lines().rfind(|line| !line.starts_with(' ') && !line.trim().is_empty());
    let error = text[1].lines().rfind(|line| line.starts_with("error"));
    Ok((exit, error.or(result).unwrap_or_default().to_owned()))
}

async fn report(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    ran: &BTreeMap<String, RunEnd>,
) -> WfResult<Vec<WorkstreamReport>> {
    let mut facts = observe(dirs, product).await?;
    facts.sort_by(|one, other| one.id.cmp(&other.id));
    let mut reports = Vec::new();
    for facts in facts {
        let end = ran.get(&facts.id);
        let message = match (end, judge_readiness(&facts)) {
            (Some(end), _) => end.message.clone(),
            (None, Readiness::Waits { reason } | Readiness::NeedsPerson { reason }) => reason,
            (None, Readiness::Ready | Readiness::Finished) => String::new(),
        };
        reports.push(WorkstreamReport {
            workstream: facts.id.clone(),
            exit_code: end.map(|end| i32::from(end.exit.code())),
            done: end.map(|end| end.done.clone()).unwrap_or_default(),
            status: facts.status,
            message,
        });
    }
    Ok(reports)
}
