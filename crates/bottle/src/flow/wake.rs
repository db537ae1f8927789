//! Wakes a bottle for something that the forge reports: the prompt for its agent, or the reason why nothing has to be done.

use orchestrator_db::WakeCause;

use super::access::ForgeAccess;
use super::bottle::{Bottle, Record};
use super::context::RunContext;
use super::merge_base::{BaseStanding, observe_base};
use crate::exit::{Failure, OrGeneral};
use crate::rules::wake_text::{render_checks_prompt, render_conflict_prompt};

pub(crate) enum WakePrompt {
    Run(String),
    Unneeded(String),
}

/// Observes once more what woke the bottle: a check may have been repeated, and a forge may still compute a conflict.
pub(crate) async fn wake_prompt(
    context: RunContext<'_>,
    bottle: &Bottle,
    record: &Record,
    access: &ForgeAccess,
    cause: WakeCause,
) -> Result<WakePrompt, Failure> {
    match cause {
        WakeCause::Checks => checks_prompt(record, access).await,
        WakeCause::Conflict | WakeCause::Behind => {
            let base = format!("origin/{}", record.base_branch);
            match (observe_base(context, bottle, record, access).await?, cause) {
                (BaseStanding::Conflicts, WakeCause::Conflict)
                | (BaseStanding::Clean, WakeCause::Behind) => {
                    Ok(WakePrompt::Run(render_conflict_prompt(&base)))
                }
                (standing, _) => {
                    let head = record.published.as_ref().map(ToString::to_string);
                    let mut record = record.clone();
                    record.merges_cleanly = head.map(|head| (head, host::clock::now()));
                    bottle.save(&record)?;
                    let words = match standing {
                        BaseStanding::UpToDate => "it has everything of its base",
                        BaseStanding::Clean => "it merges cleanly with its base",
                        BaseStanding::Conflicts => "its base moved on and conflicts",
                    };
                    Ok(WakePrompt::Unneeded(words.to_owned()))
                }
            }
        }
    }
}

async fn checks_prompt(record: &Record, access: &ForgeAccess) -> Result<WakePrompt, Failure> {
    let Some(number) = record.pull else {
        return Ok(WakePrompt::Unneeded("it has no pull request".to_owned()));
    };
    let forge = access.open().await?;
    let pull = forge.read_pr(number).await.or_general()?;
    let reports = forge.read_checks(&pull).await.or_general()?;
    let failed = forge.read_check_logs(&pull, &reports).await.or_general()?;
    match failed.is_empty() {
        true => Ok(WakePrompt::Unneeded("its checks do not fail any more".to_owned())),
        false => Ok(WakePrompt::Run(render_checks_prompt(number, &failed))),
    }
}
