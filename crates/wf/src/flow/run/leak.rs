//! Reads what an agent's commits add, so that secrets in it are found before the branch moves.

use host::git::SealedRepo;
use model::id::Sha;
use model::redact::Redactor;

use crate::exit::{OrExit, WfExit, WfResult};
use crate::rules::leak::{ChangedFile, find_leak, find_leak_in_message};

/// Largest file that is searched; a larger one is refused.
const FILE_CAP: usize = 16 << 20;
const COMMITS_MAX: usize = 100;
const MODE_GITLINK: u32 = 0o160_000;

/// Searches every new commit by itself, because history keeps its detours, and all of them together. Returns the reason
/// of a refusal.
pub(super) async fn search_leaks(
    repo: &SealedRepo,
    [head, tip]: [&Sha; 2],
    redactor: &Redactor,
    allowed: &[String],
) -> WfResult<Option<String>> {
    let known = std::slice::from_ref(head);
    let commits = repo.new_commits(tip, known, COMMITS_MAX + 1).await.or_exit(WfExit::General)?;
    if commits.len() > COMMITS_MAX {
        return Ok(Some(format!("more than {COMMITS_MAX} commits for one micro-commit")));
    }
    let mut pairs = vec![(head, tip)];
    pairs.extend(commits.iter().filter_map(|it| Some((it.parents.first()?, &it.sha))));
    for (from, to) in pairs {
        if let Some(reason) = find_leak_in_change(repo, [from, to], redactor, allowed).await? {
            return Ok(Some(reason));
        }
    }
    for commit in &commits {
        let parts = repo.commit_parts(&commit.sha).await.or_exit(WfExit::General)?;
        if let Some(reason) = find_leak_in_message(&parts.message, redactor) {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

/// Searches a change as a whole. Returns the reason of a refusal.
pub(crate) async fn find_leak_in_change(
    repo: &SealedRepo,
    [from, to]: [&Sha; 2],
    redactor: &Redactor,
    allowed: &[String],
) -> WfResult<Option<String>> {
    Ok(match read_changes(repo, from, to).await? {
        Ok(files) => find_leak(&files, redactor, allowed),
        Err(reason) => Some(reason),
    })
}

async fn read_changes(
    repo: &SealedRepo,
    from: &Sha,
    to: &Sha,
) -> WfResult<Result<Vec<ChangedFile>, String>> {
    let entries = repo.changed_entries(from, to).await.or_exit(WfExit::General)?;
    let mut files = Vec::new();
    for entry in entries {
        let Some(new) = entry.new.filter(|_| entry.new_mode != MODE_GITLINK) else { continue };
        let ids: Vec<Sha> = std::iter::once(new).chain(entry.old).collect();
        let mut blobs = repo.read_blobs(&ids, FILE_CAP).await.or_exit(WfExit::General)?.into_iter();
        let Some(after) = blobs.next().flatten() else { continue };
        if after.size > FILE_CAP as u64 {
            let path = String::from_utf8_lossy(&entry.path);
            return Ok(Err(format!("{path} is too large to be searched for secrets")));
        }
        let before = blobs.next().flatten().map(|blob| blob.bytes).unwrap_or_default();
        files.push(ChangedFile { path: entry.path, before, after: after.bytes });
    }
    Ok(Ok(files))
}
