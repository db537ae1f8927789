//! Opening a bottle: a new one, or a frozen one. Everything is checked before anything is made.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use engine::agent_plan::ResolvedAgent;
use engine::terminal::TerminalPlan;
use model::exit::BottleExit;
use model::id::{BranchName, Sha};
use orchestrator_db::BottleStep;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, BackendChoice};
use shell::agent_settings::DEFAULT_IMAGE;

use super::access::ForgeAccess;
use super::bottle::{self, Bottle, BottleState, Record, WorkspaceState};
use super::builder::RunBuilder;
use super::context::RunContext;
use super::home::Home;
use super::mounts::check_mounts;
use super::observe::Source;
use super::recover::{freeze_if_idle, recover};
use super::resolve::resolve_manifest_agent;
use super::run_record::BottleRunRecord;
use super::standing;
use super::thread::{Assignment, check_target, read_assignment};
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::bottle_manifest::BottleManifest;

/// What a new bottle is asked.
pub(crate) struct StartRequest {
    pub(crate) agent: String,
    pub(crate) bottles: Vec<String>,
    /// May be empty at a terminal.
    pub(crate) prompt: String,
    /// The terminal of a person who wants to sit at it.
    pub(crate) terminal: Option<TerminalPlan>,
    pub(crate) label: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) repo: Option<PathBuf>,
    /// What the orchestrator has it for.
    pub(crate) claim: Option<RunClaim>,
}

/// What the orchestrator has a run for.
#[derive(Debug, Clone)]
pub(crate) struct RunClaim {
    pub(crate) number: u64,
    /// The delivery that set it off.
    pub(crate) trigger: Option<String>,
}

/// What a frozen bottle is asked.
pub(crate) struct ResumeRequest {
    pub(crate) slug: String,
    /// May be empty at a terminal.
    pub(crate) prompt: String,
    /// The terminal of a person who wants to sit at it.
    pub(crate) terminal: Option<TerminalPlan>,
    pub(crate) backend: Option<String>,
    /// What the orchestrator has it for.
    pub(crate) claim: Option<RunClaim>,
}

/// Everything that was checked before anything is made.
pub(super) struct ResolvedBottle {
    pub(super) manifest: AgentManifest,
    pub(super) bottle: BottleManifest,
    pub(super) agent: ResolvedAgent,
    pub(super) choice: BackendChoice,
}

/// Starts a new bottle and runs one prompt in it. With `access` it is a forge run.
pub(crate) async fn start(
    context: RunContext<'_>,
    wish: StartRequest,
    access: Option<ForgeAccess>,
) -> Outcome {
    let RunContext { ui, home, .. } = context;
    let manifest = home.load_agent(&wish.agent)?;
    let assignment = match &access {
        Some(access) => {
            let assignment = read_assignment(access, None, None).await?;
            check_target(access, &assignment.issue, &wish.agent).await?;
            Some(assignment)
        }
        None => None,
    };
    let bottles = choose_bottles(&wish.bottles, assignment.as_ref(), &manifest);
    let resolved = resolve(home, manifest, &bottles, wish.backend.as_deref()).await?;
    let dir = match wish.repo {
        Some(repo) => repo,
        None => host::env::current_dir().or_exit(BottleExit::Usage)?,
    };
    ui.phase("observe", "fetching origin");
    let source = Source::fetch(home, &dir, access.as_ref()).await?;
    let label = wish.label.clone().unwrap_or_else(|| match &access {
        Some(access) => format!("{}-issue-{}", wish.agent, access.env.issue),
        None => wish.agent.clone(),
    });
    let base_branch = source.base_branch().await?;
    let base = source
        .tip(&base_branch)
        .await?
        .ok_or_else(|| Failure::usage(format!("origin's branch '{base_branch}' is not there")))?;
    let bottle = Bottle::create(home, &label)?;
    let origin = (base_branch, base);
    let mut record = first_record(&bottle, &source, origin, &wish.agent, bottles, &resolved)?;
    record.forge = access.as_ref().map(|access| access.env.clone());
    record.pull = assignment.as_ref().and_then(|assignment| assignment.pull);
    if let Some(access) = &access
        && let Err(refused) = standing::begin(home, &access.env, &record)
    {
        // Nothing was made in it yet.
        host::file::remove_tree_safely(bottle.path()).or_general()?;
        return Err(refused);
    }
    bottle.save(&record)?;
    host::failpoint::hit("begun");
    let lock = bottle.take(Duration::ZERO).await?;
    let (terminal, claim) = (wish.terminal, wish.claim);
    let builder =
        RunBuilder { context, bottle, record, source, access, assignment, terminal, claim };
    builder.run(&wish.prompt, resolved, None, lock).await
}

/// A person's choice comes first, then the issue's, then the manifest's.
fn choose_bottles(
    named: &[String],
    assignment: Option<&Assignment>,
    manifest: &AgentManifest,
) -> Vec<String> {
    let labelled = assignment.map(|it| it.bottles.clone()).unwrap_or_default();
    match (named.is_empty(), labelled.is_empty()) {
        (false, _) => named.to_vec(),
        (true, false) => labelled,
        (true, true) => manifest.bottle.iter().cloned().collect(),
    }
}

