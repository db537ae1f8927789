//! Hiring an agent: which program, which model server, which key, which way out. Everything that can be wrong with it
//! is found here, before anything is started.

pub mod choice;
mod key;
mod plan;

use std::path::{Path, PathBuf};

use agent::{
    AgentError, AgentRequest, Interaction, McpServer, ModelEndpoint, ModelUse, Provider,
    RequiredSetting, SessionRequest, WireApi,
};
use egress::model_route::{Caps, Price, Prices, SpecError, Upstream};
use egress::{EgressConfig, EgressPolicy, EgressProfile, ModelRouteSpec};
use guest::script::Script;
use host::file::FileError;
use model::id::RunId;
use model::secret::Secret;

use crate::install::{self, Installed};
use crate::terminal::TerminalPlan;
use choice::{ModelChoice, NoModel, Said, choose_model};

pub use key::KeyLocation;
pub(crate) use plan::PROGRAM_DIR;
pub use plan::{AgentPlan, PROXY};

/// Who is wanted, as far as it was said.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    pub provider: Provider,
    /// Its model, with or without its server's name before a slash.
    pub model: Option<String>,
    /// How hard the model shall think.
    pub variant: Option<String>,
    /// Which of the agent's own personas shall work.
    pub agent: Option<String>,
    /// Another model server than the name implies.
    pub url: Option<String>,
    /// Another way to talk to it.
    pub wire: Option<String>,
    /// Where the key is; the variable that is usual for the server if nothing is said.
    pub key: Option<KeyLocation>,
    pub caps: Caps,
    /// What the model costs.
    pub price: Option<Price>,
    /// What it may reach beside its model; nothing if nothing is said.
    pub policy: Option<EgressPolicy>,
    /// Seconds without output or traffic after which it is ended.
    pub silence_secs: Option<u64>,
    /// What the scripted agent plays.
    pub script: Option<Script>,
    /// What the agent `command` starts.
    pub template: Option<Vec<String>>,
}

impl AgentOptions {
    /// This agent, and nothing else said.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            model: None,
            variant: None,
            agent: None,
            url: None,
            wire: None,
            key: None,
            caps: Caps::default(),
            price: None,
            policy: None,
            silence_secs: None,
            script: None,
            template: None,
        }
    }
}

/// Why an agent cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveAgentError {
    #[error(transparent)]
    Model(#[from] NoModel),
    /// The model server's address or caps cannot be used.
    #[error(transparent)]
    Route(#[from] SpecError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("{name} is not installed; run: {hint} {name}", hint = INSTALL_HINT)]
    NotInstalled { name: &'static str },
    #[error("{0}")]
    NoRuntime(String),
    #[error("the model's key is not there: set {name}, or name a file that holds it")]
    NoKey { name: String },
    #[error("{path}: {reason}", path = path.display())]
    Settings { path: PathBuf, reason: String },
    #[error(transparent)]
    File(#[from] FileError),
    /// The program of the agent `command`.
    #[error("the program '{program}' was not found; name it by its path")]
    NoProgram { program: String },
}

/// The command that installs agents, as people type it.
const INSTALL_HINT: &str = "forklift agents install";

/// An agent that can be started: everything about it was checked.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    wish: AgentOptions,
    installed: Option<Installed>,
    /// The program of the agent `command`, if it is none of the system's.
    program: Option<PathBuf>,
    model: Option<Model>,
}

#[derive(Debug, Clone)]
struct Model {
    choice: ModelChoice,
    route: ModelRouteSpec,
    key: KeyLocation,
    secrets: Vec<Secret>,
}

/// What one run asks of the agent.
#[derive(Debug, Clone)]
pub struct AgentTask<'a> {
    pub run: &'a RunId,
    pub prompt: String,
    /// What the repository's people say about it, shown beside the instructions.
    pub context: Option<String>,
    /// Whether this begins a conversation or goes on with one.
    pub session: SessionRequest,
    /// Tool servers.
    pub mcp: Vec<McpServer>,
}

/// Checks the wish against this machine. `agents` is the folder of installed programs.
pub async fn resolve_agent(
    mut wish: AgentOptions,
    agents: &Path,
) -> Result<ResolvedAgent, ResolveAgentError> {
    let program = match wish.provider.required_setting() {
        Some(RequiredSetting::Command) => find_program(&mut wish)?,
        Some(RequiredSetting::Script) if wish.script.is_none() => {
            return Err(AgentError::NoScript.into());
        }
        Some(RequiredSetting::Script) | None => None,
    };
    let model = if wants_model(&wish) { Some(Model::choose(&wish)?) } else { None };
    let installed = match wish.provider.program() {
        Some(program) => Some(installed(wish.provider, &program, agents).await?),
        None => None,
    };
    Ok(ResolvedAgent { wish, installed, program, model })
}

impl ResolvedAgent {
    /// The address of its model's server, if it has a model.
    pub fn model_server(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.choice.url.clone())
    }

    /// Values that must never be written anywhere.
    pub fn secrets(&self) -> Vec<Secret> {
        self.model.iter().flat_map(|model| model.secrets.clone()).collect()
    }

    /// What is started for a task.
    pub fn plan(&self, task: AgentTask<'_>) -> Result<AgentPlan, ResolveAgentError> {
        self.plan_in(Interaction::Headless, task)
    }

    /// The same with the agent's own interface, for a person at a terminal. Nobody is ended for thinking in silence.
    pub fn plan_at_terminal(
        &self,
        task: AgentTask<'_>,
        terminal: TerminalPlan,
    ) -> Result<AgentPlan, ResolveAgentError> {
        let mut plan = self.plan_in(Interaction::Terminal, task)?;
        plan.env.extend(terminal.env.clone());
        plan.silence_secs = None;
        plan.terminal = Some(terminal);
        Ok(plan)
    }

    fn plan_in(
        &self,
        manner: Interaction,
        task: AgentTask<'_>,
    ) -> Result<AgentPlan, ResolveAgentError> {
        let wish = &self.wish;
        let dummy_key = format!("bottle-{}", task.run);
        let command = wish.provider.command(&self.request(manner, &task, &dummy_key))?;
        let mut plan = AgentPlan::new(wish.provider, &command, task.prompt, task.context);
        plan.programs = self.installed.iter().map(|installed| installed.mount.clone()).collect();
        plan.program = self.program.clone();
        plan.silence_secs = wish.silence_secs;
        let route = self.model.as_ref().map(|model| {
            plan.key = model.key.clone();
            ModelRouteSpec { dummy_key, ..model.route.clone() }
        });
        if route.is_some() || wish.policy.is_some() {
            let only_model = || EgressPolicy::new(EgressProfile::ModelOnly);
            plan.egress = Some(EgressConfig {
                run: task.run.to_string(),
                policy: wish.policy.clone().unwrap_or_else(only_model),
                model: route,
                log_path: PathBuf::new(),
            });
        }
        Ok(plan)
    }

    fn request(&self, manner: Interaction, task: &AgentTask<'_>, dummy_key: &str) -> AgentRequest {
        let wish = &self.wish;
        let choice = self.model.as_ref().map(|model| &model.choice);
        AgentRequest {
            launcher: self.installed.as_ref().map_or_else(Vec::new, |it| it.launcher.clone()),
            prompt: task.prompt.clone(),
            manner,
            model: choice.and_then(|choice| choice.model.clone()),
            variant: wish.variant.clone(),
            agent: wish.agent.clone(),
            session: task.session.clone(),
            model_route: ModelEndpoint {
                base_url: egress::model_base_url(PROXY),
                wire: choice.map_or(WireApi::Chat, |choice| choice.wire),
                dummy_key: dummy_key.to_owned(),
            },
            mcp: task.mcp.clone(),
            workspace: "/workspace".to_owned(),
            run_title: task.run.to_string(),
            price: wish.price,
            script: wish.script.clone(),
            template: wish.template.clone(),
        }
    }
}

