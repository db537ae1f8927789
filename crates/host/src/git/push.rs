//! Push of one commit as one branch, with the user's credentials, and the question where that branch is.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use model::command::{CommandSpec, render_command};
use model::id::{BranchName, Sha};

use super::call::{Git, GitCall, GitOutput, argv_with};
use super::fence::{PushFence, fence_ref};
use super::seal::{push_env, push_flags};
use super::settings::GitSettings;
use super::worktree_repo::{argv_ls_remote, read_remote_branch};
use super::{GitError, RemoteBranch, SealedRepo, UserEnv, user_git};
use crate::lock::{FileLock, LockKind};

const HOOKS_PATH: &str = "core.hooksPath";

/// Lock in the repository, held by the git program that pushes.
const LOCK_FILE: &str = "push.lock";

/// One commit for one branch of a remote.
#[derive(Clone, Copy, Debug)]
pub struct PushSpec<'a> {
    pub url: &'a str,
    pub branch: &'a BranchName,
    pub commit: &'a Sha,
    pub update: BranchUpdate<'a>,
    /// Moves in the same step, or nothing does.
    pub fence: Option<PushFence>,
}

/// Change that a push may make to a branch that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchUpdate<'a> {
    FastForward,
    /// Any change, if the branch is still at this commit.
    Replace {
        expected: &'a Sha,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The branch is new.
    Created,
    /// The branch existed and was fast-forwarded to the commit, or the expected commit was replaced.
    Updated,
    /// The branch was at the commit already.
    UpToDate,
    /// The remote, or git on its behalf, rejected the push. Another push may have brought the commit there meanwhile.
    Rejected { reason: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    Deleted,
    /// The remote, or git on its behalf, rejected the deletion: the branch moved or is gone, or a rule protects it.
    Rejected {
        reason: String,
    },
}

/// Returns the reason why a push failed, for display; `None` if it succeeded.
pub fn push_problem(pushed: &Result<PushOutcome, GitError>) -> Option<String> {
    match pushed {
        Ok(PushOutcome::Created | PushOutcome::Updated | PushOutcome::UpToDate) => None,
        Ok(PushOutcome::Rejected { reason }) => {
            Some(format!("origin rejected the branch: {reason}"))
        }
        Err(error) => Some(error.to_string()),
    }
}

impl SealedRepo {
    /// Pushes with the user's configuration and credentials.
    ///
    /// A git that pushes outlives a caller that is killed. It holds a lock as its standard input, which none of the
    /// programs that it starts inherits, and the next push from this repository waits for it: two pushes of the
    /// same branch at once would reject each other.
    pub async fn push(
        &self,
        spec: PushSpec<'_>,
        env: UserEnv,
        timeout: Duration,
    ) -> Result<PushOutcome, GitError> {
        let git = self.git_of_user(env, spec.url).await?;
        let receiver = receive_pack(&git, spec.url).await?;
        let kind = LockKind::Exclusive { note: "push" };
        let lock = FileLock::acquire(&self.path().join(LOCK_FILE), kind, timeout).await?;
        let fence = match spec.fence {
            Some(fence) => Some(self.fence_words(fence).await?),
            None => None,
        };
        let call = GitCall::new(argv_push(spec, fence, receiver))
            .within(timeout)
            .reading_file(lock.into_file());
        read_push(&git.call(call).await?, spec)
    }

    /// Deletes a branch that is still at `expected`, with the user's configuration and credentials.
    pub async fn delete_branch(
        &self,
        url: &str,
        branch: &BranchName,
        expected: &Sha,
        env: UserEnv,
        timeout: Duration,
    ) -> Result<DeleteOutcome, GitError> {
        let git = self.git_of_user(env, url).await?;
        let call = GitCall::new(argv_delete(url, branch, expected)).within(timeout);
        read_delete(&git.call(call).await?, branch)
    }

    /// Queries a remote for one branch, with the user's configuration and credentials.
    pub async fn remote_branch(
        &self,
        url: &str,
        branch: &BranchName,
        env: UserEnv,
        timeout: Duration,
    ) -> Result<RemoteBranch, GitError> {
        let git = self.git_of_user(env, url).await?;
        let call = GitCall::new(argv_ls_remote(url, branch)).within(timeout);
        read_remote_branch(&git.query(call).await?, branch)
    }

    /// The condition and the refspec by which a fence moves with a push.
    async fn fence_words(&self, fence: PushFence) -> Result<FenceWords, GitError> {
        let (old, new) =
            (self.write_fence(fence.value).await?, self.write_fence(fence.value.next()).await?);
        let name = fence_ref(fence.issue);
        Ok(FenceWords {
            lease: format!("--force-with-lease={name}:{old}"),
            refspec: format!("{new}:{name}"),
        })
    }

    pub(super) async fn git_of_user(&self, env: UserEnv, url: &str) -> Result<Git, GitError> {
        let (env, flags) = (env.into_vars(), push_flags(self.path()));
        let mut git = Git { env, flags, ..self.git.clone() };
        for (name, value) in push_env(self.object_format()) {
            git.set_env(name, value);
        }
        let settings = GitSettings::observe(&git).await?;
        user_git::close_prompts(&mut git, &settings);
        user_git::keep_url(&mut git, url);
        Ok(git)
    }
}

/// Additions of a fence to a push.
#[derive(Debug)]
struct FenceWords {
    lease: String,
    refspec: String,
}

/// Why the other side, or git on its behalf, did not change a ref.
pub(super) struct PushRefusal {
    pub(super) reason: String,
}

impl PushRefusal {
    /// Reads what became of one ref of a push; `None` if it changed or was there already.
    pub(super) fn of_ref(answer: &GitOutput, name: &str) -> Result<Option<Self>, GitError> {
        let text = String::from_utf8_lossy(&answer.stdout);
        match (text.lines().find_map(|line| parse_status_line(line, name)), answer.status) {
            (Some(("!", summary)), _) => Ok(Some(Self { reason: summary.to_owned() })),
            (Some(_), 0) => Ok(None),
            (None, 0) => Err(answer.unreadable("no word about the ref")),
            _ => Err(answer.failure()),
        }
    }
}

/// Builds the arguments. Without a lease git only fast-forwards a branch; with one, it changes only a branch that is at
/// the expected commit.
fn argv_push(
    spec: PushSpec<'_>,
    fence: Option<FenceWords>,
    receiver: Option<String>,
) -> Vec<OsString> {
    let full = spec.branch.full_ref();
    let lease = match spec.update {
        BranchUpdate::FastForward => None,
        BranchUpdate::Replace { expected } => Some(format!("--force-with-lease={full}:{expected}")),
    };
    let refspec = format!("{}:{full}", spec.commit);
    let words = "push --porcelain --no-verify --no-follow-tags --no-signed \
        --recurse-submodules=no --no-progress";
    let rest = ["--end-of-options".to_owned(), spec.url.to_owned(), refspec];
    let receiver = receiver.map(|command| format!("--receive-pack={command}"));
    let (fence_lease, fence_refspec) = fence.map(|it| (it.lease, it.refspec)).unzip();
    let atomic = fence_lease.is_some().then(|| "--atomic".to_owned());
    let flags = lease.into_iter().chain(atomic).chain(fence_lease).chain(receiver);
    argv_with(words, flags.chain(rest).chain(fence_refspec))
}

/// Returns the command that receives the push, if it must not be git's usual one. At a path of this machine the receiver
/// reads the configuration of the user, and with it a global `core.hooksPath`: those hooks are for the user's own work.
/// The repository's own hooks decide about what it takes.
async fn receive_pack(git: &Git, url: &str) -> Result<Option<String>, GitError> {
    let Some(path) = local_path(url) else { return Ok(None) };
    let answer = git.call(argv_with("config -z --show-scope --get-all", [HOOKS_PATH])).await?;
    if !answer.found()?.is_some_and(|answer| is_set_for_user(&answer.stdout)) {
        return Ok(None);
    }
    let config =
        [path.join("config"), path.join(".git/config")].into_iter().find(|it| it.is_file());
    let own = match config {
        Some(config) => {
            let args = [config.as_os_str(), "--get".as_ref(), HOOKS_PATH.as_ref()];
            let answer = git.call(argv_with("config --file", args)).await?;
            answer.found()?.map(|it| String::from_utf8_lossy(&it.stdout).trim_end().to_owned())
        }
        None => None,
    };
    // Git runs a receiver's hooks in the repository directory, so the relative path is its usual folder.
    let setting = format!("{HOOKS_PATH}={}", own.as_deref().unwrap_or("hooks"));
    let command = CommandSpec::new("git").args(["-c", &setting, "receive-pack"]);
    Ok(Some(render_command(&command)))
}

fn local_path(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    path.starts_with('/').then(|| Path::new(path))
}

/// Parses pairs of a scope and a value. The values of other scopes are the repository's own and those of this program.
fn is_set_for_user(bytes: &[u8]) -> bool {
    let fields: Vec<&[u8]> = bytes.split(|&byte| byte == 0).collect();
    fields.chunks_exact(2).any(|pair| matches!(pair[0], b"global" | b"system"))
}

fn argv_delete(url: &str, branch: &BranchName, expected: &Sha) -> Vec<OsString> {
    let full = branch.full_ref();
    let lease = format!("--force-with-lease={full}:{expected}");
    let rest = [lease, "--end-of-options".to_owned(), url.to_owned(), format!(":{full}")];
    argv_with("push --porcelain --no-verify --no-progress", rest)
}

fn read_delete(answer: &GitOutput, branch: &BranchName) -> Result<DeleteOutcome, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    match (text.lines().find_map(|line| parse_status_line(line, &branch.full_ref())), answer.status)
    {
        (Some(("-", _)), 0) => Ok(DeleteOutcome::Deleted),
        (Some(("!", summary)), _) => Ok(DeleteOutcome::Rejected { reason: summary.to_owned() }),
        (_, 0) => Err(answer.unreadable("no word about the branch")),
        _ => Err(answer.failure()),
    }
}

