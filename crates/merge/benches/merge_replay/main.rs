//! How many conflicts of real forks' merges the resolver resolves, and how often as people did.
//!
//! `merge_replay --clones DIR --list FILE [--only NAME] [--table FILE] [--also FILE]`: the list has one merge of a public
//! repository on each line, the folder its clone. git, rerere and mergiraf stand beside ours. With `--table` the shipped
//! table is made again from them, and from those of another list whose forks only teach. Figures with a table that was made
//! without the fork in question are called *blind*; the answer classes and the scale of trust were still chosen with all forks in
//! view. Figures of the shipped table on the list it was made from are flattering.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should say where it stopped")]

mod clone;
mod fit;
mod load;
mod others;
mod stand_in;
mod train;

use std::path::PathBuf;
use std::time::Duration;

use merge::resolver::decide::TrustThreshold;
use merge::resolver::knowledge::Knowledge;
use merge::resolver::replay::{ReplayScore, replay_merge};
use merge::resolver::table::Table;

use load::{Fork, load_forks};
use others::Tried;

const TRUSTS: [f64; 3] = [0.8, 0.9, 0.95];
/// Which of those is shown for each fork.
const USUAL: usize = 1;
/// A fork of each group is judged by a table made from the other groups.
const GROUPS: usize = 4;

struct ReplayArgs {
    clones: PathBuf,
    list: PathBuf,
    only: Option<String>,
    table: Option<PathBuf>,
    also: Option<PathBuf>,
}

fn main() {
    let Some(args) = parse_args() else {
        println!(
            "merge_replay --clones DIR --list FILE [--only NAME] [--table FILE] [--also FILE]"
        );
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let forks = runtime.block_on(load_forks(&args.clones, &args.list, args.only.as_deref()));
    println!("| way | files resolved | agree | merges resolved | agree | median time of a merge |");
    println!("|---|---|---|---|---|---|");
    alone(&forks);
    if let Some(file) = &args.table {
        let teachers = match &args.also {
            Some(list) => runtime.block_on(load_forks(&args.clones, list, None)),
            None => Vec::new(),
        };
        let table = train::learn_table(&forks.iter().chain(&teachers).collect::<Vec<_>>());
        std::fs::write(file, serde_json::to_string_pretty(&table).unwrap() + "\n").unwrap();
        show("table of these", &judge_all(&forks, &table), &forks);
        blind(&forks, &teachers);
    } else {
        runtime.block_on(neighbours(&forks));
    }
    let scores = judge_all(&forks, Table::shipped());
    show("ours", &scores, &forks);
    for fork in &forks {
        let score = judge_fork(fork, Table::shipped());
        let name = format!("{} at {}", fork.name, TRUSTS[USUAL]);
        line(&name, &score[USUAL], others::median(ours_times(fork)));
    }
    ratio(&forks);
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
    Some(ReplayArgs {
        clones: value("--clones")?.into(),
        list: value("--list")?.into(),
        only: value("--only"),
        table: value("--table").map(PathBuf::from),
        also: value("--also").map(PathBuf::from),
    })
}

fn blind(forks: &[Fork], teachers: &[Fork]) {
    let mut sum = [ReplayScore::default(); TRUSTS.len()];
    for group in 0..GROUPS {
        let of = |wanted: bool| {
            let numbered = forks.iter().enumerate();
            numbered.filter(move |(at, _)| (at % GROUPS == group) == wanted).map(|(_, fork)| fork)
        };
        let table = train::learn_table(&of(false).chain(teachers).collect::<Vec<_>>());
        for fork in of(true) {
            for (sum, score) in sum.iter_mut().zip(judge_fork(fork, &table)) {
                *sum = sum.plus(score);
            }
        }
    }
    show("blind", &sum, forks);
}

fn judge_all(forks: &[Fork], table: &Table) -> [ReplayScore; TRUSTS.len()] {
    let mut sum = [ReplayScore::default(); TRUSTS.len()];
    for fork in forks {
        for (sum, score) in sum.iter_mut().zip(judge_fork(fork, table)) {
            *sum = sum.plus(score);
        }
    }
    sum
}

/// In order, each merge before it is learned from.
fn judge_fork(fork: &Fork, table: &Table) -> [ReplayScore; TRUSTS.len()] {
    let mut knowledge = Knowledge::default();
    let mut scores = [ReplayScore::default(); TRUSTS.len()];
    for merge in &fork.merges {
        let replayed =
            replay_merge(table, &mut knowledge, &merge.sha, merge.facts.conflicts.clone());
        for (score, trust) in scores.iter_mut().zip(TRUSTS) {
            score.add(&replayed, TrustThreshold::new(trust).unwrap());
        }
    }
    scores
}

fn show(name: &str, scores: &[ReplayScore], forks: &[Fork]) {
    let time = others::median(forks.iter().flat_map(ours_times));
    for (score, trust) in scores.iter().zip(TRUSTS) {
        line(&format!("{name} at {trust}"), score, time);
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
