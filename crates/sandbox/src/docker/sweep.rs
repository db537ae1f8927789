//! Removal of containers without a supervisor. A shim that was killed cannot remove its container; the next run does,
//! by label and lock.

use std::collections::HashMap;
use std::path::Path;

use bollard::Docker as Client;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::create::{LABEL_BOOT, LABEL_DEADLINE, LABEL_LOCK, LABEL_RUN};
use super::{Engine, in_time, remove_container};
use crate::error::SandboxError;

/// A container that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptContainer {
    pub run: String,
    pub reason: OrphanReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanReason {
    /// Its lock is free.
    Unwatched,
    /// Its deadline is past, and its shim does not end it.
    Overdue,
}

/// Facts about one container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ContainerFacts {
    lock_held: bool,
    same_boot: bool,
    deadline_boot_secs: Option<u64>,
}

/// Removes every container of ours that is an orphan.
pub async fn sweep(engine: &Engine) -> Result<Vec<SweptContainer>, SandboxError> {
    sweep_client(engine.client()).await
}

pub(super) async fn sweep_client(client: &Client) -> Result<Vec<SweptContainer>, SandboxError> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL_RUN.to_owned()])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = in_time("list boxes", client.list_containers(Some(options))).await?;
    let now = host::clock::boottime().as_secs();
    let mut swept = Vec::new();
    for container in listed {
        let (Some(id), Some(run)) = (&container.id, label(&container, LABEL_RUN)) else { continue };
        if let Some(reason) = judge(&observe(&container), now) {
            // Its shim or another sweeper may be quicker.
            if remove_container(client, id, "remove an orphan").await? {
                swept.push(SweptContainer { run, reason });
            }
        }
    }
    Ok(swept)
}

fn observe(container: &ContainerSummary) -> ContainerFacts {
    let lock = label(container, LABEL_LOCK).unwrap_or_default();
    ContainerFacts {
        // A lock that cannot be read counts as held: better a late sweep than a wrong one.
        lock_held: host::lock::is_held(Path::new(&lock)).unwrap_or(true),
        same_boot: label(container, LABEL_BOOT).is_some_and(|id| id == host::proc::boot_id()),
        deadline_boot_secs: label(container, LABEL_DEADLINE).and_then(|text| text.parse().ok()),
    }
}

fn label(container: &ContainerSummary, name: &str) -> Option<String> {
    container.labels.as_ref()?.get(name).cloned()
}

/// A lock that is not held outranks the deadline; a deadline of another boot says nothing.
fn judge(seen: &ContainerFacts, now_boot_secs: u64) -> Option<OrphanReason> {
    if !seen.lock_held {
        return Some(OrphanReason::Unwatched);
    }
    match seen.deadline_boot_secs {
        Some(deadline) if seen.same_boot && now_boot_secs > deadline => Some(OrphanReason::Overdue),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        lock_held: bool,
        same_boot: bool,
        deadline: Option<u64>,
        expected: Option<OrphanReason>,
    ) {
        let seen = ContainerFacts { lock_held, same_boot, deadline_boot_secs: deadline };
        assert_eq!(judge(&seen, 100), expected, "{seen:?}");
    }

    #[test]
    fn a_box_is_an_orphan_when_unwatched_or_overdue() {
        check(true, true, Some(200), None);
        check(false, true, Some(200), Some(OrphanReason::Unwatched));
        check(true, true, Some(50), Some(OrphanReason::Overdue));
        check(true, false, Some(50), None);
        check(true, true, None, None);
    }
}
