//! End of containers that a crash left behind.

use sandbox::backend::BackendKind;
use sandbox::error::SandboxError;

use crate::report::Reporter;

/// Removes every orphaned container, whichever product started it: a container outlives a shim that was killed, and
/// nothing else ends it. Boxes of bubblewrap end with their shim.
pub async fn sweep_orphans(
    backend: BackendKind,
    reporter: &dyn Reporter,
) -> Result<(), SandboxError> {
    for run in backend.remove_orphans().await? {
        reporter.note(&format!("removed an orphaned box of {run}"));
    }
    Ok(())
}