/// Goes on with a frozen bottle: one more prompt, in the same workspace and the same conversation.
pub(crate) async fn resume(
    context: RunContext<'_>,
    wish: ResumeRequest,
    access: Option<ForgeAccess>,
) -> Outcome {
    let RunContext { ui, home, .. } = context;
    let (bottle, _) = Bottle::open(home, &wish.slug)?;
    let lock = bottle.take(Duration::ZERO).await?;
    recover(context, &bottle, access.clone()).await?;
    freeze_if_idle(home, &wish.slug)?;
    let (bottle, mut record) = Bottle::open(home, &wish.slug)?;
    if record.state == BottleState::Destroyed {
        return Err(Failure::not_found(format!("the bottle '{}' is destroyed", wish.slug)));
    }
    if let (Some(access), Some(known)) = (&access, &record.forge)
        && (access.env.issue, &access.env.owner, &access.env.repo)
            != (known.issue, &known.owner, &known.repo)
    {
        return Err(Failure::usage(format!(
            "the bottle '{}' works on {}/{}#{}, and the variables name another issue",
            wish.slug, known.owner, known.repo, known.issue
        )));
    }
    // A forge bottle stays one: its record knows the issue, and the token comes from where it always does.
    let access = match access {
        Some(access) => Some(access),
        None => ForgeAccess::of_record(home, record.forge.as_ref())?,
    };
    if record.forge.is_some() && access.is_none() {
        return Err(Failure::usage(
            "this bottle has a forge, and its token is not there: set FORGE_TOKEN",
        ));
    }
    let manifest = home.load_agent(&record.agent)?;
    let backend = wish.backend.or_else(|| Some(record.backend.to_string()));
    let resolved = resolve(home, manifest, &record.bottles, backend.as_deref()).await?;
    let earlier = match bottle.last_run(&record)? {
        Some(dir) => Some(BottleRunRecord::load(&dir).or_general()?),
        None => None,
    };
    let assignment = match &access {
        Some(access) => {
            Some(read_assignment(access, record.pull, Some(&record.seen_comments)).await?)
        }
        None => None,
    };
    ui.phase("observe", "fetching origin");
    let source = Source::fetch(home, &record.repo, access.as_ref()).await?;
    standing::step(home, &record, BottleStep::Rehydrate)?;
    record.forge = access.as_ref().map(|access| access.env.clone()).or(record.forge);
    record.pull = record.pull.or(assignment.as_ref().and_then(|assignment| assignment.pull));
    let (terminal, claim) = (wish.terminal, wish.claim);
    let builder =
        RunBuilder { context, bottle, record, source, access, assignment, terminal, claim };
    builder.run(&wish.prompt, resolved, earlier.map(|meta| meta.run), lock).await
}

async fn resolve(
    home: &Home,
    manifest: AgentManifest,
    bottles: &[String],
    backend: Option<&str>,
) -> Result<ResolvedBottle, Failure> {
    let bottle = home.load_bottles(bottles)?;
    check_mounts(&bottle)?;
    let wanted: Option<BackendKind> =
        backend.map(str::parse).transpose().or_exit(BottleExit::Usage)?;
    let wanted = wanted.or_else(|| bottle.root.as_ref().map(|_| BackendKind::Bwrap));
    if let Some(root) = bottle.root.as_ref().filter(|root| !root.is_dir()) {
        let words =
            format!("the bottle's root {} is no folder; make it, or name another", root.display());
        return Err(Failure::usage(words));
    }
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    let found = choice::observe(wanted, image).await;
    let choice = choice::choose(wanted, &found, image).or_exit(BottleExit::Usage)?;
    let agent = resolve_manifest_agent(home, &manifest).await?;
    Ok(ResolvedBottle { manifest, bottle, agent, choice })
}

/// The record of a bottle in which nothing has been yet.
fn first_record(
    bottle: &Bottle,
    source: &Source,
    (base_branch, base): (BranchName, Sha),
    agent: &str,
    bottles: Vec<String>,
    resolved: &ResolvedBottle,
) -> Result<Record, Failure> {
    let branch = format!("bot-bottle/{}", bottle.slug());
    Ok(Record {
        version: bottle::VERSION,
        slug: bottle.slug().clone(),
        state: BottleState::Running,
        agent: agent.to_owned(),
        bottles,
        created_at: host::clock::now(),
        repo: source.root.clone(),
        base_branch,
        branch: BranchName::parse(&branch).or_exit(BottleExit::Internal)?,
        known_base: base.clone(),
        base,
        published: None,
        pull: None,
        pull_title: None,
        forge: None,
        backend: resolved.choice.kind,
        session: None,
        workspace: WorkspaceState::Absent,
        runs: Vec::new(),
        seen_comments: BTreeSet::new(),
    })
}
