//! Boxes by bubblewrap: no daemon, no privileges. Started by root, the box still runs as an ordinary user.

mod argv;
mod link;
mod root;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host::cgroup::{MemoryGroup, observe_memory_control};
use host::proc::ProcessMemory;
use host::process::{ChildOptions, ProcessHandle, RunAs, Signal, send_signal, spawn_child};
use model::command::CommandSpec;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::sync::mpsc;

use crate::backend::{
    Backend, BackendKind, BoxControl, BoxExit, MemoryUse, OUTPUT_QUEUE, OutputChunk, OutputStream,
    Started,
};
use crate::boxdir;
use crate::error::SandboxError;
use crate::seccomp::bwrap_programs;
use crate::spec::{BindMount, BoxSpec, Root};
use argv::{BoxMounts, argv_bwrap};
use link::GuestLink;

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
        keep_fds: &[BorrowedFd<'_>],
        link: OwnedFd,
    ) -> Result<Child, SandboxError> {
        let run_as = RunAs { uid: spec.user.uid, gid: spec.user.gid };
        let options = ChildOptions {
            stdin: Stdio::from(link),
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
            run_as: host::env::is_root().then_some(run_as),
            keep_fds,
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
        let user_limits = open_user_limits(spec)?;
        let (status_read, status_write) = pipe()?;
        let (start_read, start_write) = pipe()?;
        let (link, guest_link) =
            GuestLink::pair().map_err(SandboxError::io("make the link to the guest"))?;
        let (made_up_etc, binds) = reachable_binds(spec)?;
        let machine = BoxMounts {
            root: observe_root(&spec.root)?,
            etc: root::observe_etc(&spec.root),
            made_up_etc,
            binds,
            seccomp_fds: filters.iter().map(AsRawFd::as_raw_fd).collect(),
            status_fd: status_write.as_raw_fd(),
            start_fd: start_read.as_raw_fd(),
            user_limits: user_limits.iter().map(|(file, name)| (file.as_raw_fd(), *name)).collect(),
        };
        // Nothing of this process's environment: bubblewrap's own would be readable inside as that of pid 1.
        let command = CommandSpec::new(&self.program).args(argv_bwrap(spec, &machine)).cwd("/");
        let mut keep: Vec<BorrowedFd<'_>> = filters.iter().map(AsFd::as_fd).collect();
        keep.extend(user_limits.iter().map(|(file, _)| file.as_fd()));
        keep.extend([status_write.as_fd(), start_read.as_fd()]);
        let mut child = self.spawn(&command, spec, &keep, guest_link)?;
        drop((filters, user_limits, status_write, start_read));
        let output = pump_output(&mut child);
        let status = File::from(status_read);
        let guest = read_guest(&status).await?;
        let group = match &guest {
            Some(guest) => {
                observe_memory_control().limit(guest.pid, spec.limits.memory_bytes).await
            }
            None => None,
        };
        // Closed, it lets the guest start: not before its memory has a limit.
        drop(start_write);
        let watched = Arc::new(Watched { link, group, hidden: Mutex::default() });
        let exit = Box::pin(wait(child, status, Arc::clone(&watched)));
        Ok(Started { control: BwrapBox { guest, watched }, exit, output })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| SandboxError::io("make a pipe")(errno.into()))
}

/// A running box, by the process that is pid 1 inside it.
#[derive(Debug)]
pub struct BwrapBox {
    guest: Option<ProcessHandle>,
    watched: Arc<Watched>,
}

/// Means to observe a running box.
#[derive(Debug)]
struct Watched {
    link: GuestLink,
    /// The kernel's limit on its memory, if this user could set one.
    group: Option<MemoryGroup>,
    /// Processes whose descriptors cannot be listed, and since when.
    hidden: Mutex<BTreeMap<i32, Instant>>,
}

/// A process may be hidden for this long: every one is, for a moment, while it starts.
const HIDDEN_LIMIT: Duration = Duration::from_secs(2);

