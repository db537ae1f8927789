//! Real git repositories whose SHAs are the same on every machine and every day.

mod big;
mod commit_graph;
mod forgery;
mod fork;
mod hostile;
mod planted;

pub use big::{Size, make_big};
pub use forgery::{Forgery, forge_merge, upstream_refs};
pub use fork::{Depth, Fork, ForkPlan, History, ObjectFormat};
pub use hostile::{HOOKS, hostile_workspace, markers};
pub use planted::{Language, PlantedFork};

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::hermetic::{EPOCH, fixed_env};
use crate::program::{self, SYSTEM_PATH};

/// The branch that every repository starts with.
pub const MAIN: &str = "main";

const LFS_POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

/// A repository on disk, with or without a work tree.
#[derive(Debug, Clone)]
pub struct Repo {
    dir: PathBuf,
}

impl Repo {
    /// Makes an empty repository with a work tree.
    pub fn init(dir: impl Into<PathBuf>) -> Self {
        Self::init_as(dir.into(), &[])
    }

    /// Makes an empty repository without a work tree.
    pub fn init_bare(dir: impl Into<PathBuf>) -> Self {
        Self::init_as(dir.into(), &["--bare"])
    }

    /// A repository that exists.
    pub fn open(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    fn init_as(dir: PathBuf, options: &[&str]) -> Self {
        fs::create_dir_all(&dir).expect("a folder for the repository");
        let repo = Self { dir };
        let branch = format!("--initial-branch={MAIN}");
        repo.git(&[&["init", "--quiet", &branch, "--template="], options].concat());
        repo
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder that holds its objects, refs and configuration.
    pub fn git_dir(&self) -> PathBuf {
        PathBuf::from(self.git(&["rev-parse", "--absolute-git-dir"]))
    }

    /// Writes a file of the work tree and the folders above it.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let file = self.dir.join(path);
        fs::create_dir_all(file.parent().expect("a file has a folder")).expect("the folder");
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self
    }

    /// Writes a file that Git LFS keeps elsewhere: attributes and a pointer.
    pub fn write_lfs_file(&self) -> &Self {
        self.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        self.write("model.bin", LFS_POINTER)
    }

    /// Reads a file of the work tree.
    pub fn read(&self, path: &str) -> String {
        let file = self.dir.join(path);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Commits everything in the work tree, even nothing, and returns the SHA.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.commit_index(message)
    }

    /// Commits the index as it stands and returns the SHA.
    pub fn commit_index(&self, message: &str) -> String {
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    /// Makes a branch here without going to it.
    pub fn branch(&self, name: &str) -> &Self {
        self.git(&["branch", name]);
        self
    }

    /// Goes to a branch or commit.
    pub fn checkout(&self, target: &str) -> &Self {
        self.git(&["checkout", "--quiet", target]);
        self
    }

    /// Merges a branch with a merge commit and returns its SHA.
    pub fn merge(&self, branch: &str) -> String {
        self.git(&["merge", "--quiet", "--no-ff", "--no-edit", branch]);
        self.head()
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.sha("HEAD")
    }

    /// The commit that a name stands for.
    pub fn sha(&self, name: &str) -> String {
        self.git(&["rev-parse", "--verify", &format!("{name}^{{commit}}")])
    }

    /// Runs git and returns what it printed, without the last line break.
    ///
    /// # Panics
    /// With what git said, if it fails.
    pub fn git(&self, args: &[&str]) -> String {
        match self.try_git(args) {
            Ok(stdout) => stdout,
            Err(complaint) => {
                panic!("git {} in {}: {complaint}", args.join(" "), self.dir.display())
            }
        }
    }

    /// The same for a command that may fail; the error is what git said.
    pub fn try_git(&self, args: &[&str]) -> Result<String, String> {
        let output = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Runs git with nothing of this machine in its environment. The configuration of the repository itself counts.
    fn run(&self, args: &[&str]) -> process::Output {
        // Each commit is a minute younger than its parent, so that logs have one order.
        let secs = EPOCH + 60 * self.depth(args);
        let mut command = plain_git(&self.dir);
        command.envs(fixed_env(secs)).args(args);
        command.output().unwrap_or_else(|error| panic!("could not start git: {error}"))
    }

    fn depth(&self, args: &[&str]) -> u64 {
        let makes_commits =
            ["commit", "merge", "rebase", "cherry-pick", "revert", "commit-tree", "am"];
        if !args.first().is_some_and(|verb| makes_commits.contains(verb)) {
            return 0;
        }
        let mut command = plain_git(&self.dir);
        command.args(["-c", "core.commitGraph=false", "rev-list", "--count", "HEAD", "--"]);
        let output =
            command.output().unwrap_or_else(|error| panic!("could not start git: {error}"));
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
    }
}

/// Git with no configuration but the repository's own. Fixtures may belong to another user (a box's), and here that
/// is no reason to refuse.
fn plain_git(dir: &Path) -> process::Command {
    let mut command = program::command("git");
    command.env("PATH", SYSTEM_PATH).env("HOME", "/nonexistent").env("LC_ALL", "C");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.arg("-C").arg(dir);
    command.args(["-c", "safe.directory=*", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_history_has_the_same_shas() {
        let temp = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let repo = Repo::init(temp.path().join(name));
            repo.write("a.txt", "one\n").commit("one");
            repo.branch("side").write("a.txt", "two\n").commit("two");
            repo.checkout("side").write("b/c.txt", "three\n").commit("three");
            repo.checkout(MAIN).merge("side")
        };
        assert_eq!(make("here"), make("there"));
        assert_eq!(make("again"), "a8a7aa02c0c83a62dfd260cc461b07b86591b50c");
    }

    #[test]
    fn a_child_is_younger_than_its_parent() {
        let temp = tempfile::tempdir().unwrap();
        let repo = Repo::init(temp.path());
        repo.commit("one");
        repo.commit("two");
        assert_eq!(
            repo.git(&["log", "--format=%at %ct"]),
            "1735689660 1735689660\n1735689600 1735689600"
        );
    }

    #[test]
    fn what_git_says_is_in_the_complaint() {
        let temp = tempfile::tempdir().unwrap();
        let complaint = Repo::init(temp.path()).try_git(&["checkout", "nowhere"]).unwrap_err();
        assert_eq!(complaint, "error: pathspec 'nowhere' did not match any file(s) known to git");
    }
}
