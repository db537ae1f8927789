//! wf at a terminal.

use std::thread;
use std::time::{Duration, Instant};

use testkit::screen::Screen;

use crate::support::Person;

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts one command of wf; none if there is no tmux.
pub(crate) fn start<'a>(person: &'a Person, args: &[&str]) -> Option<Screen<'a>> {
    let words = [&["USER=ada", env!("CARGO_BIN_EXE_wf")], args].concat();
    Screen::start(&person.hermetic, person.repo.dir(), &words)
}

/// Waits until there is something.
pub(crate) fn wait_for<T>(found: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not come up");
        thread::sleep(Duration::from_millis(100));
    }
}
