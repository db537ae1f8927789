//! One file per subcommand.

mod bottle_name;
pub(crate) mod complete;
pub(crate) mod demo;
pub(crate) mod destroy;
pub(crate) mod diff;
pub(crate) mod dispatch;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod fleet;
pub(crate) mod freeze;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod manifest;
pub(crate) mod orchestrate;
pub(crate) mod provenance;
pub(crate) mod prune;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod worker;

use std::io::Read;

use host::signal::cancel_on_signals;
use shell::Ui;

use crate::exit::{Failure, OrGeneral};
use crate::flow::context::{RunContext, TransientFailure};
use crate::flow::home::Home;
use crate::flow::issue_row::IssueRows;

/// Runs async work on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    shell::runtime::block_on(work)
}

/// Does the work of a command in the user's home: signals cancel it, and every failure ends it.
pub(crate) fn with_home<T>(
    ui: &Ui,
    work: impl AsyncFnOnce(RunContext<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let home = Home::from_env()?;
    block_on(async {
        let (cancel, transient) = (cancel_on_signals().or_general()?, TransientFailure::Close);
        let public_url = None;
        let (home, rows) = (&home, IssueRows::by_hand(&home));
        work(RunContext { ui, home, rows, cancel: &cancel, transient, public_url }).await
    })
}

/// Reads a prompt: a text, `@file`, or `-` for standard input.
pub(crate) fn read_prompt(word: &str) -> Result<String, Failure> {
    let text = match (word, word.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).or_general()?;
            text
        }
        (_, Some(path)) => std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("could not read the prompt {path}: {error}"))
        })?,
        (text, None) => text.to_owned(),
    };
    match text.trim().is_empty() {
        true => Err(Failure::usage("the prompt is empty; say what is to be done")),
        false => Ok(text),
    }
}
