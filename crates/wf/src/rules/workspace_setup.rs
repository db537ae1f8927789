//! The keys of the profile that make a workspace ready: its set-up command, the files it needs, and the build.

use std::time::Duration;

use model::digest::Hasher;
use serde::Serialize;

use super::profile::{Keys, ProfileError, is_inside};

/// Preparation of a workspace before an agent works or tests run in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WorkspaceSetup {
    /// Arguments of the set-up command, such as `npm ci`; empty for none. No shell reads them.
    pub(crate) command: Vec<String>,
    /// Files whose content decides whether an earlier set-up still serves.
    pub(crate) lock_files: Vec<String>,
    /// Folders that the set-up makes and that are kept: below the workspace, or `~/name` in the home of the box.
    pub(crate) keep: Vec<String>,
    pub(crate) egress: String,
    pub(crate) timeout: Duration,
    /// Arguments of the build that precedes the tests; empty for none.
    pub(crate) build: Vec<String>,
    pub(crate) build_timeout: Duration,
    /// Patterns, as in `.gitignore`, of ignored files that are copied into worktrees and boxes.
    pub(crate) copy: Vec<String>,
    /// Ignored files or folders that are linked into worktrees, and mounted read-only in boxes.
    pub(crate) link: Vec<String>,
}

impl WorkspaceSetup {
    /// Reports whether a set-up can be kept and used again.
    pub(crate) fn is_kept(&self) -> bool {
        !self.keep.is_empty()
    }
}

/// Files beside a lock file that decide what a set-up does, too.
const MANIFESTS: [(&str, &[&str]); 12] = [
    ("package-lock.json", &["package.json", ".npmrc"]),
    ("npm-shrinkwrap.json", &["package.json", ".npmrc"]),
    ("pnpm-lock.yaml", &["package.json", ".npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs"]),
    ("yarn.lock", &["package.json", ".yarnrc.yml", ".yarnrc"]),
    ("bun.lock", &["package.json", "bunfig.toml"]),
    ("bun.lockb", &["package.json", "bunfig.toml"]),
    ("Cargo.lock", &["Cargo.toml", ".cargo/config.toml", "rust-toolchain.toml"]),
    ("uv.lock", &["pyproject.toml", "uv.toml"]),
    ("poetry.lock", &["pyproject.toml", "poetry.toml"]),
    ("requirements.txt", &["setup.py", "pyproject.toml"]),
    ("go.sum", &["go.mod"]),
    ("gradle.lockfile", &["build.gradle", "build.gradle.kts", "settings.gradle"]),
];
/// Files that programs read without being told to.
const RECIPES: [(&str, &[&str]); 2] =
    [("make", &["GNUmakefile", "makefile", "Makefile"]), ("just", &["justfile", "Justfile"])];

