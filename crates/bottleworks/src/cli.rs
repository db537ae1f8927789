//! The command line under the program's own name: what packages and installers need. The doc comments are the help texts.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand};
use model::exit::{BottleExit, ForkliftExit, WfExit};
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, write_share};
use shell::{Failure, OrExit, Ui};

use crate::{COMMANDS, PROGRAM};

const THREE: &str = "Commands in this program, under their own names or as its first word:
  forklift    bring a fork up to date with its upstream
  wf          take planned work through micro-commits, with people at the gates
  bot-bottle  turn an issue into a pull request

`bottleworks wf list` is `wf list`. Each has a demo: forklift demo, wf demo, bot-bottle demo";

/// All of Bottleworks in one program: forklift, wf and bot-bottle
///
/// It does the work of the command whose name it is called by. `bottleworks link` makes the three names.
#[derive(Debug, Parser)]
#[command(name = "bottleworks", version, about, after_help = THREE)]
pub(crate) struct BottleworksCli {
    #[command(subcommand)]
    command: BottleworksCommand,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum BottleworksCommand {
    Link(LinkArgs),
    Share(ShareArgs),
    Completions(CompletionsArgs),
}

/// Make links named forklift, wf and bot-bottle to this program
#[derive(Debug, Args)]
struct LinkArgs {
    /// The folder of the links [default: that of this program]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Write manual pages and completions of the three commands below a folder, as in /usr/share
#[derive(Debug, Args)]
struct ShareArgs {
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn dispatch(
    ui: &Ui,
    cli: &BottleworksCli,
) -> Result<ForkliftExit, Failure<ForkliftExit>> {
    match &cli.command {
        BottleworksCommand::Link(args) => link(ui, args)?,
        BottleworksCommand::Share(args) => {
            let (own, share) = (BottleworksCli::command(), &args.folder);
            write_share::<ForkliftExit, _>(&own, PROGRAM.manual, share)?;
            write_share::<ForkliftExit, _>(&forklift::command(), forklift::manual(), share)?;
            write_share::<WfExit, _>(&wf::command(), wf::manual(), share)?;
            write_share::<BottleExit, _>(&bottle::command(), bottle::manual(), share)?;
        }
        BottleworksCommand::Completions(args) => cmd_completions(ui, &PROGRAM, args)?,
    }
    Ok(ForkliftExit::Success)
}

/// Links beside the program are relative, so that the folder can be moved as a whole.
fn link(ui: &Ui, args: &LinkArgs) -> Result<(), Failure<ForkliftExit>> {
    let program = host::env::current_exe().or_exit(ForkliftExit::Machine)?;
    let own = program.parent().unwrap_or(Path::new("/"));
    let folder = args.folder.as_deref().unwrap_or(own);
    let is_beside = folder.canonicalize().is_ok_and(|folder| folder == own);
    let target = if is_beside { program.file_name().map(Path::new) } else { None };
    for (name, _) in COMMANDS {
        let link = folder.join(name);
        renew(target.unwrap_or(&program), &link).map_err(|error| {
            let text = format!("could not make the link {}: {error}", link.display());
            Failure::new(ForkliftExit::Machine, text)
        })?;
        ui.item(&format!("{} -> {}", link.display(), program.display()));
    }
    Ok(())
}

/// A link is replaced; a file of that name is somebody's program, and stays.
fn renew(target: &Path, link: &Path) -> io::Result<()> {
    if link.is_symlink() {
        std::fs::remove_file(link)?;
    }
    symlink(target, link)
}
