//! A terminal that a test can look at and type into: tmux, of 80 columns and 24 rows at first.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::hermetic::Hermetic;
use crate::part::{Part, require};
use crate::wait::{PATIENCE, wait_until};

/// A terminal in which one command runs.
#[derive(Debug)]
pub struct Screen<'a> {
    hermetic: &'a Hermetic,
    tmux: PathBuf,
    socket: PathBuf,
}

impl<'a> Screen<'a> {
    /// Starts the words of a command in a folder; `None` if there is no tmux, which is then reported by name.
    pub fn start(hermetic: &'a Hermetic, dir: &Path, words: &[&str]) -> Option<Self> {
        // A server that is being ended still answers on its socket, so each terminal has a socket of its own.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let tmux = require(Part::Tmux)?;
        let name = format!("tmux-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let screen = Self { hermetic, tmux, socket: hermetic.work().join(name) };
        let dir = dir.to_str().expect("UTF-8");
        let new = ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir];
        let args = [&new, &["env", "TERM=screen"][..], words].concat();
        hermetic.run_ok(&mut screen.command(&args));
        Some(screen)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(&self.tmux);
        command.arg("-u").arg("-S").arg(&self.socket).args(args);
        command
    }

    fn tmux(&self, args: &[&str]) -> String {
        self.hermetic.run(&mut self.command(args)).stdout
    }

    /// The text on the screen.
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The text with the escapes that colour it.
    pub fn coloured_text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Presses keys, as tmux names them.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Makes the window larger or smaller.
    pub fn resize(&self, cols: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &cols.to_string(), "-y", &rows.to_string()]);
    }

    /// Closes the window, as a person does who has had enough.
    pub fn close(&self) {
        self.tmux(&["kill-session"]);
    }

    /// Waits until it shows something.
    ///
    /// # Panics
    /// When that does not come up.
    #[track_caller]
    pub fn shows(&self, words: &str) -> String {
        let start = Instant::now();
        loop {
            let text = self.text();
            if text.contains(words) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "{words:?} does not come up:\n{text}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the command has ended, which ends the terminal too.
    ///
    /// # Panics
    /// When it goes on.
    #[track_caller]
    pub fn ends(&self) {
        wait_until("the end of the command", || self.tmux(&["list-sessions"]).is_empty());
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
