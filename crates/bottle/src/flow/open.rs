//! Opening a bottle: a new one, a frozen one, or one whose keeper was killed. All three become one [`Run`].

use std::path::PathBuf;
use std::time::Duration;

use agent::{McpServer, Provider, SessionWish, Transport, Usage};
use engine::hire::{AgentPlan, Hired, Task};
use engine::launch::{self, Sighting};
use engine::place::Place;
use guest::FORGE_PORT;
use host::lock::FileLock;
use host::signal::cancel_on_signals;
use model::id::{BoxName, BranchName, ProjectName, RunId, Sha};
use model::redact::Redactor;
use model::verdict::BottleStatus;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, Choice};
use sha2::{Digest, Sha256};
use state::Step;
use store::env_snapshot::{observe_env, save_env_snapshot};
use store::metadata::{load_metadata, save_metadata};
use store::run_dir::RunDir;

use super::access::ForgeAccess;
use super::bottle::{self, Bottle, BottleState, Record, WorkspaceState};
use super::hire::hire_agent;
use super::home::Home;
use super::metadata::{self, BottlePins, Metadata, Phase};
use super::mounts::check_mounts;
use super::observe::Source;
use super::run::Run;
use super::sealed::{DEFAULT_IMAGE, load_plan, save_plan};
use super::sidecar::SidecarPlace;
use super::standing;
use super::thread::{Assignment, check_target, read_assignment};
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::bottle_manifest::BottleManifest;
use crate::rules::prompt::{Briefing, ForgePart, News, render_prompt};
use crate::ui::Ui;

/// What a new bottle is asked.
pub(crate) struct StartWish {
    pub(crate) agent: String,
    pub(crate) bottles: Vec<String>,
    pub(crate) prompt: String,
    pub(crate) label: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) repo: Option<PathBuf>,
}

/// What a frozen bottle is asked.
pub(crate) struct ResumeWish {
    pub(crate) slug: String,
    pub(crate) prompt: String,
    pub(crate) backend: Option<String>,
}

/// Everything that was checked before anything is made.
struct Staff {
    manifest: AgentManifest,
    bottle: BottleManifest,
    hired: Hired,
    choice: Choice,
}

/// Starts a new bottle and runs one prompt in it. With `access` it is a forge run.
pub(crate) async fn start(
    ui: &Ui,
    home: &Home,
    wish: StartWish,
    access: Option<ForgeAccess>,
) -> Outcome {
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
    let staff = staff(home, manifest, &bottles, wish.backend.as_deref()).await?;
    let dir = match wish.repo {
        Some(repo) => repo,
        None => host::env::current_dir().or_exit(BottleStatus::Usage)?,
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
    let mut record = first_record(&bottle, &source, origin, &wish.agent, bottles, &staff)?;
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
    let opening = Opening { ui, home, bottle, record, source, access, assignment };
    opening.run(&wish.prompt, staff, None, lock).await
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
    ui: &Ui,
    home: &Home,
    wish: ResumeWish,
    access: Option<ForgeAccess>,
) -> Outcome {
    let (bottle, _) = Bottle::open(home, &wish.slug)?;
    let lock = bottle.take(Duration::ZERO).await?;
    recover(ui, home, &bottle, access.clone()).await?;
    settle(home, &wish.slug)?;
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
    let staff = staff(home, manifest, &record.bottles, backend.as_deref()).await?;
    let earlier = match bottle.last_run(&record)? {
        Some(dir) => Some(load_metadata::<Metadata>(&dir).or_general()?),
        None => None,
    };
    let since = earlier.as_ref().and_then(|meta| meta.finished_at);
    let assignment = match &access {
        Some(access) => Some(read_assignment(access, record.pull, since).await?),
        None => None,
    };
    ui.phase("observe", "fetching origin");
    let source = Source::fetch(home, &record.repo, access.as_ref()).await?;
    standing::step(home, &record, Step::Rehydrate)?;
    record.forge = access.as_ref().map(|access| access.env.clone()).or(record.forge);
    record.pull = record.pull.or(assignment.as_ref().and_then(|assignment| assignment.pull));
    let opening = Opening { ui, home, bottle, record, source, access, assignment };
    opening.run(&wish.prompt, staff, earlier.map(|meta| meta.run), lock).await
}

/// Finishes the last run of a bottle whose keeper was killed. The caller holds the bottle's lock.
pub(crate) async fn recover(
    ui: &Ui,
    home: &Home,
    bottle: &Bottle,
    access: Option<ForgeAccess>,
) -> Result<(), Failure> {
    let (bottle, record) = Bottle::open(home, bottle.slug().as_str())?;
    let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) else { return Ok(()) };
    let access = match access {
        Some(access) => Some(access),
        None => ForgeAccess::of_record(home, record.forge.as_ref())?,
    };
    ui.note(&format!("finishing {}, whose bot-bottle was ended", dir.id()));
    let meta: Metadata = load_metadata(&dir).or_general()?;
    let plan = load_plan(&dir)?;
    let source = Source::find(&record.repo, access.as_ref()).await?;
    let mut secrets: Vec<_> = access.iter().map(|access| access.token.clone()).collect();
    secrets.extend(plan.key.variables().into_iter().flatten().map(|(_, key)| key));
    let cancel = cancel_on_signals().or_general()?;
    let used_before = used_by(&record, &meta.manifest.provider);
    let run = Run {
        ui,
        home,
        bottle,
        record,
        dir,
        meta,
        source,
        plan,
        access,
        secrets,
        cancel,
        used_before,
    };
    run.advance().await.map(drop)
}

fn used_by(record: &Record, provider: &str) -> Usage {
    let session = record.session.as_ref().filter(|session| session.provider == provider);
    session.and_then(|session| session.usage).unwrap_or_default()
}

