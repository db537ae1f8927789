//! `forklift changelog`: previews upstream's changes and the result of integrating them.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use engine::evidence::Pins;
use host::git::{GitIdentity, RefName};
use merge::clean::{Conflict, MergeOptions};
use merge::forecast::{MergeForecast, UpstreamForecast, observe_forecast};
use merge::path::TreePath;
use merge::pattern::PathPatterns;
use merge::rebase::{RebaseAttempt, try_rebase};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::hunk::Side;
use merge::resolver::receipt::{FileAction, Receipt};
use merge::resolver::{MergeHeads, ResolveOptions, resolve_conflicts};
use model::exit::ForkliftExit;
use serde::Serialize;
use serde_json::json;
use shell::Ui;

use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::past::ForkPast;
use crate::flow::preview::Preview;
use crate::flow::resolver::{learn_kept, learned_file};
use crate::rules::fork_file::{ForkRules, Resolve, TimedCommand};
use crate::rules::strategy::Strategy;
use crate::rules::words::counted;

/// Expected result of a rebase, if the fork's rules ask for one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum RebaseForecast {
    Clean { made: usize, dropped: usize },
    Conflicts { at: String, conflicts: Vec<Conflict> },
    Unrelated,
    TooMany,
}

/// Conflicts that the resolver answers.
#[derive(Debug, Serialize)]
struct ResolverForecast {
    resolved: Vec<TreePath>,
    /// Those of them that a rule of FORK.md decides for one side: the other side's change is left out.
    by_rule: BTreeMap<String, FileAction>,
    /// Number of conflicts that are left for an agent.
    open: usize,
}

/// Show what is coming from upstream: commits, numbers, and the conflicts to expect
///
/// Fetches as a run does and changes nothing. No model is asked.
#[derive(Debug, Args)]
pub(crate) struct ChangelogArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Commits and files that are listed at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

pub(crate) fn cmd_changelog(ui: &Ui, args: &ChangelogArgs, directory: Option<&Path>) -> Outcome {
    let (look, limit) = (&args.look, args.limit);
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        let preview = Preview::make(ui, look, directory, &places).await?;
        let pins = &preview.seen.pins;
        let forecast = observe_forecast(&preview.repo, &pins.base, &pins.upstream, limit)
            .await
            .or_machine()?;
        let rules = preview.rules();
        let resolver = match &forecast.merge {
            MergeForecast::Conflicts(_) => {
                forecast_resolver(ui, &preview, &rules, &places.cache).await?
            }
            _ => None,
        };
        let rebase = match rules.strategy {
            Some(Strategy::Rebase) if forecast.merge != MergeForecast::NothingNew => {
                Some(forecast_rebase(&preview).await?)
            }
            _ => None,
        };
        let protected = PathPatterns::new(&rules.protect);
        let touched: Vec<String> = forecast
            .changed
            .iter()
            .filter(|file| protected.matches(file.path.as_bytes()))
            .map(|file| file.path.to_string())
            .collect();
        ui.event(
            "changelog",
            &json!({
                "fork": preview.seen.fork.path, "target": preview.seen.target,
                "target_name": preview.seen.target_name, "pins": pins, "forecast": forecast,
                "resolver": resolver, "rebase": rebase, "rules": rules, "protected": touched,
            }),
        );
        show_forecast(ui, &preview, &forecast, resolver.as_ref(), limit);
        show_rebase(ui, rebase.as_ref());
        show_rules(ui, preview.seen.fork_file.is_some(), &rules, &touched);
        Ok(ForkliftExit::Success)
    })
}

/// Tries a rebase in the preview's scratch repository.
async fn forecast_rebase(preview: &Preview) -> Result<RebaseForecast, Failure> {
    let identity =
        GitIdentity { name: "preview".to_owned(), email: "preview@bottle.invalid".to_owned() };
    let name = RefName::parse("refs/preview/rebase").or_exit(ForkliftExit::Internal)?;
    let options =
        MergeOptions { message: "", identity: &identity, when: host::clock::now(), name: &name };
    let pins = &preview.seen.pins;
    Ok(match try_rebase(&preview.repo, &pins.base, &pins.upstream, options).await.or_machine()? {
        RebaseAttempt::Clean { made, dropped, .. } => {
            RebaseForecast::Clean { made, dropped: dropped.len() }
        }
        RebaseAttempt::Conflicts { at, conflicts } => {
            RebaseForecast::Conflicts { at: at.short().to_owned(), conflicts }
        }
        RebaseAttempt::Unrelated => RebaseForecast::Unrelated,
        RebaseAttempt::TooMany => RebaseForecast::TooMany,
    })
}

