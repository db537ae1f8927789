//! Merging through a forge: pushes the branch and opens a pull request; once that is merged, the workstream is done.

use std::time::Duration;

use forge::{
    Forge, ForgeAddress, ForgeKind, ForgeOptions, NewPull, PlainHttp, PullRequest, Remote,
};
use host::git::WorktreeRepo;
use model::id::Sha;
use model::inert::inert_line;
use model::secret::Secret;
use shell::config::{Config, FORGE_TOKEN_VARIABLE};
use shell::pull::{PullRenewal, open_pull};

use super::product::origin;
use crate::disk::secrets::find_secret;
use crate::disk::{Effect, ProjectDirs, ProjectEffects, Workstream};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::profile::{MergeMode, Profile};
use crate::rules::pull::{PullAction, next_pull_action, render_pull};

/// The variable with the forge's token, and its name in the secrets folder.
const TOKEN_VARIABLE: &str = "AOS_FORGE_TOKEN";
const TOKEN_SECRET: &str = "FORGE_TOKEN";
const PUSH_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) enum MergeRoute {
    Local,
    Forge(Box<Forge>),
}

/// Chooses the merge route. MERGE_MODE in the profile decides; without it, a pull request if origin is on GitHub and a
/// GitHub login is available, and a local merge otherwise. This asks the network, so only `wf merge` calls it.
pub(crate) async fn choose_merge_route(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    profile: &Profile,
) -> WfResult<MergeRoute> {
    let kind = match profile.merge_mode {
        Some(MergeMode::Local) => return Ok(MergeRoute::Local),
        Some(MergeMode::Forge(kind)) => Some(kind),
        None => None,
    };
    let address = find_address(product, profile).await?;
    let (address, token, kind) = match (kind, address) {
        (Some(kind), Some(address)) => {
            let token = find_token(dirs, &address, kind).await?;
            (address, token, kind)
        }
        (Some(kind), None) => {
            return Err(Failure::usage(format!(
                "origin names no repository on a {}; set FORGE_URL in project_profile.env, or MERGE_MODE=local",
                kind.name()
            )));
        }
        (None, Some(address)) => match find_github(&address).await {
            Some(token) => (address, token, ForgeKind::GitHub),
            None => return Ok(MergeRoute::Local),
        },
        (None, None) => return Ok(MergeRoute::Local),
    };
    let plain_http = PlainHttp::from_env();
    let options = ForgeOptions { kind: Some(kind), plain_http, ..ForgeOptions::default() };
    let forge =
        Forge::open(&Remote::Hosted(address), &token, &options).await.or_exit(WfExit::General)?;
    Ok(MergeRoute::Forge(Box::new(forge)))
}

/// Finds the repository on the forge: FORGE_URL of the profile, or else origin.
async fn find_address(product: &WorktreeRepo, profile: &Profile) -> WfResult<Option<ForgeAddress>> {
    let url = match &profile.forge_url {
        Some(url) => Some(url.clone()),
        None => product.user().remote_url(&origin()?).await.or_exit(WfExit::General)?,
    };
    Ok(match url.as_deref().and_then(ForgeAddress::parse_remote) {
        Some(Remote::Hosted(address)) => Some(address),
        Some(Remote::Local(_)) | None => None,
    })
}

/// The owner of the repository on the forge.
pub(crate) async fn forge_owner(product: &WorktreeRepo, profile: &Profile) -> WfResult<String> {
    let address = find_address(product, profile).await?;
    address
        .map(|address| address.owner)
        .ok_or_else(|| Failure::usage("origin names no repository on a forge; set FORGE_URL"))
}

/// The host of the project's forge, if it has one.
pub(crate) async fn find_forge_host(
    product: &WorktreeRepo,
    profile: &Profile,
) -> WfResult<Option<String>> {
    Ok(find_address(product, profile).await?.map(|address| address.host))
}

