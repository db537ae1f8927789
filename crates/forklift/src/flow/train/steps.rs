//! Steps that are in a train's branch, by its commits: those that runs made, and those that people made and pushed.

use std::path::Path;

use host::git::SealedRepo;
use model::id::Sha;

use super::store::runs_of_train;
use crate::exit::{Failure, OrExit};
use crate::flow::record::ForkRunRecord;
use crate::rules::judge::Verdict;
use crate::rules::train::CommitLabel;
use crate::rules::train::pull::{DoneStep, HandStep};

/// Lists the steps between the commit that a train starts from and another commit of its branch, oldest first. A run counts
/// as one step, whatever it committed; of the other commits, each merge does.
pub(crate) async fn done_steps(
    repo: &SealedRepo,
    (base, tip): (&Sha, &Sha),
    (runs, train): (&Path, &str),
) -> Result<Vec<DoneStep>, Failure> {
    let line = repo.first_parents(tip, base).await.or_machine()?;
    let counts = |meta: &ForkRunRecord| meta.verdict == Some(Verdict::Publish);
    // Newest first: of a step that was made again, the last one counts.
    let made: Vec<ForkRunRecord> =
        runs_of_train(runs, train)?.map(|run| run.meta).filter(counts).collect();
    let mut steps = Vec::new();
    let (mut from, mut at) = (base.clone(), 0);
    while let Some(commit) = line.get(at) {
        let by_run = made.iter().filter(|meta| meta.pins.base == from).find_map(|meta| {
            let tip = meta.tip()?;
            Some((meta, line.iter().position(|it| *it == tip).filter(|end| *end >= at)?))
        });
        if let Some((meta, end)) = by_run {
            steps.push(DoneStep::Run(Box::new(meta.clone())));
            (from, at) = (line[end].clone(), end + 1);
            continue;
        }
        let parents = repo.commit_parts(commit).await.or_machine()?.parents;
        if let [ours, theirs] = parents.as_slice() {
            steps.push(DoneStep::Hand(hand_step(repo, ours, theirs).await?));
        }
        (from, at) = (commit.clone(), at + 1);
    }
    Ok(steps)
}

async fn hand_step(repo: &SealedRepo, ours: &Sha, theirs: &Sha) -> Result<HandStep, Failure> {
    let commits = repo.first_parents(theirs, ours).await.or_machine()?.len();
    let lines = repo.commit_lines(std::slice::from_ref(theirs)).await.or_machine()?;
    let subject = lines.into_iter().next().map(|line| line.subject).unwrap_or_default();
    Ok(HandStep { commits, last: CommitLabel { sha: theirs.clone(), subject } })
}
