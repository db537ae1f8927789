//! `bot-bottle destroy`: remove a bottle's workspace and harness state. Its runs and their records stay.

use clap::Args;
use shell::Ui;

use super::with_home;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{Loss, destroy};

/// Remove a bottle's workspace and the agent's files; the records of its runs stay
#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    /// The bottle
    slug: String,
    /// Remove them even if work is lost
    #[arg(long)]
    force: bool,
}

pub(crate) fn cmd_destroy(ui: &Ui, args: &DestroyArgs) -> Outcome {
    let slug = args.slug.as_str();
    let loss = if args.force { Loss::Accepted } else { Loss::Refused };
    with_home(ui, async |context| destroy(context, slug, None, loss).await)?;
    ui.result("destroyed", slug);
    Ok(SUCCESS)
}
