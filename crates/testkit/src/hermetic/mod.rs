//! An environment that is the same on every machine: own home, own git configuration, fixed identities and dates.

mod output;
mod redact;

pub use output::Output;
pub use redact::redact_snapshot;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::program::{self, SYSTEM_PATH};

/// The name of everyone who commits in a test.
pub const NAME: &str = "Test Person";
/// Their address.
pub const EMAIL: &str = "person@example.com";
/// The date of the first commit, in seconds.
pub const EPOCH: u64 = 1_735_689_600;

/// A folder that goes away with the test, and an environment that knows nothing outside it.
#[derive(Debug)]
pub struct Hermetic {
    root: TempDir,
    path: OsString,
}

impl Hermetic {
    /// Makes the folder with an empty home, the XDG folders and a work folder.
    pub fn new() -> Self {
        let hermetic = Self {
            root: tempfile::tempdir().expect("a temporary folder"),
            path: SYSTEM_PATH.into(),
        };
        for (_, folder) in FOLDERS {
            fs::create_dir_all(hermetic.root().join(folder))
                .expect("a folder in the temporary folder");
        }
        fs::create_dir(hermetic.work()).expect("the work folder");
        // The specification of XDG_RUNTIME_DIR wants it private, and programs check.
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(hermetic.root().join("runtime"), private).expect("a private folder");
        hermetic
    }

    /// Unpacks a world that the version `version` of the product `name` left on disk. Records hold absolute paths,
    /// so the old root is replaced by the new one in every file; both have the same length, which also keeps
    /// databases intact.
    pub fn from_version(version: &str, name: &str) -> Self {
        let root = tempfile::Builder::new()
            .prefix(".tmp")
            .rand_bytes(6)
            .tempdir_in("/tmp")
            .expect("a temporary folder");
        let archive =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{version}/{name}.tar.gz"));
        let mut tar = program::command("tar");
        tar.env("PATH", SYSTEM_PATH).arg("-xzf").arg(&archive).arg("-C").arg(root.path());
        let status = tar.status().expect("tar starts");
        assert!(status.success(), "{} is not unpacked", archive.display());
        replace_below(root.path(), FIXTURE_ROOT.as_bytes(), root.path().as_os_str().as_bytes());
        Self { root, path: SYSTEM_PATH.into() }
    }

    /// Puts a folder before the others on the path of every command.
    #[must_use]
    pub fn with_path(mut self, folder: &Path) -> Self {
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(&self.path);
        self.path = path;
        self
    }

    /// Puts a program before all others of its name on the path of every command: a shell script that behaves as one
    /// does on a machine that is not this one.
    #[must_use]
    pub fn with_program(self, name: &str, script: &str) -> Self {
        let folder = self.root().join("programs");
        fs::create_dir_all(&folder).expect("a folder of programs");
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        self.with_path(&folder)
    }

    /// Installs a stand-in for an agent's program, which fails, at a path below the folder of installed agents.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn install_agent(&self, entry: impl AsRef<Path>) {
        let path = self.home().join(".local/share/bottleworks/agents").join(entry);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of programs");
        fs::write(&path, "#!/bin/sh\nexit 7\n").expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// Puts a bubblewrap there that fails with this sentence, as one does where the kernel or a policy refuses it.
    #[must_use]
    pub fn with_refused_bwrap(self, sentence: &str) -> Self {
        self.with_program("bwrap", &format!("echo \"{sentence}\" >&2\nexit 1\n"))
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Working directory of commands, by default.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// `HOME` of every command.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// A command that sees this environment and nothing else. `NO_COLOR` is not set: whether a program colours a
    /// pipe is one of the things to test.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = program::command(program);
        command.current_dir(self.work()).env("PATH", &self.path).envs(fixed_env(EPOCH));
        for (name, folder) in FOLDERS {
            command.env(name, self.root().join(folder));
        }
        command.env("GIT_CONFIG_GLOBAL", self.home().join(".gitconfig"));
        command
    }

