//! OpenCode: configuration by one variable, so that no file of the repository is read.

mod config;
mod event;

use std::collections::BTreeMap;

use crate::program::{Entries, Program, Runtime};
use crate::provider::{AgentCommand, Provider, texts};
use crate::request::{AgentError, AgentRequest, Interaction, push_option};

pub(crate) use event::OpenCodeEvents;

pub const PROGRAM: Program = Program {
    name: "opencode",
    package: "opencode-ai",
    version: "1.18.33",
    runtime: Runtime::Native,
    entries: Entries {
        x64: "node_modules/opencode-linux-x64/bin/opencode",
        x64_baseline: "node_modules/opencode-linux-x64-baseline/bin/opencode",
        arm64: "node_modules/opencode-linux-arm64/bin/opencode",
    },
};

const KEY_VARIABLE: &str = "MODEL_KEY";

pub(crate) fn command(request: &AgentRequest) -> Result<AgentCommand, AgentError> {
    let model = request.model_for(Provider::OpenCode)?;
    let mut env = texts([
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        (KEY_VARIABLE, &request.model_route.dummy_key),
    ]);
    env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config::render(request, model)?);
    let argv = argv(request, model);
    Ok(AgentCommand { argv, env, home: seed(), ..AgentCommand::default() })
}

fn argv(request: &AgentRequest, model: &str) -> Vec<String> {
    let headless = request.manner == Interaction::Headless;
    let mut argv = request.program(PROGRAM.name);
    if headless {
        argv.extend(["run", "--format", "json", "--dir", &request.workspace].map(str::to_owned));
    }
    push_option(&mut argv, "-m", Some(&format!("{}/{model}", config::PROVIDER)));
    push_option(&mut argv, "--variant", request.variant.as_deref());
    push_option(&mut argv, "--agent", request.agent.as_deref());
    if headless {
        // A given title saves the extra model call that would generate one.
        push_option(&mut argv, "--title", Some(&request.run_title));
    }
    push_option(&mut argv, "--session", request.resumed());
    if headless {
        argv.push("--".to_owned());
        // OpenCode would quote an argument that contains a space and escape its quotes. It joins its arguments by
        // spaces, so the words of the prompt arrive as written.
        argv.extend(words(&request.prompt));
    } else {
        // One argument, with the equals sign, because a prompt may begin with a dash.
        argv.extend(request.first_message().map(|message| format!("--prompt={message}")));
        argv.push(request.workspace.clone());
    }
    argv
}

/// Splits the prompt into words that OpenCode joins again. It parses a numeric word as a number and fails on
/// it, so a number is joined to the word before it by a no-break space.
fn words(prompt: &str) -> Vec<String> {
    const TIE: char = '\u{a0}';
    let mut words: Vec<String> = Vec::new();
    for word in prompt.split(' ') {
        match words.last_mut() {
            Some(last) if is_number(word) => {
                last.push(TIE);
                last.push_str(word);
            }
            None if is_number(word) => words.push(format!("{TIE}{word}")),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns whether a JavaScript command-line parser would convert it to a number.
fn is_number(word: &str) -> bool {
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let is_hex = |digits: &str| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let trimmed = word.trim_end();
    let digits = trimmed.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
    hex.is_some_and(is_hex) || (digits && trimmed.parse::<f64>().is_ok())
}

/// Returns files that mark OpenCode's plugin package as installed. Otherwise it queries the npm registry at
/// every start.
fn seed() -> BTreeMap<String, String> {
    let lock = format!(
        r#"{{"packages":{{"":{{"dependencies":{{"@opencode-ai/plugin":"{}"}}}}}}}}"#,
        PROGRAM.version
    );
    texts([
        (".config/opencode/package-lock.json", &lock),
        (".config/opencode/node_modules/.keep", ""),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::samples::sample;
    use crate::request::{SessionRequest, WireApi};

    #[test]
    fn a_number_in_the_prompt_is_never_a_word_of_its_own() {
        let tied = words("You have 8 minutes and 0x1F tries, 1.5e3 in all");
        assert_eq!(
            tied.join(" ").replace('\u{a0}', " "),
            "You have 8 minutes and 0x1F tries, 1.5e3 in all"
        );
        assert!(tied.iter().all(|word| !is_number(word)), "{tied:?}");
        assert_eq!(words("42"), ["\u{a0}42"]);
    }

    #[test]
    fn the_line_names_folder_model_and_title() {
        let mut request = sample(WireApi::Chat);
        let argv = Provider::OpenCode.command(&request).unwrap().argv;
        assert_eq!(
            argv.join(" "),
            "opencode run --format json --dir /workspace -m local/scripted --title run-1 \
             -- Merge upstream"
        );
        request.variant = Some("high".to_owned());
        request.agent = Some("build".to_owned());
        request.session = SessionRequest::Resume("ses_1".to_owned());
        request.launcher = vec!["/opt/agents/opencode/x".to_owned()];
        let argv = Provider::OpenCode.command(&request).unwrap().argv;
        assert_eq!(
            argv.join(" "),
            "/opt/agents/opencode/x run --format json --dir /workspace -m local/scripted \
             --variant high --agent build --title run-1 --session ses_1 -- Merge upstream"
        );
    }

    #[test]
    fn at_a_terminal_it_shows_itself() {
        let mut request = sample(WireApi::Chat);
        request.manner = Interaction::Terminal;
        request.session = SessionRequest::Resume("ses_1".to_owned());
        let argv = |request: &AgentRequest| Provider::OpenCode.command(request).map(|it| it.argv);
        assert_eq!(
            argv(&request).unwrap(),
            [
                "opencode",
                "-m",
                "local/scripted",
                "--session",
                "ses_1",
                "--prompt=Merge upstream",
                "/workspace"
            ]
        );
        request.prompt = String::new();
        assert_eq!(argv(&request).unwrap().len(), 6);
        request.variant = Some("high".to_owned());
        let error = argv(&request).unwrap_err().to_string();
        assert_eq!(error, "opencode cannot be given a variant at a terminal");
    }

    #[test]
    fn a_prompt_is_put_together_again_as_it_was() {
        let mut request = sample(WireApi::Chat);
        request.prompt = "--help \"me\"  with\n - two  spaces ".to_owned();
        let argv = Provider::OpenCode.command(&request).unwrap().argv;
        let start = argv.iter().position(|word| word == "--").unwrap() + 1;
        assert_eq!(argv[start..].join(" "), request.prompt);
    }

    #[test]
    fn nothing_is_fetched_and_nothing_of_the_repository_is_read() {
        let command = Provider::OpenCode.command(&sample(WireApi::Chat)).unwrap();
        let off = command.env.keys().filter(|name| name.starts_with("OPENCODE_DISABLE_")).count();
        assert_eq!(off, 5);
        assert_eq!(command.env["MODEL_KEY"], "dummy-1");
        let paths: Vec<_> = command.home.keys().collect();
        assert_eq!(
            paths,
            [".config/opencode/node_modules/.keep", ".config/opencode/package-lock.json"]
        );
        assert_eq!(
            command.home[".config/opencode/package-lock.json"],
            r#"{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}"#
        );
    }

    #[test]
    fn there_is_no_model_to_fall_back_on() {
        let mut request = sample(WireApi::Chat);
        request.model = None;
        let error = Provider::OpenCode.command(&request).unwrap_err();
        assert_eq!(error.to_string(), "opencode needs the name of a model");
    }
}
