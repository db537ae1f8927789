//! Codex: configuration in its own home folder, and its own sandbox off, because that one forbids merges.

mod config;
mod event;

use crate::program::{Entries, Program, Runtime};
use crate::provider::{AgentCommand, texts};
use crate::request::{AgentRequest, Interaction, push_option};

pub(crate) use event::CodexEvents;

pub const PROGRAM: Program = Program {
    name: "codex",
    package: "@openai/codex",
    version: "0.166.0",
    runtime: Runtime::Native,
    entries: Entries {
        x64: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        x64_baseline: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        arm64: "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    },
};

const KEY_VARIABLE: &str = "LOCAL_KEY";

/// Codex's configuration, relative to the home. Codex adds to it, so it is rewritten for each run.
const CONFIG_FILE: &str = ".codex/config.toml";

pub(crate) fn command(request: &AgentRequest) -> AgentCommand {
    AgentCommand {
        argv: argv(request),
        env: texts([(KEY_VARIABLE, &request.model_route.dummy_key)]),
        home: texts([(CONFIG_FILE, &config::render(request))]),
        ..AgentCommand::default()
    }
}

fn argv(request: &AgentRequest) -> Vec<String> {
    let mut argv = request.program(PROGRAM.name);
    let headless = request.manner == Interaction::Headless;
    let resumed = request.resumed();
    let words = [
        headless.then_some("exec"),
        resumed.map(|_| "resume"),
        headless.then_some("--json"),
        Some("--dangerously-bypass-approvals-and-sandbox"),
    ];
    argv.extend(words.into_iter().flatten().map(str::to_owned));
    let workspace = Some(request.workspace.as_str()).filter(|_| resumed.is_none());
    push_option(&mut argv, "-C", workspace);
    push_option(&mut argv, "-m", request.model.as_deref());
    let effort =
        request.variant.as_ref().map(|variant| format!("model_reasoning_effort={variant}"));
    push_option(&mut argv, "-c", effort.as_deref());
    argv.push("--".to_owned());
    argv.extend(resumed.map(str::to_owned));
    argv.extend(request.first_message().map(prompt));
    argv
}

/// Prepares the prompt. A lone dash would make Codex read the prompt from stdin.
fn prompt(prompt: &str) -> String {
    if prompt == "-" { " -".to_owned() } else { prompt.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provider;
    use crate::request::samples::sample;
    use crate::request::{SessionRequest, WireApi};

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
        assert!(command.home.contains_key(".codex/config.toml"));
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
