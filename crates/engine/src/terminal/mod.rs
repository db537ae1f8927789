//! Terminal of a box, attached to the user's terminal: keys go in, output comes out.
//!
//! The terminal itself is in the box. Its other end is a socket in the box's read-only folder, which takes exactly one
//! connection: the guest makes it before it starts anything, and then the socket is gone.
//!
//! - `filter` limits what a box can do to the user's screen

mod filter;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use guest::TERMINAL_SOCKET_FILE;
use guest::terminal::{TerminalInput, TerminalSize};
use host::terminal::{Keyboard, RawMode};
use model::redact::{MaskingStream, SecretMask};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::box_dir::BoxDir;
use filter::TerminalFilter;

/// Size of a screen that does not report one.
const USUAL_SIZE: TerminalSize = TerminalSize { rows: 24, cols: 80 };

/// Type of a terminal without a usable name.
const USUAL_NAME: &str = "xterm-256color";

const CHUNK: usize = 32 * 1024;

/// Bytes at the end of the output that may be the start of a secret by chance, such as a key that was typed. They are
/// shown when nothing follows for a moment; more bytes wait for the rest.
const CHANCE_BYTES: usize = 6;
const CHANCE_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalPlan {
    pub size: TerminalSize,
    /// Variables that describe its capabilities.
    pub env: BTreeMap<String, String>,
}

impl TerminalPlan {
    /// The terminal that this program was started in; `None` if there is none.
    pub fn observe() -> Option<Self> {
        host::terminal::is_present().then(|| Self {
            size: current_size().unwrap_or(USUAL_SIZE),
            env: choose_env(host::env::var("TERM"), host::env::var("COLORTERM")),
        })
    }
}

/// Only plain words are passed on: the names come from outside and end up inside.
fn choose_env(name: Option<String>, colours: Option<String>) -> BTreeMap<String, String> {
    let is_plain = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        (1..=64).contains(&word.len()) && word.chars().all(plain)
    };
    let name = name.filter(is_plain).unwrap_or_else(|| USUAL_NAME.to_owned());
    let colours = colours.filter(is_plain).map(|word| ("COLORTERM".to_owned(), word));
    std::iter::once(("TERM".to_owned(), name)).chain(colours).collect()
}

fn current_size() -> Option<TerminalSize> {
    host::terminal::size().map(|(rows, cols)| TerminalSize { rows, cols })
}

/// The user's terminal, waiting for the connection of its box.
#[derive(Debug)]
pub struct AttachedTerminal {
    listener: UnixListener,
    socket: PathBuf,
    mask: Arc<SecretMask>,
}

impl AttachedTerminal {
    /// Waits for the box. `mask` overwrites secrets in what it shows.
    pub fn open(box_dir: &BoxDir, mask: SecretMask) -> io::Result<Self> {
        let socket = box_dir.guest_dir().join(TERMINAL_SOCKET_FILE);
        let listener = box_dir.bind_guest_socket(TERMINAL_SOCKET_FILE)?;
        Ok(Self { listener, socket, mask: Arc::new(mask) })
    }

    /// Waits for the box, then connects it to this program's terminal until it hangs up.
    pub async fn serve(self) -> io::Result<()> {
        let (stream, _) = self.listener.accept().await?;
        drop(self.listener);
        std::fs::remove_file(&self.socket)?;
        let (from_box, to_box) = stream.into_split();
        let _raw = RawMode::enter()?;
        // Concurrently: a box that takes no keys may still print.
        tokio::select! {
            shown = show(from_box, self.mask) => shown,
            typed = type_in(to_box) => typed,
        }
    }
}

/// The user's screen while a box draws on it. It is made usable again on drop.
#[derive(Default)]
struct Canvas(TerminalFilter);

impl Drop for Canvas {
    fn drop(&mut self) {
        // A screen that is gone needs no reset.
        put(&std::mem::take(&mut self.0).leave()).ok();
    }
}

fn put(bytes: &[u8]) -> io::Result<()> {
    let mut screen = io::stdout().lock();
    screen.write_all(bytes).and_then(|()| screen.flush())
}

async fn show(mut from_box: OwnedReadHalf, mask: Arc<SecretMask>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut canvas = Canvas::default();
    let mut masked = MaskingStream::new(mask);
    loop {
        let reading = from_box.read(&mut buffer);
        let read = match masked.held_len() {
            1..CHANCE_BYTES => tokio::time::timeout(CHANCE_PAUSE, reading).await.ok(),
            _ => Some(reading.await),
        };
        match read {
            Some(Ok(count @ 1..)) => {
                let piece = &buffer[..count];
                let ready = masked.push(piece);
                put(&canvas.0.pass(ready.as_deref().unwrap_or(piece)))?;
            }
            None => put(&canvas.0.pass(&masked.finish()))?,
            // A box that was killed hangs up with an error.
            Some(Ok(_) | Err(_)) => return put(&canvas.0.pass(&masked.finish())),
        }
    }
}

/// Ends when the keyboard is gone; the box notices when the connection is closed with it.
async fn type_in(mut to_box: OwnedWriteHalf) -> io::Result<()> {
    let mut keyboard = Keyboard::listen()?;
    let mut changes = host::terminal::size_changes()?;
    // The size may have changed while the box was made ready.
    let mut input = current_size().map(TerminalInput::Size);
    loop {
        if let Some(input) = &input
            && to_box.write_all(&input.render()).await.is_err()
        {
            // The box has hung up; its last output is still to be shown.
            return std::future::pending().await;
        }
        input = tokio::select! {
            keys = keyboard.next() => match keys {
                Some(keys) => Some(TerminalInput::Keys(keys)),
                None => return Ok(()),
            },
            _ = changes.recv() => current_size().map(TerminalInput::Size),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: Option<&str>, colours: Option<&str>, expected: &[(&str, &str)]) {
        let env = choose_env(name.map(str::to_owned), colours.map(str::to_owned));
        let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, expected);
    }

    #[test]
    fn the_terminal_keeps_its_name_and_odd_ones_stay_outside() {
        check(Some("screen"), None, &[("TERM", "screen")]);
        check(
            Some("xterm-256color"),
            Some("truecolor"),
            &[("COLORTERM", "truecolor"), ("TERM", "xterm-256color")],
        );
        check(None, Some(""), &[("TERM", USUAL_NAME)]);
        check(Some("a b\n"), Some("../x"), &[("TERM", USUAL_NAME)]);
    }
}
