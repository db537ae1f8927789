//! Whether a verdict can be talked round: dishonest merges made from merges that people made, and those merges themselves.
//!
//! `verdict [--clones DIR --list FILE] [--only NAME] [--apart NAMES] [--honest N] [--dishonest N] [--seed N] [--jobs N]
//! [--explain]`: the list has one merge of a public fork on each line, the folder its clones. `--honest` is the most merges of a fork,
//! `--dishonest` the number of merges in all that variants are made of. Forks named by `--apart` have figures of their own:
//! nothing was tuned on them. `--jobs` is the number of forks that are judged at the same time. `--explain` prints what is
//! dropped in refused merges. Without clones, forks are generated. Ends with 1 if a promise is broken.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should say where it stopped")]

#[path = "../merge_replay/clone.rs"]
mod clone;
mod dishonest;
mod generated;
mod load;
mod ruling;
#[path = "../merge_replay/stand_in.rs"]
mod stand_in;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use host::git::GitError;
use merge::contract::ContractEnds;

use dishonest::{Operator, Place, Random, Variant, make_variant, observe_merge};
use load::{Fork, MergeRow, fork_names, load_fork, load_rows};
use ruling::{Ruling, commit_variant, rule};
use stand_in::with_stand_ins;
use tally::{Fate, Tally, share};

/// Most honest merges that may be refused, in percent.
const REFUSED_PERCENT: usize = 5;
const GENERATED_FORKS: usize = 20;
/// A line about the progress after so many merges.
const PROGRESS_STEP: usize = 20;

struct VerdictArgs {
    clones: Option<(PathBuf, PathBuf)>,
    only: Option<String>,
    apart: Vec<String>,
    honest: usize,
    dishonest: usize,
    seed: u64,
    jobs: usize,
    explain: bool,
}

/// A fork to judge: one of the list, or the number of a generated one.
enum Source {
    Clone { name: String, objects: PathBuf },
    Generated(usize),
}

/// Figures of some forks.
#[derive(Default)]
struct Figures {
    honest: Vec<ForkFigures>,
    tally: Tally,
}

#[derive(Default)]
struct ForkFigures {
    name: String,
    judged: usize,
    refused: Vec<(String, Vec<String>)>,
    looks: Vec<usize>,
    /// Merges of people that are a whole side, such as those made with `git merge -s ours`. They are what the first operator
    /// makes, and no honest merges.
    whole_sides: usize,
    /// Those of them that are not refused.
    whole_sides_missed: Vec<String>,
}

fn main() -> ExitCode {
    let args = parse_args();
    if measure(&args) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse_args() -> VerdictArgs {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str, default: usize| {
        value(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let apart = value("--apart").unwrap_or_default();
    VerdictArgs {
        clones: value("--clones")
            .zip(value("--list"))
            .map(|(clones, list)| (clones.into(), list.into())),
        only: value("--only"),
        apart: apart.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        honest: number("--honest", 60),
        dishonest: number("--dishonest", 100),
        seed: number("--seed", 14) as u64,
        jobs: number("--jobs", 1).max(1),
        explain: args.iter().any(|arg| arg == "--explain"),
    }
}

fn measure(args: &VerdictArgs) -> bool {
    let (rows, sources) = match &args.clones {
        Some((clones, list)) => {
            let rows = load_rows(list);
            let mut names = fork_names(&rows, clones);
            names.retain(|(name, _)| args.only.as_ref().is_none_or(|only| name.contains(only)));
            let source = |(name, objects)| Source::Clone { name, objects };
            let sources: Vec<Source> = names.into_iter().map(source).collect();
            (rows, sources)
        }
        None => {
            println!("no clones: {GENERATED_FORKS} generated forks");
            (Vec::new(), (0..GENERATED_FORKS).map(Source::Generated).collect())
        }
    };
    let (mut seen, mut apart) = (Figures::default(), Figures::default());
    for (own, tally) in judge_forks(args, &rows, &sources) {
        let is_apart = args.apart.iter().any(|one| own.name.contains(one));
        let figures = if is_apart { &mut apart } else { &mut seen };
        figures.honest.push(own);
        figures.tally.add(tally);
    }
    let mut holds = print_figures("", &seen);
    if !apart.honest.is_empty() {
        holds &= print_figures(", forks set apart", &apart);
    }
    holds
}

/// Judges the forks on some threads and returns their figures in order.
fn judge_forks(
    args: &VerdictArgs,
    rows: &[MergeRow],
    sources: &[Source],
) -> Vec<(ForkFigures, Tally)> {
    let share = args.dishonest.div_ceil(sources.len().max(1));
    let queue = Mutex::new(sources.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let next = queue.lock().unwrap().next();
            let Some((at, source)) = next else { return };
            let figures = runtime.block_on(async {
                let fork = match source {
                    Source::Clone { name, objects } => {
                        load_fork(name, objects, rows, args.honest).await
                    }
                    Source::Generated(number) => generated_fork(*number, args.seed).await,
                };
                judge_fork(fork, args, share).await
            });
            done.lock().unwrap().push((at, figures));
        }
    };
    thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, figures)| figures).collect()
}

