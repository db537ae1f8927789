//! Results that wait for a person: the same merge is not made, and paid for, again before something changes.

use std::path::Path;

use engine::run::load_plan;
use shell::agent_settings::load_script;

use super::earlier::{StoredRun, is_about, stored_runs};
use super::observe::Observation;
use super::resume::load_args;
use super::run::{final_status, final_verdict};
use crate::commands::run_args::RunArgs;
use crate::exit::Failure;
use crate::rules::earlier::waits_for_person;
use crate::rules::next_step::next_command;
use crate::rules::strategy::Strategy;

/// The newest run for the same commits, if its result waits for a person and a run since then was asked for the same.
pub(crate) fn find_waiting(
    runs: &Path,
    seen: &Observation,
    args: &RunArgs,
    strategy: Strategy,
) -> Result<Option<StoredRun>, Failure> {
    let rules = seen.fork_file.as_ref().map(|file| file.rules.clone()).unwrap_or_default();
    let mut about = stored_runs(runs)?.filter(|run| is_about(run, seen, strategy)).peekable();
    if !about.peek().is_some_and(is_waiting) {
        return Ok(None);
    }
    let newest = about.next();
    let is_asked = |run: &StoredRun| {
        is_waiting(run) && run.meta.settings.rules == rules && is_same_request(args, run)
    };
    let is_known = newest.as_ref().is_some_and(is_asked) || about.any(|run| is_asked(&run));
    Ok(newest.filter(|_| is_known))
}

/// Returns whether an agent was at work and a person has to decide what becomes of its result.
fn is_waiting(run: &StoredRun) -> bool {
    let StoredRun { dir, meta } = run;
    let waits = meta.verdict.as_ref().is_some_and(waits_for_person);
    dir.is_closed() && meta.agent_box.is_some() && meta.train.is_none() && waits
}

/// Returns whether the run was asked for the same, with the same script where the agent is scripted.
fn is_same_request(args: &RunArgs, run: &StoredRun) -> bool {
    if !load_args(&run.dir).is_ok_and(|earlier| args.asks_the_same(&earlier)) {
        return false;
    }
    let Some(script) = &args.script else { return true };
    let Ok(script) = load_script(script) else { return false };
    let played = agent::scripted::command(&script).files;
    load_plan(&run.dir)
        .is_ok_and(|plan| played.iter().all(|(name, text)| plan.files.get(name) == Some(text)))
}

/// Failure in the place of another run: the verdict of the one that waits, its status and its next command.
pub(crate) fn explain_waiting(run: &StoredRun) -> Failure {
    let verdict = final_verdict(&run.meta);
    // The details are in the record of that run.
    let (id, words) = (run.dir.id(), verdict.message().replace(" (see below)", ""));
    let text = format!("nothing was started: run {id} of these commits waits for you: {words}");
    let next = next_command(&run.meta, &verdict).map(|next| format!("{next}; or "));
    let remedy = format!("{}make another with --again", next.unwrap_or_default());
    Failure::new(final_status(&run.meta), text).with_remedy(remedy)
}
