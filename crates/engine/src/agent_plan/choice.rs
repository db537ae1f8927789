//! Choice of the model server, its wire API and the variable of its key: from the agent, the model's name and the
//! user's options.

use agent::WireApi;
use egress::model_route::{AuthStyle, Dialect, Upstream};

use super::AgentOptions;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// Prefix of a model's name, before the slash.
    prefix: &'static str,
    url: &'static str,
    wire: WireApi,
    auth: AuthStyle,
    /// The usual variable of the key.
    key: &'static str,
}

const KNOWN: [Known; 4] = [
    Known {
        prefix: "anthropic",
        url: "https://api.anthropic.com",
        wire: WireApi::Messages,
        auth: AuthStyle::XApiKey,
        key: "ANTHROPIC_API_KEY",
    },
    Known {
        prefix: "openai",
        url: "https://api.openai.com",
        wire: WireApi::Responses,
        auth: AuthStyle::Bearer,
        key: "OPENAI_API_KEY",
    },
    Known {
        prefix: "openrouter",
        url: "https://openrouter.ai/api",
        wire: WireApi::Chat,
        auth: AuthStyle::Bearer,
        key: "OPENROUTER_API_KEY",
    },
    Known {
        prefix: "opencode",
        url: "https://opencode.ai/zen",
        wire: WireApi::Chat,
        auth: AuthStyle::Bearer,
        key: "OPENCODE_API_KEY",
    },
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    pub url: String,
    pub wire: WireApi,
    pub auth: AuthStyle,
    /// The model's name at the server.
    pub model: Option<String>,
    /// The variable of the key, unless the user names another location.
    pub key: &'static str,
    pub dialect: Dialect,
    /// Command line that prints the key where the variable is not set.
    pub key_command: Option<&'static str>,
    /// Prefix of the server that was chosen, for logins.
    pub vendor: &'static str,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    #[error(
        "the model '{model}' names no server that is known (anthropic/, openai/, openrouter/, opencode/); give the server's address as well"
    )]
    Unknown { model: String },
    #[error("{provider} needs the name of a model")]
    Missing { provider: &'static str },
    #[error("{cloud} needs the name of a model, as it is called there")]
    Cloud { cloud: &'static str },
    #[error("unknown way to talk to a model '{wire}'; use messages, chat or responses")]
    Wire { wire: String },
}

/// Chooses the server. Codex and Claude Code have one of their own; for the others the model's name has its prefix, or the
/// user gives an address.
pub(super) fn choose_model(options: &AgentOptions) -> Result<ModelChoice, NoModel> {
    let provider = options.provider;
    let wire = options.wire.as_deref().map(parse_wire).transpose()?;
    let vendor = provider.vendor().and_then(|name| KNOWN.iter().find(|it| it.prefix == name));
    let (known, model) = match (vendor, options.model.as_deref()) {
        (Some(vendor), model) => (Some(vendor), model.map(|name| bare(name, vendor.prefix))),
        (None, None) => return Err(NoModel::Missing { provider: provider.name() }),
        (None, Some(name)) => match find(name) {
            Some(known) => (Some(known), Some(bare(name, known.prefix))),
            None => (None, Some(name.to_owned())),
        },
    };
    let cloud = options.url.as_deref().and_then(find_cloud);
    if let (Some(cloud), Some(url)) = (cloud, options.url.as_deref()) {
        let Some(model) = model else { return Err(NoModel::Cloud { cloud: cloud.name }) };
        let wire = wire.or(cloud.wire).or(known.map(|it| it.wire)).unwrap_or(WireApi::Chat);
        return Ok(ModelChoice {
            url: url.to_owned(),
            wire,
            auth: cloud.auth,
            model: Some(model),
            key: cloud.key,
            dialect: cloud.dialect,
            key_command: cloud.key_command,
            vendor: cloud.name,
        });
    }
    let (dialect, key_command) = (Dialect::Plain, None);
    match (known, options.url.as_deref()) {
        (Some(known), url) => Ok(ModelChoice {
            url: url.unwrap_or(known.url).to_owned(),
            wire: wire.unwrap_or(known.wire),
            auth: known.auth,
            model,
            key: known.key,
            dialect,
            key_command,
            vendor: known.prefix,
        }),
        (None, Some(url)) => Ok(ModelChoice {
            url: url.to_owned(),
            wire: wire.or(provider.default_wire()).unwrap_or(WireApi::Chat),
            auth: AuthStyle::Bearer,
            model,
            key: "MODEL_API_KEY",
            dialect,
            key_command,
            vendor: "",
        }),
        (None, None) => Err(NoModel::Unknown { model: model.unwrap_or_default() }),
    }
}

/// A cloud that offers models of several vendors, known by the address of its servers.
#[derive(Debug, Clone, Copy)]
struct Cloud {
    name: &'static str,
    wire: Option<WireApi>,
    auth: AuthStyle,
    dialect: Dialect,
    key: &'static str,
    key_command: Option<&'static str>,
}

const VERTEX: Cloud = Cloud {
    name: "Vertex AI",
    wire: Some(WireApi::Messages),
    auth: AuthStyle::Bearer,
    dialect: Dialect::Vertex,
    key: "VERTEX_ACCESS_TOKEN",
    key_command: Some("gcloud auth print-access-token"),
};
const BEDROCK: Cloud = Cloud {
    name: "Bedrock",
    wire: Some(WireApi::Messages),
    auth: AuthStyle::Bearer,
    dialect: Dialect::Bedrock,
    key: "AWS_BEARER_TOKEN_BEDROCK",
    key_command: None,
};
const AZURE: Cloud = Cloud {
    name: "Azure",
    wire: None,
    auth: AuthStyle::ApiKey,
    dialect: Dialect::Plain,
    key: "AZURE_API_KEY",
    key_command: None,
};

/// Finds the cloud of an address. OpenAI-compatible paths of the same clouds are servers like any other.
fn find_cloud(url: &str) -> Option<Cloud> {
    let upstream = Upstream::parse(url).ok()?;
    let host = upstream.host();
    let is_below = |suffix: &str| host.ends_with(suffix);
    let is_bedrock = host.starts_with("bedrock-runtime.") && is_below(".amazonaws.com");
    let is_azure = [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];
    match () {
        () if is_below("aiplatform.googleapis.com") && !url.contains("/openapi") => Some(VERTEX),
        () if is_bedrock && !url.contains("/openai") => Some(BEDROCK),
        () if is_azure.into_iter().any(is_below) => Some(AZURE),
        () => None,
    }
}

fn find(name: &str) -> Option<&'static Known> {
    KNOWN
        .iter()
        .find(|known| name.strip_prefix(known.prefix).is_some_and(|rest| rest.starts_with('/')))
}