impl WorkspaceSetup {
    /// Paths whose content decides what the set-up makes: lock files, the manifests beside them, and the files that the
    /// command names. Most of them do not exist.
    pub(crate) fn inputs(&self) -> Vec<String> {
        let mut paths = self.lock_files.clone();
        for lock in &self.lock_files {
            let (folder, name) = match lock.rsplit_once('/') {
                Some((folder, name)) => (format!("{folder}/"), name),
                None => (String::new(), lock.as_str()),
            };
            let known = MANIFESTS.iter().filter(|(lock, _)| *lock == name);
            paths.extend(known.flat_map(|(_, beside)| *beside).map(|it| format!("{folder}{it}")));
        }
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let known = RECIPES.iter().filter(|(name, _)| *name == program);
        paths.extend(known.flat_map(|(_, files)| *files).map(|file| (*file).to_owned()));
        let words = self.command.iter().map(|word| word.strip_prefix("./").unwrap_or(word));
        let is_plain = |path: &&str| is_inside(path) && !path.split('/').any(is_odd_name);
        paths.extend(words.filter(is_plain).map(str::to_owned));
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Lock files of package managers, which decide where the profile names none.
const USUAL_LOCK_FILES: &str = "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb Cargo.lock uv.lock poetry.lock requirements.txt go.sum gradle.lockfile";

pub(super) fn parse_setup(keys: &Keys<'_>) -> Result<WorkspaceSetup, ProfileError> {
    let setup = WorkspaceSetup {
        command: keys.list("SETUP_CMD", ""),
        lock_files: keys.list("SETUP_LOCK_FILES", USUAL_LOCK_FILES),
        keep: keys.list("SETUP_KEEP", ""),
        egress: keys.egress("SETUP_EGRESS", "packages")?,
        timeout: keys.seconds("SETUP_TIMEOUT", 900)?,
        build: keys.list("BUILD_CMD", ""),
        build_timeout: keys.seconds("BUILD_TIMEOUT", 900)?,
        copy: keys.list("WORKTREE_COPY", ""),
        link: keys.list("WORKTREE_LINK", ""),
    };
    let wrong = |key: &str, rule| Err(ProfileError { key: key.to_owned(), rule });
    let is_plain = |path: &String| is_inside(path) && !path.split('/').any(is_odd_name);
    if !setup.lock_files.iter().all(is_plain) {
        return wrong("SETUP_LOCK_FILES", "paths inside the repository");
    }
    if !setup.link.iter().all(is_plain) {
        return wrong("WORKTREE_LINK", "paths inside the repository");
    }
    let is_kept = |path: &String| match path.strip_prefix("~/") {
        Some(name) => !name.contains('/') && !is_odd_name(name),
        None => is_plain(path),
    };
    if !setup.keep.iter().all(is_kept) {
        return wrong(
            "SETUP_KEEP",
            "paths inside the repository, or ~/NAME in the home of the box",
        );
    }
    Ok(setup)
}

/// Names that mean another folder, or git's own.
fn is_odd_name(name: &str) -> bool {
    ["", ".", "..", ".git"].contains(&name)
}

/// Digest of everything that a set-up is known to depend on: where it runs, its command, and its inputs with their content.
pub(crate) fn digest_setup(
    setup: &WorkspaceSetup,
    place: &str,
    inputs: &[(String, Option<Vec<u8>>)],
) -> String {
    let mut hasher = Hasher::default();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(place.as_bytes());
    for list in [&setup.command, &setup.keep] {
        add(&(list.len() as u64).to_le_bytes());
        list.iter().for_each(|word| add(word.as_bytes()));
    }
    for (path, content) in inputs {
        add(path.as_bytes());
        add(if content.is_some() { b"there" } else { b"absent" });
        add(content.as_deref().unwrap_or_default());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use model::env_file::EnvFile;

    use super::*;
    use crate::rules::profile::parse_profile;

    fn read(text: &str) -> Result<WorkspaceSetup, String> {
        let profile = parse_profile(&EnvFile::parse(text).unwrap());
        profile.map(|profile| profile.setup).map_err(|error| error.to_string())
    }

    #[test]
    fn a_profile_without_the_keys_prepares_nothing() {
        let setup = read("").unwrap();
        assert!(setup.command.is_empty() && setup.build.is_empty() && setup.copy.is_empty());
        assert!(!setup.is_kept());
        assert_eq!(setup.egress, "packages");
        assert!(setup.lock_files.contains(&"package-lock.json".to_owned()));
    }

    #[test]
    fn paths_stay_in_the_workspace_and_out_of_git() {
        for (text, words) in [
            ("SETUP_KEEP=node_modules\n", ""),
            ("SETUP_KEEP=\"web/node_modules ~/.cargo\"\n", ""),
            (
                "SETUP_KEEP=../x\n",
                "SETUP_KEEP must be paths inside the repository, or ~/NAME in the home of the box",
            ),
            (
                "SETUP_KEEP=~/.cargo/registry\n",
                "SETUP_KEEP must be paths inside the repository, or ~/NAME in the home of the box",
            ),
            (
                "SETUP_KEEP=.git/hooks\n",
                "SETUP_KEEP must be paths inside the repository, or ~/NAME in the home of the box",
            ),
            (
                "SETUP_KEEP=a//b\n",
                "SETUP_KEEP must be paths inside the repository, or ~/NAME in the home of the box",
            ),
            (
                "SETUP_LOCK_FILES=/etc/passwd\n",
                "SETUP_LOCK_FILES must be paths inside the repository",
            ),
            ("WORKTREE_LINK=data/../..\n", "WORKTREE_LINK must be paths inside the repository"),
            ("SETUP_EGRESS=all\n", "SETUP_EGRESS must be none, model-only, packages or open"),
            ("SETUP_TIMEOUT=0\n", "SETUP_TIMEOUT must be a number of seconds from 1 to 86400"),
        ] {
            assert_eq!(read(text).err().unwrap_or_default(), words, "{text}");
        }
    }

    #[test]
    fn what_the_command_runs_and_what_stands_beside_a_lock_file_decides_too() {
        let inputs = |text: &str| read(text).unwrap().inputs();
        assert_eq!(
            inputs(
                "SETUP_CMD=\"sh ./tools/setup.sh --fast ../x /bin/y\"\nSETUP_LOCK_FILES=web/package-lock.json\n"
            ),
            [
                "--fast",
                "sh",
                "tools/setup.sh",
                "web/.npmrc",
                "web/package-lock.json",
                "web/package.json"
            ]
        );
        assert!(inputs("SETUP_CMD=\"make deps\"\n").contains(&"Makefile".to_owned()));
        assert!(inputs("SETUP_CMD=\"npm ci\"\n").contains(&"package.json".to_owned()));
    }

    #[test]
    fn a_set_up_serves_until_something_that_it_depends_on_changes() {
        let setup = read("SETUP_CMD=\"npm ci\"\nSETUP_KEEP=node_modules\n").unwrap();
        let lock = |text: &str| vec![("package-lock.json".to_owned(), Some(text.into()))];
        let same = digest_setup(&setup, "bwrap", &lock("a"));
        assert_eq!(same, digest_setup(&setup, "bwrap", &lock("a")));
        let other = read("SETUP_CMD=\"npm install\"\nSETUP_KEEP=node_modules\n").unwrap();
        let absent = vec![("package-lock.json".to_owned(), None)];
        for digest in [
            digest_setup(&setup, "bwrap", &lock("b")),
            digest_setup(&setup, "docker image", &lock("a")),
            digest_setup(&other, "bwrap", &lock("a")),
            digest_setup(&setup, "bwrap", &absent),
            digest_setup(&setup, "bwrap", &lock("")),
        ] {
            assert_ne!(same, digest);
        }
    }
}
