//! A terminal that a test can look at and type into: tmux, of 80 columns and 24 rows.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use testkit::part::{Part, require};

use crate::support::Person;

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal in which one command of wf runs.
pub(crate) struct Terminal<'a> {
    person: &'a Person,
    tmux: PathBuf,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// Starts the command; none if there is no tmux.
    pub(crate) fn start(person: &'a Person, args: &[&str]) -> Option<Self> {
        let tmux = require(Part::Tmux)?;
        let socket = person.hermetic.work().join("tmux");
        let terminal = Self { person, tmux, socket };
        let dir = person.repo.dir().to_str().expect("UTF-8").to_owned();
        let words = [
            &["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", &dir],
            &["env", "TERM=screen", "USER=ada", env!("CARGO_BIN_EXE_wf")][..],
            args,
        ];
        terminal.tmux(&words.concat());
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.person.hermetic.command(self.tmux.to_str().expect("UTF-8"));
        command.arg("-u").arg("-S").arg(&self.socket).args(args);
        self.person.hermetic.run(&mut command).stdout
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Presses keys, as tmux names them.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen shows something.
    #[track_caller]
    pub(crate) fn shows(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(words) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "{words:?} does not come up:\n{screen}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the command has ended, which ends the terminal too.
    #[track_caller]
    pub(crate) fn ends(&self) {
        let begun = Instant::now();
        while !self.tmux(&["list-sessions"]).is_empty() {
            assert!(begun.elapsed() < PATIENCE, "it goes on:\n{}", self.screen());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
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
