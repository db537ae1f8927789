//! `forklift merge-plan`: one merge with the resolver, as JSON for other programs.
//!
//! New objects go where `GIT_OBJECT_DIRECTORY` says, as with git itself. The plan is JSON with or without `--json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use host::git::{LineageRange, ObjectFormat, SealedRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::learn;
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::{Value, json};
use shell::Ui;

use super::block_on;
use crate::exit::{OrExit, Outcome};
use crate::flow::resolver::learn_kept;

/// Merge two commits as far as possible without an agent, and print the plan as JSON
#[derive(Debug, Clone, Args)]
pub(crate) struct MergePlanArgs {
    /// The repository
    #[arg(long, value_name = "DIR")]
    git_dir: PathBuf,
    /// The fork's commit, by its whole id
    #[arg(value_parser = Sha::parse)]
    ours: Sha,
    /// Upstream's commit, by its whole id
    #[arg(value_parser = Sha::parse)]
    theirs: Sha,
    /// How sure an answer must be, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = TrustThreshold::parse)]
    trust: TrustThreshold,
    /// A folder that keeps what was learned from this fork's merges, from call to call
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Write the plan here instead of to standard output
    #[arg(value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Learns from the merges that are reachable from the fork's commit, merges, and prints the plan.
pub(crate) fn cmd_merge_plan(ui: &Ui, args: &MergePlanArgs) -> Outcome {
    let plan = block_on(async {
        let repo = open(args);
        let range = LineageRange { tip: &args.ours, siblings: &[], upstream: &args.theirs };
        let learned = match &args.state {
            Some(folder) => {
                learn_kept(&ui.without_events(), &repo, range, &folder.join("learned.json")).await?
            }
            None => learn(&repo, range, None, |_| {}).await.or_machine()?,
        };
        let knowledge = &learned.knowledge;
        let options = ResolveOptions { knowledge, ..ResolveOptions::at(args.trust) };
        let heads = MergeHeads { ours: args.ours.clone(), theirs: args.theirs.clone() };
        resolve_conflicts(&repo, &heads, options).await.or_machine()
    })?;
    match &args.out {
        Some(file) => {
            let text = serde_json::to_vec(&document(&plan)).or_exit(ForkliftExit::Internal)?;
            host::file::write_atomic(file, &text, 0o644).or_machine()?;
        }
        None => ui.json(&document(&plan)),
    }
    Ok(ForkliftExit::Success)
}

fn open(args: &MergePlanArgs) -> SealedRepo {
    let format =
        if args.ours.as_str().len() == 40 { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 };
    let repo = SealedRepo::open(&args.git_dir, format).believing_commit_graph();
    match host::env::var_os("GIT_OBJECT_DIRECTORY") {
        Some(objects) => {
            let alternates = host::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES");
            repo.writing_to(&objects, &alternates.unwrap_or_default())
        }
        None => repo,
    }
}

fn document(plan: &ResolvedMerge) -> Value {
    let unresolved: Vec<_> = plan.rest.iter().map(|brief| &brief.path).collect();
    let by: BTreeMap<String, String> = plan
        .receipts
        .iter()
        .map(|receipt| {
            let steps: Vec<&str> =
                receipt.steps.iter().map(|step| step.answer_class.as_str()).collect();
            (receipt.path.to_string(), format!("{:.3} {}", receipt.confidence, steps.join("; ")))
        })
        .collect();
    json!({"tree": plan.tree, "unresolved": unresolved, "by": by, "receipts": plan.receipts, "rest": plan.rest})
}
