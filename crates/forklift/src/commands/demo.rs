//! `forklift demo`: the whole job on a fork made for the purpose, with the scripted agent in place of a model.

use std::path::Path;

use clap::Args;
use host::git::check_out_fork;
use model::exit::ForkliftExit;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::config::Config;
use shell::demo::{DemoFolder, DemoOptions, make_repository};

use super::{ForkliftDirs, block_on};
use crate::PROGRAM;
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::SyncNotes;

/// Script of the agent: merge, resolve the conflict, commit.
const SCRIPT: &str = include_str!("demo.toml");

/// History before the fork, in git's import language.
const COMMON: &str = "\
commit refs/heads/main
mark :1
committer Upstream <upstream@example.invalid> 1700000000 +0000
data <<END
Start the greeter
END
M 100644 inline greeter.sh
data <<END
#!/bin/sh
# Greets whoever runs it.
echo \"Hello, world\"
END
M 100644 inline README.md
data <<END
# greeter
END
";

/// Change of the fork: its own greeting.
const FORKED: &str = "\
commit refs/heads/main
committer Fork <fork@example.invalid> 1700000100 +0000
data <<END
Greet the harbour
END
from :1
M 100644 inline greeter.sh
data <<END
#!/bin/sh
# Greets whoever runs it.
echo \"Ahoy, harbour\"
END
";

/// Change of upstream: the same line, and a licence.
const MOVED_ON: &str = "\
commit refs/heads/main
committer Upstream <upstream@example.invalid> 1700000200 +0000
data <<END
Greet by name
END
from :1
M 100644 inline greeter.sh
data <<END
#!/bin/sh
# Greets whoever runs it.
echo \"Hello, ${1:-world}\"
END
M 100644 inline LICENSE
data <<END
Do as you like.
END
";

/// Make a fork with a conflicting upstream in a temporary folder and bring it up to date, without a model
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The image for docker
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,
    #[command(flatten)]
    options: DemoOptions,
}

/// Makes the fork and runs forklift in it, below one temporary folder.
pub(crate) fn cmd_demo(ui: &Ui, demo: DemoArgs) -> Outcome {
    let demo_folder = DemoFolder::create(&PROGRAM, &demo.options)?;
    let folder = demo_folder.path().to_path_buf();
    ui.phase("demo", &format!("making a fork and its upstream in {}", folder.display()));
    block_on(make_fork(&folder))?;
    let script = folder.join("agent.toml");
    std::fs::write(&script, SCRIPT).or_machine()?;
    let args = RunArgs {
        directory: Some(folder.join("fork")),
        provider: Some("scripted".to_owned()),
        script: Some(script),
        backend: demo.options.backend(),
        image: demo.image,
        ..RunArgs::default()
    };
    let places = ForkliftDirs {
        runs: folder.join("state/forklift/runs"),
        cache: folder.join("cache/bottleworks"),
        config: folder.join("config/forklift"),
        agents: folder.join("data/bottleworks/agents"),
        shared: Config::default(),
    };
    let status = super::run::cmd_run(ui, &args, &places, None, &SyncNotes::default())?;
    if status != ForkliftExit::Success {
        ui.result("kept", &folder.display().to_string());
        return Ok(status);
    }
    let origin = folder.join("origin.git");
    let look = format!("git --git-dir={} log --graph --oneline --all", origin.display());
    demo_folder.finish(ui, &look).or_machine()?;
    Ok(status)
}

async fn make_fork(folder: &Path) -> Result<(), Failure> {
    let upstream = bare(folder, "upstream.git", MOVED_ON).await?;
    let origin = bare(folder, "origin.git", FORKED).await?;
    check_out_fork(&folder.join("fork"), &origin, &upstream).await.or_machine()
}

async fn bare(folder: &Path, name: &str, history: &str) -> Result<std::path::PathBuf, Failure> {
    let path = folder.join(name);
    make_repository(&path, &format!("{COMMON}{history}")).await.or_machine()?;
    Ok(path)
}