impl Model {
    fn choose(wish: &AgentOptions) -> Result<Self, ResolveAgentError> {
        let said = Said {
            model: wish.model.as_deref(),
            url: wish.url.as_deref(),
            wire: wish.wire.as_deref(),
        };
        let choice = choose_model(wish.provider, said)?;
        let usual = || KeyLocation::Variable(choice.key.to_owned());
        let key = wish.key.clone().unwrap_or_else(usual);
        let route = route(wish, &choice, &key)?;
        let secrets = key.values()?;
        Ok(Self { choice, route, key, secrets })
    }
}

fn wants_model(wish: &AgentOptions) -> bool {
    match wish.provider.model_use() {
        ModelUse::Never => false,
        ModelUse::IfNamed => wish.model.is_some() || wish.url.is_some(),
        ModelUse::Always => true,
    }
}

fn route(
    wish: &AgentOptions,
    choice: &ModelChoice,
    key: &KeyLocation,
) -> Result<ModelRouteSpec, ResolveAgentError> {
    let upstream = Upstream::parse(&choice.url)?;
    let mut spec = ModelRouteSpec::new(upstream, choice.auth, key.source(), "");
    spec.apis = vec![choice.wire];
    spec.caps = wish.caps;
    if let Some(price) = wish.price {
        let model = choice.model.clone().unwrap_or_else(|| "*".to_owned());
        spec.prices = Prices([(model, price)].into());
    }
    spec.check()?;
    Ok(spec)
}

async fn installed(
    provider: Provider,
    program: &agent::program::Program,
    agents: &Path,
) -> Result<Installed, ResolveAgentError> {
    if let Some(missing) = install::missing_runtime(program).await {
        return Err(ResolveAgentError::NoRuntime(missing));
    }
    install::find(agents, program).ok_or(ResolveAgentError::NotInstalled { name: provider.name() })
}

/// Finds the program of the agent `command`. One of the system's is taken as the box's root has it; another one is
/// copied beside the box and started from there, so that nothing else of its folder is shown.
fn find_program(wish: &mut AgentOptions) -> Result<Option<PathBuf>, ResolveAgentError> {
    let Some(first) = wish.template.as_mut().and_then(|words| words.first_mut()) else {
        return Err(AgentError::NoTemplate.into());
    };
    let missing = || ResolveAgentError::NoProgram { program: first.clone() };
    let found = if first.contains('/') {
        std::fs::canonicalize(&*first).ok().filter(|path| path.is_file())
    } else {
        host::tool::which(first)
    };
    let found = found.ok_or_else(missing)?;
    if ["/usr", "/bin", "/sbin"].iter().any(|root| found.starts_with(root)) {
        return Ok(None);
    }
    let name = found.file_name().map(|name| name.to_string_lossy().into_owned());
    *first = format!("{}/{}", plan::PROGRAM_DIR, name.ok_or_else(missing)?);
    Ok(Some(found))
}
