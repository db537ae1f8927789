//! Preparation of a run that lands one fix of upstream alone.
//!
//! A run merges two commits. For a fix these are the commit of upstream that makes it, and a stand-in for the fork's branch: a
//! commit with exactly its files, whose parents are the branch and the state of upstream before the fix. The common ancestor
//! of both is that state, so the merge brings the fix and nothing else, and resolver, agent, check and verdict work as in
//! every run. What is published is one commit on the branch itself, with the files of the verified result.

use engine::evidence::Pins;
use host::git::{CommitDraft, CommitParts, SealedRepo, UserRepo};
use jiff::Timestamp;
use merge::pick::{PickAttempt, try_pick};
use model::exit::ForkliftExit;
use model::id::Sha;
use tempfile::TempDir;

use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::flow::observe::Observation;
use crate::rules::security::fix::{FixRecord, FixRequest};

/// A sealed repository that reads and writes the objects of the user's. As with a fetch, no ref and no file changes.
struct ObjectWriter {
    repo: SealedRepo,
    /// Deleted on drop.
    _scratch: TempDir,
}

impl ObjectWriter {
    async fn open(user: &UserRepo) -> Result<Self, Failure> {
        let scratch = TempDir::new().or_machine()?;
        let path = scratch.path().join("fix.git");
        let repo = SealedRepo::init_bare(&path, user.object_format()).await;
        let repo = repo.or_machine()?.writing_to(user.objects_dir().as_os_str(), "".as_ref());
        Ok(Self { repo, _scratch: scratch })
    }
}

/// The two commits of a run that lands a fix, and its record.
struct FixPins {
    pins: Pins,
    record: FixRecord,
}

/// Replaces the commits of an observation by those that land a fix, if one is asked for.
pub(crate) async fn pin_fix(
    seen: Observation,
    request: Option<&FixRequest>,
) -> Result<Observation, Failure> {
    let Some(request) = request else { return Ok(seen) };
    for commit in &request.commits {
        check_commit(&seen, commit).await?;
    }
    let made = make_pins(&seen.repo, request, &seen.pins.base).await?;
    Ok(Observation {
        target_name: format!("fix of {}", request.id),
        up_to_date: false,
        pins: made.pins,
        fix: Some(made.record),
        ..seen
    })
}

/// Refuses a commit whose change the fork has, and one that is not upstream's. A commit of the fork's history may have been
/// reverted, or lost in a merge.
async fn check_commit(seen: &Observation, commit: &Sha) -> Result<(), Failure> {
    let (repo, base) = (&seen.repo, &seen.pins.base);
    if repo.is_ancestor(commit, base).await.or_machine()? {
        let writer = ObjectWriter::open(repo).await?;
        let when = Timestamp::UNIX_EPOCH;
        let picked = try_pick(&writer.repo, commit, base, &host_identity(), when).await;
        if picked.or_machine()? == PickAttempt::Empty {
            let text = format!(
                "{} is in the fork's history, and applying it again changes nothing",
                commit.short()
            );
            return Err(Failure::usage(text));
        }
    }
    if repo.is_ancestor(commit, &seen.pins.upstream).await.or_machine()? {
        return Ok(());
    }
    for (_, tip) in seen.upstream_branches().await? {
        if repo.is_ancestor(commit, &tip).await.or_machine()? {
            return Ok(());
        }
    }
    Err(Failure::usage(format!("{} is on no branch of upstream", commit.short())))
}

/// Makes the commits of a fix again where git has removed them: nothing but the run names them.
pub(crate) async fn restore_pins(
    repo: &UserRepo,
    pins: &Pins,
    fix: &FixRecord,
) -> Result<(), Failure> {
    for pin in [&pins.base, &pins.upstream] {
        if repo.resolve_commit(pin.as_str()).await.or_machine()?.is_some() {
            continue;
        }
        let made = make_pins(repo, &fix.request, &fix.fork_tip).await?;
        if made.pins != *pins {
            let text =
                format!("the commits of the fix of {} could not be made again", fix.request.id);
            return Err(Failure::new(ForkliftExit::Machine, text));
        }
    }
    Ok(())
}

