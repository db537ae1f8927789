//! How much of real forks' merges the ladder settles, and how often as people did.
//!
//! `merge_replay --clones DIR --list FILE [--only NAME] [--table FILE]`: the list has one merge of a public repository
//! on each line, the folder its clone. With `--table` the shipped table is made anew from them. Figures with a table
//! that was made without the fork in question are called *blind*; the grades and the scale of trust were still chosen with
//! all forks in view. Figures of the shipped table on the list it was made from are flattering.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should say where it stopped")]

mod fit;
mod load;
mod train;

use std::path::PathBuf;
use std::time::Duration;

use merge::ladder::decide::Trust;
use merge::ladder::knowledge::Knowledge;
use merge::ladder::replay::{Score, relive};
use merge::ladder::table::Table;

use load::{Fork, load_forks};

const TRUSTS: [f64; 4] = [0.8, 0.85, 0.9, 0.95];
/// A fork of each group is judged by a table made from the other groups.
const GROUPS: usize = 4;

struct Wish {
    clones: PathBuf,
    list: PathBuf,
    only: Option<String>,
    table: Option<PathBuf>,
}

fn main() {
    let Some(wish) = wish() else {
        println!("merge_replay --clones DIR --list FILE [--only NAME] [--table FILE]");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let forks = runtime.block_on(load_forks(&wish.clones, &wish.list, wish.only.as_deref()));
    println!("| ours | files settled | agree | merges settled | agree |");
    println!("|---|---|---|---|---|");
    alone(&forks);
    if let Some(file) = &wish.table {
        let table = train::learn_table(&forks.iter().collect::<Vec<_>>());
        std::fs::write(file, serde_json::to_string_pretty(&table).unwrap() + "\n").unwrap();
        show("table of these", &judge_all(&forks, &table));
        blind(&forks);
    }
    let scores = judge_all(&forks, Table::shipped());
    show("shipped table", &scores);
    for fork in &forks {
        let score = judge_fork(fork, Table::shipped());
        line(&format!("{} at 0.9", fork.name), &score[2]);
    }
    times(&forks);
}

/// Git settles no conflict by itself. The other programs are measured elsewhere; whoever reads must know that.
fn alone(forks: &[Fork]) {
    let files = forks.iter().flat_map(|fork| &fork.merges).map(|merge| merge.facts.disputes.len());
    let merges = forks.iter().map(|fork| fork.merges.len()).sum();
    line("git alone", &Score { files: files.sum(), merges, ..Score::default() });
    println!("| git rerere, mergiraf | not measured here | | | |");
}

fn wish() -> Option<Wish> {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    Some(Wish {
        clones: value("--clones")?.into(),
        list: value("--list")?.into(),
        only: value("--only"),
        table: value("--table").map(PathBuf::from),
    })
}

fn blind(forks: &[Fork]) {
    let mut sum = [Score::default(); TRUSTS.len()];
    for group in 0..GROUPS {
        let of = |wanted: bool| {
            let numbered = forks.iter().enumerate();
            numbered.filter(move |(at, _)| (at % GROUPS == group) == wanted).map(|(_, fork)| fork)
        };
        let table = train::learn_table(&of(false).collect::<Vec<_>>());
        for fork in of(true) {
            for (sum, score) in sum.iter_mut().zip(judge_fork(fork, &table)) {
                *sum = sum.plus(score);
            }
        }
    }
    show("blind", &sum);
}

fn judge_all(forks: &[Fork], table: &Table) -> [Score; TRUSTS.len()] {
    let mut sum = [Score::default(); TRUSTS.len()];
    for fork in forks {
        for (sum, score) in sum.iter_mut().zip(judge_fork(fork, table)) {
            *sum = sum.plus(score);
        }
    }
    sum
}

/// In order, each merge before it is learned from.
fn judge_fork(fork: &Fork, table: &Table) -> [Score; TRUSTS.len()] {
    let mut knowledge = Knowledge::default();
    let mut scores = [Score::default(); TRUSTS.len()];
    for merge in &fork.merges {
        let settled = relive(table, &mut knowledge, &merge.sha, merge.facts.disputes.clone());
        for (score, trust) in scores.iter_mut().zip(TRUSTS) {
            score.add(&settled, Trust::new(trust).unwrap());
        }
    }
    scores
}

fn show(name: &str, scores: &[Score]) {
    for (score, trust) in scores.iter().zip(TRUSTS) {
        line(&format!("{name} at {trust}"), score);
    }
}

fn line(name: &str, score: &Score) {
    println!(
        "| {name} | {} | {} | {} | {} |",
        share(score.files_settled, score.files),
        share(score.files_agreed, score.files_settled),
        share(score.merges_settled, score.merges),
        share(score.merges_agreed, score.merges_settled)
    );
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = (part * 1000 + whole / 2) / whole;
    format!("{}.{} % ({part} of {whole})", tenths / 10, tenths % 10)
}

fn times(forks: &[Fork]) {
    let mut ratios = Vec::new();
    let (mut git, mut ours) = (Vec::new(), Vec::new());
    for merge in forks.iter().flat_map(|fork| &fork.merges) {
        let alone = merge.facts.merge_time;
        let rest = merge.facts.read_time + merge.weigh_time;
        git.push(alone);
        ours.push(alone + rest);
        ratios.push((alone + rest).as_secs_f64() / alone.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let middle = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    println!(
        "median time of a merge: git merge-tree {:?}, with the ladder {:?}; median ratio {:.2}",
        middle(&mut git),
        middle(&mut ours),
        ratios[ratios.len() / 2]
    );
}
