//! What was asked for, checked to the last word before anything is started.

use std::path::PathBuf;

use agent::scripted::parse_script;
use agent::{AgentRequest, ModelRoute, Price as AgentPrice, Provider, SessionWish, WireApi};
use egress::model_route::{Caps, KeySource, Price, Prices, Upstream, WireApi as RouteApi};
use egress::{AllowRule, EgressConfig, EgressPolicy, ModelRouteSpec, Profile};
use engine::install::{self, Installed};
use model::id::{BranchName, Override, RunId};
use model::secret::Secret;
use model::verdict::ForkliftStatus;
use sandbox::backend::BackendKind;

use super::Places;
use crate::cli::RunArgs;
use crate::exit::{Failure, OrExit};
use crate::flow::plan::{KEY_VARIABLE, KeyPlace, PROXY, Plan, load_settings};
use crate::rules::model_choice::{ModelChoice, Said, choose_model};
use crate::rules::opencode_env::{Overrides, parse_overrides};
use crate::rules::prompt::render_prompt;

/// The variable that names another `opencode.env`.
const ENV_FILE_VARIABLE: &str = "FORKLIFT_OPENCODE_ENV";

/// A request whose every part was checked.
pub(crate) struct Request {
    pub(crate) directory: PathBuf,
    pub(crate) branch: BranchName,
    pub(crate) backend: Option<BackendKind>,
    /// Values that must never be written anywhere.
    pub(crate) secrets: Vec<Secret>,
    work: Work,
    timeout_secs: u64,
}

enum Work {
    Scripted(Box<Plan>),
    Real(Box<Real>),
}

/// A real agent and its way to its model.
struct Real {
    provider: Provider,
    installed: Installed,
    choice: ModelChoice,
    overrides: Overrides,
    policy: EgressPolicy,
    route: ModelRouteSpec,
    key: KeyPlace,
    secrets: Vec<Secret>,
    price: Option<AgentPrice>,
    silence_secs: u64,
}

impl Request {
    /// Checks everything that can be checked without touching the fork.
    pub(crate) fn check(args: &RunArgs, places: &Places) -> Result<Self, Failure> {
        let directory = match &args.directory {
            Some(directory) => directory.clone(),
            None => host::env::current_dir().or_exit(ForkliftStatus::Usage)?,
        };
        let branch = BranchName::parse(&args.main_branch).or_exit(ForkliftStatus::Usage)?;
        let backend = args.backend.as_deref().map(str::parse).transpose();
        let backend: Option<BackendKind> = backend.or_exit(ForkliftStatus::Usage)?;
        let flags =
            parse_overrides(args.model.as_deref(), args.variant.as_deref(), args.agent.as_deref())
                .or_exit(ForkliftStatus::Usage)?;
        let (work, secrets) = match Provider::parse(&args.provider)
            .or_exit(ForkliftStatus::Usage)?
        {
            Provider::Scripted => (Work::Scripted(Box::new(scripted(args)?)), Vec::new()),
            Provider::Command => {
                return Err(Failure::usage("the agent 'command' is not for forklift; use another"));
            }
            provider => {
                let real = Real::check(provider, args, flags, places)?;
                let secrets = real.secrets.clone();
                (Work::Real(Box::new(real)), secrets)
            }
        };
        Ok(Self { directory, branch, backend, secrets, work, timeout_secs: args.timeout })
    }

    /// The plan of the run, now that its name and the fork's own words are known.
    pub(crate) fn plan(&self, run: &RunId, context: Option<&str>) -> Result<Plan, Failure> {
        match &self.work {
            Work::Scripted(plan) => {
                let mut plan = Plan::clone(plan);
                if let Some(egress) = &mut plan.egress {
                    egress.run = run.to_string();
                }
                Ok(plan)
            }
            Work::Real(real) => {
                let prompt = render_prompt(&self.branch, self.timeout_secs, context);
                real.plan(run, prompt)
            }
        }
    }
}

