//! How many conflicts of real forks' merges the resolver resolves, and how often as people did.
//!
//! `merge_replay --clones DIR [--list FILE] [--only NAME] [--table FILE] [--cases FILE] [--cache DIR] [--shipped] [--others] [--outside]`: the list has public forks and their
//! merges of upstream (`forks.jsonl` beside this file, unless another is given), the folder their clones. Each fork is judged by a
//! table that was made without it. Then come the share of forks that keep the promise, the median and the worst fork, and the
//! sum over all forks last. With `--table` the shipped table is made again; with `--cases` every answer
//! is written down, a line for each file in conflict; with `--cache` what git was asked is kept in a folder, and not asked again;
//! with `--shipped` forks outside of the list are judged by the shipped table; with `--others` git rerere and mergiraf are tried on the
//! same merges. ConflictBench, where its clone is there, comes last; with `--outside` it alone is measured.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should say where it stopped")]

mod cache;
mod cases;
mod clone;
mod conflict_bench;
mod fit;
mod load;
mod others;
mod stand_in;
mod train;

use std::path::PathBuf;
use std::time::Duration;

use merge::resolver::decide::{TrustThreshold, answers, is_committed_file};
use merge::resolver::knowledge::{Knowledge, ReplayedConflict};
use merge::resolver::replay::{ReplayScore, replay_merge};
use merge::resolver::replayed::ReplayedFile;
use merge::resolver::table::Table;

use cases::CaseFile;
use load::{Fork, load_forks};
use others::Tried;
use train::Lessons;

const TRUSTS: [f64; 3] = [0.8, 0.9, 0.95];
/// Which of those is shown for each fork.
const USUAL: usize = 1;
/// A fork with fewer resolved files says nothing about the promise.
const FEWEST: usize = 10;
/// Share of forks that must keep the promise.
const PROMISED_FORKS: f64 = 0.9;

struct ReplayArgs {
    clones: PathBuf,
    list: PathBuf,
    only: Option<String>,
    table: Option<PathBuf>,
    cases: Option<PathBuf>,
    cache: Option<PathBuf>,
    with_others: bool,
    is_outside: bool,
    is_shipped: bool,
}

