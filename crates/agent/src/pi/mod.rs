//! pi: a list of models in its home, and tool servers through a small extension of ours.

mod event;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::claude;
use crate::program::{Entries, Program, Runtime};
use crate::provider::{AgentCommand, Provider, in_box, texts};
use crate::request::{AgentError, AgentRequest, Interaction, WireApi, push_option};

pub(crate) use event::PiEvents;

pub const PROGRAM: Program = Program {
    name: "pi",
    package: "@mariozechner/pi-coding-agent",
    version: "0.73.1",
    runtime: Runtime::Node { major: 20, minor: 6 },
    entries: Entries::everywhere("node_modules/@mariozechner/pi-coding-agent/dist/cli.js"),
};

/// The extension that gives pi the tools of tool servers, in the read-only folder of the box. It reads the
/// file of servers beside it.
const BRIDGE_FILE: &str = "bridge.ts";

/// pi's name of our model route.
const PROVIDER: &str = "local";

const KEY_VARIABLE: &str = "LOCAL_KEY";

const THINKING: [&str; 6] = ["off", "minimal", "low", "medium", "high", "xhigh"];

pub(crate) fn command(request: &AgentRequest) -> Result<AgentCommand, AgentError> {
    let model = request.model_for(Provider::Pi)?;
    check_thinking(request.variant.as_deref())?;
    Ok(AgentCommand {
        argv: argv(request, model),
        env: texts([
            ("PI_OFFLINE", "1"),
            ("PI_SKIP_VERSION_CHECK", "1"),
            ("PI_TELEMETRY", "0"),
            (KEY_VARIABLE, &request.model_route.dummy_key),
        ]),
        files: files(request),
        home: texts([
            (".pi/agent/models.json", &models(request, model).to_string()),
            (".pi/agent/settings.json", &settings().to_string()),
        ]),
    })
}

fn argv(request: &AgentRequest, model: &str) -> Vec<String> {
    let mut argv = request.program(PROGRAM.name);
    if request.manner == Interaction::Headless {
        argv.extend(["-p", "--mode", "json"].map(str::to_owned));
    }
    argv.extend(["--provider", PROVIDER].map(str::to_owned));
    push_option(&mut argv, "--model", Some(model));
    push_option(&mut argv, "--thinking", request.variant.as_deref());
    // Extensions of the repository would run before the first output of the model. One that is named still
    // loads.
    argv.extend(
        ["--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes"]
            .map(str::to_owned),
    );
    if !request.mcp.is_empty() {
        push_option(&mut argv, "-e", Some(&in_box(BRIDGE_FILE)));
    }
    push_option(&mut argv, "--session", request.resumed());
    argv.extend(request.first_message().map(prompt));
    argv
}

/// Prepares the prompt. pi has no end-of-options marker, and reads `@name` as a file to attach.
fn prompt(prompt: &str) -> String {
    if prompt.starts_with(['-', '@']) { format!("\n{prompt}") } else { prompt.to_owned() }
}

fn files(request: &AgentRequest) -> BTreeMap<String, String> {
    let mut files = claude::mcp_file(request);
    if !files.is_empty() {
        files.insert(BRIDGE_FILE.to_owned(), include_str!("bridge.ts").to_owned());
    }
    files
}

fn models(request: &AgentRequest, model: &str) -> Value {
    let route = &request.model_route;
    let (api, base_url) = match route.wire {
        WireApi::Chat => ("openai-completions", route.v1()),
        WireApi::Responses => ("openai-responses", route.v1()),
        WireApi::Messages => ("anthropic-messages", route.root().to_owned()),
    };
    let mut entry = json!({
        "id": model, "reasoning": true, "input": ["text"], "contextWindow": 200_000, "maxTokens": 8192
    });
    if let Some(price) = request.price {
        // Cache writes have no separate price, so they count as input.
        entry["cost"] = json!({
            "input": price.input,
            "output": price.output,
            "cacheRead": price.cache_read,
            "cacheWrite": price.input,
        });
    }
    json!({ "providers": { PROVIDER: {
        "baseUrl": base_url, "api": api, "apiKey": KEY_VARIABLE, "models": [entry]
    } } })
}