fn scripted(args: &RunArgs) -> Result<Plan, Failure> {
    let path = args.script.as_ref().ok_or_else(|| {
        Failure::usage("the scripted agent needs a script; name it with --script FILE")
    })?;
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("could not read the script {}: {error}", path.display()))
    })?;
    let script = parse_script(&text)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let mut plan = Plan::new(Provider::Scripted, &agent::scripted::command(&script));
    if args.egress.is_some() {
        let policy = policy(args)?;
        plan.egress = Some(EgressConfig {
            run: String::new(),
            policy,
            model: None,
            log_path: PathBuf::new(),
        });
    }
    Ok(plan)
}

impl Real {
    fn check(
        provider: Provider,
        args: &RunArgs,
        flags: Overrides,
        places: &Places,
    ) -> Result<Self, Failure> {
        let settings = Settings::load(provider, args, flags, places)?;
        let said = Said {
            model: settings.overrides.model.as_ref().map(Override::as_str),
            url: settings.url.as_deref(),
            wire: settings.wire.as_deref(),
        };
        let choice = choose_model(provider, said).or_exit(ForkliftStatus::Usage)?;
        let key = match (&args.key_file, &args.key_command, settings.key_file) {
            (Some(path), ..) => KeyPlace::File(path.clone()),
            (None, Some(line), _) => KeyPlace::Command(shell_words(line)),
            (None, None, Some(path)) => KeyPlace::Settings(path),
            (None, None, None) => KeyPlace::Variable(choice.key.to_owned()),
        };
        let price = args.price.as_deref().map(parse_price).transpose()?;
        let route = route(args, &choice, &key, price)?;
        let policy = policy(args)?;
        let secrets = key_values(&key)?;
        Ok(Self {
            installed: installed(provider, places)?,
            policy,
            secrets,
            overrides: settings.overrides,
            price: price.map(|price| AgentPrice {
                input: price.input,
                output: price.output,
                cache_read: price.cache_read,
            }),
            silence_secs: args.silence,
            provider,
            choice,
            route,
            key,
        })
    }

    fn plan(&self, run: &RunId, prompt: String) -> Result<Plan, Failure> {
        let dummy_key = format!("bottle-{run}");
        let text = |value: &Option<Override>| value.as_ref().map(ToString::to_string);
        let request = AgentRequest {
            launcher: self.installed.launcher.clone(),
            prompt,
            model: self.choice.model.clone(),
            variant: text(&self.overrides.variant),
            agent: text(&self.overrides.agent),
            session: SessionWish::Fresh { id: None },
            model_route: ModelRoute {
                base_url: egress::model_base_url(PROXY),
                wire: self.choice.wire,
                dummy_key: dummy_key.clone(),
            },
            mcp: Vec::new(),
            workspace: "/workspace".to_owned(),
            run_title: run.to_string(),
            price: self.price,
            script: None,
            template: None,
        };
        let command = self.provider.command(&request).or_exit(ForkliftStatus::Usage)?;
        let mut plan = Plan::new(self.provider, &command);
        plan.programs = vec![self.installed.mount.clone()];
        plan.key = self.key.clone();
        plan.silence_secs = Some(self.silence_secs);
        plan.egress = Some(EgressConfig {
            run: run.to_string(),
            policy: self.policy.clone(),
            model: Some(ModelRouteSpec { dummy_key, ..self.route.clone() }),
            log_path: PathBuf::new(),
        });
        Ok(plan)
    }
}

/// The key's value, for the redactor; and with it the proof that it is there before anything starts. What a command
/// prints is known to the shim alone.
fn key_values(key: &KeyPlace) -> Result<Vec<Secret>, Failure> {
    if let KeyPlace::File(path) = key {
        let bytes = host::file::read_private(path).or_exit(ForkliftStatus::Usage)?;
        return Ok(vec![Secret::new(String::from_utf8_lossy(&bytes).trim())]);
    }
    Ok(key.variables()?.into_iter().map(|(_, secret)| secret).collect())
}

/// What the flags and, for OpenCode, its settings file come to.
struct Settings {
    overrides: Overrides,
    url: Option<String>,
    wire: Option<String>,
    /// The settings file, if the key is in it.
    key_file: Option<PathBuf>,
}

