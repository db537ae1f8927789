//! Options of an agent that a profile or a manifest names: the settings of that file over those of the configuration.

use agent::{Provider, UnknownProvider};
use egress::model_route::Price;
use engine::agent_plan::{AgentOptions, KeyLocation};

use crate::config::Config;

/// Settings of a profile or of a manifest, as far as it has them.
#[derive(Debug, Clone, Default)]
pub struct AgentOverrides {
    pub model: Option<String>,
    pub variant: Option<String>,
    pub persona: Option<String>,
    pub url: Option<String>,
    pub wire: Option<String>,
    pub key: Option<KeyLocation>,
    pub price: Option<Price>,
}

impl Config {
    /// Options of an agent by its name, under the settings of a file that names it.
    ///
    /// A server is one thing: who gives an address, or a key for an agent that has no name of its own, uses neither the key
    /// nor the login nor the address of the configuration. A key goes to no server that it was not meant for.
    pub fn override_options(
        &self,
        name: &str,
        over: AgentOverrides,
    ) -> Result<AgentOptions, UnknownProvider> {
        let mut options = self.agent_options(name)?;
        let own_model = self.agents.get(name).and_then(|entry| entry.model.as_deref());
        if own_model.is_none() && !self.shares_model(name, options.provider) {
            options.model = None;
        }
        if over.model.as_deref().is_some_and(|model| own_model.is_some_and(|own| own != model)) {
            // The price is that of the other model.
            options.price = None;
        }
        let is_provider = Provider::parse(name).is_ok();
        if over.url.is_some() || (over.key.is_some() && is_provider) {
            (options.url, options.wire, options.key) = (over.url, None, None);
            options.login = false;
        }
        options.login &= over.key.is_none();
        options.key = over.key.or(options.key);
        options.wire = over.wire.or(options.wire);
        options.model = over.model.or(options.model);
        options.variant = over.variant.or(options.variant);
        options.agent = over.persona.or(options.agent);
        options.price = over.price.or(options.price);
        Ok(options)
    }

    /// True if the default model is for this agent. A file may name several agents, and a model of one vendor is unknown to
    /// the agent of another.
    fn shares_model(&self, name: &str, provider: Provider) -> bool {
        self.agent.as_deref() == Some(name) || provider.vendor().is_none()
    }

    /// Returns whether the configuration knows an agent by this name: one of its own, or a provider.
    pub fn knows_agent(&self, name: &str) -> bool {
        self.agents.contains_key(name) || Provider::parse(name).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "agent = 'local'\nmodel = 'm'\n\
        [agents.local]\nprovider = 'opencode'\nmodel = 'qwen'\nvariant = 'high'\npersona = 'p'\n\
        url = 'http://127.0.0.1:1'\nwire = 'chat'\nkey_env = 'A'\nprice = '1,2'\n\
        [agents.codex]\nurl = 'http://127.0.0.1:2'\nkey_env = 'B'\n[agents.claude]\nlogin = true\n";

    fn options(name: &str, over: AgentOverrides) -> AgentOptions {
        let config: Config = toml::from_str(TEXT).expect("a configuration");
        config.override_options(name, over).expect("a known agent")
    }

    fn variable(name: &str) -> Option<KeyLocation> {
        Some(KeyLocation::Variable(name.to_owned()))
    }

    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn a_named_agent_has_everything_of_its_entry() {
        let local = options("local", AgentOverrides::default());
        assert_eq!(local.provider, Provider::OpenCode);
        assert_eq!(
            (local.model, local.variant, local.agent),
            (text("qwen"), text("high"), text("p"))
        );
        assert_eq!((local.url, local.wire), (text("http://127.0.0.1:1"), text("chat")));
        assert_eq!((local.key, local.price.is_some()), (variable("A"), true));
    }

    #[test]
    fn a_file_outranks_the_configuration() {
        let over = AgentOverrides { model: text("x"), variant: text("low"), ..Default::default() };
        let local = options("local", over);
        assert_eq!((local.model, local.variant, local.agent), (text("x"), text("low"), text("p")));
        assert_eq!(local.price, None, "the price was that of another model");
        let local = options("local", AgentOverrides { key: variable("K"), ..Default::default() });
        assert_eq!((local.key, local.url), (variable("K"), text("http://127.0.0.1:1")));
    }

    #[test]
    fn a_key_goes_to_the_server_that_it_is_for() {
        let url = AgentOverrides { url: text("http://127.0.0.1:9"), ..Default::default() };
        let other = options("local", url);
        assert_eq!((other.key, other.url, other.wire), (None, text("http://127.0.0.1:9"), None));
        let key = AgentOverrides { key: variable("K"), ..Default::default() };
        let own = options("codex", key.clone());
        assert_eq!((own.key, own.url), (variable("K"), None));
        assert!(options("claude", AgentOverrides::default()).login);
        assert!(!options("claude", key).login);
    }

    #[test]
    fn the_default_model_is_for_the_default_agent_and_those_without_a_vendor() {
        let model = |name| options(name, AgentOverrides::default()).model;
        assert_eq!((model("codex"), model("claude"), model("pi")), (None, None, text("m")));
    }
}
