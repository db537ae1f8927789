//! `forklift resume` and `forklift retry`: an earlier run, gone on from or done once more.

use model::exit::ForkliftExit;
use run_store::run_dir;

use super::Places;
use super::run::{run_from, run_in};
use crate::cli::{ResumeArgs, RunArgs};
use crate::exit::{OrExit, Outcome};
use crate::flow::metadata::Metadata;
use crate::flow::resume::{Earlier, load_args};
use crate::ui::Ui;

/// Goes on from the workspace of an earlier run.
pub(crate) fn resume(ui: &Ui, resume: &ResumeArgs, answer: Option<&str>) -> Outcome {
    let places = Places::from_env()?;
    let dir = run_dir::find(&places.runs, &resume.run).or_exit(ForkliftExit::Usage)?;
    let earlier = Earlier::load(&dir, answer.map(str::to_owned))?;
    run_from(ui, &asked(&dir, resume)?, &places, Some(earlier))
}

/// Asks once more for what an earlier run was asked, from the fork as it is now.
pub(crate) fn retry(ui: &Ui, resume: &ResumeArgs) -> Outcome {
    let places = Places::from_env()?;
    let dir = run_dir::find(&places.runs, &resume.run).or_exit(ForkliftExit::Usage)?;
    run_in(ui, &asked(&dir, resume)?, &places)
}

fn asked(dir: &run_dir::RunDir, resume: &ResumeArgs) -> Result<RunArgs, crate::exit::Failure> {
    let meta: Metadata = run_store::metadata::load_metadata(dir).or_exit(ForkliftExit::Machine)?;
    let mut args = load_args(dir)?;
    args.directory = Some(meta.fork.path);
    if let Some(timeout) = resume.timeout {
        args.timeout = timeout;
    }
    if let Some(instruction) = &resume.instruction {
        args.instruction = Some(instruction.clone());
    }
    if let Some(script) = &resume.script {
        args.script = Some(script.clone());
    }
    Ok(args)
}
