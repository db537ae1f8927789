//! A bottle that is about to run: its pins, its prompt, its plan and the first page of its record become one [`BottleRun`].

use agent::{McpServer, Provider, SessionRequest, Transport};
use engine::agent_plan::{AgentPlan, AgentTask};
use engine::run::{Product, advance, create};
use engine::terminal::TerminalPlan;
use guest::FORGE_PORT;
use host::lock::FileLock;
use model::exit::BottleExit;
use model::id::{BranchName, ProjectName, RunId};
use run_store::run_dir::RunDir;

use super::access::ForgeAccess;
use super::bottle::{Bottle, BottleState, Record, WorkspaceState};
use super::context::RunContext;
use super::mounts::check_mounts;
use super::observe::Source;
use super::open::{ResolvedBottle, RunClaim};
use super::recover::freeze_if_idle;
use super::run::BottleRun;
use super::run_record::{BottlePins, BottleRunPart, BottleRunRecord};
use super::sidecar::SidecarPlace;
use super::thread::Assignment;
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::prompt::{BottlePrompt, BranchChanges, ForgePart, render_prompt};
use crate::rules::session::session_of;

/// The variable with the forge's delivery that sets a run off.
const DELIVERY_VARIABLE: &str = "FORGE_DELIVERY_ID";

/// A bottle that is about to run.
pub(super) struct RunBuilder<'a> {
    pub(super) context: RunContext<'a>,
    pub(super) bottle: Bottle,
    pub(super) record: Record,
    pub(super) source: Source,
    pub(super) access: Option<ForgeAccess>,
    pub(super) assignment: Option<Assignment>,
    pub(super) claim: Option<RunClaim>,
    pub(super) terminal: Option<TerminalPlan>,
}

