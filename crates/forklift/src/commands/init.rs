//! `forklift init`: the remotes, FORK.md, the agent and its key, and the forge's token.

use std::path::Path;

use clap::Args;
use forge::{ForgeAddress, Remote};
use host::git::UserRepo;
use model::exit::ForkliftExit;
use model::id::RemoteName;
use shell::Ui;
use shell::config::Config;
use shell::init::{InitArgs, InitAsker, ask_shared};

use super::{ForkliftDirs, block_on};
use crate::commands::run_args::NameArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::observe::{find_push_urls, find_repo, fork_directory};
use crate::flow::record::ForkRemotes;
use crate::rules::fork_file::FORK_FILES;

/// Prepare a fork: remotes, FORK.md, the agent and its key, the forge's token
///
/// Asks a few questions on a terminal; every question has a flag. What is there is kept and is the default, so that it can be
/// run again at any time. The key and the token are named by the commands that print them and are stored nowhere.
///
/// Example: forklift init --yes --upstream https://git.example.org/them/project --provider claude --key-command 'pass show key'
#[derive(Debug, Args)]
pub(crate) struct ForkInitArgs {
    /// The address of the project it was forked from
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    #[command(flatten)]
    shared: InitArgs,
}

const FORK_FILE: &str = "\
---
# Rules for forklift; remove the # before one that you need. Below the second line of dashes is text for the agent.
# target: latest-tag             # what to take from upstream: tip, latest-tag, or a tag, branch or commit
# strategy: merge                # or rebase
# setup: npm ci                  # runs in the box before the agent
# check: npm test                # must pass on the result
# protect:                       # paths whose version in the fork must survive
#   - branding/**
# resolve:                       # conflicts that need no agent
#   - {path: package-lock.json, take: theirs}
---

# About this fork

What it changes and why, and what an update from upstream must not lose.
";

pub(crate) fn cmd_init(ui: &Ui, args: &ForkInitArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let asker = InitAsker::new("forklift", &args.shared)?;
    let fork = block_on(prepare_fork(args, asker, directory))?;
    let to = (places.agents.as_path(), fork.forge.as_deref());
    let answers = ask_shared::<ForkliftExit>("forklift", &args.shared, asker, to)?;
    block_on(fork.write(ui))?;
    let mut written = answers.write::<ForkliftExit>(ui, &places.agents)?;
    written["upstream"] = fork.url.clone().into();
    ui.event("init", &written);
    ui.result("then", "forklift");
    Ok(ForkliftExit::Success)
}

/// Answers about the fork: checked, and not yet written.
struct PreparedFork {
    repo: UserRepo,
    upstream: RemoteName,
    url: String,
    is_new: bool,
    /// Host of the forge that the fork is on.
    forge: Option<String>,
}

impl PreparedFork {
    /// Adds the remote and writes FORK.md where they are missing.
    async fn write(&self, ui: &Ui) -> Result<(), Failure> {
        if self.is_new {
            self.repo.add_remote(&self.upstream, &self.url).await.or_usage()?;
        }
        ui.result("upstream", &self.url);
        if let Some(root) = self.repo.toplevel() {
            ui.result("FORK.md", &write_fork_file(root)?);
        }
        Ok(())
    }
}

async fn prepare_fork(
    args: &ForkInitArgs,
    asker: InitAsker,
    directory: Option<&Path>,
) -> Result<PreparedFork, Failure> {
    let repo = find_repo(&fork_directory(directory)?).await?;
    let shared = Config::load().or_usage()?;
    let ForkRemotes { origin, upstream } = NameArgs::default().remotes(&shared);
    if !repo.has_remote(&origin) {
        let message = format!("this repository has no remote '{origin}' (your fork)");
        let remedy = format!("add it with: git remote add {origin} URL");
        return Err(Failure::usage(message).with_remedy(remedy));
    }
    let (url, is_new) = ask_upstream(&repo, &upstream, args, asker).await?;
    let forge = match ForgeAddress::parse_remote(&find_push_urls(&repo, &origin).await?.first) {
        Some(Remote::Hosted(address)) => Some(address.host),
        Some(Remote::Local(_)) | None => None,
    };
    Ok(PreparedFork { repo, upstream, url, is_new, forge })
}

/// The address of upstream, and whether the remote is yet to be added.
async fn ask_upstream(
    repo: &UserRepo,
    upstream: &RemoteName,
    args: &ForkInitArgs,
    asker: InitAsker,
) -> Result<(String, bool), Failure> {
    if let Some(url) = repo.remote_url(upstream).await.or_machine()? {
        return match &args.upstream {
            Some(typed) if *typed != url => Err(Failure::usage(format!(
                "the remote '{upstream}' is {url} already; change it with: git remote set-url {upstream} {typed}"
            ))),
            Some(_) | None => Ok((url, false)),
        };
    }
    let label = "Address of the project that this was forked from";
    let url = asker.ask(label, args.upstream.as_deref(), "")?.trim().to_owned();
    if url.is_empty() {
        let message =
            format!("this repository has no remote '{upstream}' (the project it was forked from)");
        let remedy = "name it with: forklift init --upstream URL";
        return Err(Failure::usage(message).with_remedy(remedy));
    }
    Ok((url, true))
}

/// Writes FORK.md unless there is one; it counts when it is committed and pushed.
fn write_fork_file(root: &Path) -> Result<String, Failure> {
    if let Some(found) = FORK_FILES.iter().find(|file| root.join(file).exists()) {
        return Ok(format!("{found} is there and stays as it is"));
    }
    let path = root.join(FORK_FILES[0]);
    host::file::write_transient(&path, FORK_FILE.as_bytes(), 0o644).or_machine()?;
    Ok("written; edit it, and it counts once it is on the fork's main branch".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fork_file::parse_fork_file;

    #[test]
    fn the_file_to_start_with_is_good_and_says_nothing() {
        let file = parse_fork_file(FORK_FILE).expect("good");
        assert_eq!(file.rules, crate::rules::fork_file::ForkRules::default());
    }
}
