//! Claude Code: variables and flags, and a session whose id we choose.

mod event;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::{Entries, Program, Runtime};
use crate::provider::{AgentCommand, in_box, texts};
use crate::request::{
    AgentError, AgentRequest, Interaction, SessionRequest, Transport, push_option,
};

pub(crate) use event::ClaudeEvents;

pub const PROGRAM: Program = Program {
    name: "claude",
    package: "@anthropic-ai/claude-code",
    version: "2.1.197",
    runtime: Runtime::Native,
    entries: Entries {
        x64: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        x64_baseline: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        arm64: "node_modules/@anthropic-ai/claude-code-linux-arm64/claude",
    },
};

/// The tool servers, in the read-only folder of the box.
pub(crate) const MCP_FILE: &str = "mcp.json";

/// Number of last characters by which it remembers a key.
const KEY_SHOWN: usize = 20;

const UUID_RULE: &str = "Claude Code takes a version 4 UUID";

pub(crate) fn command(request: &AgentRequest) -> Result<AgentCommand, AgentError> {
    Ok(AgentCommand {
        argv: argv(request)?,
        env: texts([
            ("ANTHROPIC_BASE_URL", request.model_route.root()),
            ("ANTHROPIC_API_KEY", &request.model_route.dummy_key),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_TELEMETRY", "1"),
            // As root it refuses to skip its permissions, unless this says that it runs in a sandbox.
            ("IS_SANDBOX", "1"),
        ]),
        files: mcp_file(request),
        home: match request.manner {
            Interaction::Headless => BTreeMap::new(),
            Interaction::Terminal => texts([(".claude.json", &answers(request).to_string())]),
        },
    })
}

pub(crate) fn mcp_file(request: &AgentRequest) -> BTreeMap<String, String> {
    if request.mcp.is_empty() {
        return BTreeMap::new();
    }
    let servers = request.mcp_servers(|transport| match transport {
        Transport::Http { url } => json!({ "type": "http", "url": url, "headers": {} }),
        Transport::Stdio { command, args } => {
            json!({ "type": "stdio", "command": command, "args": args, "env": {} })
        }
    });
    texts([(MCP_FILE, &json!({ "mcpServers": servers }).to_string())])
}