/// Resolves the conflicts as a run does before it starts an agent, but without programs in boxes. `None` if the fork wants
/// no answer without an agent.
async fn forecast_resolver(
    ui: &Ui,
    preview: &Preview,
    rules: &ForkRules,
    cache: &Path,
) -> Result<Option<ResolverForecast>, Failure> {
    let share = rules.trust.and_then(|share| TrustThreshold::new(share).ok());
    let trust = share.unwrap_or(TrustThreshold::DEFAULT);
    if trust == TrustThreshold::NEVER {
        return Ok(None);
    }
    let Pins { base, upstream } = &preview.seen.pins;
    let past = ForkPast::open(&preview.seen.repo, &preview.seen.fork.remotes.origin, cache).await?;
    let range = past.range(base, upstream);
    let file = learned_file(cache, &preview.seen.repo);
    let learned = learn_kept(ui, &past.sealed, range, &file).await?;
    let resolve_rules = rules.resolve_rules();
    let options = ResolveOptions {
        rules: &resolve_rules,
        knowledge: &learned.knowledge,
        ..ResolveOptions::at(trust)
    };
    let heads = MergeHeads { ours: base.clone(), theirs: upstream.clone() };
    let done = resolve_conflicts(&preview.repo, &heads, options).await.or_machine()?;
    let resolved = done.receipts.iter().map(|receipt| receipt.path.clone()).collect();
    let is_ruled = |receipt: &&Receipt| resolve_rules.rule_at(receipt.path.as_bytes()).is_some();
    let by_rule = done.receipts.iter().filter(is_ruled);
    let by_rule = by_rule.map(|it| (it.path.to_string(), it.action)).collect();
    Ok(Some(ResolverForecast { resolved, by_rule, open: done.rest.len() }))
}

fn show_forecast(
    ui: &Ui,
    preview: &Preview,
    forecast: &UpstreamForecast,
    resolver: Option<&ResolverForecast>,
    limit: usize,
) {
    ui.result("fork", &preview.seen.fork.path.display().to_string());
    ui.result("target", &preview.target());
    let UpstreamForecast { commit_count, files, insertions, deletions, .. } = forecast;
    ui.result("coming", &counted(*commit_count, "commit"));
    for commit in &forecast.commits {
        let day = commit
            .authored_at
            .map_or_else(|| "????-??-??".to_owned(), |at| at.strftime("%Y-%m-%d").to_string());
        ui.item(&format!("{} {day} {} ({})", commit.sha.short(), commit.subject, commit.author));
    }
    more(ui, commit_count.saturating_sub(forecast.commits.len()), "commit");
    ui.result("touching", &format!("{}, +{insertions} -{deletions}", counted(*files, "file")));
    for file in forecast.changed.iter().take(limit) {
        ui.item(&format!("{} +{} -{}", file.path, file.insertions, file.deletions));
    }
    more(ui, files.saturating_sub(limit), "file");
    match &forecast.merge {
        MergeForecast::NothingNew => ui.result("merge", "nothing to do: the fork has all of it"),
        MergeForecast::Clean => ui.result("merge", "without conflicts; no agent would be needed"),
        MergeForecast::Unrelated => {
            ui.result("merge", "not by git: the histories have no commit in common");
        }
        MergeForecast::Conflicts(conflicts) => {
            show_merge(ui, conflicts, resolver);
        }
    }
}

