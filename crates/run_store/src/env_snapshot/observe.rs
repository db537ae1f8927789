//! Gathers the facts of the snapshot.
//!
//! All programs are queried at once, each with a limit of two seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use host::tool::{tool_version, which};
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::{AGENTS, BUBBLEWRAP, EnvFacts, GIT, SECTIONS, SHOWN_VARIABLES};

const TIMEOUT: Duration = Duration::from_secs(2);
const VERSION_ARG: &str = "--version";
const SHELL: &str = "SHELL";

/// Observes the machine. A query that fails counts as not found.
pub async fn observe_env(now: Timestamp) -> EnvFacts {
    let system = rustix::system::uname();
    EnvFacts {
        generated: now,
        os: format!(
            "{} {}",
            system.sysname().to_string_lossy(),
            system.release().to_string_lossy()
        ),
        shell: host::env::var(SHELL),
        git_program: which("git"),
        versions: observe_versions(programs(), TIMEOUT).await,
        variables: SHOWN_VARIABLES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), host::env::var(name)?)))
            .collect(),
    }
}

/// Programs of all lines, without duplicates.
fn programs() -> BTreeSet<&'static str> {
    let ours = [BUBBLEWRAP, GIT, AGENTS];
    let sections = SECTIONS.iter().map(|(_, entries)| *entries).chain(ours);
    sections.flatten().map(|entry| entry.program).collect()
}

async fn observe_versions(
    programs: BTreeSet<&'static str>,
    limit: Duration,
) -> BTreeMap<String, String> {
    let mut queries = JoinSet::new();
    for program in programs {
        queries.spawn(async move { Some((program.to_owned(), query(program, limit).await?)) });
    }
    // A query that panicked counts as unanswered.
    let mut versions = BTreeMap::new();
    while let Some(answer) = queries.join_next().await {
        versions.extend(answer.ok().flatten());
    }
    versions
}

/// Runs the program that `which` finds by its absolute path: no relative entry of the search path can replace it.
async fn query(program: &str, limit: Duration) -> Option<String> {
    let path = which(program)?;
    tool_version(path.to_str()?, &[VERSION_ARG], limit).await
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use tokio::sync::Mutex;

    use super::*;

    /// While one test writes a program, another must not fork: its child would hold the file open
    /// for writing, and the system starts no such program.
    static WRITE_OR_FORK: Mutex<()> = Mutex::const_new(());

    fn tool(dir: &Path, name: &str, body: &str) -> &'static str {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned().leak()
    }

    #[tokio::test]
    async fn programs_that_hang_or_fail_are_left_out() {
        let _turn = WRITE_OR_FORK.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let slow = tool(dir.path(), "slow", "exec sleep 900");
        let bad = tool(dir.path(), "bad", "echo bad 1; exit 3");
        let asked = BTreeSet::from([slow, bad, "no-such-program"]);
        assert_eq!(observe_versions(asked, Duration::from_millis(200)).await, BTreeMap::new());
    }

    /// Each of them answers only when it sees that the others run too.
    #[tokio::test]
    async fn all_programs_are_asked_at_once() {
        let _turn = WRITE_OR_FORK.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display();
        let body = format!(
            ": >$0.runs; until [ -e {folder}/a.runs -a -e {folder}/b.runs ]; do sleep 0.02; done; echo met 1.2; echo more"
        );
        let asked = ["a", "b"].map(|name| tool(dir.path(), name, &body));
        let versions = observe_versions(asked.into(), Duration::from_secs(300)).await;
        assert_eq!(versions, asked.map(|name| (name.to_owned(), "met 1.2".to_owned())).into());
    }

    #[tokio::test]
    async fn this_machine_has_a_system_and_git() {
        let _turn = WRITE_OR_FORK.lock().await;
        let facts = observe_env(Timestamp::UNIX_EPOCH).await;
        assert!(facts.os.starts_with("Linux "), "{}", facts.os);
        assert!(facts.git_program.is_some());
        // A machine under load may be too slow to answer; what it answers is git's own line.
        let git = facts.versions.get("git");
        assert!(git.is_none_or(|line| line.starts_with("git version ")), "{git:?}");
    }

    #[test]
    fn every_program_is_asked_once() {
        let expected = [
            "bwrap", "claude", "codex", "docker", "git", "make", "node", "npm", "opencode", "pi",
            "python3",
        ];
        assert_eq!(programs().into_iter().collect::<Vec<_>>(), expected);
    }
}
