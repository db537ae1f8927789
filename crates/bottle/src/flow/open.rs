//! Opens a bottle, a new one or a frozen one, and runs one prompt in it. Everything is checked before anything is made.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{McpServer, Provider, SessionRequest, Transport};
use engine::agent_plan::{AgentPlan, AgentTask};
use engine::run::{Product, advance, create};
use engine::terminal::TerminalPlan;
use forge::Attachment;
use guest::FORGE_PORT;
use host::lock::FileLock;
use model::exit::BottleExit;
use model::id::{ProjectName, RunId};
use orchestrator_db::{BottleStep, IssueText, WakeCause};
use run_store::run_dir::RunDir;

use super::access::ForgeAccess;
use super::bottle::{BaseSource, Bottle, BottleState, PlanStage, Record, Wakeup, WorkspaceState};
use super::check::repair_prompt;
use super::context::RunContext;
use super::issue_row::issue_key;
use super::mounts::check_mounts;
use super::observe::{BaseRequest, Source};
use super::recover::{freeze_if_idle, recover};
use super::resolve::{ResolvedBottle, resolve_bottle};
use super::run::BottleRun;
use super::run_record::{BottlePins, BottleRunPart, BottleRunRecord, load_run};
use super::sidecar::SidecarPlace;
use super::spending::{NewRun, RunBudget};
use super::thread::{
    Assignment, AssignmentHistory, check_target, delivered_texts, read_assignment,
};
use super::travel;
use crate::exit::{Failure, OrExit, OrGeneral, Outcome};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::plan_text::plan_task;
use crate::rules::prompt::{BottlePrompt, BranchChanges, ForgePart, render_prompt};
use crate::rules::session::session_of;
use crate::rules::target::parse_labels;

/// Variable with the id of the forge's delivery that triggers a run.
const DELIVERY_VARIABLE: &str = "FORGE_DELIVERY_ID";

pub(crate) struct StartRequest {
    pub(crate) agent: String,
    pub(crate) bottles: Vec<String>,
    pub(crate) label: Option<String>,
    pub(crate) repo: Option<PathBuf>,
    pub(crate) base: BaseRequest,
    pub(crate) run: PromptRequest,
    /// Text of the issue when it was given to the agent, if that was earlier.
    pub(crate) text: Option<IssueText>,
}

/// Request for one run, in a new bottle or in a frozen one.
#[derive(Default)]
pub(crate) struct PromptRequest {
    /// May be empty at a terminal.
    pub(crate) prompt: String,
    /// The user's terminal; `None` for a headless run.
    pub(crate) terminal: Option<TerminalPlan>,
    pub(crate) backend: Option<String>,
    pub(crate) claim: Option<RunClaim>,
    /// Number of runs in a row, before this one, whose check failed.
    pub(crate) check_round: u32,
    /// Report of the forge that causes it, with the commit that it is about.
    pub(crate) wake: Option<(WakeCause, String)>,
    /// Budgets of the orchestrator.
    pub(crate) budget: Option<Arc<RunBudget>>,
}

/// The orchestrator's claim on an issue.
#[derive(Debug, Clone)]
pub(crate) struct RunClaim {
    pub(crate) number: u64,
    pub(crate) trigger: Option<String>,
}

/// Starts a new bottle and runs one prompt in it, and further ones while its check fails. With `access` it is a forge run.
pub(crate) async fn start(
    context: RunContext<'_>,
    request: StartRequest,
    access: Option<ForgeAccess>,
) -> Outcome {
    let next = NextRun::of(&request.run);
    // Each run is a large future, and a worker's stack is small.
    let (slug, status) = Box::pin(start_once(context, request, access.clone())).await?;
    repair(context, &slug, next, access, status).await
}

/// Runs one more prompt in a frozen bottle, and further ones while its check fails.
pub(crate) async fn resume(
    context: RunContext<'_>,
    slug: &str,
    request: PromptRequest,
    access: Option<ForgeAccess>,
) -> Outcome {
    let next = NextRun::of(&request);
    let status = Box::pin(resume_once(context, slug, request, access.clone())).await?;
    repair(context, slug, next, access, status).await
}

