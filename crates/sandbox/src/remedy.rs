//! Remedies for the known reasons why a box does not start: what bubblewrap, a container engine or the guest says, and
//! what helps. The engine appends the line to the reason, and `doctor` shows the steps. A refusal of the kernel has several
//! causes that sound alike, so this machine is looked at before one of them is named.

use std::path::Path;

/// Remedy for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// Part of a sentence, to stand behind the reason.
    pub line: &'static str,
    /// Commands and files of more than one line.
    pub steps: Option<&'static str>,
}

/// An AppArmor profile that lets bubblewrap make user namespaces, and how it is loaded.
const APPARMOR_STEPS: &str = "\
printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile bwrap /usr/bin/bwrap flags=(unconfined) {' '  userns,' '  include if exists <local/bwrap>' '}' | sudo tee /etc/apparmor.d/bwrap
sudo apparmor_parser -r /etc/apparmor.d/bwrap
";

const APPARMOR: Remedy = Remedy {
    line: "AppArmor forbids user namespaces (as on Ubuntu 24.04): load a profile for bwrap, which 'doctor' prints, or \
           run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    steps: Some(APPARMOR_STEPS),
};

const SWITCHED_OFF: Remedy = remedy(
    "user namespaces are switched off here: run: sudo sysctl -w kernel.unprivileged_userns_clone=1",
);

const IN_CONTAINER: Remedy = remedy(
    "this container may not make user namespaces: start it with --security-opt seccomp=unconfined --security-opt \
     systempaths=unconfined and use an ordinary user",
);

const REFUSED_BY_KERNEL: Remedy = remedy(
    "the kernel refuses user namespaces here, and it is neither AppArmor's switch nor \
     kernel.unprivileged_userns_clone: look for the security module in its log: journalctl -k",
);

const MASKED_PROC: Remedy = remedy(
    "the container masks parts of /proc: start it with --security-opt systempaths=unconfined as well",
);

const NO_NAMESPACES_LEFT: Remedy =
    remedy("no user namespace is left: run: sudo sysctl -w user.max_user_namespaces=15000");

const SETUID: Remedy =
    remedy("bwrap is installed setuid root: run: sudo chmod u-s \"$(command -v bwrap)\"");

const OLD_BWRAP: Remedy = remedy(
    "this bubblewrap is too old: install 0.8.0 or newer (package bubblewrap of Debian 12, Ubuntu 24.04 or newer)",
);

const NO_EXEC: Remedy = remedy(
    "the folder is on a file system that is mounted noexec: use another one (XDG_STATE_HOME for runs, TMPDIR for a demo)",
);

const ROOT_WITHOUT_MOUNT: Remedy =
    remedy("root may not mount here (no CAP_SYS_ADMIN): run as an ordinary user");

const OTHER_PATHS: Remedy = remedy(
    "the engine sees other paths than this program: mount the folders of runs and TMPDIR at the same paths on the \
     engine's host, or use bwrap",
);

const HYBRID_CGROUPS: Remedy = remedy(
    "this engine's runtime needs control groups of one version: configure runc, or use bwrap",
);

const NO_LIMIT: Remedy = remedy(
    "the engine ignores the limits of a box (rootless podman does without delegated control groups of version 2): run \
     the engine as root, or use bwrap",
);

const UNWRITABLE: Remedy = remedy(
    "the engine maps the box's user to another one (as a rootless engine does): run the engine as root, or use bwrap",
);

/// Refusals of user namespaces, whose cause is in [`KernelFacts`].
const REFUSALS: [&str; 6] = [
    "setting up uid map: Permission denied",
    "setting up gid map: Permission denied",
    "Failed RTM_NEWADDR",
    "No permissions to create new namespace",
    "No permissions to create a new namespace",
    "Creating new namespace failed: Operation not permitted",
];

/// Facts about this machine that explain a refusal.
#[derive(Debug, Clone, Copy, Default)]
struct KernelFacts {
    /// AppArmor keeps user namespaces from programs without a profile.
    apparmor_restricts: bool,
    /// User namespaces are switched off for ordinary users, as older Debian kernels can.
    is_switched_off: bool,
    is_container: bool,
}

impl KernelFacts {
    fn observe() -> Self {
        let value = |name: &str| {
            let path = Path::new("/proc/sys/kernel").join(name);
            std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
        };
        let marks = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];
        Self {
            apparmor_restricts: value("apparmor_restrict_unprivileged_userns") == "1",
            is_switched_off: value("unprivileged_userns_clone") == "0",
            is_container: marks.iter().any(|mark| Path::new(mark).exists()),
        }
    }

    fn remedy(self) -> Remedy {
        match self {
            Self { is_switched_off: true, .. } => SWITCHED_OFF,
            Self { apparmor_restricts: true, .. } => APPARMOR,
            Self { is_container: true, .. } => IN_CONTAINER,
            Self { .. } => REFUSED_BY_KERNEL,
        }
    }
}

