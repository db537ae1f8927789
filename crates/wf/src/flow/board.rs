//! What `wf watch` looks at: all workstreams as they are on disk now, and whether anything moved since the last look.

use std::path::Path;
use std::time::SystemTime;

use model::id::WorkstreamId;

use crate::disk::journal::Journal;
use crate::disk::question::{PENDING, load_questions};
use crate::disk::queue::Entry;
use crate::disk::registry::is_active;
use crate::disk::site::{PROFILE_ENV, Site};
use crate::disk::workstream::{META, PLAN, Workstream};
use crate::disk::{DiskError, names_in};
use crate::flow::gate::waits_for_a_word;
use crate::rules::clarification::ClarificationStatus;
use crate::rules::profile::Pause;
use crate::rules::watch::{AtWork, Seen, Waiting};

/// When everything that is shown was last changed. Two that are equal mean that nothing is new.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    times: Vec<Option<SystemTime>>,
    at_work: Vec<String>,
}

/// Looks only at times, which is cheap enough to be done twice a second.
pub(crate) fn observe_mark(site: &Site) -> Result<Mark, DiskError> {
    let time = |path: &Path| path.metadata().and_then(|facts| facts.modified()).ok();
    let mut mark = Mark::default();
    mark.times.push(time(&site.state_dir()));
    mark.times.push(time(&site.dir.join(PROFILE_ENV)));
    let names = site.workstream_names()?;
    for name in &names {
        let dir = site.workstreams_dir().join(name);
        // Files are mostly replaced, which changes their folder; a person's editor may write in place.
        mark.times.extend([
            time(&dir),
            time(&dir.join(META)),
            time(&dir.join(PLAN)),
            time(&dir.join(PENDING)),
        ]);
    }
    // A run that dies leaves its journal as it was, but not its lock.
    let journals = names_in(&site.state_dir())?;
    let runs = names.into_iter().filter(|name| journals.contains(&Journal::name(site, name)));
    mark.at_work = runs.filter(|name| is_running(site, name)).collect();
    Ok(mark)
}

/// Reads all active workstreams, and the faults of those that cannot be read.
pub(crate) fn observe_board(site: &Site) -> Result<(Vec<Seen>, Vec<DiskError>), DiskError> {
    let (workstreams, faults) = site.load_workstreams()?;
    let pause = site.load_profile().map_or(Pause::Gates, |(profile, _)| profile.pause);
    let active = workstreams.iter().filter(|workstream| is_active(workstream));
    let seen: Result<Vec<Seen>, DiskError> =
        active.map(|workstream| observe_one(site, workstream, pause)).collect();
    Ok((seen?, faults))
}

fn observe_one(site: &Site, workstream: &Workstream, pause: Pause) -> Result<Seen, DiskError> {
    let meta = &workstream.meta;
    let plan = workstream.load_plan().ok();
    let awaits_approval = waits_for_a_word(workstream, pause)?;
    Ok(Seen {
        id: meta.id.clone(),
        title: meta.title.clone(),
        status: meta.status,
        progress: plan.map(|plan| (plan.done_count(), plan.commits.len())),
        at_work: observe_work(site, &meta.id)?,
        questions: waiting(workstream)?,
        awaits_approval,
    })
}

/// The stage that a run is in. The journal is written when a stage begins, so its time is the stage's.
fn observe_work(site: &Site, id: &WorkstreamId) -> Result<Option<AtWork>, DiskError> {
    if !is_running(site, id.as_str()) {
        return Ok(None);
    }
    let journal = Journal::of(site, id)?;
    let open = journal.load().ok().flatten();
    Ok(open
        .map(|run| AtWork { since: journal.changed_at().unwrap_or(run.started), stage: run.stage }))
}

fn is_running(site: &Site, id: &str) -> bool {
    let held = |id: WorkstreamId| host::lock::is_held(&site.workstream_lock(&id)).ok();
    WorkstreamId::parse(id).ok().and_then(held).unwrap_or(false)
}

/// The questions that can be answered, those that stop the work first.
fn waiting(workstream: &Workstream) -> Result<Vec<Waiting>, DiskError> {
    let entries = load_questions(&workstream.dir, ClarificationStatus::Pending)?;
    let mut questions: Vec<_> = entries
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Good(question) => Some(question),
            Entry::Bad { .. } => None,
        })
        .collect();
    questions.sort_by_key(|question| !question.is_blocking());
    let waiting = questions.into_iter().map(|question| Waiting {
        id: question.id,
        text: question.question,
        options: question.options.into_iter().map(|option| option.label).collect(),
    });
    Ok(waiting.collect())
}
