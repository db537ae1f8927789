//! Commands of members in comments: a first line that begins with a slash. Comments of others are never commands.

use jiff::{SignedDuration, Timestamp};
use model::inert::inert_line;
use orchestrator_db::{IssueKey, WorkState};

/// Age after which a command is not carried out any more: what was handled is not remembered for ever.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(24);
const WORD_MAX: usize = 20;
const MODEL: &str = "model";

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

/// Standing of the work on an issue when a command is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandFacts<'a> {
    pub(crate) state: WorkState,
    pub(crate) has_bottle: bool,
    /// True if a plan waits for an approval.
    pub(crate) awaits_approval: bool,
    /// True if the command was stored before, so that what it asks for is on its way or done.
    pub(crate) is_stored: bool,
    /// Text of the status comment without its mark.
    pub(crate) status: &'a str,
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
        MODEL => match words.split_whitespace().collect::<Vec<_>>()[..] {
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
    /// Id of the stored delivery that carries it out.
    pub(crate) fn delivery_id(&self, key: &IssueKey) -> String {
        format!("{key} {}", self.mark)
    }

    /// Mark of the answer, by which it is found again.
    pub(crate) fn answer_mark(&self) -> String {
        format!("<!-- bot-bottle: answer to {} -->", self.mark)
    }

    /// The answer to a command that needs one, because it only asks, or because nothing else shows what comes of it.
    pub(crate) fn answer(&self, facts: CommandFacts<'_>) -> Option<String> {
        let CommandFacts { state, has_bottle, awaits_approval, is_stored, status } = facts;
        let text = match &self.command {
            MemberCommand::Status => status.trim().to_owned(),
            MemberCommand::Unknown { word } if word == MODEL => {
                format!("`/{MODEL}` needs the name of one model, without blanks.\n\n{HELP}")
            }
            MemberCommand::Unknown { word } => {
                format!("`/{}`: no such command.\n\n{HELP}", inert_line(word))
            }
            _ if is_stored => return None,
            MemberCommand::Approve if !awaits_approval => NO_PLAN.to_owned(),
            MemberCommand::Retry | MemberCommand::Resume { .. } | MemberCommand::Model { .. }
                if state == WorkState::Destroyed =>
            {
                BOTTLE_GONE.to_owned()
            }
            MemberCommand::Retry if state.is_held() => AT_WORK.to_owned(),
            MemberCommand::Resume { .. } if state.is_held() => WORDS_KEPT.to_owned(),
            MemberCommand::Model { .. } if !has_bottle => NO_BOTTLE.to_owned(),
            MemberCommand::Stop if !can_stop(state) => NOTHING_RUNS.to_owned(),
            MemberCommand::Stop
            | MemberCommand::Retry
            | MemberCommand::Resume { .. }
            | MemberCommand::Model { .. }
            | MemberCommand::Forget
            | MemberCommand::Approve => return None,
        };
        Some(format!("{}\n{text}\n", self.answer_mark()))
    }
}

/// Returns whether work in this state goes on by itself, so that it can be stopped.
fn can_stop(state: WorkState) -> bool {
    match state {
        WorkState::Queued | WorkState::Claimed | WorkState::Running | WorkState::Waiting => true,
        WorkState::Frozen | WorkState::NeedsAttention | WorkState::Destroyed => false,
    }
}

const NO_PLAN: &str = "There is no plan that waits for an approval.";
const AT_WORK: &str =
    "The agent is at work already. `/stop` ends it; a comment is read when its run has ended.";
const WORDS_KEPT: &str = "The agent is at work. It gets these words in a run of their own, as soon as this one has ended.";
const NO_BOTTLE: &str =
    "There is no bottle yet, so no model was chosen. Give the command again when the agent works.";
const BOTTLE_GONE: &str =
    "Its bottle is removed. Take the label off and set it again for a new one.";
