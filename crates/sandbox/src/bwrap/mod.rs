//! Boxes by bubblewrap: no daemon, no privileges. Started by root, the box still runs as an ordinary user.

mod argv;
mod root;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use host::process::{ChildOptions, ProcessHandle, RunAs, Signal, send_signal, spawn_child};
use model::command::CommandSpec;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::sync::mpsc;

use crate::backend::{
    Backend, BackendKind, BoxControl, BoxExit, OUTPUT_QUEUE, OutputChunk, OutputStream, Started,
};
use crate::boxdir;
use crate::error::SandboxError;
use crate::seccomp::bwrap_programs;
use crate::spec::{BindMount, BoxSpec, Root};
use argv::{BoxMounts, argv_bwrap};

/// Bytes that are read from a box at once.
const CHUNK: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub struct Bwrap {
    program: PathBuf,
}

impl Bwrap {
    pub fn find() -> Result<Self, SandboxError> {
        host::tool::which("bwrap")
            .map(|program| Self { program })
            .ok_or(SandboxError::Missing { program: "bwrap", package: "bubblewrap" })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    fn spawn(
        &self,
        command: &CommandSpec,
        spec: &BoxSpec,
        filters: &[File],
        status: &OwnedFd,
    ) -> Result<Child, SandboxError> {
        let mut keep: Vec<BorrowedFd<'_>> = filters.iter().map(AsFd::as_fd).collect();
        keep.push(status.as_fd());
        let run_as = RunAs { uid: spec.user.uid, gid: spec.user.gid };
        let options = ChildOptions {
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
            run_as: host::env::is_root().then_some(run_as),
            keep_fds: &keep,
            ..ChildOptions::default()
        };
        let processors = usize::try_from(spec.limits.cpu_percent.div_ceil(100)).unwrap_or(1);
        host::cpu::with_processors(processors, || spawn_child(command, options))
            .map_err(SandboxError::io("limit the processors of the box"))?
            .map_err(SandboxError::from)
    }
}

impl Backend for Bwrap {
    type Control = BwrapBox;

    async fn start(&self, spec: &BoxSpec) -> Result<Started<BwrapBox>, SandboxError> {
        boxdir::prepare(spec, BackendKind::Bwrap)?;
        root::write_etc(spec).map_err(SandboxError::prepare(spec.etc_dir()))?;
        let filters = open_filters(spec)?;
        let (status_read, status_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|errno| SandboxError::io("make a pipe")(errno.into()))?;
        let (made_up_etc, binds) = reachable_binds(spec)?;
        let machine = BoxMounts {
            root: observe_root(&spec.root)?,
            etc: root::observe_etc(&spec.root),
            made_up_etc,
            binds,
            seccomp_fds: filters.iter().map(AsRawFd::as_raw_fd).collect(),
            status_fd: status_write.as_raw_fd(),
        };
        // Nothing of this process's environment: bubblewrap's own would be readable inside as that of pid 1.
        let command = CommandSpec::new(&self.program).args(argv_bwrap(spec, &machine)).cwd("/");
        let mut child = self.spawn(&command, spec, &filters, &status_write)?;
        drop((filters, status_write));
        let output = pump_output(&mut child);
        let status = File::from(status_read);
        let control = BwrapBox { guest: read_guest(&status).await? };
        Ok(Started { control, exit: Box::pin(wait(child, status)), output })
    }
}

/// A running box, by the process that is pid 1 inside it.
#[derive(Debug)]
pub struct BwrapBox {
    guest: Option<ProcessHandle>,
}

impl BwrapBox {
    fn signal(&self, signal: Signal) -> Result<(), SandboxError> {
        match &self.guest {
            Some(guest) => Ok(send_signal(guest, signal).map(drop)?),
            None => Ok(()),
        }
    }
}

impl BoxControl for BwrapBox {
    async fn terminate(&self) -> Result<(), SandboxError> {
        self.signal(Signal::TERM)
    }

    /// With pid 1 of its namespace the kernel ends every process of the box.
    async fn kill(&self) -> Result<(), SandboxError> {
        self.signal(Signal::KILL)
    }

    fn memory_bytes(&self) -> Option<u64> {
        let guest = self.guest.as_ref()?;
        Some(host::proc::memory_bytes(&host::proc::descendants(guest.pid)))
    }

