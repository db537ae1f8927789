//! From the profile's words to an agent that can be started. What is wrong with them is found before anything runs.

use std::path::PathBuf;

use agent::scripted::{Script, parse_script};
use agent::{ModelUse, Provider, RequiredSetting};
use egress::model_route::{Caps, Price};
use egress::{AllowRule, EgressPolicy, Profile as EgressProfile};
use engine::agent_plan::{
    AgentOptions, KeyLocation, ResolveAgentError, ResolvedAgent, resolve_agent,
};

use super::StageRunError;
use super::runner::StageRunner;
use crate::rules::agent_choice::{AgentChoice, KeyChoice};
use crate::rules::profile::Profile;

/// Seconds without a sign of life, where the profile says nothing.
const SILENCE_SECS: u64 = 600;

impl StageRunner {
    /// Hires whom the profile chose.
    pub(crate) async fn resolve_agent(
        &self,
        profile: &Profile,
        choice: &AgentChoice,
    ) -> Result<(Provider, ResolvedAgent), StageRunError> {
        let provider = Provider::parse(&choice.provider).map_err(StageRunError::config)?;
        let request = self.agent_request(provider, choice, profile)?;
        let resolved = resolve_agent(request, &self.agents).await.map_err(with_remedy)?;
        Ok((provider, resolved))
    }

    fn agent_request(
        &self,
        provider: Provider,
        choice: &AgentChoice,
        profile: &Profile,
    ) -> Result<AgentOptions, StageRunError> {
        let mut request = AgentOptions::new(provider);
        request.policy = agent_policy(provider, profile)?;
        request.silence_secs = Some(choice.silence_secs.unwrap_or(SILENCE_SECS));
        if provider.required_setting() == Some(RequiredSetting::Script) {
            request.script = Some(self.load_script(choice)?);
            return Ok(request);
        }
        request.model = choice.model.clone();
        request.variant = choice.variant.clone();
        request.url = choice.url.clone();
        request.wire = choice.wire.clone();
        request.key = match &choice.key {
            KeyChoice::Usual => None,
            KeyChoice::Variable(name) => Some(KeyLocation::Variable(name.clone())),
            KeyChoice::File(path) => Some(KeyLocation::File(self.dirs.dir.join(path))),
            KeyChoice::Command(argv) => Some(KeyLocation::Command(argv.clone())),
        };
        request.caps =
            Caps { max_usd: choice.max_usd, max_tokens: choice.max_tokens, ..Caps::default() };
        // Tokens from the cache are taken to cost a tenth, and writing them as much as reading.
        request.price = choice.price.map(|(input, output)| Price {
            input,
            output,
            cache_read: input / 10.0,
            cache_write: input,
        });
        if provider.required_setting() == Some(RequiredSetting::Command) {
            request.template = Some(choice.command.clone());
        }
        Ok(request)
    }

    fn load_script(&self, choice: &AgentChoice) -> Result<Script, StageRunError> {
        let path: PathBuf = self.dirs.dir.join(choice.script.as_deref().unwrap_or_default());
        let wrong =
            |message: String| StageRunError::Config(format!("{}: {message}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        parse_script(&text).map_err(|error| wrong(error.to_string()))
    }
}

/// An agent without a model has no way out unless the profile opens one.
fn agent_policy(
    provider: Provider,
    profile: &Profile,
) -> Result<Option<EgressPolicy>, StageRunError> {
    let mut policy = match profile.agent_egress.as_str() {
        "none" | "model-only" if provider.model_use() == ModelUse::Never => return Ok(None),
        // The model's route is no way out: it leads to the model and nowhere else.
        "none" => EgressPolicy::new(EgressProfile::ModelOnly),
        other => EgressPolicy::new(other.parse().map_err(StageRunError::config)?),
    };
    for rule in &profile.agent_allow {
        policy.allow.push(AllowRule::parse(rule).map_err(StageRunError::config)?);
    }
    for address in &profile.permit_private {
        let parsed = address.parse().map_err(|_unreadable: std::net::AddrParseError| {
            StageRunError::Config(format!(
                "AGENT_PERMIT_PRIVATE: '{address}' is not an address such as 10.0.0.5:8080"
            ))
        })?;
        policy.permit_private.push(parsed);
    }
    Ok(Some(policy))
}

/// What tests may reach; nothing if nothing is said. A test has no model.
pub(super) fn test_policy(profile: &Profile) -> Result<Option<EgressPolicy>, StageRunError> {
    match profile.test_egress.as_str() {
        "none" | "model-only" => Ok(None),
        other => Ok(Some(EgressPolicy::new(other.parse().map_err(StageRunError::config)?))),
    }
}

/// Says where the profile can be mended.
fn with_remedy(error: ResolveAgentError) -> StageRunError {
    use engine::agent_plan::choice::NoModel;
    let remedy = match &error {
        ResolveAgentError::NoKey { .. } => {
            " (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)"
        }
        ResolveAgentError::Model(NoModel::Unknown { .. }) => " (AGENT_*_MODEL_URL in the profile)",
        ResolveAgentError::Model(NoModel::Missing { .. }) => " (AGENT_*_MODEL in the profile)",
        _ => "",
    };
    StageRunError::Config(format!("{}{remedy}", model::told(&error)))
}