impl RunBuilder<'_> {
    async fn make_run(
        mut self,
        prompt: &str,
        resolved: ResolvedBottle,
        parent: Option<RunId>,
        lock: FileLock,
    ) -> Outcome {
        if let (Some(access), Some(pull)) = (&mut self.access, self.record.pull) {
            access.env.pull = Some(pull);
        }
        let pins = match self.record.workspace {
            WorkspaceState::Absent => fresh_pins(&self.record),
            WorkspaceState::Made | WorkspaceState::SetUp => self.source.pin(&self.record).await?,
        };
        let project = ProjectName::from_folder(self.bottle.slug().as_str());
        let dir = RunDir::create(&self.bottle.runs(), &project, host::clock::now()).or_general()?;
        let session = self.session(&resolved.manifest);
        let prompt = self.prompt(prompt, &resolved.manifest, &pins, session.is_some());
        let plan = self.plan(&dir, &resolved, prompt.clone(), session.clone())?;
        let mut secrets = resolved.agent.secrets();
        secrets.extend(self.access.iter().map(|access| access.token.clone()));
        let mut record = self.first_record(&dir, resolved, pins, &prompt);
        record.parent = parent;
        record.resumes_session = session.is_some();
        create::<BottleRun<'_>>(&dir, &record, &plan, &secrets).map_err(BottleRun::failure)?;
        self.record.runs.push(dir.id().clone());
        if let Some(assignment) = &self.assignment {
            self.record.seen_comments.clone_from(&assignment.seen_comments);
        }
        self.record.state = BottleState::Running;
        self.record.backend = record.backend;
        self.bottle.save(&self.record)?;
        host::failpoint::hit("pinned");
        let Self { context, bottle, record, source, access, .. } = self;
        let run = BottleRun::open(context, bottle, record, dir, source, access)?;
        let outcome = advance(run).await;
        drop(lock);
        outcome
    }

    /// Runs it; a failure of ours that left nothing at work leaves the bottle frozen, so that it can be resumed.
    pub(super) async fn run(
        self,
        prompt: &str,
        resolved: ResolvedBottle,
        parent: Option<RunId>,
        lock: FileLock,
    ) -> Outcome {
        let (home, slug) = (self.context.home, self.bottle.slug().clone());
        let outcome = self.make_run(prompt, resolved, parent, lock).await;
        if outcome.is_err() {
            freeze_if_idle(home, slug.as_str())?;
        }
        outcome
    }

    /// The conversation to go on with, if the same agent had one.
    fn session(&self, manifest: &AgentManifest) -> Option<String> {
        let resumable = Provider::parse(&manifest.provider).is_ok_and(Provider::can_resume);
        let known = self.record.session.as_ref();
        let same = known.filter(|session| resumable && session.provider == manifest.provider);
        same.map(|session| session.id.clone())
    }

    fn prompt(
        &self,
        task: &str,
        manifest: &AgentManifest,
        pins: &BottlePins,
        goes_on: bool,
    ) -> String {
        if task.is_empty() {
            // A person sits there and begins; what is new stands in the workspace, under its names.
            return String::new();
        }
        let name = |branch: &BranchName| format!("origin/{branch}");
        let news = BranchChanges {
            base: pins.base_is_new.then(|| name(&pins.base_branch)),
            branch: pins.branch_is_new.then(|| name(&pins.branch)),
        };
        let forge = self.access.as_ref().zip(self.assignment.as_ref());
        render_prompt(&BottlePrompt {
            manifest: if goes_on { "" } else { &manifest.prompt },
            task,
            branch: pins.branch.as_str(),
            news: Some(news),
            forge: forge.map(|(access, assignment)| ForgePart {
                issue: access.env.issue,
                pull: access.env.pull,
                thread: &assignment.thread,
                left_out: assignment.left_out,
            }),
        })
    }

    /// What is started. Only agents that speak MCP get the tools; for all of them there is the command.
    fn plan(
        &self,
        dir: &RunDir,
        resolved: &ResolvedBottle,
        prompt: String,
        session: Option<String>,
    ) -> Result<AgentPlan, Failure> {
        let provider = resolved.manifest.provider().or_exit(BottleExit::Usage)?;
        let tools = self.access.iter().filter(|_| provider.speaks_mcp());
        let mcp = tools.map(|_| forge_tools()).collect();
        let chosen = self.terminal.as_ref().map(|_| session_of(dir.id()));
        let session = session.map_or(SessionRequest::Fresh { id: chosen }, SessionRequest::Resume);
        let task = AgentTask { run: dir.id(), prompt, context: None, session, mcp };
        let plan = match self.terminal.clone() {
            Some(terminal) => resolved.agent.plan_at_terminal(task, terminal),
            None => resolved.agent.plan(task),
        };
        let mut plan = plan.or_exit(BottleExit::Usage)?;
        plan.programs.extend(check_mounts(&resolved.bottle)?);
        if self.access.is_some() {
            SidecarPlace::of(dir)?.fit(&mut plan);
        }
        Ok(plan)
    }

    /// The forge's delivery that set this run off: the orchestrator knows it, or whoever calls says it.
    fn delivery(&self) -> Option<String> {
        let told = || host::env::var(DELIVERY_VARIABLE).filter(|id| !id.trim().is_empty());
        self.claim.as_ref().map_or_else(told, |claim| claim.trigger.clone())
    }

    fn first_record(
        &self,
        dir: &RunDir,
        resolved: ResolvedBottle,
        pins: BottlePins,
        prompt: &str,
    ) -> BottleRunRecord {
        let part = BottleRunPart {
            slug: self.bottle.slug().clone(),
            agent: self.record.agent.clone(),
            manifest: resolved.manifest,
            bottles: self.record.bottles.clone(),
            bottle: resolved.bottle,
            backend: resolved.choice.kind,
            backend_reason: resolved.choice.reason,
            parent: None,
            claim: self.claim.as_ref().map(|claim| claim.number),
            lineage: self.record.runs.clone(),
            resumes_session: false,
            prompt_sha256: model::digest::sha256(prompt.as_bytes()),
            forge: self.access.as_ref().map(|access| access.env.clone()),
            delivery: self.delivery(),
            issue_title: self.assignment.as_ref().map(|it| it.issue.title.clone()),
            pins,
            seal: None,
            sidecar: None,
            done: None,
            watchdog: None,
            scans: Vec::new(),
        };
        BottleRunRecord::new(dir.id().clone(), part)
    }
}

fn fresh_pins(record: &Record) -> BottlePins {
    BottlePins {
        branch: record.branch.clone(),
        base_branch: record.base_branch.clone(),
        start: record.base.clone(),
        base: record.base.clone(),
        base_is_new: false,
        branch_is_new: false,
    }
}

fn forge_tools() -> McpServer {
    let url = format!("http://127.0.0.1:{FORGE_PORT}/mcp");
    McpServer { name: "forge".to_owned(), transport: Transport::Http { url } }
}
