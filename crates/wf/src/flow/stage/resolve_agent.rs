//! Resolves the agents of the profile, so that mistakes are found before anything runs.

use std::net::SocketAddr;

use agent::{ModelUse, Provider, RequiredSetting};
use egress::model_route::Caps;
use egress::{EgressPolicy, EgressProfile};
use engine::agent_plan::{
    AgentOptions, KeyLocation, ResolveAgentError, ResolvedAgent, resolve_agent,
};
use shell::agent_options::AgentOverrides;
use shell::agent_settings::{egress_policy, load_script, price};
use shell::config::Config;

use super::runner::StageRunner;
use super::{StageResult, StageRunError};
use crate::rules::agent_choice::{AgentChoice, KeyChoice};
use crate::rules::profile::Profile;

/// Default limit on seconds without output or traffic.
const SILENCE_SECS: u64 = 600;

impl StageRunner {
    pub(crate) async fn resolve_agent(
        &self,
        profile: &Profile,
        choice: &AgentChoice,
    ) -> StageResult<(Provider, ResolvedAgent)> {
        let request = self.agent_request(choice, profile)?;
        let provider = request.provider;
        let resolved = resolve_agent(request, &self.agents).await.map_err(with_remedy)?;
        Ok((provider, resolved))
    }

    fn agent_request(&self, choice: &AgentChoice, profile: &Profile) -> StageResult<AgentOptions> {
        let shared = Config::load().map_err(StageRunError::config)?;
        let over = self.overrides(choice);
        let mut request =
            shared.override_options(&choice.provider, over).map_err(StageRunError::config)?;
        let provider = request.provider;
        request.policy = agent_policy(provider, profile)?;
        let limits = &shared.limits;
        let silence_secs = choice.silence_secs.or(limits.silence_secs);
        request.silence_secs = Some(silence_secs.unwrap_or(SILENCE_SECS));
        if provider.required_setting() == Some(RequiredSetting::Script) {
            let path = self.dirs.dir.join(choice.script.as_deref().unwrap_or_default());
            request.script = Some(load_script(&path).map_err(StageRunError::config)?);
            return Ok(request);
        }
        request.caps = Caps {
            max_usd: choice.max_usd.or(limits.max_usd),
            max_tokens: choice.max_tokens.or(limits.max_tokens),
            ..Caps::default()
        };
        if provider.required_setting() == Some(RequiredSetting::Command) {
            request.template = Some(choice.command.clone());
        }
        Ok(request)
    }

    /// The settings of the profile, which outrank those of the shared configuration.
    fn overrides(&self, choice: &AgentChoice) -> AgentOverrides {
        AgentOverrides {
            model: choice.model.clone(),
            variant: choice.variant.clone(),
            persona: None,
            url: choice.url.clone(),
            wire: choice.wire.clone(),
            key: match &choice.key {
                KeyChoice::Usual => None,
                KeyChoice::Variable(name) => Some(KeyLocation::Variable(name.clone())),
                KeyChoice::File(path) => Some(KeyLocation::File(self.dirs.dir.join(path))),
                KeyChoice::Command(argv) => Some(KeyLocation::Command(argv.clone())),
            },
            price: choice.price.map(|(input, output)| price(input, output)),
        }
    }
}

/// Egress policy of an agent. An agent without a model has no egress unless the profile allows it.
fn agent_policy(provider: Provider, profile: &Profile) -> StageResult<Option<EgressPolicy>> {
    let egress = match profile.agent_egress.as_str() {
        "none" | "model-only" if provider.model_use() == ModelUse::Never => return Ok(None),
        // The model route stays: it reaches the model and nothing else.
        "none" => EgressProfile::ModelOnly,
        other => other.parse().map_err(StageRunError::config)?,
    };
    let private = permitted_addresses(profile)?;
    let policy = egress_policy(egress, &profile.agent_allow, &private);
    Ok(Some(policy.map_err(StageRunError::config)?))
}

/// Addresses of the user's own network that may be reached.
pub(crate) fn permitted_addresses(profile: &Profile) -> StageResult<Vec<SocketAddr>> {
    let parse = |address: &String| {
        address.parse().map_err(|_unreadable: std::net::AddrParseError| {
            StageRunError::Config(format!(
                "AGENT_PERMIT_PRIVATE: '{address}' is not an address such as 10.0.0.5:8080"
            ))
        })
    };
    profile.permit_private.iter().map(parse).collect()
}

pub(super) fn test_policy(profile: &Profile) -> StageResult<Option<EgressPolicy>> {
    policy_of(&profile.test_egress)
}

/// Egress of a command without a model.
pub(super) fn policy_of(egress: &str) -> StageResult<Option<EgressPolicy>> {
    match egress {
        "none" | "model-only" => Ok(None),
        other => Ok(Some(EgressPolicy::new(other.parse().map_err(StageRunError::config)?))),
    }
}

/// Adds the key of the profile that fixes the error.
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
    StageRunError::Config(format!("{}{remedy}", model::error_chain(&error)))
}