async fn staff(
    home: &Home,
    manifest: AgentManifest,
    bottles: &[String],
    backend: Option<&str>,
) -> Result<Staff, Failure> {
    let bottle = home.load_bottles(bottles)?;
    check_mounts(&bottle)?;
    let wanted: Option<BackendKind> =
        backend.map(str::parse).transpose().or_exit(BottleStatus::Usage)?;
    let wanted = wanted.or_else(|| bottle.root.as_ref().map(|_| BackendKind::Bwrap));
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    let found = choice::observe(wanted, image).await;
    let choice = choice::choose(wanted, &found, image).or_exit(BottleStatus::Usage)?;
    let hired = hire_agent(home, &manifest).await?;
    Ok(Staff { manifest, bottle, hired, choice })
}

/// The record of a bottle in which nothing has been yet.
fn first_record(
    bottle: &Bottle,
    source: &Source,
    (base_branch, base): (BranchName, Sha),
    agent: &str,
    bottles: Vec<String>,
    staff: &Staff,
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
        branch: BranchName::parse(&branch).or_exit(BottleStatus::Internal)?,
        known_base: base.clone(),
        base,
        published: None,
        pull: None,
        forge: None,
        backend: staff.choice.kind,
        session: None,
        workspace: WorkspaceState::Absent,
        runs: Vec::new(),
    })
}

/// A bottle that is about to run.
struct Opening<'a> {
    ui: &'a Ui,
    home: &'a Home,
    bottle: Bottle,
    record: Record,
    source: Source,
    access: Option<ForgeAccess>,
    assignment: Option<Assignment>,
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
        let mut secrets = staff.hired.secrets();
        secrets.extend(self.access.iter().map(|access| access.token.clone()));
        let redactor = Redactor::new(secrets.clone());
        let used_before = used_by(&self.record, &staff.manifest.provider);
        let mut meta = self.metadata(&dir, staff, pins, &prompt);
        meta.parent = parent;
        meta.resumes_session = session.is_some();
        save_plan(&plan, &dir)?;
        save_metadata(&dir, &redactor, &meta).or_general()?;
        let facts = observe_env(host::clock::now()).await;
        save_env_snapshot(&dir, &redactor, &facts).or_general()?;
        self.record.runs.push(dir.id().clone());
        self.record.state = BottleState::Running;
        self.record.backend = meta.backend;
        self.bottle.save(&self.record)?;
        host::failpoint::hit("pinned");
        let cancel = cancel_on_signals().or_general()?;
        let Self { ui, home, bottle, record, source, access, .. } = self;
        let run = Run {
            ui,
            home,
            bottle,
            record,
            dir,
            meta,
            source,
            plan,
            access,
            secrets,
            cancel,
            used_before,
        };
        let outcome = run.advance().await;
        drop(lock);
        outcome
    }

    /// Runs it; a failure of ours that left nothing at work leaves the bottle frozen, so that it can be resumed.
    async fn run(
        self,
        prompt: &str,
        staff: Staff,
        parent: Option<RunId>,
        lock: FileLock,
    ) -> Outcome {
        let (home, slug) = (self.home, self.bottle.slug().clone());
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
        let name = |branch: &BranchName| format!("origin/{branch}");
        let news = News {
            base: pins.base_is_new.then(|| name(&pins.base_branch)),
            branch: pins.branch_is_new.then(|| name(&pins.branch)),
        };
        let forge = self.access.as_ref().zip(self.assignment.as_ref());
        render_prompt(&Briefing {
            manifest: if goes_on { "" } else { &manifest.prompt },
            task,
            branch: pins.branch.as_str(),
            news: Some(news),
            forge: forge.map(|(access, assignment)| ForgePart {
                issue: access.env.issue,
                pull: access.env.pull,
                thread: &assignment.thread,
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
        let provider = staff.manifest.provider().or_exit(BottleStatus::Usage)?;
        let speaks = match provider {
            Provider::OpenCode | Provider::Codex | Provider::Claude | Provider::Command => true,
            Provider::Pi | Provider::Scripted => false,
        };
        let mcp = self.access.iter().filter(|_| speaks).map(|_| forge_tools()).collect();
        let session = session.map_or(SessionWish::Fresh { id: None }, SessionWish::Resume);
        let task = Task { run: dir.id(), prompt, context: None, session, mcp };
        let mut plan = staff.hired.plan(task).or_exit(BottleStatus::Usage)?;
        plan.programs.extend(check_mounts(&staff.bottle)?);
        if self.access.is_some() {
            SidecarPlace::of(dir)?.fit(&mut plan);
        }
        Ok(plan)
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
            resumes_session: false,
            prompt_sha256: digest(prompt),
            forge: self.access.as_ref().map(|access| access.env.clone()),
            issue_title: self.assignment.as_ref().map(|it| it.issue.title.clone()),
            pins,
            workspace: None,
            setup: None,
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

/// A bottle in which nothing runs is frozen, whatever was written down before somebody failed or was killed. The caller
/// holds its lock.
pub(crate) fn settle(home: &Home, slug: &str) -> Result<(), Failure> {
    let (bottle, mut record) = Bottle::open(home, slug)?;
    if record.state == BottleState::Destroyed {
        return Ok(());
    }
    if let Some(dir) = bottle.last_run(&record)? {
        let agent = BoxName::parse("agent").or_exit(BottleStatus::Internal)?;
        let seen = launch::look(&Place::new(dir.box_place(&agent))).or_general()?;
        if seen == Sighting::Running {
            return Ok(());
        }
    }
    standing::step(home, &record, Step::Freeze)?;
    record.state = BottleState::Frozen;
    bottle.save(&record)
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

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
