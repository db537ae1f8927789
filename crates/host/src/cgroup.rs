//! Control groups of version 2: the kernel's own limit on the memory of a process and all its descendants.
//!
//! A group is made where this user may make one: by the manager of a systemd machine, or in a folder that was delegated.
//! It counts only once the kernel confirms the limit for the process itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use model::command::{CommandExit, CommandSpec};
use rustix::fs::{Access, access};

use crate::process::{ChildOptions, ProcessHandle, RunLimits, run, spawn_child};
use crate::signal::Cancel;
use crate::{env, tool};

const ROOT: &str = "/sys/fs/cgroup";

/// Start of the names of our groups; the process id of the supervisor follows.
const NAME: &str = "bottleworks-";

/// Time limit for the manager's answer, and for the move that follows it.
const MANAGER_TIMEOUT: Duration = Duration::from_secs(3);
const MOVE_PAUSE: Duration = Duration::from_millis(10);

/// Means to make a group that limits memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryControl {
    /// A scope of the machine's manager.
    SystemManager,
    /// A scope of this user's manager.
    UserManager,
    /// A folder in which this user may make groups.
    Delegated(PathBuf),
    None,
}

/// Returns the means that this process has.
pub fn observe_memory_control() -> MemoryControl {
    let root = Path::new(ROOT);
    if !lists_memory(&root.join("cgroup.controllers")) {
        return MemoryControl::None;
    }
    if tool::which("busctl").is_some() {
        let booted = Path::new("/run/systemd/system").exists();
        if env::is_root() && booted && Path::new("/run/dbus/system_bus_socket").exists() {
            return MemoryControl::SystemManager;
        }
        let bus = env::var("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("bus"));
        if !env::is_root() && booted && bus.is_some_and(|bus| bus.exists()) {
            return MemoryControl::UserManager;
        }
    }
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    find_delegated(root, &own).map_or(MemoryControl::None, MemoryControl::Delegated)
}

/// Returns the means that this process has, if a group that it makes confirms its limit. A manager or a folder may be there
/// and refuse.
pub async fn confirm_memory_control() -> Result<MemoryControl, MemoryControl> {
    const TRIAL_BYTES: u64 = 64 << 20;
    let control = observe_memory_control();
    if control == MemoryControl::None {
        return Ok(control);
    }
    // The child has no PATH.
    let Some(sleep) = tool::which("sleep") else { return Err(control) };
    let command = CommandSpec::new(sleep).arg("60").cwd("/");
    let options = ChildOptions { stdin: Stdio::null(), ..ChildOptions::default() };
    let Ok(mut child) = spawn_child(&command, options) else { return Err(control) };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let group = match pid {
        Some(pid) => control.limit(pid, TRIAL_BYTES).await,
        None => None,
    };
    let is_limited = group.is_some();
    // The child is killed first: a group with a process stays.
    child.kill().await.ok();
    drop(group);
    if is_limited { Ok(control) } else { Err(control) }
}

/// Finds the group above our own, if this user may make groups in it and move processes between them. Groups with
/// processes in them, such as our own, cannot have groups with limits below.
fn find_delegated(root: &Path, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let parent = root.join(path).parent().filter(|parent| parent.starts_with(root))?.to_path_buf();
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let usable = lists_memory(&parent.join("cgroup.subtree_control"))
        && may_write(&parent)
        && may_write(&parent.join("cgroup.procs"));
    usable.then_some(parent)
}

fn lists_memory(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().any(|name| name == "memory")
}

impl MemoryControl {
    /// Moves a process that has no children yet into a group with this limit. `None` if that failed in any way: then the
    /// kernel does not limit it.
    pub async fn limit(&self, pid: i32, bytes: u64) -> Option<MemoryGroup> {
        let group = match self {
            Self::SystemManager => start_scope("--system", pid, bytes).await?,
            Self::UserManager => start_scope("--user", pid, bytes).await?,
            Self::Delegated(parent) => make_group(parent, pid, bytes)?,
            Self::None => return None,
        };
        group.limits_to(bytes).then_some(group)
    }
}

/// A group that limits memory.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    /// Returns whether the kernel killed a process of the group for its memory.
    pub fn is_exceeded(&self) -> bool {
        let text = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        parse_oom_kills(&text) > 0
    }

    pub fn memory_bytes(&self) -> Option<u64> {
        fs::read_to_string(self.path.join("memory.current")).ok()?.trim().parse().ok()
    }

    /// The kernel rounds a limit down to whole pages.
    fn limits_to(&self, bytes: u64) -> bool {
        let text = fs::read_to_string(self.path.join("memory.max")).unwrap_or_default();
        text.trim().parse::<u64>().is_ok_and(|limit| limit <= bytes)
    }
}

/// An empty group goes. A manager has removed its own by then.
impl Drop for MemoryGroup {
    fn drop(&mut self) {
        fs::remove_dir(&self.path).ok();
    }
}

