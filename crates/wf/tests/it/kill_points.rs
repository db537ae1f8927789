//! Every system call of wf, and of each git that it starts, that changes a folder or waits for the disk; and a kill -9 at
//! one of them, injected by strace.
//!
//! strace counts for each process and each system call, so a point is a process, a call and a number. The gits are told
//! apart by a `git` before the real one on the path, which numbers itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{Person, read, write};

/// The calls after which a folder or the disk is another.
const CALLS: &str = "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,fdatasync";
/// Where the real programs are.
const PATH: &str = "/usr/bin:/bin";

/// A moment in a command at which one of its processes is killed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// None for wf itself, otherwise which of its gits.
    pub(crate) git: Option<u32>,
    pub(crate) call: String,
    /// The first call of the process is 1.
    pub(crate) at: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// No process was killed: the command did not come by there.
    Whole,
    /// A git was killed, and the command succeeded all the same.
    Survived,
    Killed,
}

/// Folder of a `git` that is traced, and of what it writes.
pub(crate) struct Tracer {
    strace: PathBuf,
    folder: tempfile::TempDir,
}

impl Tracer {
    /// None where there is no strace.
    pub(crate) fn new() -> Option<Self> {
        let Some(strace) = host::tool::which("strace") else {
            testkit::part::missing("strace", "install strace");
            return None;
        };
        let tracer = Self { strace, folder: tempfile::tempdir().expect("a folder") };
        let git = host::tool::which("git").expect("git");
        let (strace, git, calls) =
            (tracer.strace.display(), git.display(), tracer.calls().display().to_string());
        let script = format!(
            "#!/bin/sh\nn=1\nwhile ! mkdir '{calls}'/$n 2>/dev/null; do n=$((n + 1)); done\n\
             for plan in {calls}/all.plan {calls}/$n.plan; do\n\
             \ttest -e $plan && exec {strace} -f -qq -o {calls}/$n/log $(cat $plan) {git} \"$@\"\n\
             done\nexec {git} \"$@\"\n"
        );
        let program = tracer.folder.path().join("programs/git");
        write(&program, &script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(program, mode).expect("executable");
        Some(tracer)
    }

    fn calls(&self) -> PathBuf {
        self.folder.path().join("calls")
    }

    /// Runs a wf command with these options for strace; gives its log and whether wf succeeded.
    fn run(&self, person: &Person, args: &[&str], options: &[&str]) -> (String, bool) {
        let log = self.folder.path().join("wf.log");
        let mut command = person.hermetic.command(&self.strace);
        let path = format!("{}:{PATH}", self.folder.path().join("programs").display());
        command.current_dir(person.repo.dir()).env("USER", "ada").env("PATH", path);
        // What wf starts is not traced here.
        command.args(["-f", "-b", "execve", "-qq", "-o"]).arg(&log).args(options);
        command.arg(env!("CARGO_BIN_EXE_wf")).args(args);
        let output = person.hermetic.run(&mut command);
        (read(&log), output.status == Some(0))
    }

    fn clear(&self) {
        std::fs::remove_dir_all(self.calls()).ok();
        std::fs::create_dir(self.calls()).expect("a folder");
    }

    /// Runs the command whole and lists the points that it comes by.
    pub(crate) fn record(&self, person: &Person, args: &[&str]) -> Vec<Point> {
        self.clear();
        let trace = format!("trace={CALLS}");
        write(&self.calls().join("all.plan"), &format!("-e {trace}"));
        let (log, _) = self.run(person, args, &["-e", &trace]);
        let mut points = points_of(&log, None);
        for git in 1.. {
            let folder = self.calls().join(git.to_string());
            if !folder.is_dir() {
                break;
            }
            points.extend(points_of(&read(&folder.join("log")), Some(git)));
        }
        points
    }

    /// Runs the command with a kill at this point.
    pub(crate) fn kill(&self, person: &Person, args: &[&str], point: &Point) -> Ended {
        self.clear();
        let Point { git, call, at } = point;
        let (trace, inject) =
            (format!("trace={call}"), format!("inject={call}:signal=KILL:when={at}"));
        let own = ["-e", &trace, "-e", &inject];
        let (log, succeeded) = match git {
            None => self.run(person, args, &own),
            Some(git) => {
                write(&self.calls().join(format!("{git}.plan")), &own.join(" "));
                let (_, succeeded) = self.run(person, args, &["-e", "trace=none"]);
                let log = self.calls().join(git.to_string()).join("log");
                (std::fs::read_to_string(log).unwrap_or_default(), succeeded)
            }
        };
        match (log.contains("killed by SIGKILL"), succeeded) {
            (false, _) => Ended::Whole,
            (true, true) => Ended::Survived,
            (true, false) => Ended::Killed,
        }
    }
}

/// The points in a log of strace: those of the process that makes the most of each call. A call that failed changed
/// nothing, so that a kill at it is a kill at the one before.
fn points_of(log: &str, git: Option<u32>) -> Vec<Point> {
    let mut seen: BTreeMap<(&str, &str), Vec<bool>> = BTreeMap::new();
    for line in log.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        // A call that another process interrupted has a second line, which begins with `<...`.
        let Some((call, rest)) = rest.trim_start().split_once('(') else { continue };
        if CALLS.split(',').any(|known| known == call) {
            seen.entry((call, process)).or_default().push(!rest.contains(" = -1 E"));
        }
    }
    let mut most: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for ((call, _), calls) in seen {
        let known = most.entry(call).or_default();
        if calls.len() > known.len() {
            *known = calls;
        }
    }
    let mut points = Vec::new();
    for (call, calls) in most {
        let worked = (1..).zip(calls).filter(|(_, worked)| *worked);
        points.extend(worked.map(|(at, _)| Point { git, call: call.to_owned(), at }));
    }
    points
}

/// Every point, or a few that lie evenly between the first and the last.
pub(crate) fn few_of(points: Vec<Point>, few: usize) -> Vec<Point> {
    let step = points.len().div_ceil(few).max(1);
    points.into_iter().step_by(step).collect()
}

/// Hidden files of writes that never happened. They are harmless, and counted.
pub(crate) fn temporary_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let count = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match path.is_dir() && !path.is_symlink() {
            true => temporary_files(&path),
            false => usize::from(name.starts_with(".new-")),
        }
    };
    entries.flatten().map(|entry| count(entry.path())).sum()
}