impl Watched {
    fn is_exceeded(&self) -> bool {
        self.group.as_ref().is_some_and(MemoryGroup::is_exceeded)
    }

    /// Returns whether a process hides for so long that it must be taken to hold too much.
    fn hides(&self, hidden: &[i32]) -> bool {
        let now = host::clock::monotonic();
        let mut since = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|pid, _| hidden.contains(pid));
        hidden.iter().any(|pid| now - *since.entry(*pid).or_insert(now) > HIDDEN_LIMIT)
    }
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

    async fn memory(&self) -> Option<MemoryUse> {
        if let Some(group) = &self.watched.group {
            let bytes = group.memory_bytes().unwrap_or(0);
            let exceeded = group.is_exceeded();
            return Some(if exceeded { MemoryUse::Exceeded } else { MemoryUse::Bytes(bytes) });
        }
        let guest = self.guest.as_ref()?.pid;
        // Before the guest has started, what is mounted is still this host's.
        let Some(kernel) = self.watched.link.kernel_memory() else {
            return Some(MemoryUse::Bytes(0));
        };
        let count = tokio::task::spawn_blocking(move || count_memory(guest)).await.ok()?;
        let exceeded = self.watched.hides(&count.hidden);
        let bytes = count.bytes.saturating_add(kernel);
        Some(if exceeded { MemoryUse::Exceeded } else { MemoryUse::Bytes(bytes) })
    }

    async fn init_pid(&self) -> Option<i32> {
        self.guest.as_ref().map(|guest| guest.pid)
    }

    async fn cpu_time(&self) -> Option<Duration> {
        let guest = self.guest.as_ref()?;
        Some(host::proc::cpu_time(&host::proc::descendants(guest.pid)))
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

/// Memory of the box's processes and of its file systems in memory. The guest hides from the agent, and so from us.
fn count_memory(guest: i32) -> ProcessMemory {
    let mut count = host::proc::observe_memory(&host::proc::descendants(guest));
    count.hidden.retain(|pid| *pid != guest);
    for folder in ["tmp", "dev/shm"] {
        let path = format!("/proc/{guest}/root/{folder}");
        let used = host::file::memory_file_system_bytes(Path::new(&path)).unwrap_or(0);
        count.bytes = count.bytes.saturating_add(used);
    }
    count
}

/// Limits of the user namespace on what the kernel counts for the host's user too, as files with a part of what that user
/// may have. Otherwise one box takes all of it.
fn open_user_limits(spec: &BoxSpec) -> Result<Vec<(File, &'static str)>, SandboxError> {
    const LIMITS: [(&str, u64); 2] = [("max_inotify_instances", 4), ("max_inotify_watches", 2)];
    let mut opened = Vec::new();
    for (name, share) in LIMITS {
        let all = std::fs::read_to_string(format!("/proc/sys/user/{name}")).unwrap_or_default();
        let Ok(all) = all.trim().parse::<u64>() else { continue };
        let path = spec.box_dir.join(name);
        let file = std::fs::write(&path, (all / share).max(1).to_string())
            .and_then(|()| File::open(&path))
            .map_err(SandboxError::prepare(&path))?;
        opened.push((file, name));
    }
    Ok(opened)
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
async fn wait(mut child: Child, status: File, watched: Arc<Watched>) -> BoxExit {
    let ended = child.wait().await;
    drop(status);
    match ended {
        Ok(_) if watched.is_exceeded() => BoxExit::OutOfMemory,
        // The agent can kill neither the guest nor bubblewrap, so an end without the guest's word came from outside.
        Ok(status) => match status.code() {
            Some(code) if watched.link.has_ended() => BoxExit::Exited(code),
            Some(_) | None => BoxExit::KilledOutside(format!(
                "the box was killed from outside (bubblewrap ended with {status})"
            )),
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