/// Reads an issue of the project's forge: title and text.
pub(crate) async fn read_issue(dirs: &ProjectDirs, number: u64) -> WfResult<String> {
    let (profile, _) = dirs.load_profile()?;
    let product = super::product::open_product(dirs).await?;
    let MergeRoute::Forge(forge) = choose_merge_route(dirs, &product, &profile).await? else {
        return Err(Failure::usage(
            "there is no forge to read an issue from; set MERGE_MODE and FORGE_URL",
        ));
    };
    let issue = forge.read_issue(number).await.or_exit(WfExit::General)?;
    Ok(format!("{}\n\n{}\n", issue.title, issue.body))
}

async fn find_token(
    dirs: &ProjectDirs,
    address: &ForgeAddress,
    kind: ForgeKind,
) -> WfResult<Secret> {
    let shared = Config::load().or_exit(WfExit::Config)?;
    let found = shared.forge_token(Some(&address.host), &[TOKEN_VARIABLE]);
    if let Some(token) = found.or_exit(WfExit::Config)? {
        return Ok(token);
    }
    if let Some(token) = find_secret(dirs, TOKEN_SECRET)? {
        return Ok(token);
    }
    kind.find_login(&address.host).await.ok_or_else(|| {
        Failure::usage(format!(
            "there is no token for {}; set {FORGE_TOKEN_VARIABLE} (or {TOKEN_VARIABLE}), or put {TOKEN_SECRET}=... into a file in {}",
            address.host,
            dirs.secrets_dir().display()
        ))
    })
}

async fn find_github(address: &ForgeAddress) -> Option<Secret> {
    let login = ForgeKind::GitHub.find_login(&address.host).await?;
    let kind = forge::detect::find_kind(address, &ForgeOptions::default()).await.ok()?;
    (kind == ForgeKind::GitHub).then_some(login)
}

/// Reads the state of the workstream's pull request and what follows from it.
pub(crate) async fn observe_pull(
    forge: &Forge,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> WfResult<(PullAction, Option<PullRequest>)> {
    let meta = &workstream.meta;
    let tip = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let pull = match meta.merge_pull {
        Some(number) => Some(forge.read_pr(number).await.or_exit(WfExit::General)?),
        None => None,
    };
    let state = pull.as_ref().map(|pull| (pull.is_open(), pull.merged));
    let is_pushed = tip.is_some() && tip == meta.merge_pull_sha;
    Ok((next_pull_action(state, is_pushed), pull))
}

/// Pushes the branch, then opens the pull request or updates the existing one. Each effect is recorded as an intent
/// first, and a pull request whose response was lost is found again by its branch.
pub(crate) async fn publish(
    forge: &Forge,
    product: &WorktreeRepo,
    workstream: &Workstream,
    effects: &ProjectEffects,
) -> WfResult<(PullRequest, Sha)> {
    let meta = &workstream.meta;
    let effect = |op| Effect { op, target: meta.branch.as_str(), workstream: Some(&meta.id) };
    let tip = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let tip = tip.ok_or_else(|| {
        Failure::new(WfExit::Implement, format!("{} does not exist any more", meta.branch))
    })?;
    let remote = origin()?;
    let push = product.push_branch(&remote, &meta.branch, PUSH_LIMIT);
    effects.record(effect("branch.push"), push).await?.or_exit(WfExit::General)?;
    host::failpoint::hit("pull-after-push");
    let plan = workstream.load_plan()?;
    let pull = NewPull {
        title: format!("{}: {}", meta.id, inert_line(&meta.title)),
        body: render_pull(&plan),
        head: meta.branch.clone(),
        base: meta.base_branch.clone(),
        draft: false,
    };
    let renew = |_: &PullRequest| Some(PullRenewal::of(&pull));
    let opened = effects.record(effect("pull.open"), open_pull(forge, &pull, renew)).await?;
    let opened = opened.or_exit(WfExit::General)?;
    host::failpoint::hit("pull-after-open");
    Ok((opened, tip))
}

/// Records the pull request in meta.env. The caller holds the global lock.
pub(crate) fn remember(workstream: &mut Workstream, pull: &PullRequest, tip: &Sha) -> WfResult<()> {
    let number = pull.number.to_string();
    let changes = [("MERGE_PULL", number.as_str()), ("MERGE_PULL_SHA", tip.as_str())];
    Ok(workstream.change(&changes)?)
}
