//! Named moments at which a test can make the program die as if by kill -9. Release builds have none.

/// The variable that names the moment.
pub const VARIABLE: &str = "BOTTLEWORKS_FAILPOINT";

/// Dies here if the environment says so.
pub fn hit(name: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    if cfg!(debug_assertions) && crate::env::var(VARIABLE).as_deref() == Some(name) {
        // Nothing runs after this: no destructor, no flush, no handler.
        if kill_process(getpid(), Signal::KILL).is_err() {
            std::process::abort();
        }
    }
}
