//! OpenCode's configuration: one provider, ours, and everything else off.

use serde_json::{Value, json};

use super::KEY_VARIABLE;
use crate::request::{AgentError, AgentRequest, Transport, WireApi};

/// OpenCode's name of our model route.
pub(super) const PROVIDER: &str = "local";

/// Idle limit of the model in the middle of an answer.
const CHUNK_TIMEOUT_MS: u64 = 60_000;

pub(super) fn render(request: &AgentRequest, model: &str) -> Result<String, AgentError> {
    let mut entry = json!({ "limit": { "context": 200_000, "output": 8192 } });
    if let Some(price) = request.price {
        entry["cost"] = json!({
            "input": price.input, "output": price.output, "cache_read": price.cache_read
        });
    }
    let wire = request.model_route.wire;
    if let Some(variant) = &request.variant {
        entry["variants"] = json!({ variant: effort(wire, variant)? });
    }
    let name = format!("{PROVIDER}/{model}");
    let mut config = json!({
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "permission": "allow",
        "enabled_providers": [PROVIDER],
        "model": name,
        "small_model": name,
        "provider": { PROVIDER: {
            "npm": package(wire),
            "options": {
                "baseURL": request.model_route.v1(),
                "apiKey": format!("{{env:{KEY_VARIABLE}}}"),
                "chunkTimeout": CHUNK_TIMEOUT_MS,
            },
            "models": { model: entry },
        } },
    });
    if !request.mcp.is_empty() {
        config["mcp"] = request.mcp_servers(|transport| match transport {
            Transport::Http { url } => json!({
                "type": "remote", "url": url, "headers": {}, "oauth": false, "enabled": true
            }),
            Transport::Stdio { command, args } => {
                let line: Vec<_> = std::iter::once(command).chain(args).collect();
                json!({
                    "type": "local", "command": line, "environment": {}, "enabled": true, "timeout": 20_000
                })
            }
        });
    }
    Ok(config.to_string())
}

/// Returns the client package of a wire API. All three are part of the program.
fn package(wire: WireApi) -> &'static str {
    match wire {
        WireApi::Chat => "@ai-sdk/openai-compatible",
        WireApi::Messages => "@ai-sdk/anthropic",
        WireApi::Responses => "@ai-sdk/openai",
    }
}

/// Maps a variant to the model's options. Anthropic's models take a number of tokens instead of a word.
fn effort(wire: WireApi, variant: &str) -> Result<Value, AgentError> {
    let budget = match (wire, variant) {
        (WireApi::Chat | WireApi::Responses, _) => {
            return Ok(json!({ "reasoningEffort": variant }));
        }
        (WireApi::Messages, "low") => 4000,
        (WireApi::Messages, "medium") => 8000,
        (WireApi::Messages, "high") => 16_000,
        (WireApi::Messages, "max") => 31_999,
        (WireApi::Messages, _) => {
            return Err(AgentError::BadValue {
                what: "a variant",
                value: variant.to_owned(),
                rule: "choose one of: low, medium, high, max",
            });
        }
    };
    Ok(json!({ "thinking": { "type": "enabled", "budgetTokens": budget } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Price;
    use crate::request::samples::{sample, sample_servers};

    #[track_caller]
    fn check(request: &AgentRequest, expected: &Value) {
        let config: Value = serde_json::from_str(&render(request, "scripted").unwrap()).unwrap();
        assert_eq!(&config, expected);
    }

    #[test]
    fn the_model_route_is_the_only_provider() {
        let mut request = sample(WireApi::Chat);
        request.variant = Some("high".to_owned());
        request.price = Some(Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.0 });
        check(
            &request,
            &json!({
                "autoupdate": false, "share": "disabled", "snapshot": false, "permission": "allow",
                "enabled_providers": ["local"], "model": "local/scripted", "small_model": "local/scripted",
                "provider": {"local": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {
                        "baseURL": "http://127.0.0.1:3128/-/model/v1",
                        "apiKey": "{env:MODEL_KEY}",
                        "chunkTimeout": 60000
                    },
                    "models": {"scripted": {
                        "limit": {"context": 200000, "output": 8192},
                        "cost": {"input": 3.0, "output": 15.0, "cache_read": 0.3},
                        "variants": {"high": {"reasoningEffort": "high"}}
                    }}
                }}
            }),
        );
    }

    #[test]
    fn tool_servers_are_told_by_kind() {
        let mut request = sample(WireApi::Chat);
        request.mcp = sample_servers();
        let config: Value = serde_json::from_str(&render(&request, "scripted").unwrap()).unwrap();
        assert_eq!(
            config["mcp"],
            json!({
                "forge": {
                    "type": "remote", "url": "http://127.0.0.1:3129/mcp", "headers": {},
                    "oauth": false, "enabled": true
                },
                "probe": {
                    "type": "local", "command": ["prog", "arg"], "environment": {},
                    "enabled": true, "timeout": 20000
                }
            })
        );
    }

    #[test]
    fn a_variant_of_anthropics_models_is_a_budget() {
        let high = effort(WireApi::Messages, "high").unwrap();
        assert_eq!(high, json!({"thinking": {"type": "enabled", "budgetTokens": 16000}}));
        let error = effort(WireApi::Messages, "silly").unwrap_err().to_string();
        assert_eq!(error, "\"silly\" cannot be a variant: choose one of: low, medium, high, max");
    }
}
