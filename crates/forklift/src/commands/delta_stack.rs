//! `forklift delta export` and `forklift delta rebase`: the changes of a fork as a stack of patches.

use std::path::{Path, PathBuf};

use clap::Args;
use host::git::RefName;
use jiff::Timestamp;
use merge::delta::restack::RestackVerdict;
use model::exit::ForkliftExit;
use model::id::BranchName;
use serde_json::{Value, json};
use shell::Ui;

use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::delta::ForkDelta;
use crate::flow::observe::{find_repo, fork_directory};
use crate::rules::words::counted;

/// Write the changes as a series of patches, as quilt and `git apply` take them
///
/// One patch for each change, in the order of the list, with a header as in DEP-3, and a file `series`. The series applies to the
/// commit of upstream that the fork has taken last. What was written is applied there once more, and only if it gives the fork's
/// tree, byte for byte, does the command succeed. Lines of a commit that belong to several changes are parted, so a tree between
/// two patches need not compile.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A folder that is empty or does not exist yet
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    look: LookArgs,
}

/// Try the changes one after the other on upstream's target, each with a verdict of its own
///
/// In memory: nothing is changed. Each change applies, is empty (it changes nothing there, because upstream has it), is resolved
/// by the resolver, with the class of its answer, is left out (a rule such as `take: theirs` took upstream's version of all of
/// it), or conflicts. One that conflicts is left out of what follows, so a change that needs it conflicts too. `--target
/// latest-tag` is the newest release.
///
/// With `--branch` the result is left as a new branch: a commit for each change that is there, on upstream's. Only the branch is
/// made; the checkout stays as it is, and nothing is pushed.
///
/// The status is 3 if a change conflicts, else 0.
#[derive(Debug, Args)]
pub(crate) struct RebaseArgs {
    /// Leave the result as this branch, which must not exist yet
    #[arg(long, value_name = "NAME", value_parser = BranchName::parse)]
    branch: Option<BranchName>,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) fn cmd_export(ui: &Ui, args: &ExportArgs, directory: Option<&Path>) -> Outcome {
    // Minutes of work must not end at a folder that cannot be used.
    check_empty(&args.folder)?;
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        let fork = ForkDelta::observe(ui, &args.look, directory, &places).await?;
        let made = fork.export(ui, &args.folder).await?;
        let patches: Vec<Value> = made
            .patches
            .iter()
            .map(|(file, change)| {
                json!({ "file": file, "change": fork.assignment.changes[*change].name })
            })
            .collect();
        ui.event(
            "delta-export",
            &json!({
                "folder": args.folder, "base": fork.delta.parted, "tip": fork.delta.tip,
                "patches": patches, "binary_patches": made.binary,
                "submodules_left_out": made.submodules,
            }),
        );
        ui.result("folder", &args.folder.display().to_string());
        ui.result("patches", &made.patches.len().to_string());
        let is_exact = made.submodules.is_empty();
        let words =
            if is_exact { "the fork's tree" } else { "the fork's tree without its submodules" };
        ui.result(
            "proved",
            &format!(
                "applied to {}, the series gives {words}, {}",
                fork.delta.parted.short(),
                fork.delta.tip.short()
            ),
        );
        for path in &made.submodules {
            ui.warn(&format!("no patch has the submodule {path}"));
        }
        if made.binary > 0 {
            let count = made.binary;
            ui.note(&format!(
                "{count} of them have binary files: git apply takes those, quilt does not"
            ));
        }
        Ok(ForkliftExit::Success)
    })
}