impl Settings {
    fn load(
        provider: Provider,
        args: &RunArgs,
        flags: Overrides,
        places: &Places,
    ) -> Result<Self, Failure> {
        if provider != Provider::OpenCode {
            return Ok(Self {
                overrides: flags,
                url: args.model_url.clone(),
                wire: None,
                key_file: None,
            });
        }
        let path = host::env::var_os(ENV_FILE_VARIABLE)
            .map_or_else(|| places.config.join("opencode.env"), PathBuf::from);
        let settings = load_settings(&path, &flags)?;
        Ok(Self {
            overrides: Overrides {
                model: Some(settings.model),
                variant: Some(settings.variant),
                agent: Some(settings.agent),
            },
            url: args.model_url.clone().or(settings.url),
            wire: settings.wire,
            key_file: Some(path),
        })
    }
}

fn installed(provider: Provider, places: &Places) -> Result<Installed, Failure> {
    let program = provider
        .program()
        .ok_or_else(|| Failure::usage(format!("{} has no program", provider.name())))?;
    let missing = super::block_on(async { Ok(install::missing_runtime(&program).await) })?;
    if let Some(missing) = missing {
        return Err(Failure::usage(missing));
    }
    install::find(&places.agents, &program).ok_or_else(|| {
        let name = provider.name();
        Failure::usage(format!("{name} is not installed; run: forklift agents install {name}"))
    })
}

fn policy(args: &RunArgs) -> Result<EgressPolicy, Failure> {
    let profile: Profile = match &args.egress {
        Some(profile) => profile.parse().or_exit(ForkliftStatus::Usage)?,
        None => Profile::Packages,
    };
    let mut policy = EgressPolicy::new(profile);
    for rule in &args.allow {
        policy.allow.push(AllowRule::parse(rule).or_exit(ForkliftStatus::Usage)?);
    }
    policy.permit_private = args.permit_private.clone();
    Ok(policy)
}

fn route(
    args: &RunArgs,
    choice: &ModelChoice,
    key: &KeyPlace,
    price: Option<Price>,
) -> Result<ModelRouteSpec, Failure> {
    let source = match key {
        KeyPlace::Nowhere => KeySource::None,
        KeyPlace::Settings(_) => KeySource::Env(KEY_VARIABLE.to_owned()),
        KeyPlace::Variable(name) => KeySource::Env(name.clone()),
        KeyPlace::File(path) => KeySource::File(path.clone()),
        KeyPlace::Command(argv) => KeySource::Command(argv.clone()),
    };
    let upstream = Upstream::parse(&choice.url).or_exit(ForkliftStatus::Usage)?;
    let mut spec = ModelRouteSpec::new(upstream, choice.auth, source, "");
    spec.apis = vec![match choice.wire {
        WireApi::Messages => RouteApi::Messages,
        WireApi::Chat => RouteApi::Chat,
        WireApi::Responses => RouteApi::Responses,
    }];
    spec.caps = Caps { max_usd: args.max_usd, max_tokens: args.max_tokens, ..Caps::default() };
    if let Some(price) = price {
        let model = choice.model.clone().unwrap_or_else(|| "*".to_owned());
        spec.prices = Prices([(model, price)].into());
    }
    spec.check().or_exit(ForkliftStatus::Usage)?;
    Ok(spec)
}

/// The person's own command line, run as they would run it: it is theirs, and it never sees the box.
fn shell_words(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
}

/// Two numbers; tokens from the cache are taken to cost a tenth, and writing them as much as reading.
fn parse_price(text: &str) -> Result<Price, Failure> {
    let wrong = || {
        Failure::usage(format!("'{text}' is no price; give dollars for a million tokens as IN,OUT"))
    };
    let (input, output) = text.split_once(',').ok_or_else(wrong)?;
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let (input, output) = number(input).zip(number(output)).ok_or_else(wrong)?;
    Ok(Price { input, output, cache_read: input / 10.0, cache_write: input })
}
