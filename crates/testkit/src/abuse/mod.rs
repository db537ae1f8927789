//! The abuse kit: what a bad agent tries inside a box.
//!
//! Each [`Attempt`] is a shell script that tries one thing and prints one line saying how it went. The scripts ask
//! for `/bin/sh`, coreutils, grep, sed, procps, git and a bare Perl (for system calls), run as an ordinary user in
//! `/workspace`, never hang (only [`Expect::EndsAtDeadline`] takes its time) and change nothing outside the box even
//! when they succeed. [`Canaries`] sets up on the host what some of them look for.
//!
//! The scripts live beside this file so that they can be read, and checked, as what they are.

mod canary;
mod outcome;
mod table;

pub use canary::{Canaries, SECRET_MARK};
pub use outcome::Outcome;
pub use table::ATTEMPTS;

/// Variables that the host sets for the attempts. An attempt that lacks one prints `SKIPPED`.
pub mod variable {
    /// A file of the host that the box must not see.
    pub const CANARY_PATH: &str = "BOTTLE_CANARY_PATH";
    /// The host's number of a process of the host.
    pub const CANARY_PID: &str = "CANARY_PID";
    /// The command line of that process, by which it is distinguished from an inner one with the same number.
    pub const CANARY_COMMAND: &str = "CANARY_COMMAND";
    /// Addresses of the host and its gateways, separated by spaces.
    pub const CANARY_HOST_ADDRS: &str = "CANARY_HOST_ADDRS";
    /// A TCP port on which the host listens, on loopback and on every other address.
    pub const CANARY_PORT: &str = "CANARY_PORT";
    /// The name of an abstract Unix socket on which the host listens.
    pub const CANARY_ABSTRACT: &str = "CANARY_ABSTRACT";
    /// The name of the host.
    pub const CANARY_HOSTNAME: &str = "CANARY_HOSTNAME";
    /// Folder, as the host sees it, in which the agent's code leaves its marks if the host runs it.
    pub const MARKER_DIR: &str = "BOTTLE_MARKER_DIR";
    /// Processes that the box may have.
    pub const PIDS_LIMIT: &str = "PIDS_LIMIT";
    /// Bytes of memory that the box may have.
    pub const MEMORY_LIMIT: &str = "MEMORY_LIMIT";
    /// Bytes that fit into `/tmp`, and into `/dev/shm`.
    pub const TMP_LIMIT: &str = "TMP_LIMIT";
    /// Bytes that one file may have.
    pub const FILE_LIMIT: &str = "FILE_LIMIT";
    /// Bytes by which the workspace may grow.
    pub const WORKSPACE_LIMIT: &str = "WORKSPACE_LIMIT";
    /// Files that the workspace may have, where that is limited at all.
    pub const INODE_LIMIT: &str = "INODE_LIMIT";
    /// The process that attempts on the init aim at, instead of process 1.
    pub const TARGET_PID: &str = "TARGET_PID";
    /// The folder that must stay as it is, instead of the box's own.
    pub const GUEST_FOLDER: &str = "GUEST_FOLDER";
}

/// One thing that an agent may try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Its number on the checklist; 0 for what the checklist does not have.
    pub number: u8,
    /// Its name; unique, and fit for a file name.
    pub name: &'static str,
    /// The command line, as for `sh -c`.
    pub script: &'static str,
    pub expect: Expect,
    /// The architecture whose system call numbers it uses, if it uses any. On others it prints `SKIPPED`.
    pub arch: Option<&'static str>,
}

/// Required outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It prints `BLOCKED`.
    Blocked,
    /// The box is ended and reported as of this class, or the attempt fails inside and prints `BLOCKED`.
    EndsBox(&'static str),
    /// It goes on, deaf to polite signals, until the deadline ends the box.
    EndsAtDeadline,
    /// It ends at once, and the `heartbeat-N` files in the workspace stop changing when the box has ended.
    Daemons,
    /// It prints `PLANTED`: the host has to look at what was left behind, and come to no harm.
    HostSide,
}

