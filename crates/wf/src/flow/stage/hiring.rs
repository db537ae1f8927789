//! From the profile's words to an agent that can be started. What is wrong with them is found before anything runs.

use std::path::PathBuf;

use agent::scripted::{Script, parse_script};
use agent::{ModelUse, Provider, RequiredSetting};
use egress::model_route::{Caps, Price};
use egress::{AllowRule, EgressPolicy, Profile as EgressProfile};
use engine::agent_plan::{
    AgentOptions, KeyLocation, ResolveAgentError, ResolvedAgent, resolve_agent,
};

use super::StageError;
use super::workshop::Workshop;
use crate::rules::agent_choice::{AgentChoice, KeyChoice};
use crate::rules::profile::Profile;

/// Seconds without a sign of life, where the profile says nothing.
const SILENCE_SECS: u64 = 600;

impl Workshop {
    /// Hires whom the profile chose.
    pub(crate) async fn resolve_agent(
        &self,
        profile: &Profile,
        choice: &AgentChoice,
    ) -> Result<(Provider, ResolvedAgent), StageError> {
        let provider = Provider::parse(&choice.provider).map_err(StageError::config)?;
        let wish = self.wish(provider, choice, profile)?;
        let resolved = resolve_agent(wish, &self.agents).await.map_err(with_remedy)?;
        Ok((provider, resolved))
    }

    fn wish(
        &self,
        provider: Provider,
        choice: &AgentChoice,
        profile: &Profile,
    ) -> Result<AgentOptions, StageError> {
        let mut wish = AgentOptions::new(provider);
        wish.policy = agent_policy(provider, profile)?;
        wish.silence_secs = Some(choice.silence_secs.unwrap_or(SILENCE_SECS));
        if provider.required_setting() == Some(RequiredSetting::Script) {
            wish.script = Some(self.load_script(choice)?);
            return Ok(wish);
        }
        wish.model = choice.model.clone();
        wish.variant = choice.variant.clone();
        wish.url = choice.url.clone();
        wish.wire = choice.wire.clone();
        wish.key = match &choice.key {
            KeyChoice::Usual => None,
            KeyChoice::Variable(name) => Some(KeyLocation::Variable(name.clone())),
            KeyChoice::File(path) => Some(KeyLocation::File(self.site.dir.join(path))),
            KeyChoice::Command(argv) => Some(KeyLocation::Command(argv.clone())),
        };
        wish.caps =
            Caps { max_usd: choice.max_usd, max_tokens: choice.max_tokens, ..Caps::default() };
        // Tokens from the cache are taken to cost a tenth, and writing them as much as reading.
        wish.price = choice.price.map(|(input, output)| Price {
            input,
            output,
            cache_read: input / 10.0,
            cache_write: input,
        });
        if provider.required_setting() == Some(RequiredSetting::Command) {
            wish.template = Some(choice.command.clone());
        }
        Ok(wish)
    }

    fn load_script(&self, choice: &AgentChoice) -> Result<Script, StageError> {
        let path: PathBuf = self.site.dir.join(choice.script.as_deref().unwrap_or_default());
        let wrong = |words: String| StageError::Config(format!("{}: {words}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        parse_script(&text).map_err(|error| wrong(error.to_string()))
    }
}

/// An agent without a model has no way out unless the profile opens one.
fn agent_policy(provider: Provider, profile: &Profile) -> Result<Option<EgressPolicy>, StageError> {
    let mut policy = match profile.agent_egress.as_str() {
        "none" | "model-only" if provider.model_use() == ModelUse::Never => return Ok(None),
        // The model's route is no way out: it leads to the model and nowhere else.
        "none" => EgressPolicy::new(EgressProfile::ModelOnly),
        other => EgressPolicy::new(other.parse().map_err(StageError::config)?),
    };
    for rule in &profile.agent_allow {
        policy.allow.push(AllowRule::parse(rule).map_err(StageError::config)?);
    }
    for address in &profile.permit_private {
        let parsed = address.parse().map_err(|_unreadable: std::net::AddrParseError| {
            StageError::Config(format!(
                "AGENT_PERMIT_PRIVATE: '{address}' is not an address such as 10.0.0.5:8080"
            ))
        })?;
        policy.permit_private.push(parsed);
    }
    Ok(Some(policy))
}

/// What tests may reach; nothing if nothing is said. A test has no model.
pub(super) fn test_policy(profile: &Profile) -> Result<Option<EgressPolicy>, StageError> {
    match profile.test_egress.as_str() {
        "none" | "model-only" => Ok(None),
        other => Ok(Some(EgressPolicy::new(other.parse().map_err(StageError::config)?))),
    }
}

/// Says where the profile can be mended.
fn with_remedy(error: ResolveAgentError) -> StageError {
    use engine::agent_plan::choice::NoModel;
    let remedy = match &error {
        ResolveAgentError::NoKey { .. } => {
            " (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)"
        }
        ResolveAgentError::Model(NoModel::Unknown { .. }) => " (AGENT_*_MODEL_URL in the profile)",
        ResolveAgentError::Model(NoModel::Missing { .. }) => " (AGENT_*_MODEL in the profile)",
        _ => "",
    };
    StageError::Config(format!("{}{remedy}", model::told(&error)))
}
