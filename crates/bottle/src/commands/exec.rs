//! `bot-bottle exec`: a command in a box of its own, on a bottle's workspace. It has no egress and no forge.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommand;
use engine::launch::{Launcher, has_running_box};
use engine::sweep::sweep_orphans;
use host::signal::cancel_on_signals;
use model::exit::BottleExit;
use model::id::{BoxName, ProjectName};
use run_store::run_dir::{BOXES, RunDir};
use sandbox::spec::{BoxUser, MountAccess};
use shell::Ui;

use super::block_on;
use super::bottle_name::find_name;
use super::complete::bottle_names;
use crate::exit::{Failure, OrExit, OrGeneral, Outcome};
use crate::flow::bottle::{Bottle, BottleState, WorkspaceState};
use crate::flow::home::Home;
use crate::flow::resolve::{box_limits, root_of};
use crate::rules::judge::headless_status;

const LIMIT_SECS: u64 = 3600;

/// Run a command on a bottle's workspace, in a sealed box of its own; returns its status
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Runs the command. While a box of the bottle runs, the workspace is read-only: two writers would conflict. A box outlives
/// the process that started it, so the bottle's lock alone does not tell.
pub(crate) fn cmd_exec(ui: &Ui, args: ExecArgs) -> Outcome {
    let home = Home::from_env()?;
    let (slug, argv) = (&*find_name(ui, &home, &args.slug)?, args.command);
    let (bottle, record) = Bottle::open(&home, slug)?;
    if record.state == BottleState::Destroyed || record.workspace == WorkspaceState::Absent {
        return Err(Failure::not_found(format!("the bottle '{slug}' has no workspace")));
    }
    let manifest = home.load_agent(&record.agent)?;
    let contents = home.load_bottles(&record.bottles)?;
    let project = ProjectName::from_folder(slug);
    block_on(async {
        let lock = bottle.take(std::time::Duration::ZERO).await.ok();
        sweep_orphans(record.backend, ui).await.or_general()?;
        let is_running = match bottle.last_run(&record)? {
            Some(dir) => has_running_box(&dir.path().join(BOXES)).or_general()?,
            None => false,
        };
        let access = match lock.is_some() && !is_running {
            true => MountAccess::ReadWrite,
            false => {
                ui.note("the bottle is in use, so its workspace is read-only here");
                MountAccess::ReadOnly
            }
        };
        let folder = bottle.path().join("execs");
        let dir = RunDir::create(&folder, &project, host::clock::now()).or_general()?;
        let name = BoxName::parse("exec").or_exit(BottleExit::Internal)?;
        let layout = BoxLayout {
            run: dir.id().clone(),
            box_dir: dir.box_dir(&name),
            name,
            root: root_of(record.backend, &contents),
            workspace: bottle.workspace(),
            access,
            harness_state: bottle.harness_state(),
            user: BoxUser::of_caller(),
            limits: box_limits(&manifest.limits)?,
            deadline_secs: LIMIT_SECS,
        };
        let launcher = Launcher::of_this_program(record.backend, Vec::new()).or_general()?;
        let cancel = cancel_on_signals().or_general()?;
        let end = BoxCommand::new(layout, argv).run(&launcher, &cancel).await.or_general()?;
        for path in [&end.stdout, &end.stderr] {
            ui.page(&String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()));
        }
        drop(lock);
        Ok(headless_status(&end.record.ended, None))
    })
}