impl Attempt {
    /// The attempt of this name.
    ///
    /// # Panics
    /// When there is none.
    pub fn named(name: &str) -> Self {
        let found = ATTEMPTS.iter().find(|attempt| attempt.name == name);
        *found.unwrap_or_else(|| panic!("there is no attempt {name}"))
    }

    /// Returns whether what was printed is what has to come of it. How the box itself ended is for the caller to judge.
    ///
    /// # Errors
    /// A sentence that names the attempt. What could not be tried is not taken for blocked.
    pub fn judge(&self, printed: &str) -> Result<(), String> {
        let outcome = Outcome::parse(printed);
        let good = match (self.expect, &outcome) {
            (Expect::Blocked, Some(Outcome::Blocked(_))) => true,
            (Expect::EndsBox(_), Some(Outcome::Blocked(_)) | None) => true,
            (Expect::EndsAtDeadline, None) => true,
            (
                Expect::Daemons | Expect::HostSide,
                Some(Outcome::Planted(_) | Outcome::Blocked(_)),
            ) => true,
            (Expect::Blocked | Expect::Daemons | Expect::HostSide, None)
            | (Expect::EndsAtDeadline, Some(Outcome::Blocked(_)))
            | (
                Expect::Blocked | Expect::EndsBox(_) | Expect::EndsAtDeadline,
                Some(Outcome::Planted(_)),
            )
            | (_, Some(Outcome::Reached(_) | Outcome::Skipped(_))) => false,
        };
        if good {
            return Ok(());
        }
        let said = outcome.map_or_else(|| "nothing".to_owned(), |outcome| outcome.to_string());
        Err(format!("attempt {} {}: {said}", self.number, self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::program;

    #[test]
    fn names_are_unique_and_fit_for_files() {
        let names: BTreeSet<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
        assert_eq!(names.len(), ATTEMPTS.len());
        let fit = |name: &str| name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
        assert!(names.iter().all(|name| fit(name)), "{names:?}");
    }

    #[test]
    fn everything_on_the_checklist_that_concerns_a_box_is_here() {
        let numbers: BTreeSet<u8> = ATTEMPTS.iter().map(|attempt| attempt.number).collect();
        for number in (1..=15).chain(23..=45).chain([49]) {
            assert!(numbers.contains(&number), "attempt {number} is missing");
        }
        assert!(ATTEMPTS.len() >= 45, "{}", ATTEMPTS.len());
    }

    #[test]
    fn every_script_is_one_for_the_shell() {
        for attempt in ATTEMPTS {
            let output =
                program::command("/bin/sh").args(["-n", "-c", attempt.script]).output().unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{}: {output:?}",
                attempt.name
            );
        }
    }

    /// An attempt that looks for secrets on every command line must not find itself.
    #[test]
    fn no_script_holds_the_mark_of_a_secret() {
        for attempt in ATTEMPTS {
            assert!(!attempt.script.contains(SECRET_MARK), "{}", attempt.name);
        }
    }

    #[test]
    fn what_uses_numbers_says_for_which_architecture() {
        let prelude = include_str!("script/prelude.sh");
        for attempt in ATTEMPTS {
            let own = attempt.script.strip_prefix(prelude).unwrap();
            let by_number = own.contains("syscall(") || own.contains("try_call ");
            assert_eq!(by_number, attempt.arch.is_some(), "{}", attempt.name);
        }
    }

    #[test]
    fn only_what_was_tried_and_failed_counts_as_blocked() {
        check(Expect::Blocked, "BLOCKED by the filter\n", true);
        check(Expect::Blocked, "REACHED the kernel\n", false);
        check(Expect::Blocked, "SKIPPED no perl\n", false);
        check(Expect::Blocked, "", false);
        check(Expect::EndsBox("oom"), "", true);
        check(Expect::EndsBox("oom"), "REACHED twice the limit\n", false);
        check(Expect::EndsAtDeadline, "", true);
        check(Expect::HostSide, "PLANTED a link\nnoise", true);
        check(Expect::HostSide, "noise", false);
    }

    fn check(expect: Expect, printed: &str, good: bool) {
        let attempt = Attempt { number: 1, name: "x", script: "", expect, arch: None };
        assert_eq!(attempt.judge(printed).is_ok(), good, "{expect:?} {printed:?}");
    }
}
