//! The terminal that this program was started in: detection, size and raw mode.
//!
//! In raw mode every key is a byte for the attached program; nothing is echoed and no key is a signal. The
//! previous mode returns when [`RawMode`] is dropped, also after an error or a panic.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Bytes read from the keyboard at once.
const CHUNK: usize = 4096;

/// Chunks that may wait in the queue.
const QUEUE: usize = 16;

/// Returns whether the program is interactive: both keyboard and screen are a terminal.
pub fn is_present() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns rows and columns of the screen; `None` without a screen or a known size.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// Returns the signal of possible changes of the screen's size.
pub fn size_changes() -> io::Result<Signal> {
    signal(SignalKind::window_change())
}

/// The terminal in raw mode, until dropped.
#[must_use = "the terminal goes back to its mode when this is dropped"]
#[derive(Debug)]
pub struct RawMode {
    before: Termios,
}

impl RawMode {
    pub fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Pending replies of the terminal to the program that had it must not reach the next one. A terminal
        // that is gone cannot be restored.
        tcsetattr(io::stdin(), OptionalActions::Flush, &self.before).ok();
    }
}

/// Keyboard input. A separate thread reads keys, and only until this is dropped: later keys belong to the
/// next reader.
#[derive(Debug)]
pub struct Keyboard {
    keys: mpsc::Receiver<Vec<u8>>,
    /// Dropping it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    pub fn listen() -> io::Result<Self> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, keys) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || read_keys(&stopped, &sender))?;
        Ok(Self { keys, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the next keys; `None` when the terminal is gone.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.keys.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.keys.close();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing but its end.
            thread.join().ok();
        }
    }
}

fn read_keys(stopped: &OwnedFd, sender: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0; CHUNK];
    let stdin = io::stdin();
    loop {
        let ready = {
            let mut fds = [
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
                PollFd::new(stopped, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) if !fds[1].revents().is_empty() => return,
                Ok(_) => !fds[0].revents().is_empty(),
                Err(rustix::io::Errno::INTR) => false,
                Err(_) => return,
            }
        };
        if !ready {
            continue;
        }
        // Not through the standard library's buffer: bytes waiting in there would not wake the poll again.
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(count @ 1..) if sender.blocking_send(buffer[..count].to_vec()).is_ok() => {}
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
