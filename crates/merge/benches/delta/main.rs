//! The inventory of public forks: which share of each fork's own lines has a commit of the fork, and how long it takes.
//!
//! `delta --clones DIR [--list FILE] [--only NAME] [--taken] [--verbose]`: with `--taken` also how well the changes that upstream took
//! are found, against the merges that people made. The list has one fork on each line, with its upstream and the branches of
//! both; the folder has the clones of both, with all branches of upstream. Forks without clones are named. Ends with 1 if a fork
//! that could be read is below the promise.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on should say where it stopped")]

#[path = "../merge_replay/clone.rs"]
mod clone;
mod taken;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use host::git::{ObjectFormat, SealedRepo};
use merge::delta::change::{Ground, assign};
use merge::delta::{Delta, DeltaEnds, LineOrigin, observe_delta};
use model::id::Sha;
use serde::Deserialize;
use testkit::repo::Repo;

use clone::find_objects;
use taken::Score;

/// Least share of a fork's own lines that have a commit, in percent.
const ASSIGNED_PERCENT: f64 = 95.0;

/// Least share of the changes that upstream took which are found, and of those found which it took, in percent.
const FOUND_PERCENT: f64 = 90.0;
const PRECISION_PERCENT: f64 = 95.0;

const FORKS: &str = include_str!("forks.jsonl");

#[derive(Deserialize)]
struct ForkRow {
    fork: String,
    branch: String,
    upstream: String,
    upstream_branch: String,
}

/// A fork with its clones: objects of both.
struct Clones {
    fork: PathBuf,
    upstream: PathBuf,
}

struct Figures {
    name: String,
    commits: usize,
    files: usize,
    unread: usize,
    changes: usize,
    lines: usize,
    /// Lines with a commit of the fork, made by a merge, of upstream, and not traced.
    by_origin: [usize; 4],
    seconds: f64,
}

impl Figures {
    /// Share of the fork's own lines that a commit of the fork is known for, in percent. Lines of upstream are not its own.
    #[expect(clippy::cast_precision_loss, reason = "numbers of lines are small")]
    fn assigned(&self) -> f64 {
        let own = self.lines - self.by_origin[2];
        100.0 * self.by_origin[0] as f64 / own.max(1) as f64
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let clones = PathBuf::from(value("--clones").expect("--clones DIR"));
    let list = value("--list").map(|list| std::fs::read_to_string(list).unwrap());
    let rows: Vec<ForkRow> = list
        .as_deref()
        .unwrap_or(FORKS)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let only = value("--only");
    let rows = rows.into_iter().filter(|row| only.as_ref().is_none_or(|it| row.fork.contains(it)));
    println!(
        "{:34} {:>7} {:>6} {:>7} {:>8} {:>8} {:>7} {:>8} {:>7} {:>7}",
        "fork",
        "commits",
        "files",
        "changes",
        "lines",
        "assigned",
        "merges",
        "upstream",
        "unknown",
        "seconds"
    );
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let mut all = Vec::new();
    let mut scores = Vec::new();
    for row in rows {
        let Some(found) = find_clones(&clones, &row) else {
            println!("{:34} has no clone, or its upstream has none", row.fork);
            continue;
        };
        all.extend(measure(&row, &found).inspect(print));
        if has("--taken") {
            let score = score_fork(&row, &found, has("--verbose"));
            print_score(&row.fork, &score);
            scores.push((row.fork, score));
        }
    }
    let is_taken_found = sum_up_taken(&scores);
    match sum_up(&all) && is_taken_found {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn score_fork(row: &ForkRow, clones: &Clones, verbose: bool) -> Score {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_scratch, repo) = open(clones).await;
        let ends = ends_of(row, clones);
        match taken::score(&repo, &ends, verbose).await {
            Ok(score) => score,
            Err(error) => {
                println!("{:34} {error}", row.fork);
                Score::default()
            }
        }
    })
}

fn print_score(name: &str, score: &Score) {
    let shown =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |it| format!("{it:.1} %"));
    let [sure, likely] = score.precisions();
    println!(
        "{name:34} {} merges: {} changes taken, found {} ({} superseded, {} likely); {} own, wrongly {} superseded, {} likely; precision {} and {}",
        score.merges,
        score.taken[0],
        shown(score.recall()),
        score.taken[1],
        score.taken[2],
        score.own[0],
        score.own[1],
        score.own[2],
        shown(sure),
        shown(likely)
    );
}