/// Builds the settings: few retries, and only pi's own. Those of its model clients are silent, multiply pi's,
/// and wait as long as a server requests.
fn settings() -> Value {
    json!({ "retry": {
        "enabled": true, "maxRetries": 2, "baseDelayMs": 1000, "provider": { "maxRetries": 0 }
    } })
}

fn check_thinking(variant: Option<&str>) -> Result<(), AgentError> {
    match variant {
        Some(variant) if !THINKING.contains(&variant) => Err(AgentError::BadValue {
            what: "a variant",
            value: variant.to_owned(),
            rule: "choose one of: off, minimal, low, medium, high, xhigh",
        }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::samples::{sample, sample_servers};
    use crate::request::{Price, SessionRequest};

    fn models_of(command: &AgentCommand) -> Value {
        serde_json::from_str(&command.home[".pi/agent/models.json"]).unwrap()
    }

    #[test]
    fn the_line_keeps_the_repositorys_extensions_out() {
        let mut request = sample(WireApi::Chat);
        request.variant = Some("high".to_owned());
        request.session = SessionRequest::Resume("01a1-x".to_owned());
        let command = Provider::Pi.command(&request).unwrap();
        assert_eq!(
            command.argv.join(" "),
            "pi -p --mode json --provider local --model scripted --thinking high --no-extensions \
             --no-skills --no-prompt-templates --no-themes --session 01a1-x Merge upstream"
        );
        let env: Vec<_> =
            command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env,
            ["LOCAL_KEY=dummy-1", "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"]
        );
    }

    #[test]
    fn at_a_terminal_it_shows_itself() {
        let mut request = sample(WireApi::Chat);
        request.manner = Interaction::Terminal;
        request.prompt = String::new();
        assert_eq!(
            Provider::Pi.command(&request).unwrap().argv.join(" "),
            "pi --provider local --model scripted --no-extensions --no-skills \
             --no-prompt-templates --no-themes"
        );
    }

    #[test]
    fn the_model_route_is_the_only_provider() {
        let mut request = sample(WireApi::Chat);
        request.price = Some(Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.0 });
        let command = Provider::Pi.command(&request).unwrap();
        assert_eq!(
            models_of(&command),
            json!({"providers": {"local": {
                "baseUrl": "http://127.0.0.1:3128/-/model/v1",
                "api": "openai-completions",
                "apiKey": "LOCAL_KEY",
                "models": [{
                    "id": "scripted", "reasoning": true, "input": ["text"],
                    "contextWindow": 200000, "maxTokens": 8192,
                    "cost": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.0}
                }]
            }}})
        );
    }

    #[test]
    fn each_way_to_talk_has_its_own_base() {
        for (wire, api, url) in [
            (WireApi::Responses, "openai-responses", "http://127.0.0.1:3128/-/model/v1"),
            (WireApi::Messages, "anthropic-messages", "http://127.0.0.1:3128/-/model"),
        ] {
            let models = models_of(&Provider::Pi.command(&sample(wire)).unwrap());
            assert_eq!(models["providers"]["local"]["api"], api);
            assert_eq!(models["providers"]["local"]["baseUrl"], url);
        }
    }

    #[test]
    fn tool_servers_come_through_the_bridge() {
        let mut request = sample(WireApi::Chat);
        request.mcp = sample_servers();
        let command = Provider::Pi.command(&request).unwrap();
        let argv = command.argv.join(" ");
        assert!(argv.contains("--no-themes -e /harness-state/run/bridge.ts Merge"), "{argv}");
        let files: Vec<_> = command.files.keys().collect();
        assert_eq!(files, ["bridge.ts", "mcp.json"]);
    }

    #[test]
    fn a_prompt_is_never_an_option_or_a_file() {
        for text in ["--help", "-", "@etc"] {
            let mut request = sample(WireApi::Chat);
            request.prompt = text.to_owned();
            let argv = Provider::Pi.command(&request).unwrap().argv;
            assert_eq!(argv.last(), Some(&format!("\n{text}")));
        }
    }

    #[test]
    fn an_unknown_way_to_think_is_refused_rather_than_forgotten() {
        let mut request = sample(WireApi::Chat);
        request.variant = Some("hard".to_owned());
        let error = Provider::Pi.command(&request).unwrap_err().to_string();
        assert!(error.contains("\"hard\" cannot be a variant"), "{error}");
    }
}