fn show_merge(ui: &Ui, conflicts: &[Conflict], resolver: Option<&ResolverForecast>) {
    let count = counted(conflicts.len(), "conflict");
    let resolved = resolver.map_or(&[][..], |resolver| &resolver.resolved);
    let words = match resolver {
        Some(resolver) if resolver.open == 0 => format!("{count}, all resolved without a model"),
        Some(resolver) if !resolved.is_empty() => format!(
            "{count}: {} resolved without a model, {} for an agent to resolve",
            resolved.len(),
            resolver.open
        ),
        Some(_) | None => format!("{count}, for an agent to resolve"),
    };
    ui.result("merge", &words);
    let (done, open): (Vec<Conflict>, Vec<Conflict>) =
        conflicts.iter().cloned().partition(|conflict| resolved.contains(&conflict.path));
    show_conflicts(ui, &open);
    for conflict in done {
        let action = resolver.and_then(|it| it.by_rule.get(&conflict.path.to_string()));
        let rule = match action {
            Some(FileAction::TookOurs) => ": by a rule, which leaves upstream's change out",
            Some(FileAction::TookTheirs) => ": by a rule, which leaves the fork's change out",
            Some(FileAction::Deleted | FileAction::Merged | FileAction::Regenerated) => {
                ": by a rule"
            }
            None => "",
        };
        let kind = conflict.kind.as_str();
        ui.item(&format!("{} ({kind}), resolved without a model{rule}", conflict.path));
    }
}

fn show_rebase(ui: &Ui, rebase: Option<&RebaseForecast>) {
    match rebase {
        None => {}
        Some(RebaseForecast::Clean { made, dropped }) => ui.result(
            "rebase",
            &format!("without conflicts: {} rebased, {dropped} dropped", counted(*made, "commit")),
        ),
        Some(RebaseForecast::Conflicts { at, conflicts }) => {
            ui.result("rebase", &format!("the fork's commit {at} does not fit"));
            show_conflicts(ui, conflicts);
        }
        Some(RebaseForecast::Unrelated) => {
            ui.result("rebase", "not by git: the histories have no commit in common");
        }
        Some(RebaseForecast::TooMany) => {
            ui.result("rebase", "the fork has too many commits of its own to try");
        }
    }
}

fn show_rules(ui: &Ui, has_file: bool, rules: &ForkRules, touched: &[String]) {
    if !has_file {
        return ui.result("rules", "none: the fork has no FORK.md");
    }
    let command = |command: &TimedCommand| {
        let line = command.line.trim_end().replace('\n', "; ");
        format!("{line} (at most {} s)", command.timeout_secs)
    };
    let resolve: Vec<String> = rules.resolve.iter().map(resolve_words).collect();
    let rows = [
        ("setup", rules.setup.as_ref().map(command)),
        ("check", rules.check.as_ref().map(command)),
        ("target", rules.target.as_ref().map(ToString::to_string)),
        ("strategy", rules.strategy.map(|strategy| strategy.name().to_owned())),
        ("protect", (!rules.protect.is_empty()).then(|| rules.protect.join(", "))),
        ("trust", rules.trust.map(|trust| trust.to_string())),
        ("resolve", (!resolve.is_empty()).then(|| resolve.join(", "))),
    ];
    let set: Vec<_> = rows.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).collect();
    ui.result("rules", if set.is_empty() { "FORK.md sets none" } else { "FORK.md" });
    for (key, value) in set {
        ui.item(&format!("{key}: {value}"));
    }
    for path in touched {
        ui.item(&format!("protected, and changed upstream: {path}"));
    }
}

/// A rule for conflicts, in words.
fn resolve_words(rule: &Resolve) -> String {
    let what = match (&rule.regenerate, rule.take, rule.trust) {
        (Some(command), ..) => format!("regenerated by {command}"),
        (None, Some(Side::Ours), _) => "ours is taken".to_owned(),
        (None, Some(Side::Theirs), _) => "theirs is taken".to_owned(),
        (None, None, Some(trust)) => format!("trust {trust}"),
        (None, None, None) => "left to the agent".to_owned(),
    };
    format!("{} ({what})", rule.path)
}

pub(super) fn show_conflicts(ui: &Ui, conflicts: &[Conflict]) {
    for conflict in conflicts {
        ui.item(&format!("{} ({})", conflict.path, conflict.kind.as_str()));
    }
}

fn more(ui: &Ui, count: usize, what: &str) {
    if count > 0 {
        ui.item(&format!("and {} more (--limit)", counted(count, what)));
    }
}