/// Part that all runs of one request share.
pub(crate) struct NextRun {
    pub(crate) backend: Option<String>,
    pub(crate) claim: Option<RunClaim>,
    /// A user at a terminal decides what is next.
    pub(crate) at_terminal: bool,
    pub(crate) budget: Option<Arc<RunBudget>>,
}

impl NextRun {
    fn of(request: &PromptRequest) -> Self {
        let PromptRequest { backend, claim, terminal, budget, .. } = request;
        let (backend, claim, budget) = (backend.clone(), claim.clone(), budget.clone());
        Self { backend, claim, at_terminal: terminal.is_some(), budget }
    }
}

/// Hands the output of a failing check to the agent, as long as it has rounds left. A process that was killed is followed by
/// another one that continues here: the last run's record says what is next.
pub(crate) async fn repair(
    context: RunContext<'_>,
    slug: &str,
    next: NextRun,
    access: Option<ForgeAccess>,
    status: u8,
) -> Outcome {
    let mut status = status;
    loop {
        let (bottle, record) = Bottle::open(context.home, slug)?;
        let Some(dir) = bottle.last_run(&record)?.filter(|_| !next.at_terminal) else { break };
        let meta = load_run(&dir)?;
        let Some(prompt) = repair_prompt(&meta) else { break };
        context.ui.note("the check fails: the agent gets its output");
        let request = PromptRequest {
            prompt,
            terminal: None,
            backend: next.backend.clone(),
            claim: next.claim.clone(),
            check_round: meta.check_round + 1,
            wake: None,
            budget: next.budget.clone(),
        };
        status = Box::pin(resume_once(context, slug, request, access.clone())).await?;
    }
    // A claim's worker saves it.
    if context.rows.is_by_hand() {
        travel::save_by_hand(context, slug).await?;
    }
    Ok(status)
}

async fn start_once(
    context: RunContext<'_>,
    request: StartRequest,
    access: Option<ForgeAccess>,
) -> Result<(String, u8), Failure> {
    let RunContext { ui, home, rows, .. } = context;
    let StartRequest { agent, bottles, label, repo, base, run, text } = request;
    let mut manifest = home.load_agent(&agent)?;
    if let Some(budget) = &run.budget {
        budget.cap(&agent, &mut manifest)?;
    }
    let assignment = match &access {
        Some(access) => {
            let delivered = delivered_texts(&*rows.store()?, &issue_key(&access.env))?;
            let history = AssignmentHistory {
                text: text.as_ref(),
                delivered,
                ..AssignmentHistory::default()
            };
            let assignment = read_assignment(access, history).await?;
            check_target(access, &assignment.issue, &agent).await?;
            Some(assignment)
        }
        None => None,
    };
    let bottles = choose_bottles(bottles, assignment.as_ref(), &manifest);
    let resolved = resolve_bottle(home, manifest, &bottles, run.backend.as_deref()).await?;
    let dir = match repo {
        Some(repo) => repo,
        None => host::env::current_dir().or_exit(BottleExit::Usage)?,
    };
    let source = Source::find(&dir, access.as_ref()).await?;
    if let Some(access) = &access {
        rows.raise_fence(&source, access).await?;
    }
    let base = match &access {
        Some(_) => source.base_at_origin(ui, home, None).await?,
        None => source.choose_base(ui, home, &base).await?,
    };
    let label = label.unwrap_or_else(|| match &access {
        Some(access) => format!("{agent}-issue-{}", access.env.issue),
        None => agent.clone(),
    });
    let taken = travel::names_elsewhere(home, rows)?;
    let bottle = Bottle::create(home, &label, &taken)?;
    let mut record = Record::new(&bottle, &source, base, agent, bottles, resolved.choice.kind)?;
    record.forge = access.as_ref().map(|access| access.env.clone());
    record.pull = assignment.as_ref().and_then(|assignment| assignment.pull);
    let is_labelled = assignment.as_ref().is_some_and(|it| parse_labels(&it.issue.labels).plan);
    if access.is_some() && (is_labelled || resolved.manifest.plan) {
        record.plan = Some(PlanStage::Wanted);
    }
    if let Some(access) = &access
        && let Err(refused) = rows.insert(&access.env, &record)
    {
        // The folder of the bottle is still empty.
        host::file::remove_tree_safely(bottle.path()).or_general()?;
        return Err(refused);
    }
    bottle.save(&record)?;
    host::failpoint::hit("begun");
    let lock = bottle.take(Duration::ZERO).await?;
    let slug = bottle.slug().to_string();
    let builder =
        RunBuilder { context, bottle, record, source, access, assignment, request: run, resolved };
    Ok((slug, builder.run(None, lock).await?))
}

