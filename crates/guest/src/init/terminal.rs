//! A terminal for the command: one end is the command's, the other is joined with a socket of the host.
//!
//! The command's output also goes to our standard output, so that the host's log has it as for any other
//! command. When the host disconnects, the terminal is gone, as for a shell whose window was closed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use guest::config::TerminalConfig;
use guest::terminal::{InputReader, TerminalInput, TerminalSize};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::is_for_later;
use crate::GuestError;

const BUFFER_BYTES: usize = 32 * 1024;
const STACK_BYTES: usize = 128 * 1024;

/// Time for the last output to get through once the command has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A terminal in which nothing was started yet.
pub(crate) struct GuestTerminal {
    ours: File,
    theirs: OwnedFd,
    host: UnixStream,
}

impl GuestTerminal {
    /// Opens it, and connects to the host's socket.
    pub(crate) fn open(config: &TerminalConfig) -> Result<Self, GuestError> {
        let (ours, theirs) =
            open_pair(config.size).map_err(GuestError::could_not("open a terminal in the box"))?;
        let socket = config.socket.display();
        let host = UnixStream::connect(&config.socket).map_err(|error| {
            let reason = format!("could not connect to {socket}: {error}");
            GuestError(format!("nobody sits at the terminal: {reason}"))
        })?;
        Ok(Self { ours: File::from(ours), theirs, host })
    }

    pub(crate) fn streams(&self) -> io::Result<[Stdio; 3]> {
        let stream = || self.theirs.try_clone().map(Stdio::from);
        Ok([stream()?, stream()?, stream()?])
    }

    /// Starts copying bytes. The command must be started: its end of the terminal is closed here, so that the
    /// last process to close it ends the connection.
    pub(crate) fn serve(self) -> Result<Serving, GuestError> {
        let (done, ended) = channel();
        let Self { ours, theirs, host } = self;
        drop(theirs);
        let link =
            TerminalConnection { ours, host, reader: InputReader::default(), pending: Vec::new() };
        thread::Builder::new()
            .name("terminal".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // The terminal closes with the connection, whatever the reason; there is no way left to report it.
                link.run().ok();
                done.send(()).ok();
            })
            .map_err(GuestError::could_not("start the terminal"))?;
        Ok(Serving(ended))
    }
}

pub(crate) struct Serving(Receiver<()>);

impl Serving {
    /// Waits until the last output is through, but not for long: a leftover process may hold the terminal open.
    pub(crate) fn finish(self) {
        self.0.recv_timeout(LAST_WORDS).ok();
    }
}

fn open_pair(size: TerminalSize) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    resize(&ours, size)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs =
        open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    // A command that does not read must not block its own output.
    fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

fn resize(terminal: impl AsFd, size: TerminalSize) -> rustix::io::Result<()> {
    let TerminalSize { rows, cols } = size;
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 })
}

/// Both directions between the command and the host.
struct TerminalConnection {
    ours: File,
    host: UnixStream,
    reader: InputReader,
    /// Keys that the command has not read yet; until then no more are taken.
    pending: Vec<u8>,
}

impl TerminalConnection {
    fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let (printed, typed) = self.wait()?;
            if printed && !self.carry_out(&mut buffer)? {
                return Ok(());
            }
            if typed && !self.take_in(&mut buffer)? {
                return Ok(());
            }
            self.carry_in()?;
        }
    }

    /// Waits and returns whether the command has output, and whether the host has input.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut ours = PollFlags::IN;
        ours.set(PollFlags::OUT, !self.pending.is_empty());
        let mut fds = vec![PollFd::new(&self.ours, ours)];
        if self.pending.is_empty() {
            fds.push(PollFd::new(&self.host, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let any = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let printed = fds[0].revents().intersects(any);
        Ok((printed, fds.get(1).is_some_and(|fd| fd.revents().intersects(any))))
    }

    /// Copies output; returns false when no process can print any more.
    fn carry_out(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let count = match self.ours.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if is_for_later(&error) => return Ok(true),
            // The kernel reports a terminal without open ends as an error.
            Err(_) => return Ok(false),
        };
        let mut log = io::stdout().lock();
        log.write_all(&buffer[..count]).and_then(|()| log.flush())?;
        self.host.write_all(&buffer[..count])?;
        Ok(true)
    }

    /// Reads input; returns false when the host has disconnected.
    fn take_in(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let count = match self.host.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if is_for_later(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        for input in self.reader.push(&buffer[..count]) {
            match input {
                TerminalInput::Keys(keys) => self.pending.extend(keys),
                TerminalInput::Size(size) => resize(&self.ours, size)?,
            }
        }
        Ok(true)
    }

    /// Writes as much of the input as the command accepts.
    fn carry_in(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.ours.write(&self.pending) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
