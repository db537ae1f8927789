//! Recorded output of the real agents, one file for each situation, and what must be read from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use agent::{AgentOutcome, AgentReport, EventReader, Progress, Provider, ToolEnd, ToolKind, Usage};

/// What one file says. Exit statuses are those that the agents had.
struct Expected {
    file: &'static str,
    exit: Option<i32>,
    outcome: AgentOutcome,
    /// Input, output, tokens from the cache.
    tokens: [u64; 3],
    cost_usd: Option<f64>,
    session: &'static str,
    /// The names of the tools, with a `!` where one failed and a `?` where one did not end.
    tools: &'static [&'static str],
    answer: Option<&'static str>,
}

const MERGED: Option<&str> = Some("Merged upstream/main into main. Done.");
const PINGED: Option<&str> = Some("MCP said PING.");
const FAILED: Option<&str> = Some("the command failed");

fn refused(status: impl Into<Option<u16>>, message: &str) -> AgentOutcome {
    AgentOutcome::ModelRefused { status: status.into(), message: message.to_owned() }
}

fn failed(reason: &str) -> AgentOutcome {
    AgentOutcome::Failed { reason: reason.to_owned() }
}

fn claude() -> Vec<Expected> {
    vec![
        Expected {
            file: "claude-error-401",
            exit: Some(1),
            outcome: refused(
                401,
                "Failed to authenticate. API Error: 401 invalid api key (scripted)",
            ),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "285aa207-db2c-4ae6-8b78-b51318daca35",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "claude-error-500",
            exit: Some(1),
            outcome: refused(
                500,
                "API Error: 500 server blew up (scripted). This is a server-side issue, usually \
                 temporary — try again in a moment. If it persists, check your inference gateway \
                 (127.0.0.1:18080).",
            ),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "41c9b0fa-a922-4e0d-a9cc-8c79550d8425",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "claude-max-turns",
            exit: Some(1),
            outcome: failed("Reached maximum number of turns (1)"),
            tokens: [1000, 50, 200],
            cost_usd: Some(0.00381),
            session: "8b9a348e-da37-4bde-8ce6-1aedb894c18e",
            tools: &["Bash"],
            answer: None,
        },
        Expected {
            file: "claude-mcp",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "e1172750-e2fe-4c96-9dbf-09652a4d3b7b",
            tools: &["mcp__probe__echo_upper"],
            answer: PINGED,
        },
        Expected {
            file: "claude-permission-denied",
            exit: Some(0),
            outcome: AgentOutcome::PermissionDenied,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "2711ab95-f287-4f29-a4d9-6f486ebdbfac",
            tools: &["Bash!"],
            answer: MERGED,
        },
    ]
}

fn claude_more() -> Vec<Expected> {
    vec![
        Expected {
            file: "claude-refused",
            exit: Some(1),
            outcome: refused(None, "API Error: Unable to connect to API (ConnectionRefused)"),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "ccd67935-039b-4800-9dd7-8521b5320a8c",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "claude-resume-bad-id",
            exit: Some(1),
            outcome: failed(
                "No conversation found with session ID: 99999999-2222-4333-8444-555555555555",
            ),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "99999999-2222-4333-8444-555555555555",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "claude-sigint",
            exit: Some(0),
            outcome: AgentOutcome::Interrupted,
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "e2feb165-ffdc-44f2-b5c4-77efb9effc7c",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "claude-success",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "7eba301b-919a-408e-bf63-0965e7fc3b8d",
            tools: &["Bash"],
            answer: MERGED,
        },
        Expected {
            file: "claude-tool-exit3",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "65afd775-70d8-4273-a3d7-82ec87a369f0",
            tools: &["Bash!"],
            answer: FAILED,
        },
    ]
}

