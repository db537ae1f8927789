//! Commands of members in comments: a first line that begins with a slash. Comments of others are never commands.

use jiff::{SignedDuration, Timestamp};
use model::inert::inert_line;

/// Age after which a command is not carried out any more: what was handled is not remembered for ever.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(24);
const WORD_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberCommand {
    /// Ends the agent and keeps everything.
    Stop,
    /// Runs the agent again.
    Retry,
    /// Runs the agent with these words.
    Resume {
        words: String,
    },
    /// Uses this model from the next run on.
    Model {
        name: String,
    },
    /// Removes the bottle; its records stay.
    Forget,
    Status,
    /// Approves the plan of the agent.
    Approve,
    /// A word that is no command, or one without what it needs.
    Unknown {
        word: String,
    },
}

/// A command in a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommentCommand {
    /// Mark of the comment with its text: an edited one is another command.
    pub(crate) mark: String,
    pub(crate) author: String,
    pub(crate) command: MemberCommand,
}

/// Parses the text of a comment; `None` if its first line is no command. A path such as `/usr/bin` is none.
pub(crate) fn parse_command(text: &str) -> Option<MemberCommand> {
    let text = text.trim_start();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (word, words) = first
        .trim()
        .strip_prefix('/')
        .map(|line| line.split_once(char::is_whitespace).unwrap_or((line, "")))?;
    let is_word = !word.is_empty()
        && word.len() <= WORD_MAX
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if !is_word {
        return None;
    }
    let words = format!("{}\n{}", words.trim(), rest).trim().to_owned();
    let unknown = || MemberCommand::Unknown { word: word.to_owned() };
    Some(match word {
        "stop" => MemberCommand::Stop,
        "retry" => MemberCommand::Retry,
        "resume" if words.is_empty() => MemberCommand::Retry,
        "resume" => MemberCommand::Resume { words },
        "model" => match words.split_whitespace().collect::<Vec<_>>()[..] {
            [name] => MemberCommand::Model { name: name.to_owned() },
            _ => unknown(),
        },
        "forget" => MemberCommand::Forget,
        "status" => MemberCommand::Status,
        "approve" => MemberCommand::Approve,
        _ => unknown(),
    })
}

/// Returns whether a command of this time is still carried out. Without a time it is not.
pub(crate) fn is_fresh(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| now.duration_since(at) < AGE_MAX)
}

impl MemberCommand {
    /// Event of the stored delivery that carries it out, and the delivery's body; `None` if it only needs an answer.
    pub(crate) fn event(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Stop => Some(("freeze", "")),
            Self::Retry => Some(("resume", "")),
            Self::Resume { words } => Some(("resume", words)),
            Self::Model { name } => Some(("model", name)),
            Self::Forget => Some(("destroy", "")),
            Self::Approve => Some(("approve", "")),
            Self::Status | Self::Unknown { .. } => None,
        }
    }
}

impl CommentCommand {
    /// Mark of the answer, by which it is found again.
    pub(crate) fn answer_mark(&self) -> String {
        format!("<!-- bot-bottle: answer to {} -->", self.mark)
    }

    /// The answer to a command that needs one; `status` is the text of the status comment without its mark.
    pub(crate) fn answer(&self, status: &str) -> Option<String> {
        let text = match &self.command {
            MemberCommand::Status => status.trim().to_owned(),
            MemberCommand::Approve => "There is no plan that waits for an approval.".to_owned(),
            MemberCommand::Unknown { word } => {
                format!("`/{}`: no such command.\n\n{HELP}", inert_line(word))
            }
            _ => return None,
        };
        Some(format!("{}\n{text}\n", self.answer_mark()))
    }
}

const HELP: &str = "\
| command | what it does |
|---|---|
| `/stop` | ends the agent and keeps everything |
| `/retry` | runs the agent again |
| `/resume` words | runs the agent with these words |
| `/approve` | approves the plan of the agent, which then works |
| `/model` name | uses this model from the next run on |
| `/status` | says how far the work is |
| `/forget` | removes the bottle; its records stay |";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<MemberCommand>) {
        assert_eq!(parse_command(text), expected, "{text}");
    }

    #[test]
    fn commands_are_the_first_line_of_a_comment() {
        check("/stop", Some(MemberCommand::Stop));
        check("  /retry \n", Some(MemberCommand::Retry));
        let words = "Use SQLite.\nAnd sort.".to_owned();
        check("/resume Use SQLite.\nAnd sort.", Some(MemberCommand::Resume { words }));
        check("/resume", Some(MemberCommand::Retry));
        check("/model anthropic/x", Some(MemberCommand::Model { name: "anthropic/x".to_owned() }));
        check("/model", Some(MemberCommand::Unknown { word: "model".to_owned() }));
        check("/lgtm", Some(MemberCommand::Unknown { word: "lgtm".to_owned() }));
    }

    #[test]
    fn paths_and_later_lines_are_no_commands() {
        for text in ["", "/", "/usr/bin is missing", "please /stop", "ok\n/stop", "/Stop", "//"] {
            check(text, None);
        }
    }

    #[test]
    fn an_old_command_and_one_without_a_time_are_not_carried_out() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
        assert!(is_fresh(Some(now - SignedDuration::from_hours(1)), now));
        assert!(!is_fresh(Some(now - SignedDuration::from_hours(25)), now));
        assert!(!is_fresh(None, now));
    }

    #[test]
    fn what_is_unknown_gets_help_and_what_acts_gets_none() {
        let answer = |command| {
            let (mark, author) = ("plain:5@ab".to_owned(), "ann".to_owned());
            CommentCommand { mark, author, command }.answer("**Frozen**")
        };
        let help = answer(MemberCommand::Unknown { word: "lgtm".to_owned() }).expect("help");
        assert!(help.contains("`/lgtm`: no such command") && help.contains("`/stop`"), "{help}");
        assert!(help.starts_with("<!-- bot-bottle: answer to plain:5@ab -->\n"), "{help}");
        assert!(answer(MemberCommand::Status).is_some_and(|text| text.ends_with("**Frozen**\n")));
        assert_eq!(answer(MemberCommand::Stop), None);
    }
}
