//! Push of one commit as one branch, with the user's credentials and never by force.

use std::ffi::OsString;
use std::time::Duration;

use model::id::{BranchName, Sha};

use super::call::{Git, GitCall, GitOutput, argv_with};
use super::seal::{push_env, push_flags};
use super::settings::GitSettings;
use super::{GitError, SealedRepo, UserEnv, user_git};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The branch is new.
    Created,
    /// The branch existed and was fast-forwarded to the commit.
    Updated,
    /// The branch was at the commit already.
    UpToDate,
    /// The remote, or git on its behalf, rejected the push; nothing changed.
    Rejected { reason: String },
}

/// Returns the reason why a push failed, for display; `None` if it succeeded.
pub fn push_problem(pushed: Result<PushOutcome, GitError>) -> Option<String> {
    match pushed {
        Ok(PushOutcome::Created | PushOutcome::Updated | PushOutcome::UpToDate) => None,
        Ok(PushOutcome::Rejected { reason }) => {
            Some(format!("origin rejected the branch: {reason}"))
        }
        Err(error) => Some(error.to_string()),
    }
}

impl SealedRepo {
    /// Pushes `commit` as `branch` to `url`, with the user's configuration and credentials, and never by
    /// force.
    pub async fn push(
        &self,
        url: &str,
        commit: &Sha,
        branch: &BranchName,
        env: UserEnv,
        timeout: Duration,
    ) -> Result<PushOutcome, GitError> {
        let (env, flags) = (env.into_vars(), push_flags(self.path()));
        let mut git = Git { env, flags, ..self.git.clone() };
        for (name, value) in push_env(self.object_format()) {
            git.set_env(name, value);
        }
        let settings = GitSettings::observe(&git).await?;
        user_git::close_prompts(&mut git, &settings);
        let call = GitCall::new(argv_push(url, commit, branch)).within(timeout);
        read_push(&git.call(call).await?, branch)
    }
}

/// Builds the arguments. Without a `+` and without `--force`, git only fast-forwards a branch.
fn argv_push(url: &str, commit: &Sha, branch: &BranchName) -> Vec<OsString> {
    let refspec = format!("{commit}:{}", branch.full_ref());
    let words = "push --porcelain --no-verify --no-follow-tags --no-signed \
        --recurse-submodules=no --no-progress --end-of-options";
    argv_with(words, [url, &refspec])
}

/// Reads the status. A rejected push exits with failure too, so the line about our branch decides; without
/// such a line the push did not get that far.
fn read_push(answer: &GitOutput, branch: &BranchName) -> Result<PushOutcome, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let Some((flag, summary)) = text.lines().find_map(|line| parse_status_line(line, branch))
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
        ("=", 0) => Ok(PushOutcome::UpToDate),
        (_, 0) => Err(answer.unreadable(format!("unexpected flag {flag:?} for the branch"))),
        _ => Err(answer.failure()),
    }
}

/// Parses a line `flag`, tab, `from:to`, tab, summary.
fn parse_status_line<'a>(line: &'a str, branch: &BranchName) -> Option<(&'a str, &'a str)> {
    let mut fields = line.splitn(3, '\t');
    let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, to) = refs.split_once(':')?;
    (to == branch.full_ref()).then_some((flag, summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn outcome(status: i32, line: &str) -> Result<PushOutcome, GitError> {
        let answer = GitOutput {
            args: "push".to_owned(),
            status,
            stdout: format!("To /remote\n{line}\nDone\n").into_bytes(),
            stderr: b"error: failed to push some refs\n".to_vec(),
            truncated: false,
        };
        read_push(&answer, &BranchName::parse("fix/login").unwrap())
    }

    #[test]
    fn a_push_names_one_commit_and_one_branch() {
        let (commit, branch) = (Sha::parse(A).unwrap(), BranchName::parse("fix/login").unwrap());
        let argv = argv_push("-evil", &commit, &branch).join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(argv, @"push --porcelain --no-verify --no-follow-tags --no-signed --recurse-submodules=no --no-progress --end-of-options -evil aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:refs/heads/fix/login");
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
        assert_eq!(push_problem(Ok(PushOutcome::UpToDate)), None);
        let rejected = PushOutcome::Rejected { reason: "hook declined".to_owned() };
        let problem = push_problem(Ok(rejected));
        assert_eq!(problem.as_deref(), Some("origin rejected the branch: hook declined"));
        let unreadable = GitError::Parse { args: "push".to_owned(), problem: "odd".to_owned() };
        assert!(push_problem(Err(unreadable)).is_some_and(|words| words.contains("odd")));
    }

    #[test]
    fn a_forced_update_is_never_taken_for_success() {
        let line = format!("+\t{A}:refs/heads/fix/login\ta...b (forced update)");
        assert!(matches!(outcome(0, &line), Err(GitError::Parse { .. })));
    }

    #[test]
    fn no_word_about_our_branch_is_a_failure() {
        let line = format!("*\t{A}:refs/heads/other\t[new branch]");
        assert!(matches!(outcome(0, &line), Err(GitError::Parse { .. })));
        assert!(matches!(outcome(128, ""), Err(GitError::Failed { .. })));
    }
}