fn bare(name: &str, prefix: &str) -> String {
    let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    rest.unwrap_or(name).to_owned()
}

fn parse_wire(text: &str) -> Result<WireApi, NoModel> {
    WireApi::parse(text).ok_or_else(|| NoModel::Wire { wire: text.chars().take(40).collect() })
}

#[cfg(test)]
mod tests {
    use agent::Provider;

    use super::*;

    fn options(provider: Provider, model: Option<&str>, url: Option<&str>) -> AgentOptions {
        let (model, url) = (model.map(str::to_owned), url.map(str::to_owned));
        AgentOptions { model, url, ..AgentOptions::new(provider) }
    }

    fn check(
        provider: Provider,
        model: Option<&str>,
        url: Option<&str>,
        expected: (&str, WireApi, Option<&str>),
    ) {
        let choice = choose_model(&options(provider, model, url)).expect("a choice");
        assert_eq!((choice.url.as_str(), choice.wire, choice.model.as_deref()), expected);
    }

    #[test]
    fn agents_with_a_server_of_their_own_need_no_name() {
        check(Provider::Claude, None, None, ("https://api.anthropic.com", WireApi::Messages, None));
        check(
            Provider::Codex,
            Some("gpt-5.5"),
            None,
            ("https://api.openai.com", WireApi::Responses, Some("gpt-5.5")),
        );
    }

    #[test]
    fn the_models_name_says_which_server() {
        let expected = ("https://api.anthropic.com", WireApi::Messages, Some("claude-x"));
        check(Provider::OpenCode, Some("anthropic/claude-x"), None, expected);
        let expected = ("https://openrouter.ai/api", WireApi::Chat, Some("meta/llama"));
        check(Provider::Pi, Some("openrouter/meta/llama"), None, expected);
    }

    #[test]
    fn an_address_outranks_the_table() {
        let expected = ("http://127.0.0.1:9/s/x", WireApi::Chat, Some("scripted"));
        check(Provider::OpenCode, Some("scripted"), Some("http://127.0.0.1:9/s/x"), expected);
        let expected = ("http://127.0.0.1:9/s/x", WireApi::Messages, None);
        check(Provider::Claude, None, Some("http://127.0.0.1:9/s/x"), expected);
    }

    #[test]
    fn clouds_are_known_by_their_addresses() {
        let vertex = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/anthropic";
        for (provider, url, expected) in [
            (Provider::Claude, vertex, (AuthStyle::Bearer, Dialect::Vertex, WireApi::Messages)),
            (
                Provider::OpenCode,
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
                (AuthStyle::Bearer, Dialect::Bedrock, WireApi::Messages),
            ),
            (
                Provider::Codex,
                "https://mine.openai.azure.com/openai/v1",
                (AuthStyle::ApiKey, Dialect::Plain, WireApi::Responses),
            ),
            (
                Provider::Claude,
                "https://mine.services.ai.azure.com/anthropic",
                (AuthStyle::ApiKey, Dialect::Plain, WireApi::Messages),
            ),
            (
                Provider::OpenCode,
                "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
                (AuthStyle::Bearer, Dialect::Plain, WireApi::Chat),
            ),
        ] {
            let choice = choose_model(&options(provider, Some("m"), Some(url))).expect("a choice");
            assert_eq!((choice.auth, choice.dialect, choice.wire), expected, "{url}");
        }
        let error = choose_model(&options(Provider::Claude, None, Some(vertex))).unwrap_err();
        assert_eq!(error.to_string(), "Vertex AI needs the name of a model, as it is called there");
    }

    #[test]
    fn what_cannot_be_known_is_asked_for() {
        let choose = |model| choose_model(&options(Provider::OpenCode, model, None));
        assert!(choose(Some("mystery")).unwrap_err().to_string().contains("address"));
        assert!(choose(None).unwrap_err().to_string().contains("name of a model"));
        let mut options = options(Provider::Pi, Some("openai/x"), None);
        options.wire = Some("smoke".to_owned());
        assert!(choose_model(&options).unwrap_err().to_string().contains("smoke"));
    }
}
