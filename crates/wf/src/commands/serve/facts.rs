//! Facts of the board, for the page and for programs alike.

use engine::agent_log::LogText;
use engine::box_dir::BoxDir;
use engine::launch::{BoxStatus, box_status};
use jiff::Timestamp;
use model::error_chain;
use model::id::WorkstreamId;
use sandbox::spec::BoxOutput;
use serde::Serialize;

use crate::disk::queue::{QueueEntry, load_queue};
use crate::disk::{DiskResult, OpenRun, ProjectDirs, StateFile, Workstream, names_in};
use crate::exit::WfResult;
use crate::flow::board::observe_board;
use crate::rules::status::WorkstreamStatus;
use crate::rules::uat::{Scenario, Uat, UatStatus};
use crate::rules::watch::WorkstreamView;

/// All active workstreams.
#[derive(Debug, Serialize)]
pub(super) struct BoardFacts {
    pub(super) project: String,
    pub(super) workstreams: Vec<WorkstreamFacts>,
    /// Workstreams that cannot be read.
    pub(super) faults: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct WorkstreamFacts {
    pub(super) id: WorkstreamId,
    pub(super) title: String,
    pub(super) status: WorkstreamStatus,
    pub(super) branch: String,
    pub(super) base_branch: String,
    pub(super) plan: Vec<PlanStep>,
    /// Why the plan cannot be read.
    pub(super) plan_error: Option<String>,
    pub(super) running: Option<RunningStage>,
    pub(super) questions: Vec<BoardQuestion>,
    /// Acceptance tests that wait for a person.
    pub(super) acceptance: Vec<PendingAcceptance>,
    pub(super) awaits_approval: bool,
    /// The next step for a person.
    pub(super) needs: Option<String>,
    pub(super) last_run: Option<String>,
    pub(super) last_result: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct PlanStep {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) done: bool,
    pub(super) superseded: Option<String>,
    /// The active run works on it.
    pub(super) active: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct RunningStage {
    pub(super) stage: String,
    pub(super) since: Timestamp,
    /// The last step of the agent at work, as its log tells it.
    pub(super) step: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct BoardQuestion {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) options: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct PendingAcceptance {
    pub(super) id: String,
    pub(super) scenarios: Vec<Scenario>,
}

impl BoardFacts {
    pub(super) fn observe(dirs: &ProjectDirs) -> WfResult<Self> {
        let (views, faults) = observe_board(dirs)?;
        let mut workstreams = Vec::new();
        for view in views {
            let workstream = dirs.find_workstream(view.id.as_str())?;
            workstreams.push(WorkstreamFacts::of(dirs, &workstream, view)?);
        }
        let faults = faults.iter().map(|fault| shell::Ui::redacted(&error_chain(fault))).collect();
        Ok(Self { project: dirs.project.name.to_string(), workstreams, faults })
    }
}

impl WorkstreamFacts {
    pub(super) fn observe(dirs: &ProjectDirs, id: &str) -> WfResult<Self> {
        let workstream = dirs.find_workstream(id)?;
        let view = observe_board(dirs)?.0.into_iter().find(|view| view.id == workstream.meta.id);
        let view = view.unwrap_or_else(|| WorkstreamView {
            id: workstream.meta.id.clone(),
            title: workstream.meta.title.clone(),
            status: workstream.meta.status,
            progress: None,
            active_stage: None,
            questions: Vec::new(),
            awaits_approval: false,
        });
        Ok(Self::of(dirs, &workstream, view)?)
    }

    fn of(dirs: &ProjectDirs, workstream: &Workstream, view: WorkstreamView) -> DiskResult<Self> {
        let meta = &workstream.meta;
        let open =
            OpenRun::load(dirs, &meta.id).ok().flatten().filter(|_| view.active_stage.is_some());
        let active = open.as_ref().and_then(|run| run.micro_commit.clone());
        let (plan, plan_error) = match workstream.load_plan() {
            Ok(plan) => (plan.commits, None),
            Err(error) => (Vec::new(), Some(shell::Ui::redacted(&error_chain(&error)))),
        };
        let step = |commit: crate::rules::plan::MicroCommit| PlanStep {
            active: active.as_ref() == Some(&commit.id),
            id: commit.id.to_string(),
            title: commit.title,
            done: commit.is_done,
            superseded: commit.superseded,
        };
        let needs = view.next();
        let running = view.active_stage.map(|active| RunningStage {
            step: open.as_ref().and_then(|run| last_step(dirs, run)),
            stage: active.stage,
            since: active.since,
        });
        let questions = view.questions.into_iter().map(|question| BoardQuestion {
            id: question.id.to_string(),
            text: question.text,
            options: question.options,
        });
        Ok(Self {
            id: view.id,
            title: view.title,
            status: view.status,
            branch: meta.branch.to_string(),
            base_branch: meta.base_branch.to_string(),
            plan: plan.into_iter().map(step).collect(),
            plan_error,
            running,
            questions: questions.collect(),
            acceptance: pending_acceptance(workstream)?,
            awaits_approval: view.awaits_approval,
            needs,
            last_run: meta.last_run_id.clone(),
            last_result: meta.last_result.clone(),
        })
    }

    pub(super) fn done(&self) -> usize {
        self.plan.iter().filter(|step| step.done).count()
    }

    /// Micro-commits that are done or to be done.
    pub(super) fn wanted(&self) -> usize {
        self.plan.iter().filter(|step| step.done || step.superseded.is_none()).count()
    }
}

fn pending_acceptance(workstream: &Workstream) -> DiskResult<Vec<PendingAcceptance>> {
    let entries = load_queue::<Uat>(&workstream.dir, UatStatus::Pending)?;
    let good = entries.into_iter().filter_map(|entry| match entry {
        QueueEntry::Good(uat) => {
            Some(PendingAcceptance { id: uat.id.to_string(), scenarios: uat.scenarios })
        }
        QueueEntry::Bad { .. } => None,
    });
    Ok(good.collect())
}

/// The last line of the log of the agent that is at work.
fn last_step(dirs: &ProjectDirs, run: &OpenRun) -> Option<String> {
    let boxes = dirs.runs_dir().join(&run.directory).join("boxes");
    for name in names_in(&boxes).ok()? {
        let place = BoxDir::new(boxes.join(&name));
        if !matches!(box_status(&place), Ok(BoxStatus::Running)) {
            continue;
        }
        let Some(mut text) = LogText::of_box(&place) else { continue };
        let bytes = std::fs::read(place.stdout(BoxOutput::Log { cap: 0 })).ok()?;
        let log = String::from_utf8_lossy(&bytes);
        let shown: String = log
            .lines()
            .map(|line| text.push_line(&format!("{}\n", shell::Ui::redacted(line))))
            .collect();
        return shown
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(|line| line.trim().to_owned());
    }
    None
}
