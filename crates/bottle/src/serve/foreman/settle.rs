//! What is written down when a worker has ended. What cannot be written down now is kept until it can.

use jiff::Timestamp;
use orchestrator_db::{DbError, WorkItem, WorkNote, WorkRequest, WorkStep};

use super::{Foreman, name, pause_after};
use crate::exit::{Failure, OrExit};
use crate::rules::ending::Next;
use crate::serve::worker::{Ended, Outcome};

/// Trouble that did not pass after so many tries is a person's.
const PASSING_TRIES: u32 = 40;
/// The machine may fail so often in a row.
const MACHINE_TRIES: u32 = 3;

impl Foreman {
    /// Writes down how a worker ended, and looks at the issue again: much may have been said in the meantime.
    pub(super) fn settle(&mut self, ended: Ended) -> Result<(), Failure> {
        let written = self.write_down(&ended);
        if written.is_err() {
            self.unsettled.push(ended);
        }
        written
    }

    fn write_down(&mut self, ended: &Ended) -> Result<(), Failure> {
        let Ended { key, fence, slug, outcome } = ended;
        let Some(work) = self.busy.get(key) else { return Ok(()) };
        let note = |reason: String| WorkNote { slug: slug.clone(), ..WorkNote::because(reason) };
        let resume = Some(WorkRequest::Resume { prompt: None }).filter(|_| slug.is_some());
        let (step, note) = match outcome {
            Outcome::Closed(Next::Freeze { reason }) => {
                (WorkStep::Freeze, WorkNote { attempts: Some(0), ..note(reason.clone()) })
            }
            Outcome::Closed(Next::Wait { until, reason }) => (
                WorkStep::Wait,
                WorkNote { not_before: Some(*until), request: resume, ..note(reason.clone()) },
            ),
            Outcome::Closed(Next::Retry { reason }) if work.attempts < MACHINE_TRIES => {
                (WorkStep::Wait, WorkNote { request: resume, ..later(work, note(reason.clone())) })
            }
            Outcome::Closed(Next::Retry { reason } | Next::CallPerson { reason }) => {
                (WorkStep::CallPerson, note(reason.clone()))
            }
            Outcome::Failed(failure) if failure.is_transient() && work.attempts < PASSING_TRIES => {
                let words = later(work, note(failure.to_string()));
                (
                    WorkStep::Wait,
                    WorkNote { not_before: failure.retry_after().or(words.not_before), ..words },
                )
            }
            Outcome::Failed(failure) => (WorkStep::CallPerson, note(failure.to_string())),
            Outcome::Destroyed => (WorkStep::Destroy, note("its bottle is gone".to_owned())),
            Outcome::Kept(failure) => {
                self.service.store.set_destroy_at(key, None).or_general()?;
                (WorkStep::CallPerson, note(format!("its bottle was kept: {failure}")))
            }
        };
        let reason = note.reason.clone();
        match self.service.store.step_work(key, *fence, step, &note) {
            Ok(state) => tracing::info!(issue = %name(key), %state, reason, "ended"),
            // Whoever took it over goes on from what is on disk.
            Err(DbError::Fenced { .. }) => tracing::warn!(issue = %name(key), "was taken over"),
            Err(error) => return Err(error).or_general(),
        }
        host::failpoint::hit("settled");
        self.busy.remove(key);
        self.rounds.want(key, None);
        Ok(())
    }
}

/// The same note, to be tried again after a while.
fn later(work: &WorkItem, note: WorkNote) -> WorkNote {
    let attempts = work.attempts + 1;
    let until: Timestamp = host::clock::now() + pause_after(attempts);
    WorkNote { not_before: Some(until), attempts: Some(attempts), ..note }
}
