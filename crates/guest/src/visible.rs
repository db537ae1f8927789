//! Visibility of the command for the host, which counts what each process holds.

use std::env::consts::ARCH;

use seccompiler::{TargetArch, apply_filter, compile_from_json};
use serde_json::json;

use crate::GuestError;

/// `PR_SET_DUMPABLE`, part of the kernel's interface.
const SET_DUMPABLE: u32 = 4;

/// Makes the request to hide a process succeed without effect, here and in all children. The kernel would close the list
/// of its open files to the host's user, and memory in files without a name would count no more. Agents of keys make the
/// request, so it must not fail.
pub(crate) fn stay_visible() -> Result<(), GuestError> {
    let hide = json!({"syscall": "prctl", "args": [
        {"index": 0, "type": "dword", "op": "eq", "val": SET_DUMPABLE},
        {"index": 1, "type": "dword", "op": "eq", "val": 0},
    ]});
    let filter = json!({"main": {
        "mismatch_action": "allow", "match_action": {"errno": 0}, "filter": [hide],
    }});
    let failed = "keep the command visible for the host";
    let arch = TargetArch::try_from(ARCH).map_err(GuestError::could_not(failed))?;
    let mut programs = compile_from_json(filter.to_string().as_bytes(), arch)
        .map_err(GuestError::could_not(failed))?;
    let program = programs.remove("main").unwrap_or_default();
    apply_filter(&program).map_err(GuestError::could_not(failed))
}
