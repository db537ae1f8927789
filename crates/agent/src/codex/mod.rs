//! Codex: configuration in its own home folder, and its own sandbox off, because that one forbids merges.

mod config;
mod event;

use crate::program::{Entries, Program, Runtime};
use crate::provider::{AgentCommand, HomeFile, Provider, variables};
use crate::request::{AgentError, AgentRequest, Interaction, SessionRequest};

pub(crate) use event::CodexEvents;

/// Package of Codex.
pub const PROGRAM: Program = Program {
    name: "codex",
    package: "@openai/codex",
    version: "0.166.0",
    runtime: Runtime::Static,
    entries: Entries {
        x64: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        x64_baseline: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        arm64: "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    },
};

/// Variable of the key in the configuration.
const KEY_VARIABLE: &str = "LOCAL_KEY";

/// Codex's configuration, relative to the home. Codex adds to it while it runs, so it is rewritten for each
/// run.
const CONFIG_FILE: &str = ".codex/config.toml";

pub(crate) fn command(request: &AgentRequest) -> Result<AgentCommand, AgentError> {
    if request.agent.is_some() {
        return Err(AgentError::Unsupported { provider: Provider::Codex, what: "an agent" });
    }
    Ok(AgentCommand {
        argv: argv(request),
        env: variables([(KEY_VARIABLE, &request.model_route.dummy_key)]),
        files: Vec::new(),
        home: vec![HomeFile {
            path: CONFIG_FILE.to_owned(),
            bytes: config::render(request).into_bytes(),
            mode: 0o600,
        }],
    })
}

fn argv(request: &AgentRequest) -> Vec<String> {
    let mut argv = request.program(PROGRAM.name);
    let headless = request.manner == Interaction::Headless;
    if headless {
        argv.push("exec".to_owned());
    }
    if let SessionRequest::Resume(_) = request.session {
        argv.push("resume".to_owned());
    }
    if headless {
        argv.push("--json".to_owned());
    }
    argv.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
    if let SessionRequest::Fresh { .. } = request.session {
        argv.extend(["-C".to_owned(), request.workspace.clone()]);
    }
    if let Some(model) = &request.model {
        argv.extend(["-m".to_owned(), model.clone()]);
    }
    if let Some(variant) = &request.variant {
        argv.extend(["-c".to_owned(), format!("model_reasoning_effort={variant}")]);
    }
    argv.push("--".to_owned());
    if let SessionRequest::Resume(id) = &request.session {
        argv.push(id.clone());
    }
    argv.extend(request.first_words().map(prompt));
    argv
}

/// Prepares the prompt. A lone dash would make Codex read the prompt from stdin.
fn prompt(prompt: &str) -> String {
    if prompt == "-" { " -".to_owned() } else { prompt.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{WireApi, sample};

    #[test]
    fn the_line_names_folder_and_model() {
        let mut request = sample(WireApi::Responses);
        request.variant = Some("high".to_owned());
        let command = Provider::Codex.command(&request).unwrap();
        assert_eq!(
            command.argv.join(" "),
            "codex exec --json --dangerously-bypass-approvals-and-sandbox -C /workspace \
             -m scripted -c model_reasoning_effort=high -- Merge upstream"
        );
        assert_eq!(command.env["LOCAL_KEY"], "dummy-1");
        assert_eq!(command.home[0].path, ".codex/config.toml");
    }

    #[test]
    fn a_resumed_thread_comes_before_the_prompt_and_takes_no_folder() {
        let mut request = sample(WireApi::Responses);
        request.model = None;
        request.session = SessionRequest::Resume("01a1-x".to_owned());
        assert_eq!(
            Provider::Codex.command(&request).unwrap().argv.join(" "),
            "codex exec resume --json --dangerously-bypass-approvals-and-sandbox \
             -- 01a1-x Merge upstream"
        );
    }

    #[test]
    fn at_a_terminal_it_shows_itself() {
        let mut request = sample(WireApi::Responses);
        request.manner = Interaction::Terminal;
        assert_eq!(
            Provider::Codex.command(&request).unwrap().argv.join(" "),
            "codex --dangerously-bypass-approvals-and-sandbox -C /workspace -m scripted \
             -- Merge upstream"
        );
        request.prompt = String::new();
        request.session = SessionRequest::Resume("01a1-x".to_owned());
        assert_eq!(
            Provider::Codex.command(&request).unwrap().argv.join(" "),
            "codex resume --dangerously-bypass-approvals-and-sandbox -m scripted -- 01a1-x"
        );
    }

    #[test]
    fn a_lone_dash_is_a_prompt_too() {
        let mut request = sample(WireApi::Responses);
        request.prompt = "-".to_owned();
        let argv = Provider::Codex.command(&request).unwrap().argv;
        assert_eq!(argv.last().map(String::as_str), Some(" -"));
    }

    #[test]
    fn there_are_no_personas_to_choose_from() {
        let mut request = sample(WireApi::Responses);
        request.agent = Some("build".to_owned());
        let error = Provider::Codex.command(&request).unwrap_err();
        assert_eq!(error.to_string(), "codex cannot be given an agent");
    }
}
