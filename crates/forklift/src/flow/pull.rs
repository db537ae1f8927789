//! Opening the pull request of a verified run: once, whatever crashes, and in the place of an earlier one.

use std::path::{Path, PathBuf};

use engine::publish::{Publication, PullReference};
use forge::{
    Forge, ForgeAddress, ForgeError, ForgeKind, ForgeOptions, NewPull, PlainHttp, PullRequest,
    Remote, Thread, write_pull_text,
};
use model::exit::ForkliftExit;
use model::secret::Secret;
use run_store::operation_log::OperationLog;
use shell::pull::{PullRenewal, logged, open_pull as open_once};

use crate::commands::ForkliftDirs;
use crate::exit::{Failure, OrExit};
use crate::rules::earlier::{EarlierPublications, OpenPull, PullState};
use crate::rules::train::TRAIN_BRANCHES;

const TOKEN_VARIABLE: &str = "FORKLIFT_TOKEN";

/// Message about a missing token, with both ways out.
const NO_TOKEN: &str =
    "there is no token for the forge; set BOTTLEWORKS_FORGE_TOKEN, or say --no-pull-request";

/// Variable with the kind of a forge that cannot be detected.
const KIND_VARIABLE: &str = "FORKLIFT_FORGE_KIND";

/// File with the token, in forklift's configuration folder.
pub(crate) const TOKEN_FILE: &str = "forge-token";

/// Prefix of the branches of all runs.
const BRANCHES: &str = "forklift/";

/// The forge of a fork, as far as it is known without a request.
#[derive(Debug, Clone)]
pub(crate) struct ForgePlan {
    /// Address of the repository: origin's, or the one that the user gave.
    pub(crate) url: String,
    pub(crate) token: Option<Secret>,
    pub(crate) kind: Option<ForgeKind>,
}

impl ForgePlan {
    /// Finds the token: in a variable, in the configuration, or in the file, which only its owner may read.
    pub(crate) fn find(url: &str, places: &ForkliftDirs) -> Result<Self, Failure> {
        let file = places.config.join(TOKEN_FILE);
        let host = match ForgeAddress::parse_remote(url) {
            Some(Remote::Hosted(address)) => Some(address.host),
            Some(Remote::Local(_)) | None => None,
        };
        let shared = &places.shared;
        let token = match shared.forge_token(host.as_deref(), &[TOKEN_VARIABLE]).or_usage()? {
            Some(token) => Some(token),
            None => match host::file::read_private(&file) {
                Ok(bytes) => Some(Secret::new(String::from_utf8_lossy(&bytes).trim())),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error).or_usage(),
            },
        };
        let ruled = host.and_then(|host| shared.forges.get(&host)?.kind.clone());
        let kind = find_kind()?.or_else(|| ForgeKind::parse(&ruled?));
        Ok(Self { url: url.to_owned(), token, kind })
    }
}

fn find_kind() -> Result<Option<ForgeKind>, Failure> {
    let Some(word) = host::env::var(KIND_VARIABLE).filter(|word| !word.is_empty()) else {
        return Ok(None);
    };
    let wrong = || {
        let word: String = word.escape_debug().take(40).collect();
        Failure::usage(format!("{KIND_VARIABLE} cannot be '{word}'; use {}", ForgeKind::words()))
    };
    ForgeKind::parse(&word).map(Some).ok_or_else(wrong)
}

/// Opens the pull request, or leaves its text beside the run where there is no forge or no token. A forge that says no
/// is a problem of publishing; the text is kept then as well.
pub(crate) async fn open_pull(
    plan: &ForgePlan,
    pull: &NewPull,
    log: &OperationLog,
    (folder, earlier): (&Path, &EarlierPublications),
    publication: &mut Publication,
) -> Result<(), Failure> {
    let address = match ForgeAddress::parse_remote(&plan.url) {
        Some(Remote::Hosted(address)) => match find_token(plan, &address).await {
            Some(token) => Some((address, token)),
            None => {
                lack_token(plan, &address, publication).await;
                None
            }
        },
        Some(Remote::Local(_)) | None => None,
    };
    let Some((address, token)) = address else {
        publication.pull_text = Some(keep_text(folder, pull)?);
        return Ok(());
    };
    let target = format!("{} {}", address.full_name(), pull.head);
    let act = async {
        publish(&address, token, plan.kind, (pull, earlier))
            .await
            .or_exit(ForkliftExit::PublishFailed)
    };
    match logged(log, "pull", &target, act).await? {
        Ok(opened) => {
            publication.pull = Some(PullReference {
                number: opened.number,
                url: opened.url,
                title: String::new(),
            });
        }
        Err(failure) => {
            publication.pull_text = Some(keep_text(folder, pull)?);
            publication.add_problem(match failure.forge() {
                Some(ForgeError::UnknownForge { .. } | ForgeError::LoginWanted { .. }) => {
                    format!("{failure}: set {KIND_VARIABLE} to {}", ForgeKind::words())
                }
                _ => failure.to_string(),
            });
        }
    }
    Ok(())
}

