//! Entries of the queues that people answer: questions and acceptance tests.

use model::id::WorkstreamId;

use super::App;
use crate::disk::queue::{QueueEntry, Queued, load_queue};
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::rules::suggest::{hint, see};

fn chosen(app: &App, dirs: &ProjectDirs, typed: Option<&str>) -> WfResult<Vec<Workstream>> {
    match typed {
        Some(typed) => Ok(vec![dirs.find_workstream(typed)?]),
        None => {
            let (good, bad) = dirs.load_workstreams()?;
            app.warn_faults(&bad);
            Ok(good)
        }
    }
}

type ListedEntry<T> = (WorkstreamId, <T as Queued>::Status, QueueEntry<T>);

pub(super) fn list_entries<T: Queued>(
    app: &App,
    workstream: Option<&str>,
    statuses: &[T::Status],
) -> WfResult<Vec<ListedEntry<T>>> {
    let mut entries = Vec::new();
    for workstream in chosen(app, &app.dirs()?, workstream)? {
        for &status in statuses {
            let found = load_queue::<T>(&workstream.dir, status)?;
            entries.extend(found.into_iter().map(|it| (workstream.meta.id.clone(), status, it)));
        }
    }
    Ok(entries)
}

/// Shows the entry with this id, whatever its status.
pub(super) fn show_entry<T: Queued>(app: &App, id: &str, workstream: Option<&str>) -> Outcome {
    let (_, entry): (_, T) = find_entry(app, &app.dirs()?, id, workstream, |_| Ok(()))?;
    if app.ui.is_json() {
        app.ui.document(&entry);
    } else {
        app.ui.page(&entry.render());
    }
    Ok(WfExit::Success)
}

/// Finds the only entry with this id and an accepted status. Without one, the error is that of a refused status.
pub(super) fn find_entry<T: Queued>(
    app: &App,
    dirs: &ProjectDirs,
    id: &str,
    workstream: Option<&str>,
    accept: impl Fn(T::Status) -> WfResult<()>,
) -> WfResult<(Workstream, T)> {
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
            Err(Failure::usage(format!("there is no {} {id}{}", T::NOUN, see(&hint, T::LIST))))
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
