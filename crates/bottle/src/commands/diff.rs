//! `bot-bottle diff`, `apply` and `checkout`: the work of a bottle, in the user's hands.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use model::exit::BottleExit;
use model::id::BranchName;
use serde_json::json;
use shell::Ui;

use super::bottle_name::{BottleNameArgs, find_name};
use super::complete::bottle_names;
use super::with_home;
use crate::exit::{OrExit, Outcome, SUCCESS};
use crate::flow::take_out::{BottleWork, Unsound};

/// Show what a bottle has changed, as a patch
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    name: BottleNameArgs,
}

/// Put the changes of a bottle into the files of your checkout, uncommitted
///
/// All of them or none: where the checkout has changed in the same place, nothing is written, and `bot-bottle checkout` gives
/// the same work as a branch. Work that was not found good is refused.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// Take the work although it was not found good
    #[arg(long)]
    force: bool,
}

/// Make a branch of a bottle's commits in your repository, and check it out
///
/// Called again after a resumed run it moves the branch forward, unless the branch has commits of its own. Work that was
/// not found good is refused.
#[derive(Debug, Args)]
pub(crate) struct CheckoutArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// The branch [default: the bottle's own, bot-bottle/SLUG]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Take the work although it was not found good
    #[arg(long)]
    force: bool,
}

pub(crate) fn cmd_diff(ui: &Ui, args: &DiffArgs) -> Outcome {
    with_home(ui, async |context| {
        let slug = args.name.find(ui, context.home)?;
        let work = BottleWork::find(context.home, &slug).await?;
        let patch = work.patch().await?;
        let patch = String::from_utf8_lossy(&patch);
        if ui.is_json() {
            let fields = json!({"slug": slug, "base": work.base, "tip": work.tip, "diff": patch});
            ui.event("diff", &fields);
        } else {
            ui.page(&patch);
        }
        Ok(SUCCESS)
    })
}

pub(crate) fn cmd_apply(ui: &Ui, args: &ApplyArgs) -> Outcome {
    with_home(ui, async |context| {
        let slug = find_name(ui, context.home, &args.slug)?;
        let work = BottleWork::find(context.home, &slug).await?;
        work.apply(unsound(args.force)).await?;
        ui.result("applied", &format!("{slug} to {}", work.base.short()));
        ui.event("applied", &json!({"slug": slug, "tip": work.tip}));
        Ok(SUCCESS)
    })
}

pub(crate) fn cmd_checkout(ui: &Ui, args: &CheckoutArgs) -> Outcome {
    let branch = args.branch.as_deref().map(BranchName::parse);
    let branch = branch.transpose().or_exit(BottleExit::Usage)?;
    with_home(ui, async |context| {
        let slug = find_name(ui, context.home, &args.slug)?;
        let work = BottleWork::find(context.home, &slug).await?;
        let branch = work.check_out(branch, unsound(args.force)).await?;
        ui.result("branch", &format!("{branch} at {}", work.tip.short()));
        ui.event("checked-out", &json!({"slug": slug, "branch": branch, "tip": work.tip}));
        Ok(SUCCESS)
    })
}

fn unsound(force: bool) -> Unsound {
    if force { Unsound::Accepted } else { Unsound::Refused }
}