const NOTHING_RUNS: &str = "Nothing runs, so nothing was stopped.";

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

    const FREE: CommandFacts<'_> = CommandFacts {
        state: WorkState::Frozen,
        has_bottle: true,
        awaits_approval: false,
        is_stored: false,
        status: "**Frozen**",
    };

    fn answer(command: MemberCommand, facts: CommandFacts<'_>) -> Option<String> {
        let (mark, author) = ("plain:5@ab".to_owned(), "ann".to_owned());
        CommentCommand { mark, author, command }.answer(facts)
    }

    #[test]
    fn what_is_unknown_gets_help_and_what_acts_gets_none() {
        let help = answer(MemberCommand::Unknown { word: "lgtm".to_owned() }, FREE).expect("help");
        assert!(help.contains("`/lgtm`: no such command") && help.contains("`/stop`"), "{help}");
        assert!(help.starts_with("<!-- bot-bottle: answer to plain:5@ab -->\n"), "{help}");
        let status = answer(MemberCommand::Status, FREE).expect("an answer");
        assert!(status.ends_with("**Frozen**\n"), "{status}");
        assert_eq!(answer(MemberCommand::Retry, FREE), None);
    }

    /// Commands that change nothing, or not at once, get an answer; `-` stands for none.
    #[test]
    fn every_command_in_every_state_is_carried_out_or_answered() {
        let words = "Sort.".to_owned();
        let name = "x".to_owned();
        let commands = [
            ("stop", MemberCommand::Stop),
            ("retry", MemberCommand::Retry),
            ("resume", MemberCommand::Resume { words }),
            ("model", MemberCommand::Model { name }),
            ("approve", MemberCommand::Approve),
        ];
        let mut lines = Vec::new();
        for state in WorkState::ALL {
            for (word, command) in &commands {
                let has_bottle = state != WorkState::Queued;
                let facts = CommandFacts { state, has_bottle, ..FREE };
                let text = answer(command.clone(), facts);
                let text = text.as_deref().and_then(|it| it.lines().nth(1)).unwrap_or("-");
                lines.push(format!("{state} /{word}: {text}"));
                let stored = answer(command.clone(), CommandFacts { is_stored: true, ..facts });
                assert_eq!(stored, None, "what is on its way or done shows by itself: {word}");
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @"
        queued /stop: -
        queued /retry: -
        queued /resume: -
        queued /model: There is no bottle yet, so no model was chosen. Give the command again when the agent works.
        queued /approve: There is no plan that waits for an approval.
        claimed /stop: -
        claimed /retry: The agent is at work already. `/stop` ends it; a comment is read when its run has ended.
        claimed /resume: The agent is at work. It gets these words in a run of their own, as soon as this one has ended.
        claimed /model: -
        claimed /approve: There is no plan that waits for an approval.
        running /stop: -
        running /retry: The agent is at work already. `/stop` ends it; a comment is read when its run has ended.
        running /resume: The agent is at work. It gets these words in a run of their own, as soon as this one has ended.
        running /model: -
        running /approve: There is no plan that waits for an approval.
        frozen /stop: Nothing runs, so nothing was stopped.
        frozen /retry: -
        frozen /resume: -
        frozen /model: -
        frozen /approve: There is no plan that waits for an approval.
        waiting /stop: -
        waiting /retry: -
        waiting /resume: -
        waiting /model: -
        waiting /approve: There is no plan that waits for an approval.
        needs-attention /stop: Nothing runs, so nothing was stopped.
        needs-attention /retry: -
        needs-attention /resume: -
        needs-attention /model: -
        needs-attention /approve: There is no plan that waits for an approval.
        destroyed /stop: Nothing runs, so nothing was stopped.
        destroyed /retry: Its bottle is removed. Take the label off and set it again for a new one.
        destroyed /resume: Its bottle is removed. Take the label off and set it again for a new one.
        destroyed /model: Its bottle is removed. Take the label off and set it again for a new one.
        destroyed /approve: There is no plan that waits for an approval.
        ");
    }
}