/// Bottles named by the user come first, then those of the issue's labels, then the manifest's.
fn choose_bottles(
    named: Vec<String>,
    assignment: Option<&Assignment>,
    manifest: &AgentManifest,
) -> Vec<String> {
    let labelled = assignment.map(|it| it.bottles.clone()).unwrap_or_default();
    match (named.is_empty(), labelled.is_empty()) {
        (false, _) => named,
        (true, false) => labelled,
        (true, true) => manifest.bottle.iter().cloned().collect(),
    }
}

/// Runs one more prompt in a frozen bottle: the same workspace, and the same conversation where the agent can.
async fn resume_once(
    context: RunContext<'_>,
    slug: &str,
    request: PromptRequest,
    access: Option<ForgeAccess>,
) -> Outcome {
    let RunContext { ui, home, rows, .. } = context;
    let (bottle, _) = Bottle::open(home, slug)?;
    travel::restore_trimmed(context, slug)?;
    let lock = bottle.take(Duration::ZERO).await?;
    recover(context, &bottle, access.clone()).await?;
    freeze_if_idle(context, slug)?;
    let (bottle, mut record) = Bottle::open(home, slug)?;
    if record.state == BottleState::Destroyed {
        return Err(Failure::not_found(format!("the bottle '{slug}' is destroyed")));
    }
    if let (Some(access), Some(known)) = (&access, &record.forge)
        && (access.env.issue, &access.env.owner, &access.env.repo)
            != (known.issue, &known.owner, &known.repo)
    {
        return Err(Failure::usage(format!(
            "the bottle '{slug}' works on {}/{}#{}, and the variables name another issue",
            known.owner, known.repo, known.issue
        )));
    }
    // The bottle of an issue keeps its forge: the record has the issue, and the token comes from its usual place.
    let access = ForgeAccess::or_of_record(access, home, &record)?;
    if record.forge.is_some() && access.is_none() {
        return Err(Failure::usage(
            "this bottle has a forge, and its token is not there: set FORGE_TOKEN",
        ));
    }
    let mut manifest = home.load_agent(&record.agent)?;
    if let Some(model) = record.model.clone() {
        manifest.use_model(model);
    }
    if let Some(budget) = &request.budget {
        budget.cap(&record.agent, &mut manifest)?;
    }
    let backend = request.backend.clone().unwrap_or_else(|| record.backend.to_string());
    let resolved = resolve_bottle(home, manifest, &record.bottles, Some(&backend)).await?;
    let parent = match bottle.last_run(&record)? {
        Some(dir) => Some(load_run(&dir)?.run),
        None => None,
    };
    let assignment = match &access {
        Some(access) => {
            let delivered = delivered_texts(&*rows.store()?, &issue_key(&access.env))?;
            Some(read_assignment(access, AssignmentHistory::of(&record, delivered)).await?)
        }
        None => None,
    };
    let source = Source::find(&record.repo, access.as_ref()).await?;
    if let Some(access) = &access {
        rows.raise_fence(&source, access).await?;
    }
    if record.base_source == BaseSource::Origin {
        source.fetch(ui, home).await?;
    }
    rows.step(&record, BottleStep::Rehydrate)?;
    record.forge = access.as_ref().map(|access| access.env.clone()).or(record.forge);
    record.pull = record.pull.or(assignment.as_ref().and_then(|assignment| assignment.pull));
    let builder =
        RunBuilder { context, bottle, record, source, access, assignment, request, resolved };
    builder.run(parent, lock).await
}

/// Everything that a run is made of: its pins, its prompt, its plan and its first record.
struct RunBuilder<'a> {
    context: RunContext<'a>,
    bottle: Bottle,
    record: Record,
    source: Source,
    access: Option<ForgeAccess>,
    assignment: Option<Assignment>,
    request: PromptRequest,
    resolved: ResolvedBottle,
}