    /// Runs a command to its end and keeps what it said.
    pub fn run(&self, command: &mut Command) -> Output {
        let output = command.output();
        let output = output.unwrap_or_else(|error| panic!("could not start {command:?}: {error}"));
        Output::new(&output, self.root())
    }

    /// The same for a command that has to succeed.
    pub fn run_ok(&self, command: &mut Command) -> Output {
        let output = self.run(command);
        assert!(output.success(), "{command:?}\n{}", output.snapshot());
        output
    }

    /// Makes a text fit for a snapshot: this environment's folder, then everything that [`redact_snapshot`] knows.
    pub fn redact(&self, text: &str) -> String {
        redact::redact_below(self.root(), text)
    }
}

impl Default for Hermetic {
    fn default() -> Self {
        Self::new()
    }
}

/// Root of the worlds in `fixtures/`, as their records name it.
const FIXTURE_ROOT: &str = "/tmp/.tmpOLDONE";

/// Replaces `old` by `new`, which has the same length, in every file below a folder.
fn replace_below(folder: &Path, old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len(), "the roots differ in length");
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            replace_below(&entry.path(), old, new);
        } else if kind.is_file() {
            let mut bytes = fs::read(entry.path()).expect("a file");
            let found: Vec<usize> = (0..bytes.len().saturating_sub(old.len() - 1))
                .filter(|&at| bytes[at..].starts_with(old))
                .collect();
            for &at in &found {
                bytes[at..at + new.len()].copy_from_slice(new);
            }
            if !found.is_empty() {
                let mode = entry.metadata().expect("metadata").permissions();
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).expect("set");
                fs::write(entry.path(), bytes).expect("written");
                fs::set_permissions(entry.path(), mode).expect("set");
            }
        }
    }
}

/// Variables that name a folder of the environment.
const FOLDERS: [(&str, &str); 7] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("XDG_CONFIG_HOME", "home/.config"),
    ("XDG_DATA_HOME", "home/.local/share"),
    ("XDG_STATE_HOME", "home/.local/state"),
    ("XDG_CACHE_HOME", "home/.cache"),
    ("XDG_RUNTIME_DIR", "runtime"),
];

/// Variables that make git and the C library behave alike everywhere, for commits made at `secs`.
pub(crate) fn fixed_env(secs: u64) -> [(&'static str, String); 10] {
    let date = format!("{secs} +0000");
    [
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_AUTHOR_NAME", NAME.to_owned()),
        ("GIT_AUTHOR_EMAIL", EMAIL.to_owned()),
        ("GIT_AUTHOR_DATE", date.clone()),
        ("GIT_COMMITTER_NAME", NAME.to_owned()),
        ("GIT_COMMITTER_EMAIL", EMAIL.to_owned()),
        ("GIT_COMMITTER_DATE", date),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sees_only_its_own_environment() {
        let hermetic = Hermetic::new();
        let output = hermetic.run_ok(&mut hermetic.command("env"));
        let mut names: Vec<&str> =
            output.stdout.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        let mut known: Vec<&str> = fixed_env(0).iter().map(|(name, _)| *name).collect();
        known.extend(FOLDERS.map(|(name, _)| name));
        known.extend(["GIT_CONFIG_GLOBAL", "PATH"]);
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn one_picture_shows_status_and_both_streams() {
        let hermetic = Hermetic::new();
        let script = "pwd; printf \"$GIT_AUTHOR_DATE\"; echo oops >&2; exit 3";
        let output = hermetic.run(hermetic.command("sh").args(["-c", script]));
        assert_eq!(
            output.snapshot(),
            "status: 3\n--- stdout\n[ROOT]/work\n[TIME][no line break]\n--- stderr\noops\n"
        );
    }

    #[test]
    fn what_is_asked_for_comes_first_on_the_path() {
        let hermetic = Hermetic::new().with_path(Path::new("/opt/tools"));
        let output = hermetic.run_ok(hermetic.command("/bin/sh").args(["-c", "echo $PATH"]));
        assert_eq!(output.stdout, "/opt/tools:/usr/bin:/bin\n");
    }
}
