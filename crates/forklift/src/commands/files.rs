//! `forklift files`: lists the files that the fork changed.

use std::path::Path;

use clap::Args;
use merge::own::{OwnFile, observe_own_files};
use model::exit::ForkliftExit;
use serde_json::{Value, json};
use shell::Ui;

use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::LookArgs;
use crate::exit::{OrExit, Outcome};
use crate::flow::preview::Preview;

/// Placeholder for the object of a deleted file.
const NO_OBJECT: &str = "-";

/// List the files in which the fork differs from where it parted from upstream
///
/// Each with what the fork did to it and whether upstream touched it as well, which may become a conflict. Files that
/// only upstream changed or deleted are not listed.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Show each file's object id; a file that the fork deleted has none
    #[arg(long)]
    hash: bool,
}

pub(crate) fn cmd_files(ui: &Ui, args: &FilesArgs, directory: Option<&Path>) -> Outcome {
    let (look, hash) = (&args.look, args.hash);
    let places = ForkliftDirs::from_env()?;
    block_on_stoppable(async {
        let preview = Preview::make(ui, look, directory, &places).await?;
        let pins = &preview.seen.pins;
        let files = observe_own_files(&preview.repo, &pins.base, &pins.upstream)
            .await
            .or_machine()?
            .ok_or_else(|| preview.unrelated())?;
        let rows: Vec<Value> = files.iter().map(|file| as_json(file, hash)).collect();
        ui.event(
            "files",
            &json!({
                "fork": preview.seen.fork.path, "target": preview.seen.target,
                "target_name": preview.seen.target_name, "pins": pins, "files": rows,
            }),
        );
        if !ui.is_json() {
            show(ui, &files, hash);
        }
        Ok(ForkliftExit::Success)
    })
}

fn as_json(file: &OwnFile, hash: bool) -> Value {
    let mut row = json!({
        "path": file.path, "was": file.was, "fork": file.fork, "upstream": file.upstream,
        "may_conflict": file.upstream.may_conflict(),
    });
    if hash {
        row["object"] = json!(file.object);
    }
    row
}

fn show(ui: &Ui, files: &[OwnFile], hash: bool) {
    if files.is_empty() {
        return ui.result("files", "none: the fork is what it was made from");
    }
    let rows = files.iter().map(|file| {
        let path = match &file.was {
            Some(was) => format!("{} (was {was})", file.path),
            None => file.path.to_string(),
        };
        let mut row = vec![file.fork.as_str().to_owned()];
        if hash {
            let object = file.object.as_ref().map(|object| object.as_str().to_owned());
            row.push(object.unwrap_or_else(|| NO_OBJECT.to_owned()));
        }
        row.push(path);
        row.push(file.upstream.as_str().unwrap_or_default().to_owned());
        row
    });
    ui.table(&[], rows);
}
