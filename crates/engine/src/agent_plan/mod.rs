//! Resolution of an agent: its program, model server, key and egress. All errors in the options are found here, before
//! anything is started.

pub mod choice;
mod key;
mod login;
mod plan;

use std::path::{Path, PathBuf};

use agent::{
    AgentError, AgentRequest, Interaction, McpServer, ModelEndpoint, ModelUse, Provider,
    RequiredSetting, SessionRequest, WireApi,
};
use egress::model_route::{AuthStyle, Caps, Dialect, Price, Prices, SpecError, Upstream};
use egress::{EgressConfig, EgressPolicy, EgressProfile, ModelRouteSpec, is_public};
use guest::script::Script;
use host::file::FileError;
use model::id::RunId;
use model::secret::Secret;

use crate::install::{self, Installed};
use crate::terminal::TerminalPlan;
use choice::{ModelChoice, NoModel, choose_model};

pub use key::{KeyLocation, read_once};
pub use login::has_login;
pub(crate) use plan::PROGRAM_DIR;
pub use plan::{AgentPlan, PROXY};

/// Options of an agent, as far as the user set them.
#[derive(Debug, Clone, Default)]
pub struct AgentOptions {
    pub provider: Provider,
    /// With or without its server's prefix before a slash.
    pub model: Option<String>,
    pub variant: Option<String>,
    /// Name of the agent's own persona.
    pub agent: Option<String>,
    /// Model server, instead of the one that the model's name implies.
    pub url: Option<String>,
    /// Wire API, instead of the server's usual one.
    pub wire: Option<String>,
    /// Instead of the server's usual variable.
    pub key: Option<KeyLocation>,
    /// Use of the login of the agent's own program, instead of a key.
    pub login: bool,
    pub caps: Caps,
    pub price: Option<Price>,
    /// Egress beside the model; `None` for nothing.
    pub policy: Option<EgressPolicy>,
    /// Seconds without output or traffic after which it is ended.
    pub silence_secs: Option<u64>,
    pub script: Option<Script>,
    /// Command line of the agent `command`.
    pub template: Option<Vec<String>>,
}