/// Prints the sum and the worst forks. Returns whether the promise holds for the sum.
fn sum_up_taken(scores: &[(String, Score)]) -> bool {
    if scores.is_empty() {
        return true;
    }
    let mut sum = Score::default();
    scores.iter().for_each(|(_, score)| sum.add(*score));
    print_score("all", &sum);
    let worst = |value: fn(&Score) -> Option<f64>| {
        let known = scores.iter().filter_map(|(name, score)| Some((name, value(score)?)));
        known.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    for (what, found) in
        [("found", worst(Score::recall)), ("precision", worst(|score| score.precisions()[1]))]
    {
        if let Some((name, share)) = found {
            println!("worst {what}: {name} with {share:.1} %");
        }
    }
    let held = |share: Option<f64>, least: f64| share.is_none_or(|share| share >= least);
    held(sum.recall(), FOUND_PERCENT)
        && sum.precisions().into_iter().all(|share| held(share, PRECISION_PERCENT))
}

fn sum_up(all: &[Figures]) -> bool {
    let Some(worst) = all.iter().min_by(|a, b| a.assigned().total_cmp(&b.assigned())) else {
        println!("nothing was measured");
        return false;
    };
    let held = all.iter().filter(|it| it.assigned() >= ASSIGNED_PERCENT).count();
    println!(
        "{held} of {} forks have at least {ASSIGNED_PERCENT} % of their lines assigned to commits; worst: {} with {:.1} %",
        all.len(),
        worst.name,
        worst.assigned()
    );
    held == all.len()
}

fn find_clones(folder: &Path, row: &ForkRow) -> Option<Clones> {
    let fork = find_objects(folder, &row.fork)?;
    let upstream = find_objects(folder, &row.upstream)?;
    Some(Clones { fork, upstream })
}

fn print(figures: &Figures) {
    let Figures { name, commits, files, changes, lines, by_origin, seconds, unread } = figures;
    let [_, merges, upstream, unknown] = by_origin;
    println!(
        "{name:34} {commits:>7} {files:>6} {changes:>7} {lines:>8} {:>7.1}% {merges:>7} {upstream:>8} {unknown:>7} {seconds:>7.1}{}",
        figures.assigned(),
        if *unread > 0 { format!("  ({unread} files unread)") } else { String::new() }
    );
}

/// Measures a fork; `None` where the two have no history in common.
fn measure(row: &ForkRow, clones: &Clones) -> Option<Figures> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_scratch, repo) = open(clones).await;
        let ends = ends_of(row, clones);
        let started = Instant::now();
        let delta = match observe_delta(&repo, &ends, &mut None, |_, _| {}).await {
            Ok(delta) => delta?,
            Err(error) => {
                println!("{:34} {error}", row.fork);
                return None;
            }
        };
        Some(figures_of(&row.fork, &delta, started.elapsed().as_secs_f64()))
    })
}

/// A repository that sees the objects of both clones and takes new ones.
async fn open(clones: &Clones) -> (tempfile::TempDir, SealedRepo) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    repo.add_alternate(&clones.fork).unwrap();
    repo.add_alternate(&clones.upstream).unwrap();
    (scratch, repo)
}

fn ends_of(row: &ForkRow, clones: &Clones) -> DeltaEnds {
    DeltaEnds {
        tip: branch_of(&clones.fork, &row.branch),
        target: branch_of(&clones.upstream, &row.upstream_branch),
        upstream: refs_of(&clones.upstream),
    }
}

fn figures_of(name: &str, delta: &Delta, seconds: f64) -> Figures {
    let mut by_origin = [0; 4];
    for (origin, count) in delta.files.iter().flat_map(merge::delta::DeltaFile::origins) {
        let at = match origin {
            LineOrigin::Commit(_) => 0,
            LineOrigin::Merge(_) => 1,
            LineOrigin::Upstream => 2,
            LineOrigin::Unknown => 3,
        };
        by_origin[at] += count.total();
    }
    let assignment = assign(delta, &[]);
    let named = assignment.changes.iter().filter(|change| change.ground != Ground::Path);
    Figures {
        name: name.to_owned(),
        commits: delta.history.commits.len(),
        files: delta.files.len(),
        unread: delta.unread(),
        changes: named.count(),
        lines: delta.lines().total(),
        by_origin,
        seconds,
    }
}

/// The folder of a repository by that of its objects.
fn repo_of(objects: &Path) -> Repo {
    Repo::open(objects.parent().unwrap())
}

fn branch_of(objects: &Path, branch: &str) -> Sha {
    let repo = repo_of(objects);
    let names = [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")];
    let found =
        names.iter().find_map(|name| repo.try_git(&["rev-parse", "--verify", "-q", name]).ok());
    Sha::parse(&found.unwrap_or_else(|| panic!("{} has no {branch}", objects.display()))).unwrap()
}

/// Tips of all branches.
fn refs_of(objects: &Path) -> Vec<Sha> {
    let listed = repo_of(objects).git(&[
        "for-each-ref",
        "--format=%(objectname)",
        "refs/heads",
        "refs/remotes/origin",
    ]);
    let mut tips: Vec<Sha> = listed.lines().map(|line| Sha::parse(line).unwrap()).collect();
    tips.sort();
    tips.dedup();
    tips
}
