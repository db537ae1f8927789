//! An outside yardstick: the merges of ConflictBench, each of another project and without any history.
//!
//! Its repository has the four versions of the files in conflict as folders; here they become commits.

use std::path::Path;

use host::git::{ObjectFormat, PastMerge, SealedRepo};
use merge::resolver::conflict::FileConflict;
use merge::resolver::decide::{ResolvedContent, agrees, answers, version_for};
use merge::resolver::human::HumanResolution;
use merge::resolver::knowledge::{Knowledge, ReplayedConflict};
use merge::resolver::replay::{observe_merge, replay_merge};
use merge::resolver::table::Table;
use model::id::Sha;
use testkit::Repo;

use crate::cases::CaseFile;
use crate::clone::find_objects;

const NAME: &str = "NiSE-Virginia-Tech/ConflictBench";
const SCENARIOS: &str = "Resource/merge_scenarios";
/// Bins of the calibration error.
const BINS: usize = 10;

/// The surest answer for a file.
struct Case {
    stated: f64,
    agreed: bool,
    exact: bool,
}

/// Measures the shipped table, if the clone is there.
pub(crate) async fn measure(clones: &Path, file: &mut CaseFile) {
    let Some(objects) = find_objects(clones, NAME) else {
        println!("ConflictBench: no clone of {NAME} in {}", clones.display());
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("host.git");
    let sealed = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    sealed.add_alternate(&objects).unwrap();
    let repo = Repo::open(path);
    let (mut files, mut cases) = (0, Vec::new());
    for merge in scenarios(&repo, &head(&objects)) {
        let facts = observe_merge(&sealed, &merge).await.unwrap();
        files += facts.conflicts.len();
        let mut knowledge = Knowledge::default();
        let replayed = replay_merge(Table::shipped(), &mut knowledge, &merge.sha, facts.conflicts);
        file.add(NAME, &replayed);
        cases.extend(replayed.iter().filter_map(surest));
    }
    report(files, cases);
}

/// Commit that the clone's head names.
fn head(objects: &Path) -> String {
    let clone = Repo::open(objects.parent().unwrap().to_path_buf());
    clone.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn scenarios(repo: &Repo, head: &str) -> Vec<PastMerge> {
    let list =
        repo.git(&["ls-tree", "-r", "-d", "--format=%(objectname) %(path)", head, SCENARIOS]);
    let tree = |line: &str| {
        let (id, path) = line.split_once(' ')?;
        Some((path.to_owned(), id.to_owned()))
    };
    let trees: std::collections::BTreeMap<String, String> = list.lines().filter_map(tree).collect();
    let depth = SCENARIOS.matches('/').count() + 2;
    let folders = trees.keys().filter(|path| path.matches('/').count() == depth);
    folders.filter_map(|folder| scenario(repo, &trees, folder)).collect()
}

/// One scenario as a merge; none if a version is missing.
fn scenario(
    repo: &Repo,
    trees: &std::collections::BTreeMap<String, String>,
    folder: &str,
) -> Option<PastMerge> {
    let tree = |name: &str| trees.get(&format!("{folder}/{name}"));
    let [base, left, right, child] = [tree("base")?, tree("left")?, tree("right")?, tree("child")?];
    let commit = |tree: &str, parents: &[&Sha]| {
        let mut argv = vec!["commit-tree", "-m", folder];
        argv.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
        argv.push(tree);
        Sha::parse(repo.git(&argv).trim()).unwrap()
    };
    let base = commit(base, &[]);
    let (ours, theirs) = (commit(left, &[&base]), commit(right, &[&base]));
    let sha = commit(child, &[&ours, &theirs]);
    Some(PastMerge { sha, ours, theirs })
}

fn surest(replayed: &ReplayedConflict) -> Option<Case> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let mut found = answers(scored);
    found.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    found.iter().find_map(|answer| {
        let content = answer.content(conflict, scored).ok()?;
        Some(Case {
            stated: answer.confidence,
            agreed: agrees(conflict, scored, human, &content),
            exact: is_exact(conflict, human, &content),
        })
    })
}

/// Returns whether every byte is as people committed it.
fn is_exact(conflict: &FileConflict, human: &HumanResolution, content: &ResolvedContent) -> bool {
    match content {
        ResolvedContent::Text(text) => human.bytes.as_ref() == Some(text),
        ResolvedContent::Whole(choice) => match version_for(conflict, *choice) {
            Some(version) => version.bytes.is_some() && version.bytes == human.bytes,
            None => human.choice == *choice,
        },
    }
}

fn report(files: usize, mut cases: Vec<Case>) {
    cases.sort_by(|one, other| other.stated.total_cmp(&one.stated));
    println!("ConflictBench, {files} files, no history, the shipped table:");
    for trust in crate::TRUSTS {
        let settled: Vec<&Case> = cases.iter().filter(|case| case.stated >= trust).collect();
        let agreed = settled.iter().filter(|case| case.agreed).count();
        println!(
            "  at {trust}: {} resolved, {} agree",
            crate::share(settled.len(), files),
            crate::share(agreed, settled.len())
        );
    }
    let exact = cases.iter().filter(|case| case.exact).count();
    println!("  exact with every answer taken: {} (promised 40 %)", crate::share(exact, files));
    println!("  expected calibration error {:.3} (promised 0.05)", calibration_error(&cases));
    let covered = coverage_at(&cases, 0.95);
    println!("  most files at 95 %: {} (promised 20 %)", crate::share(covered, files));
}

/// Mean distance of what was stated from what was found, over bins of what was stated.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn calibration_error(cases: &[Case]) -> f64 {
    let bin = |number: usize| {
        let (low, high) = (number as f64 / BINS as f64, (number + 1) as f64 / BINS as f64);
        let is_last = number + 1 == BINS;
        let inside = |case: &&Case| case.stated >= low && (case.stated < high || is_last);
        let cases: Vec<&Case> = cases.iter().filter(inside).collect();
        let stated: f64 = cases.iter().map(|case| case.stated).sum();
        let found = cases.iter().filter(|case| case.agreed).count() as f64;
        (stated - found).abs()
    };
    (0..BINS).map(bin).sum::<f64>() / cases.len().max(1) as f64
}

/// Most of the surest answers that agree at this share together.
fn coverage_at(cases: &[Case], share: f64) -> usize {
    let (mut agreed, mut most) = (0, 0);
    for (at, case) in cases.iter().enumerate() {
        agreed += usize::from(case.agreed);
        if crate::part(agreed, at + 1) >= share {
            most = at + 1;
        }
    }
    most
}