fn codex() -> Vec<Expected> {
    vec![
        Expected {
            file: "codex-error-401",
            exit: Some(1),
            outcome: refused(
                401,
                "unexpected status 401 Unauthorized: invalid api key (scripted), \
                 url: http://127.0.0.1:18080/s/e401/v1/responses",
            ),
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "01a1de0a-e7b9-7321-bd3d-57d7cd3e1ac0",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "codex-error-500",
            exit: Some(1),
            outcome: refused(
                None,
                "We’re currently experiencing high demand, which may cause temporary errors.",
            ),
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "01a1de0f-6b12-71c3-a093-abbb60d5ff6a",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "codex-mcp",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: None,
            session: "01a1de0f-4838-7843-b025-b4a4a1d1db26",
            tools: &["mcp__probe__echo_upper"],
            answer: PINGED,
        },
        Expected {
            file: "codex-refused-endless",
            exit: None,
            outcome: AgentOutcome::Interrupted,
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "01a1de0f-d4ef-7602-b398-9bcd296b6109",
            tools: &[],
            answer: None,
        },
    ]
}

fn codex_more() -> Vec<Expected> {
    vec![
        Expected {
            file: "codex-resume-turn2",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [4000, 200, 800],
            cost_usd: None,
            session: "01a1de0f-5f99-7e53-91e0-db20c7a5f4b5",
            tools: &["command_execution"],
            answer: Some("Second done."),
        },
        Expected {
            file: "codex-success",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: None,
            session: "01a1de27-888a-7c00-b035-c5fb82f02e7e",
            tools: &["command_execution"],
            answer: MERGED,
        },
        Expected {
            file: "codex-tool-exit3",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: None,
            session: "01a1de0a-df8c-7000-87bf-ce194b9fe127",
            tools: &["command_execution!"],
            answer: FAILED,
        },
        Expected {
            file: "codex-unknown-model-warning",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: None,
            session: "01a1de0a-d11b-7930-9198-96c9fe0eca49",
            tools: &["command_execution"],
            answer: MERGED,
        },
    ]
}

fn opencode() -> Vec<Expected> {
    vec![
        Expected {
            file: "opencode-error-401",
            exit: Some(1),
            outcome: refused(401, "invalid api key (scripted)"),
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "ses_e21f15588ffeaD29cUteV05IDE",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "opencode-error-500-after-retries",
            exit: Some(1),
            outcome: refused(500, "server blew up (scripted)"),
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "ses_e21e02c83ffesDMDk1T0pywbNN",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "opencode-mcp",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "ses_e21e3e168ffearl5PQKwNbt5l2",
            tools: &["probe_echo_upper"],
            answer: PINGED,
        },
        Expected {
            file: "opencode-permission-rejected",
            exit: Some(0),
            outcome: AgentOutcome::PermissionDenied,
            tokens: [1000, 50, 200],
            cost_usd: Some(0.00381),
            session: "ses_e21d98e45ffe912enviNut8Nel",
            tools: &["bash!"],
            answer: None,
        },
    ]
}

fn opencode_more() -> Vec<Expected> {
    vec![
        Expected {
            file: "opencode-refused",
            exit: Some(1),
            outcome: refused(
                None,
                "Cannot connect to API: Unable to connect. Is the computer able to access the url?",
            ),
            tokens: [0, 0, 0],
            cost_usd: None,
            session: "ses_e21ebf456ffe7AwUDA5O3rLtY7",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "opencode-resume-turn2",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "ses_e21e48083ffeGumBRrs2zCp1xW",
            tools: &["bash"],
            answer: Some("Second done."),
        },
        Expected {
            file: "opencode-success",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "ses_e21f29a78ffeOHDEIcaw18cC6e",
            tools: &["bash"],
            answer: MERGED,
        },
        Expected {
            file: "opencode-tool-exit3",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "ses_e21f1b4cbffemNHWAhII9RprQy",
            tools: &["bash!"],
            answer: FAILED,
        },
    ]
}