async fn generated_fork(number: usize, seed: u64) -> Fork {
    let scratch = tempfile::tempdir().unwrap();
    let name = format!("generated {number}");
    let mut random = Random::new(seed, &name);
    let path = scratch.path().join("host.git");
    let (repo, ends) = generated::generate_fork(&path, &mut random).await;
    Fork { name, repo, merges: vec![ends], left_out: 0, scratch }
}

/// Judges the merges of a fork, and variants of some of those that are not refused.
async fn judge_fork(fork: Fork, args: &VerdictArgs, sources: usize) -> (ForkFigures, Tally) {
    let seed = args.seed;
    let started = Instant::now();
    let mut own = ForkFigures { name: fork.name.clone(), ..ForkFigures::default() };
    let mut left_out = fork.left_out;
    let mut passed = Vec::new();
    for (at, ends) in fork.merges.iter().enumerate() {
        match with_stand_ins(fork.scratch.path(), async || rule(&fork.repo, ends, None).await).await
        {
            Ok(ruling) if ruling.is_whole_side => {
                own.whole_sides += 1;
                let tip = ends.tip.short().to_owned();
                own.whole_sides_missed.extend(ruling.refusals.is_empty().then_some(tip));
            }
            Ok(ruling) => {
                own.judged += 1;
                own.looks.push(ruling.shown.len());
                if ruling.refusals.is_empty() {
                    passed.push((ends, ruling));
                } else {
                    let (name, tip) = (&fork.name, &ends.tip);
                    println!("refused: {name} {tip}: {}", ruling.refusals.join(" | "));
                    ruling
                        .dropped
                        .iter()
                        .filter(|_| args.explain)
                        .for_each(|it| println!("    {it}"));
                    own.refused.push((ends.tip.short().to_owned(), ruling.refusals));
                }
            }
            Err(error) => {
                left_out += 1;
                println!("{} {}: {error}", fork.name, ends.tip.short());
            }
        }
        if (at + 1) % PROGRESS_STEP == 0 {
            println!("{}: {} of {} merges judged", fork.name, at + 1, fork.merges.len());
        }
    }
    println!(
        "{}: {} merges judged, {} refused, {} whole sides, {left_out} left out, in {:.0?}",
        fork.name,
        own.judged,
        own.refused.len(),
        own.whole_sides,
        started.elapsed()
    );
    let mut tally = Tally::default();
    Random::new(seed, &fork.name).shuffle(&mut passed);
    // Merges with conflicts have variants of both kinds.
    passed.sort_by_key(|(_, ruling)| ruling.conflicts == 0);
    let started = Instant::now();
    let mut made = 0;
    for (ends, ruling) in passed.iter().take(sources) {
        match judge_variants(&fork, ends, ruling, seed, &mut tally).await {
            Ok(count) => made += count,
            Err(error) => println!("{} {}: {error}", fork.name, ends.tip.short()),
        }
    }
    let merges = passed.len().min(sources);
    println!("{}: {made} variants of {merges} merges in {:.0?}", fork.name, started.elapsed());
    (own, tally)
}

