//! What others make of the same merges: git's own memory, trained on the past, and mergiraf, where it is installed.
//!
//! Both are tried in small repositories and folders that hold nothing but the files in conflict.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use host::process::{RunLimits, run};
use host::signal::Cancel;
use merge::resolver::conflict::FileConflict;
use merge::resolver::gate::markers;
use merge::resolver::hunk::hunks;
use merge::resolver::replay::ReplayScore;
use model::command::{CommandExit, CommandSpec};
use testkit::Repo;

use crate::load::{Fork, Past};

/// What came of it.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) score: ReplayScore,
    pub(crate) times: Vec<Duration>,
}

/// The middle one; nothing where there is none.
pub(crate) fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// mergiraf takes a while for each file, so only the newest merges of each fork are tried.
const MERGIRAF_MERGES: usize = 20;
const MERGIRAF_LIMIT: Duration = Duration::from_secs(6);

type Answer = Option<Vec<u8>>;
type Side = fn(&FileConflict) -> Answer;

impl Tried {
    fn add(&mut self, merge: &Past, answers: &[Answer], time: Duration) {
        let conflicts = &merge.facts.conflicts;
        let mut score = ReplayScore { merges: 1, files: conflicts.len(), ..ReplayScore::default() };
        for ((conflict, human), answer) in conflicts.iter().zip(answers) {
            let Some(text) = answer else { continue };
            score.files_resolved += 1;
            score.files_agreed += usize::from(human.agree_with_file(conflict, text));
        }
        if score.files_resolved == score.files && score.files > 0 {
            score.merges_resolved = 1;
            score.merges_agreed = usize::from(score.files_agreed == score.files);
        }
        self.score = self.score.plus(score);
        self.times.push(merge.facts.merge_time + time);
    }
}

/// git rerere, in the order of time: each merge is tried before its resolutions are recorded.
pub(crate) fn rerere(forks: &[Fork]) -> Tried {
    let mut tried = Tried::default();
    for fork in forks {
        let scratch = tempfile::tempdir().unwrap();
        let repo = Repo::init(scratch.path().join("repo"));
        repo.git(&["config", "rerere.enabled", "true"]);
        repo.git(&["config", "merge.conflictStyle", "merge"]);
        repo.git(&["commit", "--quiet", "--allow-empty", "--message=empty"]);
        for (number, merge) in fork.merges.iter().enumerate() {
            let (answers, time) = merge_again(&repo, number, merge);
            tried.add(merge, &answers, time);
        }
    }
    tried
}

/// Makes the conflict, looks at what rerere makes of it, and concludes as people did.
fn merge_again(repo: &Repo, number: usize, merge: &Past) -> (Vec<Answer>, Duration) {
    let files: Vec<Option<String>> =
        merge.facts.conflicts.iter().enumerate().map(|(at, one)| name_in(at, &one.0)).collect();
    if files.iter().all(Option::is_none) {
        return (vec![None; files.len()], Duration::ZERO);
    }
    let of = |side: Side| {
        let conflicts = merge.facts.conflicts.iter().zip(&files);
        conflicts.filter_map(move |((conflict, _), name)| Some((name.clone()?, side(conflict))))
    };
    repo.git(&["checkout", "--quiet", "--force", "--orphan", &format!("base{number}")]);
    commit(repo, of(|conflict| bytes(&conflict.base)));
    let sides: [(&str, Side); 2] = [
        ("ours", |conflict| bytes(&conflict.ours)),
        ("theirs", |conflict| bytes(&conflict.theirs)),
    ];
    for (branch, side) in sides {
        let name = format!("{branch}{number}");
        repo.git(&["checkout", "--quiet", "--force", "-b", &name, &format!("base{number}")]);
        commit(repo, of(side));
    }
    repo.git(&["checkout", "--quiet", "--force", &format!("ours{number}")]);
    let started = Instant::now();
    // It is meant to fail: rerere works on what is left.
    drop(repo.try_git(&["merge", "--no-commit", "--no-ff", &format!("theirs{number}")]));
    let time = started.elapsed();
    let read = |name: &Option<String>| {
        let text = fs::read(repo.dir().join(name.as_ref()?)).ok()?;
        (markers(&text) == 0).then_some(text)
    };
    let answers = files.iter().map(read).collect();
    for ((_, human), name) in merge.facts.conflicts.iter().zip(&files) {
        write(repo, name.as_deref(), human.bytes.as_deref());
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=people"]);
    (answers, time)
}

/// Texts of both sides get a plain name; rerere does not look at names.
fn name_in(at: usize, conflict: &FileConflict) -> Option<String> {
    let has_hunks = hunks(&conflict.pieces).next().is_some();
    conflict.texts().filter(|_| has_hunks).map(|_| format!("file{at}"))
}

fn bytes(version: &Option<merge::resolver::conflict::FileVersion>) -> Answer {
    version.as_ref()?.bytes.clone()
}

fn commit(repo: &Repo, files: impl Iterator<Item = (String, Answer)>) {
    for entry in fs::read_dir(repo.dir()).unwrap().flatten() {
        if entry.file_name() != ".git" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (name, text) in files {
        write(repo, Some(&name), text.as_deref());
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message=side"]);
}

fn write(repo: &Repo, name: Option<&str>, text: Option<&[u8]>) {
    let Some(name) = name else { return };
    match text {
        Some(text) => {
            repo.write(name, text);
        }
        None => drop(fs::remove_file(repo.dir().join(name))),
    }
}

/// mergiraf on the newest merges of each fork, with the name of the row; nothing where it is not installed.
pub(crate) async fn mergiraf(forks: &[Fork]) -> Option<(String, Tried)> {
    let program = host::tool::which("mergiraf")?;
    let version = host::tool::tool_version("mergiraf", &["--version"], MERGIRAF_LIMIT).await?;
    let mut tried = Tried::default();
    for fork in forks {
        let scratch = tempfile::tempdir().unwrap();
        for merge in fork.merges.iter().rev().take(MERGIRAF_MERGES) {
            let started = Instant::now();
            let mut answers = Vec::new();
            for (conflict, _) in &merge.facts.conflicts {
                answers.push(ask(&program, scratch.path(), conflict).await);
            }
            tried.add(merge, &answers, started.elapsed());
        }
    }
    Some((format!("{version} alone (the newest {MERGIRAF_MERGES} of each fork)"), tried))
}

async fn ask(program: &Path, folder: &Path, conflict: &FileConflict) -> Answer {
    let [base, ours, theirs] = conflict.texts()?;
    for (name, text) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        fs::write(folder.join(name), text).unwrap();
    }
    let made = folder.join("made");
    let path = format!("--path-name={}", conflict.path);
    let spec = CommandSpec::new(program)
        .args(["merge", "--timeout=4000", "--output=made", &path, "base", "ours", "theirs"])
        .cwd(folder);
    let limits = RunLimits { timeout: Some(MERGIRAF_LIMIT), ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await.ok()?;
    (output.exit == CommandExit::Exited(0)).then(|| fs::read(made).ok())?
}
