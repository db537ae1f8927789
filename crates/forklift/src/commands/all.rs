//! `forklift --all` and `--branches`: several forks, or branches of one, and one summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use engine::publish::Publication;
use futures_util::stream::{self, StreamExt};
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;
use model::id::BranchName;
use run_store::run_dir::RunDir;
use serde_json::json;
use shell::Ui;
use shell::runtime::{stop_status, unless_stopped};

use super::replay::check_writable;
use super::run::{advance_stoppable, begin};
use super::{ForkliftDirs, block_on};
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::{RecordedSync, SyncEnd, SyncPlace};
use crate::flow::observe::{find_repo, fork_directory, fork_key, observe_pairs};
use crate::flow::record::ForkRunRecord;
use crate::flow::show::verdict_words;
use crate::rules::aggregate_status::aggregate_status;
use crate::rules::branch_pair::BranchPair;
use crate::rules::fork_list::parse_fork_list;
use crate::rules::judge::Verdict;
use crate::rules::next_step::next_command;
use crate::rules::review::review_points;
use crate::rules::shell_words::in_folder;
use crate::rules::summary::{SummaryRow, render_html};

/// Most forks that are brought up to date at once.
const MOST_JOBS: i64 = 64;

/// Options of doing it for several forks or branches.
#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// Do it for several forks: folders, or @FILE with one folder per line
    ///
    /// In a list file empty lines and lines that begin with # do not count, and folders are relative to the file's own. One
    /// fork that fails does not keep the others from being done. The exit status is the worst of all, in this order, worst
    /// first: 143, 130, 129, 9, 2, 1, 7, 3, 6, 5, 4, 10, 11, 0. A signal ends the forks that are being done and begins no other.
    #[arg(long, value_name = "DIR|@FILE", num_args = 1.., conflicts_with = "directory")]
    all: Vec<PathBuf>,
    /// Do it for each pair of branches that FORK.md on origin's default branch lists, in that order
    ///
    /// A pair is a branch of upstream and the branch of the fork that it goes into; each has its own run and its own pull
    /// request. What people merged on one branch teaches about the others, as far as --trust allows. One branch that fails
    /// does not keep the others from being done; the exit status is the worst of all, as for --all. With --all it is done for
    /// every fork.
    #[arg(long, conflicts_with_all = ["main_branch", "target"])]
    branches: bool,
    /// Forks that are brought up to date at once, each in its own box [default: 1]
    ///
    /// The branches of a fork, and two checkouts of one repository, are done one after the other.
    #[arg(long, value_name = "N", requires = "all", value_parser = clap::value_parser!(i64).range(1..=MOST_JOBS))]
    jobs: Option<i64>,
    /// Write the summary as a page to look at in a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl ManyArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.is_wanted() || self.html.is_some()
    }

    /// Returns whether more than one fork or branch was asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.all.is_empty() || self.branches
    }

    /// Refuses what has no meaning for one fork.
    pub(crate) fn check_alone(&self) -> Result<(), Failure> {
        match self.html {
            Some(_) => Err(Failure::usage("--html needs --all or --branches")
                .with_remedy("see one run with: forklift show last")),
            None => Ok(()),
        }
    }
}

/// Parts that all rows share.
#[derive(Clone, Copy)]
struct Work<'a> {
    ui: &'a Ui,
    args: &'a RunArgs,
    many: &'a ManyArgs,
    places: &'a ForkliftDirs,
    cancel: &'a Cancel,
    /// Forks that were asked for.
    forks: usize,
}

/// Runs on each fork and branch. A failure on one is reported and does not stop the others.
pub(crate) fn cmd_run_many(ui: &Ui, args: &RunArgs, many: &ManyArgs) -> Outcome {
    let lists: Vec<RecordedSync> = many
        .all
        .iter()
        .filter_map(|fork| Some(RecordedSync::begin_list(ui, list_file(fork)?, args)))
        .collect();
    let begun = ForkliftDirs::from_env().and_then(|places| {
        if let Some(file) = &many.html {
            // An hour of work must not end at a folder that is not there.
            check_writable(file)?;
        }
        let forks = match many.all.is_empty() {
            true => vec![fork_directory(args.directory.as_deref())?],
            false => expand(&many.all)?,
        };
        Ok((places, forks))
    });
    block_on(async {
        for list in &lists {
            let ended = begun.as_ref().map(|_| SyncEnd::from(ForkliftExit::Success));
            list.end(ui, ended).await;
        }
        if let Err(failure) = &begun {
            for fork in many.all.iter().filter(|fork| list_file(fork).is_none()) {
                let args = RunArgs { directory: Some(fork.clone()), ..args.clone() };
                RecordedSync::begin(ui, &args, SyncPlace::Listed).end(ui, Err(failure)).await;
            }
        }
        let (places, forks) = begun?;
        let cancel = &cancel_on_signals().or_machine()?;
        let work = Work { ui, args, many, places: &places, cancel, forks: forks.len() };
        let rows = run_forks(work, &forks).await;
        let status = aggregate_status(rows.iter().map(|row| row.outcome));
        if let Some(file) = &many.html {
            let page = render_html(&rows, host::clock::now());
            host::file::write_atomic(file, page.as_bytes(), 0o644).or_machine()?;
        }
        show(ui, &rows, status);
        Ok(status)
    })
}