fn pi() -> Vec<Expected> {
    vec![
        Expected {
            file: "pi-error-401",
            exit: Some(0),
            outcome: refused(401, "401 invalid api key (scripted)"),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "01a1de0c-e6f5-7035-b38d-749e7630ba46",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "pi-error-500-retries",
            exit: Some(0),
            outcome: refused(500, "500 server blew up (scripted)"),
            tokens: [0, 0, 0],
            cost_usd: Some(0.0),
            session: "01a1de11-57eb-7754-b5fb-76ef55a6b9c3",
            tools: &[],
            answer: None,
        },
        Expected {
            file: "pi-extension-tool",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "01a1de20-0aa8-74a1-b302-828782d6482e",
            tools: &["mcp_echo_upper"],
            answer: PINGED,
        },
        Expected {
            file: "pi-success",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "01a1de0c-bb27-70cf-a18f-1e12c4ba0725",
            tools: &["bash"],
            answer: MERGED,
        },
        Expected {
            file: "pi-tool-exit3",
            exit: Some(0),
            outcome: AgentOutcome::Finished,
            tokens: [2000, 100, 400],
            cost_usd: Some(0.00762),
            session: "01a1de0c-dabf-72f5-9024-9b08d9b2a71e",
            tools: &["bash!"],
            answer: FAILED,
        },
    ]
}

fn all() -> Vec<Expected> {
    [claude(), claude_more(), codex(), codex_more(), opencode(), opencode_more(), pi()]
        .into_iter()
        .flatten()
        .collect()
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

pub(crate) fn load(file: &str) -> String {
    fs::read_to_string(folder().join(file).with_extension("jsonl")).expect("a recording")
}

fn provider_of(file: &str) -> Provider {
    let name = file.split('-').next().unwrap_or_default();
    Provider::parse(name).expect("a recording begins with the name of its agent")
}

fn read(file: &str, exit: Option<i32>) -> (Vec<Progress>, AgentReport) {
    let mut reader = EventReader::new(provider_of(file));
    let news = load(file).lines().flat_map(|line| reader.push_line(line)).collect();
    (news, reader.finish(exit))
}

fn tools(report: &AgentReport) -> Vec<String> {
    let mark = |ok| match ok {
        Some(true) => "",
        Some(false) => "!",
        None => "?",
    };
    report.tool_calls.iter().map(|call| format!("{}{}", call.name, mark(call.ok))).collect()
}

#[test]
fn every_recording_is_read_as_it_happened() {
    for expected in all() {
        let file = expected.file;
        let (_, report) = read(file, expected.exit);
        assert_eq!(report.outcome, expected.outcome, "{file}");
        let [input, output, cache_read] = expected.tokens;
        let usage = Usage { input, output, cache_read, ..Usage::default() };
        assert_eq!(report.usage, usage, "{file}");
        match (report.cost_usd, expected.cost_usd) {
            (Some(told), Some(cost)) => assert!((told - cost).abs() < 1e-9, "{file}: {told}"),
            (told, cost) => assert_eq!(told, cost, "{file}"),
        }
        assert_eq!(report.session_id.as_deref(), Some(expected.session), "{file}");
        assert_eq!(tools(&report), expected.tools, "{file}");
        assert_eq!(report.answer.as_deref(), expected.answer, "{file}");
        assert_eq!(report.unknown, [] as [&str; 0], "{file}");
    }
}

#[test]
fn every_recording_is_expected_to_say_something() {
    let listed: BTreeSet<_> =
        all().iter().map(|expected| format!("{}.jsonl", expected.file)).collect();
    let found: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), 31);
}

#[test]
fn no_recording_is_a_success_before_its_last_line() {
    for expected in all() {
        let text = load(expected.file);
        let lines: Vec<_> = text.lines().collect();
        for end in 0..lines.len() - 1 {
            // pi repeats its end in two events that add nothing.
            if lines[end..].iter().all(|line| line.contains("_end\",")) {
                break;
            }
            let mut reader = EventReader::new(provider_of(expected.file));
            for line in &lines[..end] {
                reader.push_line(line);
            }
            let outcome = reader.finish(None).outcome;
            assert!(!outcome.is_finished(), "{} cut at {end}", expected.file);
        }
    }
}