async fn judge_variants(
    fork: &Fork,
    ends: &ContractEnds,
    honest: &Ruling,
    seed: u64,
    tally: &mut Tally,
) -> Result<usize, GitError> {
    let mut made = 0;
    let observe =
        async || observe_merge(&fork.repo, ends, &mut Random::new(seed, ends.tip.as_str())).await;
    let merge = with_stand_ins(fork.scratch.path(), observe).await?;
    for operator in Operator::ALL {
        for &place in operator.places() {
            let text = format!("{} {} {}", ends.tip, operator.as_str(), place.as_str());
            let mut random = Random::new(seed, &text);
            let variant = make_variant(&fork.repo, &merge, operator, place, &mut random).await?;
            let Some(variant) = variant else {
                tally.of(operator, place).not_applicable += 1;
                continue;
            };
            let tip = commit_variant(&fork.repo, ends, &variant.tree).await?;
            let tried = ContractEnds { tip, ..ends.clone() };
            let judge = async || rule(&fork.repo, &tried, Some(&honest.commits)).await;
            let ruling = with_stand_ins(fork.scratch.path(), judge).await?;
            let fate = fate_of(&variant, &ruling, honest);
            tally.of(operator, place).add(fate);
            made += 1;
            report_miss(fork, ends, (operator, place), &variant, fate);
        }
    }
    Ok(made)
}

/// A whole side has no path that could be shown: it is refused or missed.
fn fate_of(variant: &Variant, ruling: &Ruling, honest: &Ruling) -> Fate {
    if !ruling.refusals.is_empty() {
        return Fate::Refused;
    }
    let words = ruling.words_about(&variant.touched);
    match words.is_empty() {
        true => Fate::Missed,
        false if words == honest.words_about(&variant.touched) => Fate::ShownAlike,
        false => Fate::Shown,
    }
}

fn report_miss(
    fork: &Fork,
    ends: &ContractEnds,
    (operator, place): (Operator, Place),
    variant: &Variant,
    fate: Fate,
) {
    if matches!(fate, Fate::Missed | Fate::ShownAlike) {
        let touched: Vec<_> =
            variant.touched.iter().map(|path| String::from_utf8_lossy(path)).collect();
        println!(
            "{fate:?}: {} {} {} {}: {} (tree {})",
            fork.name,
            ends.tip,
            operator.as_str(),
            place.as_str(),
            touched.join(", "),
            variant.tree,
        );
    }
}

/// Prints both tables and returns whether every promise holds.
fn print_figures(title: &str, figures: &Figures) -> bool {
    println!("\nhonest merges{title}\n");
    println!("| fork | merges | refused | median of looks | whole sides |");
    println!("|---|---|---|---|---|");
    let (mut judged, mut refused) = (0, 0);
    for fork in &figures.honest {
        judged += fork.judged;
        refused += fork.refused.len();
        let mut looks = fork.looks.clone();
        looks.sort_unstable();
        let median = looks.get(looks.len() / 2).copied().unwrap_or_default();
        let part = share(fork.refused.len(), fork.judged);
        let whole = fork.whole_sides;
        println!("| {} | {} | {part} | {median} | {whole} |", fork.name, fork.judged);
    }
    println!();
    for fork in &figures.honest {
        for (sha, reasons) in &fork.refused {
            let more = match reasons.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            println!("refused: {} {sha}: {}{more}", fork.name, reasons[0]);
        }
    }
    let worst = figures.honest.iter().filter(|fork| fork.judged > 0);
    let worst = worst.max_by_key(|fork| fork.refused.len() * 1000 / fork.judged);
    let worst = worst.map_or("-", |fork| fork.name.as_str());
    let is_kept = refused * 100 <= REFUSED_PERCENT * judged;
    let word = if is_kept { "ok" } else { "BROKEN" };
    println!(
        "honest merges refused: {}, worst {worst}, promised {REFUSED_PERCENT} %: {word}",
        share(refused, judged)
    );
    let whole: usize = figures.honest.iter().map(|fork| fork.whole_sides).sum();
    let missed: Vec<&String> =
        figures.honest.iter().flat_map(|fork| &fork.whole_sides_missed).collect();
    let word = if missed.is_empty() { "ok" } else { "BROKEN" };
    println!("merges of people that are a whole side: {whole}, not refused {missed:?}: {word}");
    println!("\ndishonest merges{title}\n");
    figures.tally.print() && is_kept && missed.is_empty()
}
