//! The repository that an agent will work in, before the run: created, filled and checked out before any
//! other process sees it. After the run it is data, and this module never touches it again.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::id::{BranchName, Sha};

use super::call::{Git, GitCall, argv, argv_with};
use super::seal::{init_env, sealed_flags};
use super::{ConflictStage, GitError, GitLog, ObjectFormat, RefName};
use crate::file::{FileError, write_transient};

/// Time limit of a checkout of a large tree on a slow disk.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(900);

/// The configuration of the agent's repository. Sizes and times of files are compared loosely, because their
/// owner changes once more before the agent starts, and a first `git status` should not have to read every
/// file for that.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tcheckStat = minimal
\ttrustctime = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
";

/// A repository under construction.
#[derive(Debug, Clone)]
pub struct WorkspaceRepo {
    path: PathBuf,
    git: Git,
}

impl WorkspaceRepo {
    /// Creates an empty repository with our configuration and nothing else: no template, no hooks, no
    /// remotes. These few folders and two files are all that git would create, and writing them takes no
    /// process.
    pub fn init(
        path: &Path,
        branch: &BranchName,
        format: ObjectFormat,
        identity: (&str, &str),
        log: Option<GitLog>,
    ) -> Result<Self, GitError> {
        let git_dir = path.join(".git");
        make_skeleton(&git_dir, branch, &render_config(format, identity))
            .map_err(|source| GitError::Prepare { path: path.to_path_buf(), source })?;
        let mut flags = sealed_flags(Some(&git_dir));
        flags.extend(argv("-c core.symlinks=true"));
        let mut tree = OsString::from("--work-tree=");
        tree.push(path);
        flags.push(tree);
        let git = Git { log, ..Git::new(Path::new("/"), init_env(), flags) };
        Ok(Self { path: path.to_path_buf(), git })
    }

    pub fn pack_dir(&self) -> PathBuf {
        self.path.join(".git/objects/pack")
    }

    /// Writes the files of a commit. Its objects may not have been copied yet: they are read from `lent`,
    /// which leaves no trace in the repository.
    pub async fn checkout(&self, commit: &Sha, lent: &Path) -> Result<(), GitError> {
        let mut git = self.git.clone();
        git.set_env("GIT_ALTERNATE_OBJECT_DIRECTORIES", lent);
        git.run(GitCall::new(argv_checkout(commit)).within(CHECKOUT_LIMIT)).await
    }

    /// Sets refs without a reflog, which would record their origin.
    pub async fn set_refs(&self, refs: &[(RefName, Sha)]) -> Result<(), GitError> {
        let input: String =
            refs.iter().map(|(name, sha)| format!("create {} {sha}\n", name.as_str())).collect();
        let call = GitCall::new(argv("-c core.logAllRefUpdates=false update-ref --stdin"));
        self.git.run(call.reading(input.as_bytes())).await
    }

    /// Records conflicts in the index: each path with its versions in place of a resolved entry.
    pub async fn leave_conflicts(&self, stages: &[ConflictStage]) -> Result<(), GitError> {
        let input = render_stages(stages);
        self.git.run(GitCall::new(argv("update-index -z --index-info")).reading(&input)).await
    }

    /// Records that a merge with `theirs` is in progress.
    pub fn begin_merge(&self, theirs: &Sha, message: &str) -> Result<(), GitError> {
        let texts = [
            ("MERGE_HEAD", format!("{theirs}\n")),
            ("MERGE_MSG", message.to_owned()),
            ("MERGE_MODE", String::new()),
        ];
        for (name, text) in texts {
            write_transient(&self.path.join(".git").join(name), text.as_bytes(), 0o644)
                .map_err(|source| GitError::Prepare { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// Returns those of the commits whose files are not all present in the repository.
    pub async fn lacks(&self, commits: &[Sha]) -> Result<Vec<Sha>, GitError> {
        let trees = self.git.trees_of(commits).await?;
        let lost = commits.iter().zip(trees).filter(|(_, tree)| tree.is_none());
        Ok(lost.map(|(commit, _)| commit.clone()).collect())
    }
}

/// Creates the directories and files. A partial repository has no use after a power failure, so nothing here
/// waits for the disk.
fn make_skeleton(git_dir: &Path, branch: &BranchName, config: &str) -> Result<(), FileError> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        let folder = git_dir.join(folder);
        fs::create_dir_all(&folder).map_err(FileError::io("make the directory", &folder))?;
    }
    let head = format!("ref: {}\n", branch.full_ref());
    write_transient(&git_dir.join("HEAD"), head.as_bytes(), 0o644)?;
    write_transient(&git_dir.join("config"), config.as_bytes(), 0o644)
}

/// Builds the arguments of a checkout by four processes at once.
fn argv_checkout(commit: &Sha) -> Vec<OsString> {
    let words = "-c checkout.workers=4 -c core.trustctime=false -c core.checkStat=minimal \
        read-tree -u --reset";
    argv_with(words, [commit.as_str()])
}

/// Renders the index update. A path is removed first: a resolved entry and conflict stages cannot coexist.
fn render_stages(stages: &[ConflictStage]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut last: Option<&[u8]> = None;
    for stage in stages {
        if last != Some(stage.path.as_slice()) {
            let none = "0".repeat(stage.id.as_str().len());
            text.extend([format!("0 {none}\t").as_bytes(), &stage.path, b"\0"].concat());
            last = Some(&stage.path);
        }
        let head = format!("{:06o} {} {}\t", stage.mode, stage.id, stage.stage);
        text.extend([head.as_bytes(), &stage.path, b"\0"].concat());
    }
    text
}

fn render_config(format: ObjectFormat, (name, email): (&str, &str)) -> String {
    let base = match format {
        ObjectFormat::Sha1 => CONFIG.to_owned(),
        ObjectFormat::Sha256 => {
            CONFIG.replace("repositoryformatversion = 0", "repositoryformatversion = 1")
                + "[extensions]\n\tobjectFormat = sha256\n"
        }
    };
    base + &format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(email))
}

/// Quotes a value for git's configuration syntax.
fn quoted(value: &str) -> String {
    let safe: String = value.chars().filter(|c| !c.is_control()).collect();
    format!("\"{}\"", safe.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_cannot_add_settings() {
        let text = render_config(ObjectFormat::Sha1, ("a\"\n[core]\n\tpager = x", "e@x"));
        assert!(text.contains("name = \"a\\\"[core]pager = x\"\n"), "{text}");
    }

    #[test]
    fn versions_of_a_path_take_the_place_of_a_settled_one() {
        let id = Sha::parse(&"a".repeat(40)).unwrap();
        let stage =
            |stage| ConflictStage { mode: 0o100_644, id: id.clone(), stage, path: b"f".to_vec() };
        let text = String::from_utf8(render_stages(&[stage(2), stage(3)])).unwrap();
        let (none, some) = ("0".repeat(40), "a".repeat(40));
        assert_eq!(text, format!("0 {none}\tf\x00100644 {some} 2\tf\x00100644 {some} 3\tf\x00"));
    }

    #[test]
    fn sha256_is_told_to_git() {
        let text = render_config(ObjectFormat::Sha256, ("a", "e"));
        assert!(
            text.contains("repositoryformatversion = 1") && text.contains("objectFormat = sha256")
        );
    }
}
