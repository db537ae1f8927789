//! `forklift first --check`: finds a commit of upstream that breaks the fork's check.

use clap::Args;
use host::lock::FileLock;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use model::id::Sha;
use sandbox::backend::BackendKind;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;

use super::ForkliftDirs;
use super::run_args::DEFAULT_WAIT_SECS;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::fork_key;
use crate::flow::preview::Preview;
use crate::flow::train::break_search::{
    BreakFound, BreakSearch, GREEN_AGAIN, flaky_words, merge_in_memory,
};
use crate::flow::train::check_bench::{BenchOptions, CheckBench, words};
use crate::flow::train::prove::prove_check;
use crate::rules::fork_file::{ForkRules, TimedCommand};
use crate::rules::search::Search;
use crate::rules::train::CommitLabel;
use crate::rules::words::counted;

/// Time limit of a check that the command line names, as that of one in FORK.md.
const CHECK_SECS: u64 = 600;

/// Options of the search by the check.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Find a commit that breaks the fork's check instead, also where nothing conflicts [default: the check of FORK.md]
    ///
    /// Commits before the first conflict are merged in memory, up to one and up to another, and each result is checked in a box.
    /// A result is kept by the tree that was checked. Before a commit is named, the check runs again on the fork itself, on
    /// all commits, and three times on both sides of the break; a check that ends otherwise then is flaky, and names no commit.
    #[arg(long, value_name = "COMMAND", num_args = 0..=1, require_equals = true)]
    check: Option<Option<String>>,
    /// See the check fail on a break that is seeded into the sources, before its success counts
    #[arg(long, requires = "check")]
    prove_check: bool,
    /// Check again what was checked before
    #[arg(long, requires = "check")]
    again: bool,
    /// Where the box comes from: docker or bwrap [default: docker if an engine answers and holds the image, else bwrap]
    #[arg(long, value_name = "NAME", requires = "check")]
    backend: Option<String>,
    /// The image for docker
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,
}

impl CheckArgs {
    pub(super) fn is_wanted(&self) -> bool {
        self.check.is_some()
    }

    /// The fork's rules with the check that is asked for.
    fn rules(&self, rules: ForkRules) -> ForkRules {
        match &self.check {
            Some(Some(line)) => {
                let check = TimedCommand { line: line.clone(), timeout_secs: CHECK_SECS };
                ForkRules { check: Some(check), ..rules }
            }
            Some(None) | None => rules,
        }
    }
}

/// A search over a preview, with the lock that keeps other boxes of the fork away.
struct CheckSearch<'a> {
    ui: &'a Ui,
    preview: &'a Preview,
    bench: CheckBench<'a>,
    _lock: FileLock,
}

pub(super) async fn first_by_check(
    ui: &Ui,
    args: &CheckArgs,
    preview: &Preview,
    places: &ForkliftDirs,
) -> Outcome {
    let backend = args.backend.as_deref().map(str::parse).transpose();
    let backend: Option<BackendKind> = backend.or_usage()?;
    let choice = engine::trial::choose_backend(backend, &args.image, &places.runs).await;
    let kind = choice.or_usage()?.kind;
    let rules = args.rules(preview.rules());
    let options = BenchOptions {
        backend: kind,
        image: kind.uses_image().then(|| args.image.clone()),
        policy: Some(egress::EgressPolicy::new(egress::EgressProfile::Packages)),
        branch: preview.seen.fork.branch.clone(),
    };
    let (repo, cancel) = (&preview.seen.repo, cancel_on_signals().or_machine()?);
    let lock = acquire_fork_lock(ui, repo, &places.cache, DEFAULT_WAIT_SECS).await?;
    let bench = CheckBench::open(ui, places, &fork_key(repo), &rules, options, cancel).await?;
    let bench = bench.ignoring_known(args.again);
    let pins = &preview.seen.pins;
    let line = preview.repo.first_parents(&pins.upstream, &pins.base).await.or_machine()?;
    let before = preview.repo.merge_base(&pins.base, &pins.upstream).await.or_machine()?;
    let before = before.ok_or_else(|| preview.unrelated())?;
    if args.prove_check {
        let command = rules.check.as_ref().map_or("", |check| check.line.as_str());
        let range = (&before, &pins.upstream);
        prove_check(ui, &bench, &preview.repo, &pins.base, range, command).await?;
    }
    let search = CheckSearch { ui, preview, bench, _lock: lock };
    let end = search.last_clean(&line).await?;
    if end < line.len() {
        let first = &line[end];
        let text = format!(
            "commit {} conflicts ({}), so {} before it are searched",
            end + 1,
            first.short(),
            counted(end, "commit")
        );
        ui.note(&text);
    }
    search.run(&line[..end]).await
}

impl CheckSearch<'_> {
    /// Number of commits before the first that conflicts.
    async fn last_clean(&self, line: &[Sha]) -> Result<usize, Failure> {
        let Some(last) = line.last() else { return Ok(0) };
        if self.merged(last).await?.is_some() {
            return Ok(line.len());
        }
        let Some(mut search) = Search::new(line.len()) else { return Ok(0) };
        while let Some(trial) = search.next_trial() {
            search.learn(trial, self.merged(&line[trial]).await?.is_none());
        }
        Ok(search.found())
    }

    async fn merged(&self, commit: &Sha) -> Result<Option<Sha>, Failure> {
        merge_in_memory(&self.preview.repo, &self.preview.seen.pins.base, commit).await
    }

    async fn run(&self, line: &[Sha]) -> Outcome {
        let Self { ui, preview, bench, .. } = self;
        let last = match line.last() {
            Some(last) => self.merged(last).await?,
            None => None,
        };
        let Some(last) = last else {
            ui.event("break", &json!({"commit": null, "of": 0, "checks": bench.ran()}));
            ui.result("breaks", "no commit can be checked without a conflict");
            return Ok(ForkliftExit::Success);
        };
        let what = format!("the fork with {}", counted(line.len(), "commit"));
        let checked = bench.check(&preview.repo, &last, &what).await?;
        if checked.summary.passed() {
            let how = words(&checked.summary);
            let fields =
                json!({"commit": null, "of": line.len(), "checks": bench.ran(), "check": how});
            ui.event("break", &fields);
            let when = match bench.ran() {
                0 => ", when it ran before",
                _ => "",
            };
            let count = counted(line.len(), "commit");
            ui.result("breaks", &format!("nothing: the check {how} with {count}{when}"));
            return Ok(ForkliftExit::Success);
        }
        let base = &preview.seen.pins.base;
        let search = BreakSearch { ui, bench, repo: &preview.repo, base, line };
        match search.run().await? {
            BreakFound::Commit(report) => report.show(ui, line.len()),
            BreakFound::OneOf(labels) => {
                ui.event("break", &json!({"one_of": labels, "checks": bench.ran()}));
                let words: Vec<String> = labels.iter().map(CommitLabel::words).collect();
                ui.result("breaks", &format!("one of {}", words.join(", ")));
            }
            BreakFound::RedBefore { how } => {
                let text = format!(
                    "the check {how} on the fork itself: no commit of upstream is to blame"
                );
                return Err(Failure::new(ForkliftExit::NotIntegrated, text));
            }
            BreakFound::GreenAgain { how } => {
                let text = format!("the check {how} when it ran again: {GREEN_AGAIN}");
                return Err(Failure::new(ForkliftExit::NotIntegrated, text));
            }
            BreakFound::Flaky { what } => {
                return Err(Failure::new(ForkliftExit::NotIntegrated, flaky_words(&what)));
            }
        }
        Ok(ForkliftExit::Success)
    }
}