/// Reads the status. A rejected push exits with failure too, so the line about our branch decides; without
/// such a line the push did not get that far.
fn read_push(answer: &GitOutput, spec: PushSpec<'_>) -> Result<PushOutcome, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let may_replace = spec.update != BranchUpdate::FastForward;
    let Some((flag, summary)) =
        text.lines().find_map(|line| parse_status_line(line, &spec.branch.full_ref()))
    else {
        return Err(match answer.status {
            0 => answer.unreadable("no word about the branch"),
            _ => answer.failure(),
        });
    };
    match (flag, answer.status) {
        ("!", _) => Ok(PushOutcome::Rejected { reason: summary.to_owned() }),
        ("*", 0) => Ok(PushOutcome::Created),
        (" ", 0) => Ok(PushOutcome::Updated),
        ("+", 0) if may_replace => Ok(PushOutcome::Updated),
        ("=", 0) => Ok(PushOutcome::UpToDate),
        (_, 0) => Err(answer.unreadable(format!("unexpected flag {flag:?} for the branch"))),
        _ => Err(answer.failure()),
    }
}

/// Parses a line `flag`, tab, `from:to`, tab, summary.
fn parse_status_line<'a>(line: &'a str, full: &str) -> Option<(&'a str, &'a str)> {
    let mut fields = line.splitn(3, '\t');
    let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, to) = refs.split_once(':')?;
    (to == full).then_some((flag, summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn with_spec<T>(update: BranchUpdate<'_>, act: impl FnOnce(PushSpec<'_>) -> T) -> T {
        let (commit, branch) = (Sha::parse(A).unwrap(), BranchName::parse("fix/login").unwrap());
        act(PushSpec { url: "-evil", branch: &branch, commit: &commit, update, fence: None })
    }

    fn outcome_of(
        update: BranchUpdate<'_>,
        status: i32,
        line: &str,
    ) -> Result<PushOutcome, GitError> {
        let answer = GitOutput {
            args: "push".to_owned(),
            status,
            stdout: format!("To /remote\n{line}\nDone\n").into_bytes(),
            stderr: b"error: failed to push some refs\n".to_vec(),
            truncated: false,
        };
        with_spec(update, |spec| read_push(&answer, spec))
    }

    fn outcome(status: i32, line: &str) -> Result<PushOutcome, GitError> {
        outcome_of(BranchUpdate::FastForward, status, line)
    }

    fn shown(update: BranchUpdate<'_>) -> String {
        with_spec(update, |spec| argv_push(spec, None, None))
            .join(" ".as_ref())
            .into_string()
            .unwrap()
    }

    #[test]
    fn a_push_names_one_commit_and_one_branch() {
        insta::assert_snapshot!(shown(BranchUpdate::FastForward), @"push --porcelain --no-verify --no-follow-tags --no-signed --recurse-submodules=no --no-progress --end-of-options -evil aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:refs/heads/fix/login");
    }

    #[test]
    fn a_replacement_names_the_commit_that_it_replaces() {
        let expected = Sha::parse(&"b".repeat(40)).unwrap();
        let argv = shown(BranchUpdate::Replace { expected: &expected });
        let lease = format!(" --force-with-lease=refs/heads/fix/login:{expected} ");
        assert!(argv.contains(&lease) && !argv.contains('+'), "{argv}");
    }

    #[test]
    fn a_deletion_names_the_commit_that_may_go() {
        let (branch, commit) = (BranchName::parse("fix/login").unwrap(), Sha::parse(A).unwrap());
        let argv = argv_delete("-evil", &branch, &commit).join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(argv, @"push --porcelain --no-verify --no-progress --force-with-lease=refs/heads/fix/login:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa --end-of-options -evil :refs/heads/fix/login");
        let said = |status, line: &str| {
            let stdout = format!("To /remote\n{line}\nDone\n").into_bytes();
            let (args, stderr) = ("push".to_owned(), Vec::new());
            read_delete(&GitOutput { args, status, stdout, stderr, truncated: false }, &branch)
        };
        let gone = said(0, "-\t:refs/heads/fix/login\t[deleted]").unwrap();
        assert_eq!(gone, DeleteOutcome::Deleted);
        let moved = said(1, "!\t:refs/heads/fix/login\t[rejected] (stale info)").unwrap();
        assert_eq!(moved, DeleteOutcome::Rejected { reason: "[rejected] (stale info)".to_owned() });
        assert!(said(128, "").is_err());
    }

    #[test]
    fn only_a_setting_of_the_user_or_the_system_counts() {
        assert!(is_set_for_user(b"global\0/home/me/hooks\0command\0/dev/null\0"));
        assert!(is_set_for_user(b"system\0/etc/hooks\0"));
        assert!(!is_set_for_user(b"local\0/x\0command\0global\0"));
        assert_eq!(local_path("file:///srv/a"), Some(Path::new("/srv/a")));
        assert_eq!(local_path("https://forge.example/a"), None);
        assert_eq!(local_path("git@forge.example:a"), None);
    }

    #[test]
    fn each_flag_has_its_outcome() {
        let said = |flag: &str, words: &str| format!("{flag}\t{A}:refs/heads/fix/login\t{words}");
        assert_eq!(outcome(0, &said("*", "[new branch]")).unwrap(), PushOutcome::Created);
        assert_eq!(outcome(0, &said(" ", "a..b")).unwrap(), PushOutcome::Updated);
        assert_eq!(outcome(0, &said("=", "[up to date]")).unwrap(), PushOutcome::UpToDate);
        let reason = "[rejected] (fetch first)".to_owned();
        assert_eq!(outcome(1, &said("!", &reason)).unwrap(), PushOutcome::Rejected { reason });
    }

    #[test]
    fn only_a_push_that_did_not_arrive_is_a_problem() {
        assert_eq!(push_problem(&Ok(PushOutcome::UpToDate)), None);
        let rejected = PushOutcome::Rejected { reason: "hook declined".to_owned() };
        let problem = push_problem(&Ok(rejected));
        assert_eq!(problem.as_deref(), Some("origin rejected the branch: hook declined"));
        let unreadable = GitError::Parse { args: "push".to_owned(), problem: "odd".to_owned() };
        assert!(push_problem(&Err(unreadable)).is_some_and(|words| words.contains("odd")));
    }

    #[test]
    fn a_forced_update_is_a_success_only_where_a_commit_was_to_be_replaced() {
        let line = format!("+\t{A}:refs/heads/fix/login\ta...b (forced update)");
        assert!(matches!(outcome(0, &line), Err(GitError::Parse { .. })));
        let expected = Sha::parse(A).unwrap();
        let replaced = outcome_of(BranchUpdate::Replace { expected: &expected }, 0, &line);
        assert_eq!(replaced.unwrap(), PushOutcome::Updated);
    }

    #[test]
    fn no_word_about_our_branch_is_a_failure() {
        let line = format!("*\t{A}:refs/heads/other\t[new branch]");
        assert!(matches!(outcome(0, &line), Err(GitError::Parse { .. })));
        assert!(matches!(outcome(128, ""), Err(GitError::Failed { .. })));
    }
}