/// The file of an argument that names a list.
fn list_file(fork: &Path) -> Option<&Path> {
    fork.to_str()?.strip_prefix('@').map(Path::new)
}

/// The given folders, with those of list files.
fn expand(forks: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for fork in forks {
        let Some(list) = list_file(fork) else {
            found.push(fork.clone());
            continue;
        };
        let text = std::fs::read_to_string(list).map_err(|error| {
            Failure::usage(format!("could not read the list {}: {error}", list.display()))
        })?;
        let folders = parse_fork_list(&text, list.parent().unwrap_or(Path::new("")));
        if folders.is_empty() {
            return Err(Failure::usage(format!("the list {} names no fork", list.display())));
        }
        found.extend(folders);
    }
    Ok(found)
}

/// Runs several forks at once, and returns their rows in the order of the forks. Checkouts of one repository share refs and a
/// lock, so that they are done one after the other.
async fn run_forks(work: Work<'_>, forks: &[PathBuf]) -> Vec<SummaryRow> {
    let mut by_repo: BTreeMap<String, Vec<(usize, &PathBuf)>> = BTreeMap::new();
    let mut order = Vec::new();
    for (number, fork) in forks.iter().enumerate() {
        let key = match find_repo(fork).await {
            Ok(repo) => fork_key(&repo),
            Err(_) => fork.display().to_string(),
        };
        if !by_repo.contains_key(&key) {
            order.push(key.clone());
        }
        by_repo.entry(key).or_default().push((number, fork));
    }
    let run_repo = async |forks: &[(usize, &PathBuf)]| {
        let mut rows = Vec::new();
        for (number, fork) in forks {
            rows.push((*number, run_fork(work, *number, fork).await));
        }
        rows
    };
    let jobs = work.many.jobs.map_or(1, |jobs| usize::try_from(jobs).unwrap_or(1));
    let repos = order.iter().map(|key| run_repo(&by_repo[key]));
    let done: Vec<_> = stream::iter(repos).buffer_unordered(jobs).collect().await;
    let by_number: BTreeMap<usize, Vec<SummaryRow>> = done.into_iter().flatten().collect();
    by_number.into_values().flatten().collect()
}

/// Runs one fork, or each of its pairs of branches.
async fn run_fork(work: Work<'_>, number: usize, fork: &Path) -> Vec<SummaryRow> {
    let Work { ui, args, many, cancel, forks, .. } = work;
    if let Some(reason) = cancel.reason() {
        let args = RunArgs { directory: Some(fork.to_path_buf()), ..args.clone() };
        return vec![not_begun(work, &args, (fork, None), stop_status(&reason))];
    }
    let about = (many.jobs.is_some_and(|jobs| jobs > 1)).then(|| ui.about(&name_of(fork)));
    let work = Work { ui: about.as_ref().unwrap_or(ui), ..work };
    if forks > 1 || !many.all.is_empty() {
        let text = format!("fork {} of {forks}: {}", number + 1, fork.display());
        work.ui.phase("fork", &text);
    }
    let args = RunArgs { directory: Some(fork.to_path_buf()), ..args.clone() };
    if !many.branches {
        return vec![run_one(work, &args, fork, None).await];
    }
    let pairs = match find_pairs(work, &args, fork).await {
        Ok(pairs) => pairs,
        Err(row) => return vec![*row],
    };
    let mut rows = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let BranchPair { upstream, ours } = pair;
        let mut args = args.clone();
        (args.names.main_branch, args.target) = (Some(ours.clone()), Some(pair.target()));
        if let Some(reason) = cancel.reason() {
            rows.push(not_begun(work, &args, (fork, Some(pair)), stop_status(&reason)));
            continue;
        }
        let text = format!("branch {} of {}: {upstream} into {ours}", number + 1, pairs.len());
        work.ui.phase("branch", &text);
        rows.push(run_one(work, &args, fork, Some(pair)).await);
    }
    rows
}

/// The last part of a fork's folder.
fn name_of(fork: &Path) -> String {
    let name = fork.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| fork.display().to_string())
}

/// The pairs of branches of a fork. A fork of which they cannot be read has a sync that failed, and one row.
async fn find_pairs(
    work: Work<'_>,
    args: &RunArgs,
    fork: &Path,
) -> Result<Vec<BranchPair>, Box<SummaryRow>> {
    let Work { ui, places, cancel, .. } = work;
    let remotes = args.names.remotes(&places.shared);
    let looking = observe_pairs(ui, fork, &remotes, &places.cache);
    match unless_stopped::<_, ForkliftExit>(cancel, looking).await {
        Ok(pairs) => Ok(pairs),
        Err(failure) => {
            let sync = RecordedSync::begin(ui, args, SyncPlace::Listed);
            sync.end(ui, Err(&failure)).await;
            Err(Box::new(failed(ui, (fork, None), None, &failure)))
        }
    }
}

