//! wf at a terminal.

use testkit::screen::Screen;

use crate::support::Person;

/// Starts one command of wf; none if there is no tmux.
pub(crate) fn start<'a>(person: &'a Person, args: &[&str]) -> Option<Screen<'a>> {
    let words = [&["USER=ada", env!("CARGO_BIN_EXE_wf")], args].concat();
    Screen::start(&person.hermetic, person.repo.dir(), &words)
}