impl RunBuilder<'_> {
    /// Runs the bottle. A failure of the host that leaves no box behind freezes it, so that it can be resumed.
    async fn run(self, parent: Option<RunId>, lock: FileLock) -> Outcome {
        let (context, slug) = (self.context, self.bottle.slug().clone());
        let outcome = self.make_run(parent, lock).await;
        if outcome.is_err() {
            freeze_if_idle(context, slug.as_str())?;
        }
        outcome
    }

    async fn make_run(mut self, parent: Option<RunId>, lock: FileLock) -> Outcome {
        if let (Some(access), Some(pull)) = (&mut self.access, self.record.pull) {
            access.env.pull = Some(pull);
        }
        let pins = match self.record.workspace {
            WorkspaceState::Absent => BottlePins::of_new_bottle(&self.record),
            WorkspaceState::Made | WorkspaceState::SetUp => self.source.pin(&self.record).await?,
        };
        let project = ProjectName::from_folder(self.bottle.slug().as_str());
        let dir = RunDir::create(&self.bottle.runs(), &project, host::clock::now()).or_general()?;
        self.reserve(&dir)?;
        let session = self.session();
        let prompt = self.prompt(&pins, session.is_some());
        let plan = self.plan(&dir, prompt.clone(), session.clone())?;
        let mut secrets = self.resolved.agent.secrets();
        secrets.extend(self.access.iter().map(|access| access.token.clone()));
        let mut record = self.first_record(&dir, pins, &prompt);
        record.parent = parent;
        record.resumes_session = session.is_some();
        create::<BottleRun<'_>>(&dir, &record, &plan, &secrets).map_err(BottleRun::failure)?;
        host::failpoint::hit("created");
        self.record.runs.push(dir.id().clone());
        if let Some(assignment) = &self.assignment {
            self.record.seen_comments.clone_from(&assignment.seen_comments);
            self.record.text = Some(assignment.text.clone());
        }
        if let Some((cause, head)) = self.request.wake.clone() {
            let (pull, at) = (self.record.pull, host::clock::now());
            self.record.wakeups.push(Wakeup { cause, head, pull, at, alone: false });
        }
        self.record.state = BottleState::Running;
        self.record.backend = record.backend;
        self.bottle.save(&self.record)?;
        host::failpoint::hit("pinned");
        let Self { context, bottle, record, source, access, .. } = self;
        let run = BottleRun::open(context, bottle, record, dir, source, access)?;
        let outcome = Box::pin(advance(run)).await;
        drop(lock);
        outcome
    }

    /// Reserves what the run may spend. A run that a budget refuses leaves nothing behind.
    fn reserve(&self, dir: &RunDir) -> Result<(), Failure> {
        let (Some(budget), Some(access)) = (&self.request.budget, &self.access) else {
            return Ok(());
        };
        let run = NewRun {
            slug: self.bottle.slug().as_str(),
            id: dir.id(),
            agent: &self.record.agent,
            spend: &self.resolved.manifest.spend,
        };
        let reserved = budget.reserve(self.context, &issue_key(&access.env), &run);
        if reserved.is_err() {
            host::file::remove_tree_safely(dir.path()).or_general()?;
        }
        reserved
    }

    /// True if this run writes a plan: only a forge has people who approve it.
    fn is_planning(&self) -> bool {
        self.access.is_some() && self.record.is_planning() && self.request.terminal.is_none()
    }

    /// Id of the conversation to resume, if the same agent had one.
    fn session(&self) -> Option<String> {
        let provider = &self.resolved.manifest.provider;
        let resumable = Provider::parse(provider).is_ok_and(Provider::can_resume);
        let known = self.record.session.as_ref();
        let same = known.filter(|session| resumable && session.provider == *provider);
        same.map(|session| session.id.clone())
    }

    fn prompt(&self, pins: &BottlePins, resumes_session: bool) -> String {
        if self.request.prompt.is_empty() {
            // The user at the terminal begins; new commits are in the workspace, under their refs.
            return String::new();
        }
        let news = BranchChanges {
            base: pins.base_is_new.then(|| pins.base_source.name_of(&pins.base_branch)),
            branch: pins.branch_is_new.then(|| BaseSource::Origin.name_of(&pins.branch)),
        };
        let forge = self.access.as_ref().zip(self.assignment.as_ref());
        let attachments: Vec<String> = self.attachments().into_iter().map(|it| it.name).collect();
        let task = match self.is_planning() {
            true => plan_task(&self.request.prompt),
            false => self.request.prompt.clone(),
        };
        render_prompt(&BottlePrompt {
            manifest: if resumes_session { "" } else { &self.resolved.manifest.prompt },
            task: &task,
            branch: pins.branch.as_str(),
            news,
            forge: forge.map(|(access, assignment)| ForgePart {
                issue: access.env.issue,
                pull: access.env.pull,
                thread: &assignment.thread,
                left_out: assignment.left_out,
                text_changed: assignment.text_changed,
                attachments: &attachments,
            }),
        })
    }

    /// Plans the agent. Only agents that speak MCP get the forge as tools; every agent gets it as a command.
    fn plan(
        &self,
        dir: &RunDir,
        prompt: String,
        session: Option<String>,
    ) -> Result<AgentPlan, Failure> {
        let provider = self.resolved.manifest.provider().or_exit(BottleExit::Usage)?;
        let tools = self.access.iter().filter(|_| provider.speaks_mcp());
        let mcp = tools.map(|_| forge_tools()).collect();
        let chosen = self.request.terminal.as_ref().map(|_| session_of(dir.id()));
        let session = session.map_or(SessionRequest::Fresh { id: chosen }, SessionRequest::Resume);
        let task = AgentTask { run: dir.id(), prompt, context: None, session, mcp };
        let plan = match self.request.terminal.clone() {
            Some(terminal) => self.resolved.agent.plan_at_terminal(task, terminal),
            None => self.resolved.agent.plan(task),
        };
        let mut plan = plan.or_exit(BottleExit::Usage)?;
        plan.programs.extend(check_mounts(&self.resolved.bottle)?);
        if self.access.is_some() {
            SidecarPlace::of(dir)?.fit(&mut plan);
        }
        Ok(plan)
    }

    fn attachments(&self) -> Vec<Attachment> {
        let forge = self.access.as_ref().zip(self.assignment.as_ref());
        forge.map(|(access, it)| it.attachments(&access.env)).unwrap_or_default()
    }

    /// Id of the delivery that triggered this run: from the orchestrator's claim, or else from the environment.
    fn delivery(&self) -> Option<String> {
        let variable = || host::env::var(DELIVERY_VARIABLE).filter(|id| !id.trim().is_empty());
        self.request.claim.as_ref().map_or_else(variable, |claim| claim.trigger.clone())
    }

    fn first_record(&self, dir: &RunDir, pins: BottlePins, prompt: &str) -> BottleRunRecord {
        let part = BottleRunPart {
            slug: self.bottle.slug().clone(),
            agent: self.record.agent.clone(),
            manifest: self.resolved.manifest.clone(),
            bottles: self.record.bottles.clone(),
            bottle: self.resolved.bottle.clone(),
            backend: self.resolved.choice.kind,
            backend_reason: self.resolved.choice.reason.clone(),
            parent: None,
            claim: self.request.claim.as_ref().map(|claim| claim.number),
            lineage: self.record.runs.clone(),
            resumes_session: false,
            prompt_sha256: model::digest::sha256(prompt.as_bytes()),
            forge: self.access.as_ref().map(|access| access.env.clone()),
            delivery: self.delivery(),
            attachments: self.attachments(),
            issue_title: self.assignment.as_ref().map(|it| it.text.title.clone()),
            pins,
            seal: None,
            sidecar: None,
            done: None,
            watchdog: None,
            scans: Vec::new(),
            check: None,
            check_round: self.request.check_round,
            planning: self.is_planning(),
            wake: self.request.wake.as_ref().map(|(cause, _)| *cause),
            merged_alone: None,
            lost_lease: false,
        };
        BottleRunRecord::new(dir.id().clone(), part)
    }
}

fn forge_tools() -> McpServer {
    let url = format!("http://127.0.0.1:{FORGE_PORT}/mcp");
    McpServer { name: "forge".to_owned(), transport: Transport::Http { url } }
}
