//! Named points at which a test can make the program die as if by kill -9, panic, or receive a stop signal.
//! Release builds have none.

use rustix::process::{Signal, getpid, kill_process};

/// The variable that names the point. A prefix `panic:`, `term:` or `int:` makes it a panic or a signal.
const VARIABLE: &str = "BOTTLEWORKS_FAILPOINT";

/// Dies here if the environment names this point.
pub fn hit(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let Some(wanted) = crate::env::var(VARIABLE) else { return };
    let (how, wanted) = wanted.split_once(':').unwrap_or(("kill", &wanted));
    if wanted != name {
        return;
    }
    let signal = match how {
        "term" => Signal::TERM,
        "int" => Signal::INT,
        "kill" => Signal::KILL,
        _ => panic!("the failpoint {name} wants a panic"),
    };
    // After a kill nothing runs: no destructor, no flush, no handler.
    if kill_process(getpid(), signal).is_err() {
        std::process::abort();
    }
}