async fn make_pins(
    repo: &UserRepo,
    request: &FixRequest,
    fork_tip: &Sha,
) -> Result<FixPins, Failure> {
    let writer = ObjectWriter::open(repo).await?;
    let repo = &writer.repo;
    let [first, rest @ ..] = request.commits.as_slice() else {
        return Err(Failure::usage(format!("no commit is known as the fix of {}", request.id)));
    };
    let newest = rest.last().unwrap_or(first);
    let made_at = date_of(repo, newest).await?;
    let parts = repo.commit_parts(first).await.or_machine()?;
    let before = parts.parents.first().cloned().ok_or_else(|| {
        Failure::usage(format!("{} is the first commit of upstream, and so no fix", first.short()))
    })?;
    // A commit of the fork's history, whose change was lost later, is made again: it must not count as merged.
    let is_known = repo.is_ancestor(first, fork_tip).await.or_machine()?;
    let is_plain = rest.is_empty() && parts.parents.len() == 1 && !is_known;
    let upstream = match is_plain {
        true => first.clone(),
        false => chain(repo, parts, rest, made_at).await?,
    };
    let tree = repo.commit_parts(fork_tip).await.or_machine()?.tree;
    let message = format!(
        "Stand-in for {fork_tip}\n\nThe fork as it is, beside upstream as it was before the fix of {}.\n",
        request.id
    );
    let identity = host_identity();
    let parents = [fork_tip.clone(), before];
    let draft = CommitDraft {
        tree: &tree,
        parents: &parents,
        identity: &identity,
        when: made_at,
        message: &message,
    };
    let base = repo.commit_tree(draft).await.or_machine()?;
    let record = FixRecord {
        request: request.clone(),
        fork_tip: fork_tip.clone(),
        made_at,
        commit: None,
        landing: None,
    };
    Ok(FixPins { pins: Pins { base, upstream }, record })
}

/// Joins commits that build on one another into one line of history. Returns the state of upstream before the first, and the
/// last; `None` for commits without one before them.
pub(super) async fn join_commits_of(
    repo: &SealedRepo,
    commits: &[Sha],
) -> Result<Option<(Sha, Sha)>, Failure> {
    let Some((first, rest)) = commits.split_first() else { return Ok(None) };
    let parts = repo.commit_parts(first).await.or_machine()?;
    let Some(before) = parts.parents.first().cloned() else { return Ok(None) };
    let tip = chain(repo, parts, rest, Timestamp::UNIX_EPOCH).await?;
    Ok(Some((before, tip)))
}

/// One line of history for several commits, or for a merge: its other parents must not count as ancestors of the fix.
async fn chain(
    repo: &SealedRepo,
    first: CommitParts,
    rest: &[Sha],
    when: Timestamp,
) -> Result<Sha, Failure> {
    let identity = host_identity();
    let parents = first.parents.iter().take(1).cloned().collect();
    let first = CommitParts { parents, ..first };
    let mut tip = repo.write_commit(&first, &identity, when).await.or_machine()?;
    for commit in rest {
        let picked = try_pick(repo, commit, &tip, &identity, when).await.or_machine()?;
        let tree = match picked {
            PickAttempt::Clean { tree } => tree,
            PickAttempt::Empty => continue,
            PickAttempt::Conflicts(_) => {
                let text =
                    format!("{} does not apply to the other commits of the fix", commit.short());
                let remedy =
                    "land them one after the other: forklift security land ID --commit COMMIT";
                return Err(Failure::usage(text).with_remedy(remedy));
            }
        };
        let parts = repo.commit_parts(commit).await.or_machine()?;
        let parts = CommitParts { tree, parents: vec![tip], ..parts };
        tip = repo.write_commit(&parts, &identity, when).await.or_machine()?;
    }
    Ok(tip)
}

async fn date_of(repo: &SealedRepo, commit: &Sha) -> Result<Timestamp, Failure> {
    let lines = repo.commit_lines(std::slice::from_ref(commit)).await.or_machine()?;
    let seconds = lines.first().map_or(0, |line| line.seconds);
    Ok(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Makes the commit to publish: the files of the verified result on top of the fork's branch, by the author of the pinned commit
/// of upstream and with its message.
pub(crate) async fn flatten(
    repo: &SealedRepo,
    fix: &FixRecord,
    (pinned, tip): (&Sha, &Sha),
    committer: &host::git::GitIdentity,
    trailers: &[String],
) -> Result<Sha, Failure> {
    let upstream = repo.commit_parts(pinned).await.or_machine()?;
    let tree = repo.commit_parts(tip).await.or_machine()?.tree;
    let words = String::from_utf8_lossy(&upstream.message);
    let message = fix.request.commit_message(&words, trailers);
    let parts = CommitParts {
        tree,
        parents: vec![fix.fork_tip.clone()],
        author: upstream.author,
        encoding: None,
        message: message.into_bytes(),
    };
    repo.write_commit(&parts, committer, fix.made_at).await.or_machine()
}
