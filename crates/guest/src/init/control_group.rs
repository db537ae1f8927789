//! Limits of the control group that the box is in, as the kernel shows them inside the box.

use std::fs;
use std::path::{Path, PathBuf};

/// Mount point of control groups in every container.
const ROOT: &str = "/sys/fs/cgroup";

/// A controller, and the files with its limit.
pub(crate) struct Controller {
    name: &'static str,
    /// In version 2.
    unified_file: &'static str,
    /// In version 1.
    legacy_file: &'static str,
    unit: &'static str,
}

pub(crate) const MEMORY: Controller = Controller {
    name: "memory",
    unified_file: "memory.max",
    legacy_file: "memory.limit_in_bytes",
    unit: "bytes",
};

pub(crate) const PIDS: Controller = Controller {
    name: "pids",
    unified_file: "pids.max",
    legacy_file: "pids.max",
    unit: "processes",
};

/// The file that counts processes which the kernel killed at the limit.
const KILLED: Controller = Controller {
    name: "memory",
    unified_file: "memory.events",
    legacy_file: "memory.oom_control",
    unit: "processes",
};

/// The limit of a control group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundLimit {
    Number(u64, &'static str),
    Unlimited,
    /// No file with a limit is in sight.
    Unseen,
}

impl FoundLimit {
    /// Returns whether the limit is at most the ordered one, and the observation.
    pub(crate) fn judge(&self, ordered: u64) -> (bool, String) {
        match self {
            Self::Number(found, unit) => {
                (*found <= ordered, format!("{found} {unit} of {ordered} ordered"))
            }
            Self::Unlimited => (false, format!("no limit, {ordered} ordered")),
            Self::Unseen => (false, format!("no limit can be seen, {ordered} ordered")),
        }
    }
}

pub(crate) fn observe(controller: &Controller) -> FoundLimit {
    let table = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let texts = candidates(&table, controller).into_iter().map(fs::read_to_string);
    match texts.flatten().next() {
        Some(text) => parse_limit(&text, controller.unit),
        None => FoundLimit::Unseen,
    }
}

/// Returns how many processes of the box the kernel has killed at the limit of its memory.
pub(crate) fn observe_killed() -> u64 {
    let table = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let texts = candidates(&table, &KILLED).into_iter().map(fs::read_to_string);
    texts.flatten().next().map_or(0, |text| parse_killed(&text))
}

fn parse_killed(text: &str) -> u64 {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Files that may hold the limit. The group's own path comes first: it exists where the box sees the whole tree, and at
/// the root of that tree is no limit of ours. Where the box sees its own part alone, the root is its group.
fn candidates(table: &str, controller: &Controller) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let legacy = root.join(controller.name);
    let below = |root: &Path, path: &str| root.join(path.trim_start_matches('/'));
    let mut files = Vec::new();
    for line in table.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if names.split(',').any(|name| name == controller.name) {
            files.push(below(&legacy, path).join(controller.legacy_file));
        } else if names.is_empty() {
            files.push(below(root, path).join(controller.unified_file));
        }
    }
    files.push(legacy.join(controller.legacy_file));
    files.push(root.join(controller.unified_file));
    files
}

fn parse_limit(text: &str, unit: &'static str) -> FoundLimit {
    match text.trim() {
        "max" => FoundLimit::Unlimited,
        text => text.parse().map_or(FoundLimit::Unseen, |number| FoundLimit::Number(number, unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(table: &str, controller: &Controller) -> Vec<String> {
        let files = candidates(table, controller);
        files.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_groups_own_path_comes_before_the_root() {
        assert_eq!(
            shown("5:cpu,memory:/docker/abc\n0::/x\n", &MEMORY),
            [
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
                "/sys/fs/cgroup/x/memory.max",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(shown("0::/\n", &PIDS)[0], "/sys/fs/cgroup/pids.max");
    }

    #[test]
    fn both_versions_count_what_was_killed() {
        assert_eq!(parse_killed("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n"), 2);
        assert_eq!(parse_killed("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(parse_killed("oom_kill_disable 0\nunder_oom 0\n"), 0);
    }

    #[test]
    fn a_limit_that_is_missing_or_too_high_is_refused() {
        let judge = |text: &str| parse_limit(text, "bytes").judge(4096).0;
        assert!(judge("4096\n") && judge("1024\n"));
        assert!(!judge("max\n"), "version 2 without a limit");
        assert!(!judge("9223372036854771712\n"), "version 1 without a limit");
        assert!(!judge("nonsense"));
        assert!(!FoundLimit::Unseen.judge(4096).0);
    }
}