fn check_empty(folder: &Path) -> Result<(), Failure> {
    let refused = |why: &str| {
        Failure::usage(format!("cannot export to {}: {why}", folder.display()))
            .with_remedy("name a folder that is empty or does not exist: forklift delta export DIR")
    };
    match std::fs::read_dir(folder) {
        Ok(entries) => match entries.count() {
            0 => Ok(()),
            _ => Err(refused("it is not empty")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(refused(&error.to_string())),
    }
}

pub(crate) fn cmd_rebase(ui: &Ui, args: &RebaseArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        if let Some(branch) = &args.branch {
            // Minutes of work must not end at a branch that is there.
            check_new_branch(branch, directory).await?;
        }
        let fork = ForkDelta::observe(ui, &args.look, directory, &places).await?;
        let when = args.branch.as_ref().map_or(Timestamp::UNIX_EPOCH, |_| host::clock::now());
        let (stack, done) = fork.rebase(ui, &places, when).await?;
        if let Some(branch) = &args.branch {
            fork.leave_branch(branch, &done).await?;
        }
        let name = |change: usize| fork.assignment.changes[change].name.clone();
        let rows: Vec<Value> = stack
            .changes
            .iter()
            .zip(&done.verdicts)
            .map(|(step, (verdict, _))| json!({ "change": name(step.change), "verdict": verdict }))
            .collect();
        let tree = fork.past.sealed.commit_parts(&done.tip).await.or_machine()?.tree;
        ui.event(
            "delta-rebase",
            &json!({
                "target": fork.seen.target, "target_name": fork.seen.target_name,
                "pins": fork.seen.pins, "changes": rows, "tree": tree,
                "branch": args.branch, "commit": args.branch.as_ref().map(|_| &done.tip),
            }),
        );
        let count = |word: &str| done.verdicts.iter().filter(|it| it.0.as_str() == word).count();
        let counts = ["applies", "empty", "resolved", "left out", "conflicts"]
            .map(|word| format!("{} {word}", count(word)));
        ui.result(
            "target",
            &format!("{} ({})", fork.seen.target_name, fork.seen.pins.upstream.short()),
        );
        ui.result("changes", &counts.join(", "));
        if let Some(branch) = &args.branch {
            let left =
                stack.changes.len() - done.verdicts.iter().filter(|it| it.1.is_some()).count();
            let left = match left {
                0 => String::new(),
                left => format!(
                    "; it lacks {} that upstream has or that could not be applied",
                    counted(left, "change")
                ),
            };
            ui.result("branch", &format!("{branch} at {}{left}", done.tip.short()));
        }
        if !ui.is_json() && !rows.is_empty() {
            ui.line("");
            let row = |(step, (verdict, _)): (
                &merge::delta::stack::StackedChange,
                &(RestackVerdict, _),
            )| {
                vec![verdict.as_str().to_owned(), name(step.change), detail(verdict)]
            };
            ui.table(
                &["VERDICT", "CHANGE", "FILES"],
                stack.changes.iter().zip(&done.verdicts).map(row),
            );
        }
        Ok(match count("conflicts") {
            0 => ForkliftExit::Success,
            _ => ForkliftExit::NotIntegrated,
        })
    })
}

async fn check_new_branch(branch: &BranchName, directory: Option<&Path>) -> Result<(), Failure> {
    let repo = find_repo(&fork_directory(directory)?).await?;
    let name = RefName::of_branch(branch);
    match repo.resolve_commit(name.as_str()).await.or_machine()? {
        None => Ok(()),
        Some(tip) => Err(Failure::usage(format!("branch {branch} exists, at {}", tip.short()))
            .with_remedy("name one that does not exist yet: forklift delta rebase --branch NAME")),
    }
}

/// Files of a verdict, with what the resolver did.
fn detail(verdict: &RestackVerdict) -> String {
    let parts: Vec<String> = match verdict {
        RestackVerdict::Applies | RestackVerdict::Empty => return "-".to_owned(),
        RestackVerdict::Resolved { files } | RestackVerdict::LeftOut { files } => files
            .iter()
            .map(|file| format!("{}: {} ({})", file.path, file.action, file.classes.join(", ")))
            .collect(),
        RestackVerdict::Conflicts { paths } => paths.iter().map(ToString::to_string).collect(),
    };
    parts.join("; ")
}