fn parse_oom_kills(text: &str) -> u64 {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn make_group(parent: &Path, pid: i32, bytes: u64) -> Option<MemoryGroup> {
    remove_abandoned(parent);
    let path = parent.join(format!("{NAME}{}", ProcessHandle::current().ok()?.pid));
    fs::create_dir(&path).ok()?;
    let group = MemoryGroup { path };
    let set = |file: &str, value: String| fs::write(group.path.join(file), value);
    set("memory.max", bytes.to_string()).ok()?;
    // A kernel without swap has no such file, and one that is older kills one process instead of all.
    set("memory.swap.max", "0".to_owned()).ok();
    set("memory.oom.group", "1".to_owned()).ok();
    set("cgroup.procs", pid.to_string()).ok()?;
    Some(group)
}

/// Removes groups whose supervisor was killed. The kernel refuses to remove one that has processes.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let supervisor = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let pid = supervisor.and_then(|pid| pid.parse::<i32>().ok());
        if pid.is_some_and(|pid| ProcessHandle::of(pid).is_err()) {
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// Asks the manager for a scope around the process, and waits until it has moved there.
async fn start_scope(manager: &str, pid: i32, bytes: u64) -> Option<MemoryGroup> {
    let unit = format!("{NAME}{pid}.scope");
    let mut command = CommandSpec::new("busctl").args(argv_scope(manager, &unit, pid, bytes));
    for name in ["PATH", "XDG_RUNTIME_DIR"] {
        if let Some(value) = env::var_os(name) {
            command = command.env(name, value);
        }
    }
    let limits = RunLimits { timeout: Some(MANAGER_TIMEOUT), ..RunLimits::default() };
    let answer = run(&command.cwd("/"), &limits, &Cancel::new()).await.ok()?;
    if answer.exit != CommandExit::Exited(0) {
        return None;
    }
    let moved = async {
        loop {
            let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            if let Some(path) = parse_scope(&own, &unit) {
                return Path::new(ROOT).join(path);
            }
            tokio::time::sleep(MOVE_PAUSE).await;
        }
    };
    let path = tokio::time::timeout(MANAGER_TIMEOUT, moved).await.ok()?;
    Some(MemoryGroup { path })
}

fn parse_scope<'a>(own: &'a str, unit: &str) -> Option<&'a str> {
    own.lines().find_map(|line| line.strip_prefix("0::/")).filter(|path| path.ends_with(unit))
}

fn argv_scope(manager: &str, unit: &str, pid: i32, bytes: u64) -> Vec<String> {
    const SYSTEMD: &str = "org.freedesktop.systemd1";
    const MANAGER: &str = "org.freedesktop.systemd1.Manager";
    let (pid, bytes) = (pid.to_string(), bytes.to_string());
    let start = [manager, "--quiet", "call", SYSTEMD, "/org/freedesktop/systemd1", MANAGER];
    let method = ["StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail"];
    // The end of a process for its memory must not end the others before it was seen here.
    let properties = ["4", "PIDs", "au", "1", &pid, "MemoryMax", "t", &bytes];
    let more = ["MemorySwapMax", "t", "0", "OOMPolicy", "s", "continue"];
    let no_other_units = ["0"];
    [&start[..], &method, &properties, &more, &no_other_units]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    #[test]
    fn groups_are_made_beside_our_own_where_memory_is_delegated() {
        let root = tree(&[
            ("user/cgroup.subtree_control", "cpu memory pids\n"),
            ("user/cgroup.procs", ""),
            ("plain/cgroup.subtree_control", "cpu pids\n"),
            ("plain/cgroup.procs", ""),
        ]);
        let find = |own: &str| find_delegated(root.path(), own);
        assert_eq!(find("3:cpu:/x\n0::/user/a.scope\n"), Some(root.path().join("user")));
        assert_eq!(find("0::/plain/a.scope\n"), None, "no memory there");
        assert_eq!(find("0::/gone/a.scope\n"), None);
        assert_eq!(find("4:memory:/user/a.scope\n"), None, "version 1");
        assert_eq!(find("0::/\n"), None, "nothing is above the root");
    }

    #[test]
    fn a_group_limits_the_process_and_goes_with_its_supervisor() {
        let root = tree(&[(&format!("{NAME}999999999/keep"), "")]);
        fs::remove_file(root.path().join(format!("{NAME}999999999/keep"))).expect("emptied");
        let group = make_group(root.path(), 4711, 1 << 30).expect("a group");
        let read = |name: &str| fs::read_to_string(group.path.join(name)).expect("a setting");
        assert_eq!(
            (read("memory.max"), read("cgroup.procs")),
            ("1073741824".into(), "4711".into())
        );
        assert!(group.limits_to(1 << 30) && !group.limits_to(1 << 29));
        assert!(!root.path().join(format!("{NAME}999999999")).exists(), "its supervisor is gone");
        assert!(!group.is_exceeded());
        fs::write(group.path.join("memory.events"), "low 0\noom 2\noom_kill 1\n").expect("written");
        assert!(group.is_exceeded());
    }

    #[test]
    fn a_scope_is_asked_for_with_its_limit_and_found_by_its_name() {
        let argv = argv_scope("--user", "bottleworks-7.scope", 7, 4096).join(" ");
        assert_eq!(
            argv,
            "--user --quiet call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
             org.freedesktop.systemd1.Manager StartTransientUnit ssa(sv)a(sa(sv)) bottleworks-7.scope fail \
             4 PIDs au 1 7 MemoryMax t 4096 MemorySwapMax t 0 OOMPolicy s continue 0"
        );
        let own = "0::/user.slice/user-7.slice/user@7.service/app.slice/bottleworks-7.scope\n";
        assert!(parse_scope(own, "bottleworks-7.scope").is_some());
        assert_eq!(parse_scope("0::/user.slice/session-1.scope\n", "bottleworks-7.scope"), None);
    }

    #[tokio::test]
    async fn without_means_the_kernel_limits_nothing() {
        assert!(MemoryControl::None.limit(1, 1).await.is_none());
    }
}
