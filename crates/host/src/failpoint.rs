//! Named moments at which a test can make the program die as if by kill -9, or panic. Release builds have none.

/// The variable that names the moment; `panic:` before the name makes it a panic.
pub const VARIABLE: &str = "BOTTLEWORKS_FAILPOINT";

/// Dies here if the environment says so.
pub fn hit(name: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    let wanted = if cfg!(debug_assertions) { crate::env::var(VARIABLE) } else { None };
    let panics = wanted.as_deref().and_then(|wanted| wanted.strip_prefix("panic:")) == Some(name);
    assert!(!panics, "the failpoint {name} wants a panic");
    if wanted.as_deref() == Some(name) {
        // Nothing runs after this: no destructor, no flush, no handler.
        if kill_process(getpid(), Signal::KILL).is_err() {
            std::process::abort();
        }
    }
}
