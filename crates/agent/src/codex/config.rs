//! Codex's configuration: one provider, ours, few retries, and an untrusted repository.

use serde_json::json;

use super::KEY_VARIABLE;
use crate::request::{AgentRequest, Transport};

/// Idle limit of the model in the middle of an answer.
const IDLE_TIMEOUT_MS: u64 = 60_000;

/// Retries of a request after a server error: enough for a hiccup, and over within seconds. An interrupted
/// stream is not retried, because Codex would then wait as long as a server with an exhausted quota requests.
const REQUEST_RETRIES: u64 = 2;

pub(super) fn render(request: &AgentRequest) -> String {
    let mut config = json!({
        "model_provider": "local",
        "check_for_update_on_startup": false,
        "model_providers": { "local": {
            "name": "local",
            "base_url": request.model_route.v1(),
            "env_key": KEY_VARIABLE,
            "wire_api": "responses",
            "request_max_retries": REQUEST_RETRIES,
            "stream_max_retries": 0,
            "stream_idle_timeout_ms": IDLE_TIMEOUT_MS,
        } },
        // Plugins are fetched from the network, and a refused connection is retried for ever by default.
        "features": { "plugins": false, "unbounded_connection_retries": false },
        "analytics": { "enabled": false },
        // Without trust, the repository's own `.codex` folder is not read.
        "projects": { &request.workspace: { "trust_level": "untrusted" } },
    });
    if let Some(model) = &request.model {
        config["model"] = json!(model);
    }
    if !request.mcp.is_empty() {
        config["mcp_servers"] = request.mcp_servers(|transport| match transport {
            Transport::Http { url } => {
                json!({ "url": url, "startup_timeout_sec": 20, "required": true })
            }
            Transport::Stdio { command, args } => json!({
                "command": command, "args": args, "startup_timeout_sec": 20, "required": true
            }),
        });
    }
    toml::to_string(&config).expect("a table of strings, numbers and tables is TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::WireApi;
    use crate::request::samples::{sample, sample_servers};

    #[test]
    fn nothing_but_the_model_route_is_reached_or_trusted() {
        let mut request = sample(WireApi::Responses);
        request.mcp = sample_servers();
        assert_eq!(
            render(&request),
            r#"check_for_update_on_startup = false
model = "scripted"
model_provider = "local"

[analytics]
enabled = false

[features]
plugins = false
unbounded_connection_retries = false

[mcp_servers.forge]
required = true
startup_timeout_sec = 20
url = "http://127.0.0.1:3129/mcp"

[mcp_servers.probe]
args = ["arg"]
command = "prog"
required = true
startup_timeout_sec = 20

[model_providers.local]
base_url = "http://127.0.0.1:3128/-/model/v1"
env_key = "LOCAL_KEY"
name = "local"
request_max_retries = 2
stream_idle_timeout_ms = 60000
stream_max_retries = 0
wire_api = "responses"

[projects."/workspace"]
trust_level = "untrusted"
"#
        );
    }
}