#[test]
fn a_last_line_that_breaks_off_is_no_end() {
    for file in ["claude-success", "codex-success", "opencode-success"] {
        let text = load(file);
        let cut = &text[..text.trim_end().len() - 10];
        let mut reader = EventReader::new(provider_of(file));
        for line in cut.lines() {
            reader.push_line(line);
        }
        let report = reader.finish(None);
        assert_eq!(report.outcome, AgentOutcome::Interrupted, "{file}");
        assert_eq!((report.unknown.len(), report.unknown_count), (1, 1), "{file}");
    }
}

#[test]
fn a_good_status_makes_no_success() {
    for file in ["claude-error-401", "codex-error-500", "opencode-refused", "pi-error-401"] {
        assert!(
            matches!(read(file, Some(0)).1.outcome, AgentOutcome::ModelRefused { .. }),
            "{file}"
        );
    }
    let silent = EventReader::new(Provider::Claude).finish(Some(0));
    assert_eq!(silent.outcome, failed("it ended with status 0 before its first event"));
}

#[test]
fn a_bad_status_speaks_against_those_that_have_a_good_one() {
    for file in ["codex-success", "opencode-success"] {
        assert!(matches!(read(file, Some(1)).1.outcome, AgentOutcome::Failed { .. }), "{file}");
    }
}

#[test]
fn an_agent_that_did_not_start_is_told_from_one_that_was_stopped() {
    for provider in [Provider::OpenCode, Provider::Codex, Provider::Claude, Provider::Pi] {
        let end = |exit| EventReader::new(provider).finish(exit).outcome;
        assert_eq!(end(Some(1)), failed("it ended with status 1 before its first event"));
        assert_eq!(end(Some(143)), AgentOutcome::Interrupted);
        assert_eq!(end(None), AgentOutcome::Interrupted);
    }
}

#[test]
fn a_resumed_thread_of_codex_is_counted_from_where_it_was() {
    let first = Usage { input: 2000, output: 100, cache_read: 400, ..Usage::default() };
    let mut reader = EventReader::resuming(Provider::Codex, first);
    for line in load("codex-resume-turn2").lines() {
        reader.push_line(line);
    }
    let report = reader.finish(Some(0));
    assert_eq!(report.usage, first);
    assert_eq!(report.thread_usage, Some(first + first));
}

#[test]
fn news_come_while_the_agent_works() {
    let (news, _) = read("claude-success", Some(0));
    let usage = Usage { input: 2000, output: 100, cache_read: 400, ..Usage::default() };
    assert_eq!(
        news,
        [
            Progress::SessionStarted { id: "7eba301b-919a-408e-bf63-0965e7fc3b8d".to_owned() },
            Progress::ToolCall {
                name: "Bash".to_owned(),
                summary: "git merge upstream/main --no-edit".to_owned()
            },
            Progress::ToolEnd(ToolEnd {
                kind: ToolKind::Command,
                action: "ran `git merge upstream/main --no-edit`".to_owned(),
                ok: true,
                status: None,
                output: "Merge made by the 'ort' strategy.\n b.txt | 1 +\n 1 file changed, 1 insertion(+)\n create mode 100644 b.txt".to_owned(),
                took_ms: None,
            }),
            Progress::Text("Merged upstream/main into main. Done.".to_owned()),
            Progress::Tokens(usage),
        ]
    );
    for (file, reason, count) in [
        ("claude-error-401", "401 authentication_failed", 2),
        ("codex-refused-endless", "Reconnecting... waiting for network", 4),
        ("pi-error-500-retries", "500 server blew up", 3),
    ] {
        let (news, _) = read(file, None);
        let retries = news.iter().filter(
            |news| matches!(news, Progress::Retrying { reason: told } if told.starts_with(reason)),
        );
        assert_eq!(retries.count(), count, "{file}");
    }
}

#[test]
fn what_was_denied_is_named() {
    for (file, tool) in
        [("claude-permission-denied", "Bash"), ("opencode-permission-rejected", "bash")]
    {
        let (_, report) = read(file, Some(0));
        assert_eq!(report.denials.len(), 1, "{file}");
        assert_eq!(report.denials[0].tool, tool);
        assert_eq!(report.denials[0].detail, "git merge upstream/main --no-edit");
    }
}