    async fn cpu_time(&self) -> Option<Duration> {
        let guest = self.guest.as_ref()?;
        Some(host::proc::cpu_time(&host::proc::descendants(guest.pid)))
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

fn observe_root(root: &Root) -> Result<Vec<argv::RootEntry>, SandboxError> {
    match root {
        Root::HostUsr => {
            root::observe_host_root().map_err(SandboxError::io("look at this host's /usr"))
        }
        Root::Folder(folder) => {
            root::observe_folder_root(folder).map_err(SandboxError::prepare(folder))
        }
        Root::Image(image) => Err(SandboxError::Root {
            backend: "bwrap",
            root: format!("the image '{image}'"),
            hint: "use --backend docker, or an unpacked folder",
        }),
    }
}

/// The filters as files of the box's folder, opened for reading: bubblewrap takes them by descriptor.
fn open_filters(spec: &BoxSpec) -> Result<Vec<File>, SandboxError> {
    let write_and_open = |(index, program): (usize, Vec<u8>)| {
        let path = spec.box_dir.join(format!("seccomp-{index}.bpf"));
        std::fs::write(&path, program)
            .and_then(|()| File::open(&path))
            .map_err(SandboxError::prepare(&path))
    };
    bwrap_programs()?.into_iter().enumerate().map(write_and_open).collect()
}

/// Returns the made-up `/etc` and the binds by paths that the box's user can reach. An ordinary caller is that user. Root
/// is not, and its folders may be closed to all others, so they are bound on a stage that only this box sees.
fn reachable_binds(spec: &BoxSpec) -> Result<(PathBuf, Vec<BindMount>), SandboxError> {
    let (mut etc, mut binds) = (spec.etc_dir(), spec.binds());
    if host::env::is_root() {
        let sources = binds.iter_mut().map(|bind| &mut bind.source);
        let mut paths: Vec<&mut PathBuf> = sources.chain([&mut etc]).collect();
        let folders: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
        let staged = host::mount::stage(&folders).map_err(|error| {
            SandboxError::io("stage the folders of the box")(io::Error::other(error))
        })?;
        for (path, staged) in paths.iter_mut().zip(staged) {
            **path = staged;
        }
    }
    Ok((etc, binds))
}

/// Reads bubblewrap's first status line, which names the guest's process id on this host. No line means that it failed
/// early, which its exit shows.
async fn read_guest(status: &File) -> Result<Option<ProcessHandle>, SandboxError> {
    let status = status.try_clone().map_err(SandboxError::io("read bubblewrap's status"))?;
    let read = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(status).read_line(&mut line).map(|_| line)
    });
    let line = read
        .await
        .map_err(io::Error::other)
        .and_then(|line| line)
        .map_err(SandboxError::io("read bubblewrap's status"))?;
    Ok(parse_child_pid(&line).and_then(|pid| ProcessHandle::of(pid).ok()))
}

fn parse_child_pid(line: &str) -> Option<i32> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    value.get("child-pid")?.as_i64()?.try_into().ok()
}

/// The status pipe stays open until the end: bubblewrap writes to it once more and would die of a closed one.
async fn wait(mut child: Child, status: File) -> BoxExit {
    use std::os::unix::process::ExitStatusExt;
    let ended = child.wait().await;
    drop(status);
    match ended {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => BoxExit::Exited(code),
            (None, Some(signal)) => BoxExit::Signalled(signal),
            (None, None) => BoxExit::Lost(format!("bubblewrap ended with {status}")),
        },
        Err(error) => BoxExit::Lost(format!("bubblewrap could not be waited for: {error}")),
    }
}

fn pump_output(child: &mut Child) -> OutputStream {
    let (sender, receiver) = mpsc::channel(OUTPUT_QUEUE);
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(pump(stdout, sender.clone(), OutputChunk::Out));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(pump(stderr, sender, OutputChunk::Err));
    }
    receiver
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    to: mpsc::Sender<OutputChunk>,
    wrap: fn(Vec<u8>) -> OutputChunk,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if to.send(wrap(buffer[..count].to_vec())).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_status_line_names_the_guest() {
        assert_eq!(parse_child_pid("{ \"child-pid\": 4711, \"pid-namespace\": 1 }\n"), Some(4711));
        assert_eq!(parse_child_pid(""), None);
        assert_eq!(parse_child_pid("{ \"exit-code\": 0 }"), None);
    }
}
