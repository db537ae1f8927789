//! Tools of `wf mcp`: their names, what their arguments are, and the command that each of them is.
//!
//! A tool is a command line, so that it checks and does exactly what the command does. Texts of a client follow `=` or `--`:
//! none of them can become a flag. Nothing here merges, deletes or accepts: that stays with people.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum McpTool {
    List,
    Show,
    Create,
    PlanAdd,
    PlanDraft,
    PlanAccept,
    Run,
    Questions,
    Answer,
    Diff,
}

/// Effect of a tool, for the client's own questions to its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    Reads,
    Writes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of {tool} are wrong: {problem}; its schema says what they are")]
pub(crate) struct ToolArgumentError {
    tool: &'static str,
    problem: String,
}

/// No more than the project's workstreams.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// Merged and closed workstreams too
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkstreamInput {
    /// Id of the workstream
    workstream: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateInput {
    /// Id of the new workstream: lower-case letters, digits, _ and -, starting with a letter
    id: String,
    /// 1 to 100 characters
    title: String,
    /// Paths that it is expected to touch
    #[serde(default)]
    paths: Vec<String>,
    /// Branch or workstream to start from; the project's default branch if left out
    base: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanAddInput {
    /// Id of the workstream
    workstream: String,
    /// Title of the micro-commit, in the imperative
    title: String,
    /// Why, and how it should be done
    #[serde(default)]
    text: String,
    /// Criteria that a person can check
    #[serde(default)]
    acceptance: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanDraftInput {
    /// Id of the workstream
    workstream: String,
    /// The story, in words
    story: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunInput {
    /// Id of the workstream
    workstream: String,
    /// Run micro-commit after micro-commit until something needs a person, instead of one
    #[serde(default, rename = "loop")]
    looped: bool,
    /// Tries that a micro-commit gets, from 1 to 20
    rounds: Option<u16>,
    /// Words for the implementer in this run
    guidance: Option<String>,
    /// Wait for the end of the run, which can take an hour; otherwise it runs in the background, and show tells how far it is
    #[serde(default)]
    wait: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionsInput {
    /// Id of a workstream, for its questions alone
    workstream: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerInput {
    /// Id of the question, such as CLQ-001
    question: String,
    /// The number or id of an option, or words
    answer: String,
    /// Its workstream, if the id alone is ambiguous
    workstream: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffInput {
    /// Id of the workstream
    workstream: String,
    /// Only what its last run changed, instead of the whole workstream
    #[serde(default)]
    last_run: bool,
}

impl McpTool {
    pub(crate) const ALL: [Self; 10] = [
        Self::List,
        Self::Show,
        Self::Create,
        Self::PlanAdd,
        Self::PlanDraft,
        Self::PlanAccept,
        Self::Run,
        Self::Questions,
        Self::Answer,
        Self::Diff,
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Show => "show",
            Self::Create => "create",
            Self::PlanAdd => "plan_add",
            Self::PlanDraft => "plan_draft",
            Self::PlanAccept => "plan_accept",
            Self::Run => "run",
            Self::Questions => "questions",
            Self::Answer => "answer",
            Self::Diff => "diff",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::List => {
                "List the workstreams of the project with their status and what they need"
            }
            Self::Show => {
                "Show a workstream: fields, plan with marks, questions, acceptance tests, whether a run is active, last run"
            }
            Self::Create => "Create a workstream: a branch, a worktree and an empty plan",
            Self::PlanAdd => "Add a micro-commit to the end of a plan",
            Self::PlanDraft => {
                "Have an agent draft micro-commits for a story; returns the draft, which plan_accept makes the plan"
            }
            Self::PlanAccept => "Make the draft of plan_draft the plan",
            Self::Run => {
                "Take the next micro-commit through an agent in a sealed box, the tests and a review"
            }
            Self::Questions => "List the questions of agents that wait for an answer",
            Self::Answer => "Answer a question of an agent",
            Self::Diff => "Show what a workstream changes against its base branch",
        }
    }

    pub(crate) fn effect(self) -> ToolEffect {
        match self {
            Self::List | Self::Show | Self::Questions | Self::Diff => ToolEffect::Reads,
            Self::Create
            | Self::PlanAdd
            | Self::PlanDraft
            | Self::PlanAccept
            | Self::Run
            | Self::Answer => ToolEffect::Writes,
        }
    }

    /// The JSON Schema of the arguments.
    pub(crate) fn schema(self) -> Schema {
        match self {
            Self::List => schema_for!(ListInput),
            Self::Show | Self::PlanAccept => schema_for!(WorkstreamInput),
            Self::Create => schema_for!(CreateInput),
            Self::PlanAdd => schema_for!(PlanAddInput),
            Self::PlanDraft => schema_for!(PlanDraftInput),
            Self::Run => schema_for!(RunInput),
            Self::Questions => schema_for!(QuestionsInput),
            Self::Answer => schema_for!(AnswerInput),
            Self::Diff => schema_for!(DiffInput),
        }
    }

    /// The words of the command, after the program's name.
    pub(crate) fn argv(self, arguments: Value) -> Result<Vec<String>, ToolArgumentError> {
        Ok(match self {
            Self::List => {
                let input: ListInput = self.read(arguments)?;
                words(&["list"]).flag("--all", input.all).0
            }
            Self::Show => {
                let input: WorkstreamInput = self.read(arguments)?;
                words(&["status"]).rest(&[&input.workstream]).0
            }
            Self::Create => {
                let CreateInput { id, title, paths, base } = self.read(arguments)?;
                words(&["new"]).option("--base", base).rest(&[&id, &title, &paths.join(" ")]).0
            }
            Self::PlanAdd => {
                let PlanAddInput { workstream, title, text, acceptance } = self.read(arguments)?;
                let words = words(&["plan", "add"]).value("--workstream", &workstream);
                let words = words.value("--text", &text);
                let words =
                    acceptance.iter().fold(words, |it, text| it.value("--acceptance", text));
                words.rest(&[&title]).0
            }
            Self::PlanDraft => {
                let PlanDraftInput { workstream, story } = self.read(arguments)?;
                words(&["plan"]).value("--text", &story).rest(&[&workstream]).0
            }
            Self::PlanAccept => {
                let input: WorkstreamInput = self.read(arguments)?;
                words(&["plan", "--accept"]).rest(&[&input.workstream]).0
            }
            Self::Run => {
                let RunInput { workstream, looped, rounds, guidance, wait } =
                    self.read(arguments)?;
                let words = words(&["run"]).flag("--loop", looped).flag("--detach", !wait);
                let rounds = rounds.map(|rounds| rounds.to_string());
                words
                    .option("--rounds", rounds)
                    .option("--guidance", guidance)
                    .rest(&[&workstream])
                    .0
            }
            Self::Questions => {
                let input: QuestionsInput = self.read(arguments)?;
                words(&["clarify", "list"]).option("--workstream", input.workstream).0
            }
            Self::Answer => {
                let AnswerInput { question, answer, workstream } = self.read(arguments)?;
                let words = words(&["clarify", "answer"]).option("--workstream", workstream);
                words.rest(&[&question, &answer]).0
            }
            Self::Diff => {
                let DiffInput { workstream, last_run } = self.read(arguments)?;
                words(&["diff"]).value("--workstream", &workstream).flag("--branch", !last_run).0
            }
        })
    }

    fn read<T: DeserializeOwned>(self, arguments: Value) -> Result<T, ToolArgumentError> {
        serde_json::from_value(arguments)
            .map_err(|error| ToolArgumentError { tool: self.name(), problem: error.to_string() })
    }
}

/// A command line in the making.
struct CommandWords(Vec<String>);

fn words(command: &[&str]) -> CommandWords {
    CommandWords(command.iter().map(|&word| word.to_owned()).collect())
}

impl CommandWords {
    fn flag(mut self, name: &str, is_set: bool) -> Self {
        self.0.extend(is_set.then(|| name.to_owned()));
        self
    }

    fn value(mut self, name: &str, value: &str) -> Self {
        self.0.push(format!("{name}={value}"));
        self
    }

    fn option(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.value(name, &value),
            None => self,
        }
    }

    fn rest(mut self, values: &[&str]) -> Self {
        self.0.push("--".to_owned());
        self.0.extend(values.iter().map(|&value| value.to_owned()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(tool: McpTool, arguments: Value, expected: &[&str]) {
        assert_eq!(tool.argv(arguments).unwrap(), expected, "{}", tool.name());
    }

    #[test]
    fn every_tool_is_a_command() {
        check(McpTool::List, json!({}), &["list"]);
        check(McpTool::List, json!({"all": true}), &["list", "--all"]);
        check(McpTool::Show, json!({"workstream": "tf"}), &["status", "--", "tf"]);
        check(
            McpTool::Create,
            json!({"id": "tf", "title": "T", "paths": ["a", "b"], "base": "main"}),
            &["new", "--base=main", "--", "tf", "T", "a b"],
        );
        check(
            McpTool::Run,
            json!({"workstream": "tf", "loop": true, "rounds": 2}),
            &["run", "--loop", "--detach", "--rounds=2", "--", "tf"],
        );
        check(McpTool::Run, json!({"workstream": "tf", "wait": true}), &["run", "--", "tf"]);
        check(McpTool::Diff, json!({"workstream": "tf"}), &["diff", "--workstream=tf", "--branch"]);
    }

    #[test]
    fn a_clients_text_is_never_a_flag() {
        check(
            McpTool::PlanAdd,
            json!({"workstream": "--all", "title": "--help", "text": "-x", "acceptance": ["--a"]}),
            &["plan", "add", "--workstream=--all", "--text=-x", "--acceptance=--a", "--", "--help"],
        );
        check(
            McpTool::Answer,
            json!({"question": "--help", "answer": "-1"}),
            &["clarify", "answer", "--", "--help", "-1"],
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (tool, arguments, words) in [
            (McpTool::Show, json!({}), "missing field `workstream`"),
            (McpTool::Show, json!({"workstream": "a", "x": 1}), "unknown field `x`"),
            (McpTool::Run, json!({"workstream": 3}), "invalid type"),
        ] {
            let error = tool.argv(arguments).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(tool.name()), "{error}");
        }
    }

    #[test]
    fn nothing_merges_deletes_or_accepts() {
        let names: Vec<&str> = McpTool::ALL.iter().map(|tool| tool.name()).collect();
        for word in ["merge", "delete", "close", "uat", "approve", "reset", "prune"] {
            assert!(!names.iter().any(|name| name.contains(word)), "{word}");
        }
        for tool in McpTool::ALL {
            assert_eq!(McpTool::parse(tool.name()), Some(tool));
            assert_eq!(tool.schema().get("additionalProperties"), Some(&json!(false)));
        }
    }
}