fn argv(request: &AgentRequest) -> Result<Vec<String>, AgentError> {
    let mut argv = request.program(PROGRAM.name);
    if request.manner == Interaction::Headless {
        argv.extend(["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned));
    }
    argv.push("--dangerously-skip-permissions".to_owned());
    push_option(&mut argv, "--model", request.model.as_deref());
    push_option(&mut argv, "--effort", request.variant.as_deref());
    push_option(&mut argv, "--agent", request.agent.as_deref());
    // Hooks and tool servers of the repository would run before the first output of the model.
    argv.extend(["--setting-sources", "user", "--strict-mcp-config"].map(str::to_owned));
    if !request.mcp.is_empty() {
        argv.extend(["--mcp-config".to_owned(), in_box(MCP_FILE)]);
    }
    if let SessionRequest::Fresh { id: Some(id) } = &request.session {
        push_option(&mut argv, "--session-id", Some(check_uuid(id)?));
    }
    push_option(&mut argv, "--resume", request.resumed());
    push_option(&mut argv, "--", request.first_message());
    Ok(argv)
}

/// Returns the path of a session's transcript in the workspace, relative to its home.
pub(crate) fn transcript(session: &str) -> String {
    format!(".claude/projects/{}/{session}.jsonl", guest::WORKSPACE.replace('/', "-"))
}

/// Renders the answers to the prompts of a first start: theme, trust in the folder, acting without
/// confirmation, and use of the key in the environment. The box has decided all of them.
fn answers(request: &AgentRequest) -> Value {
    let key = &request.model_route.dummy_key;
    let shown =
        key.char_indices().rev().nth(KEY_SHOWN - 1).map_or(key.as_str(), |(at, _)| &key[at..]);
    json!({
        "hasCompletedOnboarding": true,
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": [shown], "rejected": [] },
        "projects": { &request.workspace: { "hasTrustDialogAccepted": true } },
    })
}

fn check_uuid(id: &str) -> Result<&str, AgentError> {
    let shape = id.char_indices().all(|(index, c)| match index {
        8 | 13 | 18 | 23 => c == '-',
        14 => c == '4',
        _ => c.is_ascii_hexdigit(),
    });
    if id.len() == 36 && shape {
        return Ok(id);
    }
    Err(AgentError::BadValue { what: "a session id", value: id.to_owned(), rule: UUID_RULE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provider;
    use crate::request::WireApi;
    use crate::request::samples::{sample, sample_servers};

    const UUID: &str = "7eba301b-919a-408e-bf63-0965e7fc3b8d";

    #[test]
    fn the_line_keeps_the_repositorys_settings_out() {
        let mut request = sample(WireApi::Messages);
        request.session = SessionRequest::Fresh { id: Some(UUID.to_owned()) };
        request.variant = Some("high".to_owned());
        request.agent = Some("reviewer".to_owned());
        let command = Provider::Claude.command(&request).unwrap();
        assert_eq!(
            command.argv.join(" "),
            format!(
                "claude -p --output-format stream-json --verbose --dangerously-skip-permissions \
                 --model scripted --effort high --agent reviewer --setting-sources user \
                 --strict-mcp-config --session-id {UUID} -- Merge upstream"
            )
        );
        let env: Vec<_> =
            command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env,
            [
                "ANTHROPIC_API_KEY=dummy-1",
                "ANTHROPIC_BASE_URL=http://127.0.0.1:3128/-/model",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                "CLAUDE_CODE_MAX_RETRIES=2",
                "DISABLE_AUTOUPDATER=1",
                "DISABLE_ERROR_REPORTING=1",
                "DISABLE_TELEMETRY=1",
                "IS_SANDBOX=1",
            ]
        );
        assert!(command.files.is_empty() && command.home.is_empty());
    }

    #[test]
    fn at_a_terminal_it_shows_itself_and_asks_nothing_first() {
        let mut request = sample(WireApi::Messages);
        request.manner = Interaction::Terminal;
        request.prompt = String::new();
        request.model_route.dummy_key = "bottle-0123456789-0123456789".to_owned();
        let command = Provider::Claude.command(&request).unwrap();
        assert_eq!(
            command.argv.join(" "),
            "claude --dangerously-skip-permissions --model scripted --setting-sources user \
             --strict-mcp-config"
        );
        let answers = &command.home[".claude.json"];
        assert!(answers.contains("\"123456789-0123456789\""), "{answers}");
        assert_eq!(
            Provider::Claude.transcript(UUID),
            Some(format!(".claude/projects/-workspace/{UUID}.jsonl"))
        );
    }

    #[test]
    fn tool_servers_stand_in_a_file_of_the_box() {
        let mut request = sample(WireApi::Messages);
        request.mcp = sample_servers();
        request.session = SessionRequest::Resume(UUID.to_owned());
        let command = Provider::Claude.command(&request).unwrap();
        assert!(command.argv.join(" ").ends_with(&format!(
            "--strict-mcp-config --mcp-config /harness-state/run/mcp.json --resume {UUID} \
             -- Merge upstream"
        )));
        assert_eq!(
            command.files["mcp.json"],
            r#"{"mcpServers":{"forge":{"headers":{},"type":"http","url":"http://127.0.0.1:3129/mcp"},"probe":{"args":["arg"],"command":"prog","env":{},"type":"stdio"}}}"#
        );
    }

    #[test]
    fn a_chosen_session_is_a_random_uuid() {
        for id in
            ["x", "7eba301b-919a-108e-bf63-0965e7fc3b8d", "7eba301b-919a-408e-bf63-0965e7fc3b8g"]
        {
            let mut request = sample(WireApi::Messages);
            request.session = SessionRequest::Fresh { id: Some(id.to_owned()) };
            let error = Provider::Claude.command(&request).unwrap_err().to_string();
            assert!(error.ends_with(UUID_RULE), "{error}");
        }
    }
}