fn main() {
    let Some(args) = parse_args() else {
        println!(
            "merge_replay --clones DIR [--list FILE] [--only NAME] [--table FILE] [--cases FILE] [--cache DIR] [--shipped] [--others] [--outside]"
        );
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cases = CaseFile::create(args.cases.as_deref());
    if args.is_outside {
        return runtime.block_on(conflict_bench::measure(&args.clones, &mut cases));
    }
    let forks = runtime.block_on(load_forks(&args.clones, &args.list, args.cache.as_deref()));
    let lessons = (!args.is_shipped).then(|| Lessons::gather(&forks));
    if let Some((file, lessons)) = args.table.as_ref().zip(lessons.as_ref()) {
        let table = lessons.table(None);
        std::fs::write(file, serde_json::to_string_pretty(&table).unwrap() + "\n").unwrap();
    }
    println!("| way | files resolved | agree | merges resolved | agree | median time of a merge |");
    println!("|---|---|---|---|---|---|");
    alone(&forks);
    if args.with_others {
        runtime.block_on(neighbours(&forks));
    }
    let is_wanted = |fork: &Fork| args.only.as_ref().is_none_or(|only| fork.name.contains(only));
    let mut judged = Vec::new();
    for (at, fork) in forks.iter().enumerate().filter(|(_, fork)| is_wanted(fork)) {
        let made = lessons.as_ref().map(|lessons| lessons.table(Some(at)));
        let table = made.as_ref().unwrap_or_else(|| Table::shipped());
        let (scores, committed) = judge_fork(fork, table, &mut cases);
        let name = format!("{} at {}", fork.name, TRUSTS[USUAL]);
        line(&name, &scores[USUAL], others::median(ours_times(fork)));
        if args.is_shipped {
            whole_files(&fork.name, &scores, &committed);
        }
        judged.push((fork.name.as_str(), scores));
    }
    for (at, trust) in TRUSTS.iter().enumerate() {
        let scores: Vec<(&str, ReplayScore)> =
            judged.iter().map(|(name, scores)| (*name, scores[at])).collect();
        let sum = scores.iter().fold(ReplayScore::default(), |sum, (_, one)| sum.plus(*one));
        let time = others::median(forks.iter().flat_map(ours_times));
        line(&format!("all forks together at {trust}"), &sum, time);
        promise(*trust, &scores);
    }
    ratio(&forks);
    runtime.block_on(conflict_bench::measure(&args.clones, &mut cases));
}

/// The promise of `--trust`: in nine of ten forks the resolved files agree at that share or more.
fn promise(trust: f64, scores: &[(&str, ReplayScore)]) {
    let mut shares: Vec<(f64, &str)> = scores
        .iter()
        .filter(|(_, score)| score.files_resolved >= FEWEST)
        .map(|(name, score)| (part(score.files_agreed, score.files_resolved), *name))
        .collect();
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some((worst, name)) = shares.first().copied() else {
        println!("at {trust}: no fork has {FEWEST} resolved files");
        return;
    };
    let kept = shares.iter().filter(|(share, _)| *share >= trust).count();
    let word = if part(kept, shares.len()) >= PROMISED_FORKS { "ok" } else { "BROKEN" };
    println!(
        "at {trust}: {kept} of {} forks with {FEWEST} or more resolved files agree at {trust} or more (promised nine of ten: {word}); \
        median {:.3}, worst {worst:.3} ({name})",
        shares.len(),
        shares[shares.len() / 2].0
    );
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn part(some: usize, all: usize) -> f64 {
    some as f64 / all.max(1) as f64
}

/// Git resolves no conflict by itself.
fn alone(forks: &[Fork]) {
    let merges = || forks.iter().flat_map(|fork| &fork.merges);
    let files = merges().map(|merge| merge.facts.conflicts.len()).sum();
    let score = ReplayScore { files, merges: merges().count(), ..ReplayScore::default() };
    line("git alone", &score, others::median(merges().map(|merge| merge.facts.merge_time)));
}

/// Others on the same merges. They take many times as long as the resolver, and making a table does not need them.
async fn neighbours(forks: &[Fork]) {
    show_other("rerere alone", &others::rerere(forks));
    match others::mergiraf(forks).await {
        Some((name, tried)) => show_other(&name, &tried),
        None => println!("| mergiraf alone | not installed | | | | |"),
    }
}

fn show_other(name: &str, tried: &Tried) {
    line(name, &tried.score, others::median(tried.times.iter().copied()));
}

fn parse_args() -> Option<ReplayArgs> {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/merge_replay/forks.jsonl");
    Some(ReplayArgs {
        clones: value("--clones")?.into(),
        list: value("--list").unwrap_or_else(|| own.to_owned()).into(),
        only: value("--only"),
        table: value("--table").map(PathBuf::from),
        cases: value("--cases").map(PathBuf::from),
        cache: value("--cache").map(PathBuf::from),
        with_others: args.iter().any(|arg| arg == "--others"),
        is_shipped: args.iter().any(|arg| arg == "--shipped"),
        is_outside: args.iter().any(|arg| arg == "--outside"),
    })
}

/// In order, each merge before it is learned from. Also counts the files that people committed exactly as they were resolved.
fn judge_fork(
    fork: &Fork,
    table: &Table,
    cases: &mut CaseFile,
) -> ([ReplayScore; TRUSTS.len()], [usize; TRUSTS.len()]) {
    let mut knowledge = Knowledge::default();
    let mut scores = [ReplayScore::default(); TRUSTS.len()];
    let mut committed = [0; TRUSTS.len()];
    for merge in &fork.merges {
        let replayed =
            replay_merge(table, &mut knowledge, &merge.sha, merge.facts.conflicts.clone());
        cases.add(&fork.name, &replayed);
        let files: Vec<ReplayedFile> = replayed.iter().map(ReplayedFile::of).collect();
        for (at, trust) in TRUSTS.iter().enumerate() {
            let trust = TrustThreshold::new(*trust).unwrap();
            scores[at].add(&files, trust);
            committed[at] += replayed.iter().filter(|one| is_whole_file(one, trust)).count();
        }
    }
    (scores, committed)
}

/// Returns whether people committed what is applied at a threshold as the whole file.
fn is_whole_file(replayed: &ReplayedConflict, trust: TrustThreshold) -> bool {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let mut allowed = answers(scored).into_iter().filter(|it| trust.allows(it.confidence));
    let applied = allowed.find_map(|answer| answer.content(conflict, scored).ok());
    applied.is_some_and(|content| is_committed_file(conflict, human, &content))
}

/// The second yardstick: files that are as people committed them from the first line to the last.
fn whole_files(
    name: &str,
    scores: &[ReplayScore; TRUSTS.len()],
    committed: &[usize; TRUSTS.len()],
) {
    for ((trust, score), committed) in TRUSTS.iter().zip(scores).zip(committed) {
        println!(
            "{name} at {trust}: {} resolved, every hunk as people did {}, the whole file {}",
            share(score.files_resolved, score.files),
            share(score.files_agreed, score.files_resolved),
            share(*committed, score.files_resolved)
        );
    }
}

fn line(name: &str, score: &ReplayScore, time: Duration) {
    println!(
        "| {name} | {} | {} | {} | {} | {:.0} ms |",
        share(score.files_resolved, score.files),
        share(score.files_agreed, score.files_resolved),
        share(score.merges_resolved, score.merges),
        share(score.merges_agreed, score.merges_resolved),
        time.as_secs_f64() * 1000.0
    );
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = (part * 1000 + whole / 2) / whole;
    format!("{}.{} % ({part} of {whole})", tenths / 10, tenths % 10)
}

/// Time of a merge with the resolver: git's part, reading the conflicts, scoring them.
fn ours_times(fork: &Fork) -> impl Iterator<Item = Duration> {
    let time =
        |merge: &load::Past| merge.facts.merge_time + merge.facts.read_time + merge.score_time;
    fork.merges.iter().map(time)
}

/// The promise: at most three times what git takes, in the middle.
fn ratio(forks: &[Fork]) {
    let merges = forks.iter().flat_map(|fork| &fork.merges).map(|merge| merge.facts.merge_time);
    let pairs = forks.iter().flat_map(ours_times).zip(merges);
    let mut ratios: Vec<f64> =
        pairs.map(|(ours, git)| ours.as_secs_f64() / git.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    let word = if middle <= 3.0 { "ok" } else { "OVER" };
    println!(
        "median ratio of a merge with the resolver to git merge-tree: {middle:.2}, promised 3x: {word}"
    );
}
