//! `wf pr`: the pull request of a workstream.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use forge::{Comment, CommentKind, Forge, ForgeError, ReviewVerdict, Thread};
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::{FeedbackSeen, ProjectDirs, StateFile, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::fix::{plan_fixes, render_fixes};
use crate::flow::product::open_product;
use crate::flow::pull::{MergeRoute, choose_merge_route, forge_owner};
use crate::rules::fix::{FixDraft, fix_of_comment};

/// The pull request of a workstream.
#[derive(Debug, Subcommand)]
pub(crate) enum PrCommand {
    Feedback(FeedbackArgs),
}

/// Bring comments on the pull request into the plan, as micro-commits for the implementer
///
/// Comments by members of the organisation, by the owner of the repository and by you count; others are named and left out
/// unless `--from` allows them. Each comment is taken once.
#[derive(Debug, Args)]
pub(crate) struct FeedbackArgs {
    #[command(flatten)]
    which: Which,
    /// Another person whose comments count (repeatable)
    #[arg(long, value_name = "LOGIN")]
    from: Vec<String>,
    /// Show what would be taken, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub(crate) async fn cmd_pr(app: &App, command: &PrCommand) -> Outcome {
    match command {
        PrCommand::Feedback(args) => feedback(app, args).await,
    }
}

/// Comments of a pull request that were not taken before.
struct NewComments {
    taken: Vec<Comment>,
    /// Authors whose comments do not count.
    strangers: BTreeSet<String>,
    /// The reason why the forge does not say who is a member.
    hidden: Option<String>,
}

async fn feedback(app: &App, args: &FeedbackArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    let id = workstream.meta.id.clone();
    let Some(number) = workstream.meta.merge_pull else {
        return Err(Failure::usage(format!("{id} has no pull request; open one: wf merge {id}")));
    };
    let new = read_new(&dirs, &workstream, number, &args.from).await?;
    if let Some(reason) = &new.hidden {
        app.ui.warn(reason);
    }
    for author in &new.strangers {
        app.ui.warn(&format!(
            "a comment by {author} was left out; if it counts: wf pr feedback {id} --from {author}"
        ));
    }
    let fixes: Vec<FixDraft> = new.taken.iter().map(draft).collect();
    if fixes.is_empty() || args.dry_run {
        for comment in &new.taken {
            app.ui.line(&format!(
                "{}: {}",
                comment.author,
                comment.body.lines().next().unwrap_or_default()
            ));
        }
        if fixes.is_empty() {
            app.ui.line(&format!("No new comments on pull request {number} of {id}"));
        }
        app.ui.document(
            &json!({"workstream": id, "pull": number, "comments": new.taken.len(), "planned": []}),
        );
        return Ok(WfExit::Success);
    }
    let _run = dirs.try_lock_workstream(&id, "pr feedback")?;
    let _lock = dirs.lock_global(&format!("plan {id}")).await?;
    let mut workstream = Workstream::load_dir(&workstream.dir)?;
    let planned = plan_fixes(&mut workstream, &fixes, "the pull request")?;
    // Remembered last: a comment that is taken twice has the same title, and is planned once.
    let mut seen = FeedbackSeen::load(&dirs, &id)?.unwrap_or_default();
    seen.comments.extend(new.taken.iter().map(key));
    seen.save(&dirs, &id)?;
    dirs.write_active()?;
    app.ui.line(&format!("{id}: {}", render_fixes(&workstream, &planned)));
    app.ui.document(&json!({"workstream": id, "pull": number, "comments": new.taken.len(), "planned": planned, "status": workstream.meta.status}));
    Ok(WfExit::Success)
}

fn draft(comment: &Comment) -> FixDraft {
    let place = match &comment.kind {
        CommentKind::Remark { path, line: Some(line), .. } => format!("{path}:{line}"),
        CommentKind::Remark { path, line: None, .. } => path.clone(),
        CommentKind::Plain | CommentKind::Review => String::new(),
    };
    fix_of_comment(&comment.author, &place, &comment.body)
}

/// Name of a comment. Reviews and remarks may be numbered separately.
fn key(comment: &Comment) -> String {
    let kind = match &comment.kind {
        CommentKind::Plain => "plain",
        CommentKind::Review => "review",
        CommentKind::Remark { .. } => "remark",
    };
    format!("{kind}-{}", comment.id)
}

async fn read_new(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    number: u64,
    from: &[String],
) -> WfResult<NewComments> {
    let (profile, _) = dirs.load_profile()?;
    let product = open_product(dirs).await?;
    let forge = match choose_merge_route(dirs, &product, &profile).await? {
        MergeRoute::Forge(forge) => forge,
        MergeRoute::Local => {
            return Err(Failure::usage("MERGE_MODE is local: there is no forge to read from"));
        }
    };
    let owner = forge_owner(&product, &profile).await?;
    let me = forge.whoami().await.or_exit(WfExit::General)?.login;
    let seen = FeedbackSeen::load(dirs, &workstream.meta.id)?.unwrap_or_default();
    let comments = forge.read_comments(Thread::Pull(number)).await.or_exit(WfExit::General)?;
    let mut new = NewComments { taken: Vec::new(), strangers: BTreeSet::new(), hidden: None };
    for comment in comments {
        let is_empty =
            comment.body.trim().is_empty() || comment.verdict == Some(ReviewVerdict::Approved);
        if is_empty || seen.comments.contains(&key(&comment)) {
            continue;
        }
        let author = &comment.author;
        let is_named = from.contains(author) || me.as_ref() == Some(author) || *author == owner;
        if is_named || is_member(&forge, &owner, author, &mut new.hidden).await? {
            new.taken.push(comment);
        } else {
            new.strangers.insert(author.clone());
        }
    }
    Ok(new)
}

/// Reports whether a user is a member. Where the forge hides its members, no user is one, and the reason is kept.
async fn is_member(
    forge: &Forge,
    org: &str,
    user: &str,
    hidden: &mut Option<String>,
) -> WfResult<bool> {
    match forge.is_org_member(org, user).await {
        Err(error @ ForgeError::MembersHidden { .. }) => {
            *hidden = Some(error.to_string());
            Ok(false)
        }
        answer => answer.or_exit(WfExit::General),
    }
}
