//! Reads all workstreams for `wf watch`, and detects whether any file changed since the last read.

use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;
use model::id::WorkstreamId;

use crate::disk::project_dirs::PROFILE_ENV;
use crate::disk::question::PENDING;
use crate::disk::queue::{QueueEntry, load_queue};
use crate::disk::workstream::{META, PLAN};
use crate::disk::{
    DiskError, DiskResult, OpenRun, ProjectDirs, StateFile, Workstream, is_active, names_in,
};
use crate::flow::gate::is_awaiting_approval;
use crate::rules::clarification::{Clarification, ClarificationStatus};
use crate::rules::profile::Pause;
use crate::rules::watch::{ActiveStage, PendingQuestion, WorkstreamView};

/// Modification times of every file on the board. Two equal stamps mean that nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BoardStamp {
    times: Vec<Option<SystemTime>>,
    active_stage: Vec<String>,
}

impl BoardStamp {
    /// Reports whether a run is active.
    pub(crate) fn has_run(&self) -> bool {
        !self.active_stage.is_empty()
    }
}

/// Reads only modification times, which is cheap enough to do twice a second.
pub(crate) fn observe_stamp(dirs: &ProjectDirs) -> DiskResult<BoardStamp> {
    let time = |path: &Path| path.metadata().and_then(|facts| facts.modified()).ok();
    let mut stamp = BoardStamp::default();
    stamp.times.push(time(&dirs.state_dir()));
    stamp.times.push(time(&dirs.dir.join(PROFILE_ENV)));
    let names = dirs.workstream_names()?;
    for name in &names {
        let dir = dirs.workstreams_dir().join(name);
        // Files are mostly replaced, which changes their folder; a person's editor may write in place.
        stamp.times.extend([
            time(&dir),
            time(&dir.join(META)),
            time(&dir.join(PLAN)),
            time(&dir.join(PENDING)),
        ]);
    }
    // A run that dies leaves its journal as it was, but not its lock.
    let journals = names_in(&dirs.state_dir())?;
    let runs = names.into_iter().filter(|name| journals.contains(&OpenRun::file_name(dirs, name)));
    let is_running = |name: &String| WorkstreamId::parse(name).is_ok_and(|id| dirs.is_running(&id));
    stamp.active_stage = runs.filter(is_running).collect();
    Ok(stamp)
}

/// Reads all active workstreams, and the errors of those that cannot be read.
pub(crate) fn observe_board(
    dirs: &ProjectDirs,
) -> DiskResult<(Vec<WorkstreamView>, Vec<DiskError>)> {
    let (workstreams, faults) = dirs.load_workstreams()?;
    let pause = dirs.load_profile().map_or(Pause::Gates, |(profile, _)| profile.pause);
    let active = workstreams.iter().filter(|workstream| is_active(workstream));
    let view: DiskResult<Vec<WorkstreamView>> =
        active.map(|workstream| observe_one(dirs, workstream, pause)).collect();
    Ok((view?, faults))
}

fn observe_one(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    pause: Pause,
) -> DiskResult<WorkstreamView> {
    let meta = &workstream.meta;
    let plan = workstream.load_plan().ok();
    let awaits_approval = is_awaiting_approval(workstream, pause)?;
    Ok(WorkstreamView {
        id: meta.id.clone(),
        title: meta.title.clone(),
        status: meta.status,
        progress: plan.map(|plan| (plan.done_count(), plan.wanted_count())),
        active_stage: observe_work(dirs, &meta.id),
        questions: waiting(workstream)?,
        awaits_approval,
    })
}

/// Finds the stage of the active run. The journal is written when a stage begins, so its time is the start of the stage.
fn observe_work(dirs: &ProjectDirs, id: &WorkstreamId) -> Option<ActiveStage> {
    if !dirs.is_running(id) {
        return None;
    }
    let changed = OpenRun::path(dirs, id).metadata().and_then(|facts| facts.modified()).ok();
    let changed = changed.and_then(|changed| Timestamp::try_from(changed).ok());
    let open = OpenRun::load(dirs, id).ok().flatten();
    open.map(|run| ActiveStage { since: changed.unwrap_or(run.started), stage: run.stage })
}

/// Lists the questions that can be answered, blocking ones first.
fn waiting(workstream: &Workstream) -> DiskResult<Vec<PendingQuestion>> {
    let entries = load_queue::<Clarification>(&workstream.dir, ClarificationStatus::Pending)?;
    let mut questions: Vec<_> = entries
        .into_iter()
        .filter_map(|entry| match entry {
            QueueEntry::Good(question) => Some(question),
            QueueEntry::Bad { .. } => None,
        })
        .collect();
    questions.sort_by_key(|question| !question.is_blocking());
    let waiting = questions.into_iter().map(|question| PendingQuestion {
        id: question.id,
        text: question.question,
        options: question.options.into_iter().map(|option| option.label).collect(),
    });
    Ok(waiting.collect())
}