async fn run_one(
    work: Work<'_>,
    args: &RunArgs,
    fork: &Path,
    pair: Option<&BranchPair>,
) -> SummaryRow {
    let Work { ui, places, cancel, .. } = work;
    let sync = RecordedSync::begin(ui, args, SyncPlace::Listed);
    let (run, fork_lock) = match begin(ui, args, places, (None, &sync.notes), cancel.clone()).await
    {
        Ok(begun) => begun,
        Err(failure) => {
            sync.end(ui, Err(&failure)).await;
            return failed(ui, (fork, pair), None, &failure);
        }
    };
    let dir = run.run.dir.clone();
    let outcome = advance_stoppable(run).await;
    drop(fork_lock);
    sync.end(ui, outcome.as_ref().map(|status| SyncEnd::from(*status))).await;
    match outcome {
        Ok(status) => finished((fork, pair), &dir, status),
        Err(failure) => failed(ui, (fork, pair), Some(&dir), &failure),
    }
}

fn finished(
    (fork, pair): (&Path, Option<&BranchPair>),
    dir: &RunDir,
    status: ForkliftExit,
) -> SummaryRow {
    let base = without_run((fork, pair), String::new(), status);
    let run = Some(dir.id().to_string());
    let Ok(meta) = ForkRunRecord::load(dir) else { return SummaryRow { run, ..base } };
    let Some(verdict) = &meta.verdict else { return SummaryRow { run, ..base } };
    let sent = meta.publication.as_ref();
    let problem = sent.and_then(|sent| sent.problem.clone());
    let points = review_points(&meta);
    let (waiting, waiting_pull) = match verdict {
        Verdict::AwaitingReview { branch, pull, .. } => (Some(branch), pull.clone()),
        _ => (None, None),
    };
    let words = verdict_words(&meta, verdict, &points);
    SummaryRow {
        run,
        verdict: Some(json!(verdict)),
        words: problem.map_or(words, |problem| format!("not published: {problem}")),
        pull: sent
            .and_then(|sent| sent.pull.as_ref())
            .map(|pull| pull.url.clone())
            .or(waiting_pull),
        branch: sent.and_then(pushed_branch).or_else(|| waiting.map(ToString::to_string)),
        next: next_command(&meta, verdict).map(|next| in_folder(&next, &meta.fork.path)),
        look_at: points,
        ..base
    }
}

/// The branch, if it was pushed.
fn pushed_branch(sent: &Publication) -> Option<String> {
    sent.pushed.then(|| sent.branch.to_string())
}

fn failed(
    ui: &Ui,
    of: (&Path, Option<&BranchPair>),
    dir: Option<&RunDir>,
    failure: &Failure,
) -> SummaryRow {
    ui.failure(failure);
    // A run that could not begin leaves nothing.
    let run = dir.filter(|dir| dir.path().exists()).map(|dir| dir.id().to_string());
    SummaryRow { run, ..without_run(of, failure.to_string(), failure.status) }
}

/// The row of a fork that a signal came before. Night after night that must not go unseen, so it has a record.
fn not_begun(
    work: Work<'_>,
    args: &RunArgs,
    of: (&Path, Option<&BranchPair>),
    status: ForkliftExit,
) -> SummaryRow {
    let failure = Failure::new(status, "not begun: stopped before it");
    RecordedSync::begin(work.ui, args, SyncPlace::Listed).end_unbegun(work.ui, &failure);
    without_run(of, failure.to_string(), status)
}

fn without_run(
    (fork, pair): (&Path, Option<&BranchPair>),
    words: String,
    status: ForkliftExit,
) -> SummaryRow {
    SummaryRow {
        fork: fork.to_path_buf(),
        from: pair.map(|pair| pair.upstream.clone()),
        into: pair.map(|pair| pair.ours.clone()),
        run: None,
        verdict: None,
        words,
        look_at: Vec::new(),
        pull: None,
        branch: None,
        next: None,
        status: status.code(),
        outcome: status,
    }
}

fn show(ui: &Ui, rows: &[SummaryRow], status: ForkliftExit) {
    ui.event("summary", &json!({"forks": rows, "status": status.code(), "name": status.name()}));
    let has_pairs = rows.iter().any(|row| row.into.is_some());
    let name = |branch: Option<&BranchName>| branch.map_or("-".to_owned(), ToString::to_string);
    let cells = rows.iter().map(|row| {
        let sent = row.pull.as_deref().or(row.branch.as_deref()).unwrap_or("-");
        let mut cells = vec![row.fork.display().to_string()];
        if has_pairs {
            cells.push(format!("{} <- {}", name(row.into.as_ref()), name(row.from.as_ref())));
        }
        cells.extend([row.status.to_string(), sent.to_owned(), row.words.clone()]);
        cells
    });
    ui.line("");
    match has_pairs {
        true => ui.table(&["FORK", "BRANCH", "STATUS", "PULL OR BRANCH", "VERDICT"], cells),
        false => ui.table(&["FORK", "STATUS", "PULL OR BRANCH", "VERDICT"], cells),
    }
}