impl AgentOptions {
    pub fn new(provider: Provider) -> Self {
        Self { provider, ..Self::default() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ResolveAgentError {
    #[error(transparent)]
    Model(#[from] NoModel),
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
    #[error("{name} has no login that can be used with this model server")]
    NoLogin { name: &'static str },
    #[error("{path}: {reason}", path = path.display())]
    Settings { path: PathBuf, reason: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the program '{program}' was not found; name it by its path")]
    NoProgram { program: String },
}

/// Command line that installs agents.
const INSTALL_HINT: &str = "forklift agents install";

/// An agent whose options were checked, so that it can be started.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    options: AgentOptions,
    installed: Option<Installed>,
    /// Program of the agent `command`, unless it belongs to the system.
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

#[derive(Debug, Clone)]
pub struct AgentTask<'a> {
    pub run: &'a RunId,
    pub prompt: String,
    /// The maintainers' notes on the repository, shown beside the instructions.
    pub context: Option<String>,
    pub session: SessionRequest,
    pub mcp: Vec<McpServer>,
}

/// Checks the options against this machine. `agents` is the folder of installed programs.
pub async fn resolve_agent(
    mut options: AgentOptions,
    agents: &Path,
) -> Result<ResolvedAgent, ResolveAgentError> {
    let program = match options.provider.required_setting() {
        Some(RequiredSetting::Command) => find_program(&mut options)?,
        Some(RequiredSetting::Script) if options.script.is_none() => {
            return Err(AgentError::NoScript.into());
        }
        Some(RequiredSetting::Script) | None => None,
    };
    let model = if wants_model(&options) { Some(Model::choose(&options)?) } else { None };
    if let (Some(model), true) = (&model, options.url.is_some()) {
        permit_typed_address(&mut options.policy, &model.route.upstream);
    }
    let installed = match options.provider.program() {
        Some(program) => Some(installed(options.provider, &program, agents).await?),
        None => None,
    };
    Ok(ResolvedAgent { options, installed, program, model })
}

/// Describes where the key of the agent's model is; the error says what is missing.
pub fn locate_key(options: &AgentOptions) -> Result<String, ResolveAgentError> {
    Ok(Model::choose(options)?.key.to_string())
}

impl ResolvedAgent {
    pub fn provider(&self) -> Provider {
        self.options.provider
    }

    pub fn model_server(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.choice.url.clone())
    }

    /// Name of the model at its server, if one was chosen.
    pub fn model_name(&self) -> Option<&str> {
        self.model.as_ref().and_then(|model| model.choice.model.as_deref())
    }

    /// Values that must never be written.
    pub fn secrets(&self) -> Vec<Secret> {
        self.model.iter().flat_map(|model| model.secrets.clone()).collect()
    }

    pub fn plan(&self, task: AgentTask<'_>) -> Result<AgentPlan, ResolveAgentError> {
        self.plan_in(Interaction::Headless, task)
    }

    /// A plan with the agent's own interface at a terminal. A silent agent is not ended there.
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
        let options = &self.options;
        let dummy_key = format!("bottle-{}", task.run);
        let command = options.provider.command(&self.request(manner, &task, &dummy_key))?;
        let route =
            self.model.as_ref().map(|model| ModelRouteSpec { dummy_key, ..model.route.clone() });
        let has_egress = route.is_some() || options.policy.is_some();
        let only_model = || EgressPolicy::new(EgressProfile::ModelOnly);
        let egress = has_egress.then(|| EgressConfig {
            run: task.run.to_string(),
            policy: options.policy.clone().unwrap_or_else(only_model),
            model: route,
            log_path: PathBuf::new(),
        });
        Ok(AgentPlan {
            provider: options.provider.name().to_owned(),
            argv: command.argv,
            env: command.env,
            files: command.files,
            home: command.home,
            programs: self.installed.iter().map(|installed| installed.mount.clone()).collect(),
            program: self.program.clone(),
            egress,
            key: self.model.as_ref().map_or(KeyLocation::Nowhere, |model| model.key.clone()),
            sidecars: Vec::new(),
            silence_secs: options.silence_secs,
            terminal: None,
            instructions: task.prompt,
            context: task.context,
        })
    }

    fn request(&self, manner: Interaction, task: &AgentTask<'_>, dummy_key: &str) -> AgentRequest {
        let options = &self.options;
        let choice = self.model.as_ref().map(|model| &model.choice);
        AgentRequest {
            launcher: self.installed.as_ref().map_or_else(Vec::new, |it| it.launcher.clone()),
            prompt: task.prompt.clone(),
            manner,
            model: choice.and_then(|choice| choice.model.clone()),
            variant: options.variant.clone(),
            agent: options.agent.clone(),
            session: task.session.clone(),
            model_route: ModelEndpoint {
                base_url: egress::model_base_url(PROXY),
                wire: choice.map_or(WireApi::Chat, |choice| choice.wire),
                dummy_key: dummy_key.to_owned(),
            },
            mcp: task.mcp.clone(),
            workspace: "/workspace".to_owned(),
            run_title: task.run.to_string(),
            price: options.price,
            script: options.script.clone(),
            template: options.template.clone(),
        }
    }
}

/// Lets the user's own model server be reached: a private address that they wrote down is one that they permit.
fn permit_typed_address(policy: &mut Option<EgressPolicy>, upstream: &Upstream) {
    let private = upstream.literal_addresses().into_iter().filter(|it| !is_public(it.ip()));
    let mut private: Vec<_> = private.collect();
    if !private.is_empty() {
        let policy = policy.get_or_insert_with(|| EgressPolicy::new(EgressProfile::ModelOnly));
        private.retain(|address| !policy.permit_private.contains(address));
        policy.permit_private.extend(private);
    }
}

impl Model {
    fn choose(options: &AgentOptions) -> Result<Self, ResolveAgentError> {
        let mut choice = choose_model(options)?;
        let key = match &options.key {
            Some(key) => key.clone(),
            None if options.login => use_login(options, &mut choice)?,
            None => usual_key(options, &mut choice),
        };
        let route = route(options, &choice, &key)?;
        let secrets = key.values()?;
        Ok(Self { choice, route, key, secrets })
    }
}

/// The key where the user names none: the variable of the server, the token that Claude Code makes for machines, or the
/// command that a cloud has for it.
fn usual_key(options: &AgentOptions, choice: &mut ModelChoice) -> KeyLocation {
    let is_set = |name: &str| host::env::var(name).is_some_and(|value| !value.is_empty());
    let is_cloud = choice.auth == AuthStyle::ApiKey || choice.dialect != Dialect::Plain;
    match (is_set(choice.key), choice.key_command) {
        (true, _) => {}
        (false, Some(line)) => return KeyLocation::command_line(line),
        // A server of one's own often needs no key; one that does answers 401.
        (false, None) if options.url.is_some() && !is_cloud => return KeyLocation::Nowhere,
        (false, None) => {
            let token = login::machine_token(options.provider);
            if let Some((variable, auth)) = token.filter(|(variable, _)| is_set(variable)) {
                choice.auth = auth;
                return KeyLocation::Variable(variable.to_owned());
            }
        }
    }
    KeyLocation::Variable(choice.key.to_owned())
}

/// The login of the agent's own program. Its token goes to the vendor's server alone.
fn use_login(
    options: &AgentOptions,
    choice: &mut ModelChoice,
) -> Result<KeyLocation, ResolveAgentError> {
    let provider = options.provider;
    let login = login::find_login(provider, choice.vendor);
    let login = login.filter(|_| options.url.is_none());
    let login = login.ok_or(ResolveAgentError::NoLogin { name: provider.name() })?;
    login.check(provider)?;
    choice.auth = login.auth.unwrap_or(choice.auth);
    if choice.auth == AuthStyle::ChatgptLogin {
        login::CHATGPT_URL.clone_into(&mut choice.url);
    }
    let account = login.account.map(str::to_owned);
    Ok(KeyLocation::Login { path: login.path, pointer: login.pointer, account })
}

fn wants_model(options: &AgentOptions) -> bool {
    match options.provider.model_use() {
        ModelUse::Never => false,
        ModelUse::IfNamed => options.model.is_some() || options.url.is_some(),
        ModelUse::Always => true,
    }
}

fn route(
    options: &AgentOptions,
    choice: &ModelChoice,
    key: &KeyLocation,
) -> Result<ModelRouteSpec, ResolveAgentError> {
    let upstream = Upstream::parse(&choice.url)?;
    let mut spec = ModelRouteSpec::new(upstream, choice.auth, key.source(), "");
    spec.drops_version = spec.upstream.has_version() || choice.auth == AuthStyle::ChatgptLogin;
    spec.dialect = choice.dialect;
    spec.model = choice.model.clone().filter(|_| choice.dialect != Dialect::Plain);
    spec.apis = vec![choice.wire];
    spec.caps = options.caps;
    if let Some(price) = options.price {
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
    install::find_any(agents, program)
        .ok_or(ResolveAgentError::NotInstalled { name: provider.name() })
}

/// Finds the program of the agent `command`. One of the system is in the box's root; another one is copied beside the box
/// and started from there, so that the box sees nothing else of its folder.
fn find_program(options: &mut AgentOptions) -> Result<Option<PathBuf>, ResolveAgentError> {
    let Some(first) = options.template.as_mut().and_then(|words| words.first_mut()) else {
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
