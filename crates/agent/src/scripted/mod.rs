//! The scripted agent: a list of steps, played in the box by the guest program.
//!
//! It calls no model, so it is deterministic. Users write scripts in TOML; `SCRIPTED.md` beside this crate's
//! manifest is the reference.

mod event;
mod parse;

use crate::provider::{AgentCommand, in_box, texts};

pub(crate) use event::ScriptedEvents;
pub use guest::script::Script;

pub use parse::{ScriptError, parse_script};

/// The script in the read-only folder of the box.
const SCRIPT_FILE: &str = "script.json";

/// Builds the command that starts the player with this script.
pub fn command(script: &Script) -> AgentCommand {
    let text = serde_json::to_string(script)
        .expect("a script holds strings, numbers and paths that were read from UTF-8");
    AgentCommand {
        argv: vec![in_box(guest::BINARY_FILE), "play".to_owned(), in_box(SCRIPT_FILE)],
        files: texts([(SCRIPT_FILE, &text)]),
        ..AgentCommand::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_player_is_started_with_the_script_beside_it() {
        let script = parse_script("[[step]]\nrun = 'git status'").unwrap();
        let command = command(&script);
        assert_eq!(
            command.argv,
            ["/harness-state/run/bottle-guest", "play", "/harness-state/run/script.json"]
        );
        assert!(command.env.is_empty());
        assert_eq!(command.files.keys().collect::<Vec<_>>(), ["script.json"]);
    }

    #[test]
    fn what_is_handed_over_is_what_was_written() {
        let script = parse_script("[[step]]\nsleep = 0.5\n[[step]]\nexit = 3").unwrap();
        let text = &command(&script).files["script.json"];
        assert_eq!(serde_json::from_str::<Script>(text).unwrap(), script);
    }

    #[test]
    fn the_example_of_the_reference_is_a_script() {
        let reference = include_str!("../../SCRIPTED.md");
        let (_, rest) = reference.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let script = parse_script(example).unwrap();
        let mut kinds: Vec<_> = script.steps.iter().map(guest::script::ScriptStep::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, ["ask", "daemon", "exit", "print", "run", "sleep", "stuck", "write"]);
    }
}