/// Records that a pull request could not be opened for want of a token: a problem if the address is known to be one of a
/// forge, because then a pull request is what the run is for; else a note.
async fn lack_token(plan: &ForgePlan, address: &ForgeAddress, publication: &mut Publication) {
    let options = ForgeOptions {
        kind: plan.kind,
        plain_http: PlainHttp::from_env(),
        ..ForgeOptions::default()
    };
    match forge::detect::find_kind(address, &options).await {
        Ok(_) => publication.add_problem(format!("no pull request: {NO_TOKEN}")),
        Err(_) => publication.note = Some(format!("no pull request: {NO_TOKEN}")),
    }
}

/// Forklift's own token, or on GitHub the one of the `gh` program.
async fn find_token(plan: &ForgePlan, address: &ForgeAddress) -> Option<Secret> {
    if let Some(token) = &plan.token {
        return Some(token.clone());
    }
    // First, so that a server is probed only where there is a login to use.
    let login = ForgeKind::GitHub.find_login(&address.host).await?;
    let kind = forge::detect::find_kind(address, &ForgeOptions::default()).await.ok()?;
    (kind == ForgeKind::GitHub).then_some(login)
}

async fn open_forge(
    address: &ForgeAddress,
    token: Secret,
    kind: Option<ForgeKind>,
) -> Result<Forge, ForgeError> {
    let plain_http = PlainHttp::from_env();
    let options = ForgeOptions { kind, plain_http, ..ForgeOptions::default() };
    Forge::open(&Remote::Hosted(address.clone()), &token, &options).await
}

/// The forge of pull requests that were opened before.
pub(super) async fn open_pulls_forge(plan: &ForgePlan) -> Result<Forge, Failure> {
    let Some(Remote::Hosted(address)) = ForgeAddress::parse_remote(&plan.url) else {
        return Err(Failure::usage(format!("{} is not the address of a forge", plan.url)));
    };
    let token = find_token(plan, &address).await.ok_or_else(|| Failure::usage(NO_TOKEN))?;
    open_forge(&address, token, plan.kind).await.or_exit(ForkliftExit::PublishFailed)
}

/// State of a pull request; `None` if the forge cannot be asked.
pub(crate) async fn pull_state(plan: &ForgePlan, number: u64) -> Option<PullState> {
    let Some(Remote::Hosted(address)) = ForgeAddress::parse_remote(&plan.url) else { return None };
    let token = find_token(plan, &address).await?;
    let forge = open_forge(&address, token, plan.kind).await.ok()?;
    let pull = forge.read_pr(number).await.ok()?;
    Some(match (pull.merged, pull.is_open()) {
        (true, _) => PullState::Merged,
        (false, true) => PullState::Open,
        (false, false) => PullState::Closed,
    })
}

async fn publish(
    address: &ForgeAddress,
    token: Secret,
    kind: Option<ForgeKind>,
    (pull, known): (&NewPull, &EarlierPublications),
) -> Result<PullRequest, ForgeError> {
    let forge = open_forge(address, token, kind).await?;
    // The branch of an earlier run has its pull request, and a forklift that was killed after the forge had opened one
    // finds it here.
    let opened = open_once(&forge, pull, |_| Some(PullRenewal::of(pull))).await?;
    let is_train = |branch: &str| branch.starts_with(TRAIN_BRANCHES);
    if is_train(pull.head.as_str()) {
        // A step does not have all that an earlier pull request may have.
        return Ok(opened);
    }
    for earlier in forge.list_open_pulls_by_prefix(BRANCHES).await? {
        let is_other = earlier.number != opened.number
            && earlier.base_branch == pull.base.as_str()
            && !is_train(&earlier.head_branch);
        let seen =
            OpenPull { branch: &earlier.head_branch, head: &earlier.head_sha, body: &earlier.body };
        if is_other && known.has_as_predecessor(seen) {
            let successor = forge.reference(Thread::Pull(opened.number));
            let message = format!("Superseded by {successor}.");
            forge.post_comment(Thread::Pull(earlier.number), &message).await?;
            forge.close_pull(earlier.number).await?;
        }
    }
    Ok(opened)
}

pub(super) fn keep_text(folder: &Path, pull: &NewPull) -> Result<PathBuf, Failure> {
    write_pull_text(folder, pull).or_machine()
}
