//! Parser of scripts that users write, with the line of an error.

use guest::script::{Script, ScriptStep};
use serde::Deserialize;
use toml::{Spanned, Value};

/// A text that is not a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    /// Counted from 1.
    line: usize,
    what: String,
}

/// Parses a script in TOML. An empty text is an agent that does nothing and succeeds.
pub fn parse_script(toml_text: &str) -> Result<Script, ScriptError> {
    toml::from_str(toml_text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(toml_text, span.start));
        let line = line.max(first_bad_step(toml_text).unwrap_or(1));
        let what = match unknown_step(error.message()) {
            Some(kind) => format!(
                "there is no step `{kind}`; a step has one of run, write, sleep, print, stuck, \
                 ask, exit and daemon, and a run may have cwd and expect"
            ),
            None => error.message().to_owned(),
        };
        ScriptError { line, what }
    })
}

/// Finds the line of the first invalid step. Serde reports an error of a step as a whole for the list of
/// steps, which would always point at the first.
fn first_bad_step(toml_text: &str) -> Option<usize> {
    let outline: Outline = toml::from_str(toml_text).ok()?;
    let bad = outline
        .step
        .into_iter()
        .find(|step| ScriptStep::deserialize(step.as_ref().clone()).is_err())?;
    Some(line_at(toml_text, bad.span().start))
}

/// The steps and their positions, whatever their content.
#[derive(Deserialize)]
struct Outline {
    step: Vec<Spanned<Value>>,
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Extracts the key that serde did not know, if it expected a step; an unknown key further down, as in
/// `write`, keeps serde's own message.
fn unknown_step(message: &str) -> Option<&str> {
    let (key, expected) = message.strip_prefix("unknown field `")?.split_once('`')?;
    expected.starts_with(", expected one of `run`").then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, line: usize, why: &str) {
        let error = parse_script(text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn an_empty_text_is_an_agent_that_does_nothing() {
        assert_eq!(parse_script("# nothing\n").unwrap(), Script::default());
    }

    #[test]
    fn an_unknown_step_is_named_with_its_line() {
        let text = "# demo\n[[step]]\nrun = 'ls'\n\n[[step]]\nrnu = 'ls'\n";
        refused(text, 6, "there is no step `rnu`; a step has one of run, write");
    }

    #[test]
    fn an_unknown_option_is_named_with_those_that_exist() {
        refused(
            "[[step]]\nwrite = { path = 'x', txt = '' }",
            2,
            "unknown field `txt`, expected one of `path`",
        );
        refused("[[steps]]\nrun = 'ls'", 1, "unknown field `steps`, expected `step`");
    }

    #[test]
    fn a_step_of_two_kinds_points_at_the_step() {
        refused("\n[[step]]\nexit = 0\n[[step]]\nrun = 'ls'\nsleep = 1", 4, "`run` and `sleep`");
        refused("\n[[step]]\nexit = 0\n[[step]]\n", 4, "a step needs one of run");
    }

    #[test]
    fn what_is_no_toml_points_at_its_line() {
        refused("[[step]]\nrun = 'ls'\n\nsleep == 1\n", 4, "");
        refused("[[step]]\nsleep = 'long'\n", 2, "invalid type");
        refused("[[step]]\nexit = 256\n", 2, "256");
    }
}
