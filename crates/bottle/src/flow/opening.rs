//! A bottle that is about to run: its pins, its prompt, its plan and the first page of its record become one [`Run`].

use agent::{McpServer, Provider, SessionRequest, Transport};
use engine::agent_plan::{AgentPlan, AgentTask};
use engine::terminal::TerminalPlan;
use guest::FORGE_PORT;
use host::lock::FileLock;
use model::exit::BottleExit;
use model::id::{BranchName, ProjectName, RunId};
use model::redact::Redactor;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::save_metadata;
use run_store::run_dir::RunDir;

use super::access::ForgeAccess;
use super::bottle::{Bottle, BottleState, Record, WorkspaceState};
use super::keeper::Keeper;
use super::metadata::{self, BottlePins, Metadata, Phase};
use super::mounts::check_mounts;
use super::observe::Source;
use super::open::{Claim, Staff};
use super::recover::{settle, used_by};
use super::run::Run;
use super::sealed::save_plan;
use super::sidecar::SidecarPlace;
use super::thread::Assignment;
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::prompt::{BottlePrompt, BranchChanges, ForgePart, render_prompt};
use crate::rules::session::session_of;

/// The variable with the forge's delivery that sets a run off.
const DELIVERY_VARIABLE: &str = "FORGE_DELIVERY_ID";

/// A bottle that is about to run.
pub(super) struct Opening<'a> {
    pub(super) keeper: Keeper<'a>,
    pub(super) bottle: Bottle,
    pub(super) record: Record,
    pub(super) source: Source,
    pub(super) access: Option<ForgeAccess>,
    pub(super) assignment: Option<Assignment>,
    pub(super) claim: Option<Claim>,
    pub(super) terminal: Option<TerminalPlan>,
}

impl Opening<'_> {
    async fn make_run(
        mut self,
        prompt: &str,
        staff: Staff,
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
        let session = self.session(&staff.manifest);
        let prompt = self.prompt(prompt, &staff.manifest, &pins, session.is_some());
        let plan = self.plan(&dir, &staff, prompt.clone(), session.clone())?;
        let mut secrets = staff.resolved.secrets();
        secrets.extend(self.access.iter().map(|access| access.token.clone()));
        let redactor = Redactor::new(secrets.clone());
        let used_before = used_by(&self.record, &staff.manifest.provider);
        let mut meta = self.metadata(&dir, staff, pins, &prompt);
        meta.parent = parent;
        meta.resumes_session = session.is_some();
        save_plan(&plan, &dir)?;
        save_metadata(&dir, &redactor, &meta).or_general()?;
        self.record.runs.push(dir.id().clone());
        if let Some(assignment) = &self.assignment {
            self.record.seen_comments.clone_from(&assignment.seen_comments);
        }
        self.record.state = BottleState::Running;
        self.record.backend = meta.backend;
        self.bottle.save(&self.record)?;
        host::failpoint::hit("pinned");
        let Self { keeper, bottle, record, source, access, .. } = self;
        let run = Run {
            keeper,
            bottle,
            record,
            dir,
            meta,
            source,
            plan,
            access,
            secrets,
            used_before,
            seat: None,
            snapshot: LaterSnapshot::default(),
        };
        let outcome = run.advance().await;
        drop(lock);
        outcome
    }

    /// Runs it; a failure of ours that left nothing at work leaves the bottle frozen, so that it can be resumed.
    pub(super) async fn run(
        self,
        prompt: &str,
        staff: Staff,
        parent: Option<RunId>,
        lock: FileLock,
    ) -> Outcome {
        let (home, slug) = (self.keeper.home, self.bottle.slug().clone());
        let outcome = self.make_run(prompt, staff, parent, lock).await;
        if outcome.is_err() {
            settle(home, slug.as_str())?;
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
        staff: &Staff,
        prompt: String,
        session: Option<String>,
    ) -> Result<AgentPlan, Failure> {
        let provider = staff.manifest.provider().or_exit(BottleExit::Usage)?;
        let tools = self.access.iter().filter(|_| provider.speaks_mcp());
        let mcp = tools.map(|_| forge_tools()).collect();
        let chosen = self.terminal.as_ref().map(|_| session_of(dir.id()));
        let session = session.map_or(SessionRequest::Fresh { id: chosen }, SessionRequest::Resume);
        let task = AgentTask { run: dir.id(), prompt, context: None, session, mcp };
        let plan = match self.terminal.clone() {
            Some(terminal) => staff.resolved.plan_at_terminal(task, terminal),
            None => staff.resolved.plan(task),
        };
        let mut plan = plan.or_exit(BottleExit::Usage)?;
        plan.programs.extend(check_mounts(&staff.bottle)?);
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

    fn metadata(&self, dir: &RunDir, staff: Staff, pins: BottlePins, prompt: &str) -> Metadata {
        Metadata {
            version: metadata::VERSION,
            run: dir.id().clone(),
            slug: self.bottle.slug().clone(),
            phase: Phase::Pinned,
            started_at: host::clock::now(),
            finished_at: None,
            agent: self.record.agent.clone(),
            manifest: staff.manifest,
            bottles: self.record.bottles.clone(),
            bottle: staff.bottle,
            backend: staff.choice.kind,
            backend_reason: staff.choice.reason,
            parent: None,
            claim: self.claim.as_ref().map(|claim| claim.number),
            lineage: self.record.runs.clone(),
            resumes_session: false,
            prompt_sha256: model::digest::sha256(prompt.as_bytes()),
            forge: self.access.as_ref().map(|access| access.env.clone()),
            delivery: self.delivery(),
            issue_title: self.assignment.as_ref().map(|it| it.issue.title.clone()),
            pins,
            workspace: None,
            setup: None,
            seal: None,
            sidecar: None,
            done: None,
            watchdog: None,
            agent_box: None,
            said: None,
            evidence: None,
            import_refused: None,
            scans: Vec::new(),
            verdict: None,
            publication: None,
            exit_status: None,
            operations_head: None,
        }
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