/// Parts of a reason and the remedy; the first match counts.
const TABLE: [(&str, Remedy); 11] = [
    ("Can't mount proc on", MASKED_PROC),
    ("max_*_namespaces exceeded", NO_NAMESPACES_LEFT),
    ("not permitted in setuid mode", SETUID),
    ("bwrap: Unknown option", OLD_BWRAP),
    ("bottle-guest: Permission denied", NO_EXEC),
    ("could not leave the mount namespace", ROOT_WITHOUT_MOUNT),
    ("bind source path does not exist", OTHER_PATHS),
    ("bottle-guest: no such file or directory", OTHER_PATHS),
    ("cgroups in hybrid mode not supported", HYBRID_CGROUPS),
    ("unlimited-memory:", NO_LIMIT),
    ("unlimited-processes:", NO_LIMIT),
];

/// Checked after the table: a box without limits on a rootless engine is both, and the limits weigh more.
const UNWRITABLE_FOLDER: &str = "unwritable-folder:";

const fn remedy(line: &'static str) -> Remedy {
    Remedy { line, steps: None }
}

/// Finds the remedy for a reason, which may have other words around the known ones.
pub fn find_remedy(reason: &str) -> Option<Remedy> {
    if REFUSALS.iter().any(|part| reason.contains(part)) {
        return Some(KernelFacts::observe().remedy());
    }
    let known = TABLE.iter().find(|(part, _)| reason.contains(part)).map(|(_, remedy)| *remedy);
    known.or_else(|| reason.contains(UNWRITABLE_FOLDER).then_some(UNWRITABLE))
}

/// Appends the remedy to a reason that has one.
pub fn with_remedy(reason: String) -> String {
    match find_remedy(&reason) {
        Some(remedy) => format!("{reason}; {}", remedy.line),
        None => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_that_was_seen_has_its_remedy() {
        let seen = [
            ("bwrap: setting up uid map: Permission denied", "user namespaces"),
            ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "user namespaces"),
            (
                "bwrap: No permissions to create new namespace, likely because the kernel does not",
                "user namespaces",
            ),
            ("bwrap: No permissions to create a new namespace, likely", "user namespaces"),
            (
                "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
                "systempaths=unconfined",
            ),
            (
                "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
                "user.max_user_namespaces",
            ),
            ("bwrap: The --size option is not permitted in setuid mode", "chmod u-s"),
            ("bwrap: Unknown option --disable-userns", "0.8.0 or newer"),
            ("bwrap: execvp /harness-state/run/bottle-guest: Permission denied", "noexec"),
            (
                "could not leave the mount namespace at /run/bottleworks: Operation not permitted (os error 1)",
                "run as an ordinary user",
            ),
            ("bind source path does not exist: /x/workspace", "sees other paths"),
            ("crun: cgroups in hybrid mode not supported, drop all controllers", "runc"),
            ("its own checks: unlimited-memory: none; unwritable-folder: x", "ignores the limits"),
            ("its own checks: unwritable-folder: /workspace: EACCES", "maps the box's user"),
        ];
        for (reason, part) in seen {
            let remedy = find_remedy(reason).unwrap_or_else(|| panic!("none for {reason}"));
            assert!(remedy.line.contains(part), "{reason}: {}", remedy.line);
        }
    }

    #[test]
    fn the_cause_of_a_refusal_is_named_only_where_it_is_seen() {
        let [on, off, boxed, none] = [
            KernelFacts { apparmor_restricts: true, is_container: true, ..KernelFacts::default() },
            KernelFacts { is_switched_off: true, ..KernelFacts::default() },
            KernelFacts { is_container: true, ..KernelFacts::default() },
            KernelFacts::default(),
        ]
        .map(KernelFacts::remedy);
        assert!(on.line.starts_with("AppArmor forbids") && on.steps.is_some());
        assert!(off.line.contains("kernel.unprivileged_userns_clone=1"));
        assert!(boxed.line.contains("seccomp=unconfined"));
        assert!(none.line.contains("journalctl -k") && !none.line.contains("sysctl -w"));
    }

    #[test]
    fn a_reason_that_is_not_known_stays_as_it_is() {
        assert_eq!(with_remedy("the disk is on fire".to_owned()), "the disk is on fire");
        let known = with_remedy("bwrap: Unknown option --x".to_owned());
        assert!(
            known.starts_with("bwrap: Unknown option --x; this bubblewrap is too old"),
            "{known}"
        );
    }
}
