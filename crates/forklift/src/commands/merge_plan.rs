//! `forklift merge-plan`: one merge with the resolver, as JSON for other programs.
//!
//! New objects go where `GIT_OBJECT_DIRECTORY` says, as with git itself. The plan is JSON with or without `--json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use host::git::{LineageRange, ObjectFormat, PastMerge, SealedRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::{Learned, learn, load_learned, save_learned, teach};
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::{Value, json};
use shell::Ui;

use super::block_on;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::resolver::learn_kept;

/// Merge two commits as far as possible without an agent, and print the plan as JSON
#[derive(Debug, Clone, Args)]
pub(crate) struct MergePlanArgs {
    /// The repository
    #[arg(long, value_name = "DIR")]
    git_dir: PathBuf,
    /// The fork's commit: its id, a branch, a tag or HEAD
    #[arg(required_unless_present = "learn")]
    ours: Option<String>,
    /// Upstream's commit, in the same way
    #[arg(required_unless_present = "learn")]
    theirs: Option<String>,
    /// How sure an answer must be, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = TrustThreshold::parse)]
    trust: TrustThreshold,
    /// A folder that keeps what was learned from this fork's merges, from call to call
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Plan nothing: learn how people made this merge, on whatever branch, and keep that in --state
    #[arg(long, value_name = "MERGE", requires = "state", conflicts_with = "ours")]
    learn: Option<String>,
    /// Write the plan here instead of to standard output
    #[arg(value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Learns from the merges that are reachable from the fork's commit, merges, and prints the plan.
pub(crate) fn cmd_merge_plan(ui: &Ui, args: &MergePlanArgs) -> Outcome {
    if let Some((merge, folder)) = args.learn.as_ref().zip(args.state.as_ref()) {
        return block_on(learn_one(args, merge, &folder.join(LEARNED)));
    }
    let plan = block_on(async {
        let repo = open(&args.git_dir).await?;
        let [ours, theirs] =
            [&args.ours, &args.theirs].map(|name| name.as_deref().unwrap_or_default());
        let (ours, theirs) =
            (find_commit(&repo, args, ours).await?, find_commit(&repo, args, theirs).await?);
        let range = LineageRange { tip: &ours, siblings: &[], upstream: &theirs };
        let learned = match &args.state {
            Some(folder) => {
                learn_kept(&ui.without_events(), &repo, range, &folder.join(LEARNED)).await?
            }
            None => {
                let mut learned = Learned::default();
                learn(&repo, range, &mut learned, |_, _| {}).await.or_machine()?;
                learned
            }
        };
        let knowledge = &learned.knowledge;
        let options = ResolveOptions { knowledge, ..ResolveOptions::at(args.trust) };
        let heads = MergeHeads { ours, theirs };
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

/// Name of the file in the folder of `--state`.
const LEARNED: &str = "learned.json";

/// Learns from one merge of two commits.
async fn learn_one(args: &MergePlanArgs, name: &str, file: &Path) -> Outcome {
    let repo = open(&args.git_dir).await?;
    let sha = find_commit(&repo, args, name).await?;
    let facts = repo.new_commits(&sha, &[], 1).await.or_machine()?;
    let parents = facts.first().map_or(&[][..], |facts| &facts.parents);
    let [ours, theirs] = parents else {
        let text = format!("{} is not a merge of two commits; name one with --learn", sha.short());
        return Err(Failure::usage(text));
    };
    let merge = PastMerge { sha, ours: ours.clone(), theirs: theirs.clone() };
    let learned = teach(&repo, &merge, load_learned(file)).await.or_machine()?;
    save_learned(file, &learned).or_machine()?;
    Ok(ForkliftExit::Success)
}

/// Opens the repository; git runs elsewhere, so the path has to be absolute.
async fn open(git_dir: &Path) -> Result<SealedRepo, Failure> {
    let shown = git_dir.display();
    let found = git_dir.canonicalize().map_err(|error| {
        Failure::usage(format!(
            "cannot open the repository {shown}: {error}; name it with --git-dir DIR"
        ))
    })?;
    let repo = SealedRepo::open(&found, object_format(&found)).believing_commit_graph();
    if repo.resolve_commit("HEAD").await.is_err() {
        let text =
            format!("{shown} is not a git repository; name its .git folder with --git-dir DIR");
        return Err(Failure::usage(text));
    }
    Ok(match host::env::var_os("GIT_OBJECT_DIRECTORY") {
        Some(objects) => {
            let alternates = host::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES");
            repo.writing_to(&objects, &alternates.unwrap_or_default())
        }
        None => repo,
    })
}

fn object_format(git_dir: &Path) -> ObjectFormat {
    let config = std::fs::read_to_string(git_dir.join("config")).unwrap_or_default();
    let is_sha256 = config.lines().any(|line| {
        let line = line.to_ascii_lowercase().replace([' ', '\t'], "");
        line == "objectformat=sha256"
    });
    if is_sha256 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 }
}

async fn find_commit(repo: &SealedRepo, args: &MergePlanArgs, name: &str) -> Result<Sha, Failure> {
    let found = repo.resolve_commit(name).await.or_machine()?;
    found.ok_or_else(|| {
        let (name, dir) = (name.escape_debug(), args.git_dir.display());
        Failure::usage(format!("{dir} has no commit '{name}'; see: git -C {dir} log --all"))
    })
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
