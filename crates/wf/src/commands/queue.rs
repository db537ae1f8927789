//! Entries of the queues that people answer: questions and acceptance tests.

use model::exit::WfExit;

use super::App;
use crate::disk::project_dirs::ProjectDirs;
use crate::disk::queue::{QueueEntry, Queued, load_queue};
use crate::disk::workstream::Workstream;
use crate::exit::{Failure, OrExit};
use crate::rules::suggest::hint;

/// Finds the workstreams of a command: one by name, or all open ones.
pub(super) fn chosen(
    app: &App,
    dirs: &ProjectDirs,
    typed: Option<&str>,
) -> Result<Vec<Workstream>, Failure> {
    match typed {
        Some(typed) => Ok(vec![dirs.find_workstream(typed)?]),
        None => {
            let (good, bad) = dirs.load_workstreams()?;
            app.warn_faults(&bad);
            Ok(good)
        }
    }
}

/// Finds the only entry with this id whose status is accepted. If there is none, the refusal of another one's status is
/// the error.
pub(super) fn find_entry<T: Queued>(
    app: &App,
    dirs: &ProjectDirs,
    id: &str,
    workstream: Option<&str>,
    accept: impl Fn(T::Status) -> Result<(), Failure>,
) -> Result<(Workstream, T), Failure> {
    T::check_id(id).or_exit(WfExit::Config)?;
    let (mut found, mut known, mut refusal) = (Vec::new(), Vec::new(), None);
    for workstream in chosen(app, dirs, workstream)? {
        for &(status, _) in T::FOLDERS {
            for entry in load_queue::<T>(&workstream.dir, status)? {
                match accept(status) {
                    _ if entry.name() != id => known.push(entry.name().to_owned()),
                    Ok(()) => found.push((workstream.clone(), entry)),
                    Err(failure) => refusal = Some(failure),
                }
            }
        }
    }
    match (found.len(), refusal) {
        (0, Some(refusal)) => Err(refusal),
        (0, None) => {
            let hint = hint(id, known.iter().map(String::as_str));
            Err(Failure::usage(format!("there is no {} {id}{hint}", T::NOUN)))
        }
        (1, _) => match found.remove(0) {
            (workstream, QueueEntry::Good(value)) => Ok((workstream, value)),
            (_, QueueEntry::Bad { name, problem }) => {
                Err(Failure::new(WfExit::Config, format!("{name}: {problem}")))
            }
        },
        _ => Err(Failure::usage(format!(
            "several workstreams have {id}; say which: --workstream ID"
        ))),
    }
}
