//! Clarifications: questions to a person. The JSON file is authoritative; the Markdown beside it is rendered.

use jiff::Timestamp;
use model::id::{ClarificationId, WorkstreamId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::stamp;

/// A question as stored. Unknown fields are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Clarification {
    pub(crate) version: u32,
    pub(crate) id: ClarificationId,
    pub(crate) status: ClarificationStatus,
    pub(crate) created: String,
    #[serde(default)]
    pub(crate) answered: Option<String>,
    pub(crate) urgency: String,
    #[serde(default)]
    pub(crate) source_stage: String,
    pub(crate) workstream: String,
    #[serde(default)]
    pub(crate) blocks: Vec<String>,
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) options: Vec<AnswerOption>,
    #[serde(default)]
    pub(crate) answer: Option<String>,
    #[serde(default)]
    pub(crate) answered_by: Option<String>,
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClarificationStatus {
    Pending,
    Answered,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerOption {
    pub(crate) id: String,
    pub(crate) label: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) tradeoffs: String,
}

/// Urgency of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Urgency {
    /// Work stops until it is answered
    #[default]
    Blocking,
    /// Work continues; answer soon
    Important,
    /// Whenever there is time
    Low,
}

impl Urgency {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Important => "important",
            Self::Low => "low",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewQuestion {
    pub(crate) text: String,
    pub(crate) options: Vec<AnswerOption>,
    pub(crate) urgency: Urgency,
    pub(crate) source_stage: &'static str,
    pub(crate) blocks: Vec<String>,
}

impl Clarification {
    pub(crate) fn new(
        id: ClarificationId,
        workstream: &WorkstreamId,
        question: NewQuestion,
        now: Timestamp,
    ) -> Self {
        Self {
            version: 1,
            id,
            status: ClarificationStatus::Pending,
            created: stamp(now),
            answered: None,
            urgency: question.urgency.word().to_owned(),
            source_stage: question.source_stage.to_owned(),
            workstream: workstream.to_string(),
            blocks: question.blocks,
            question: question.text,
            options: question.options,
            answer: None,
            answered_by: None,
            others: Map::new(),
        }
    }

    /// Reports whether another question has the same words, options and urgency.
    pub(crate) fn is_same(&self, other: &NewQuestion) -> bool {
        self.question == other.text
            && self.options == other.options
            && self.urgency == other.urgency.word()
            && self.source_stage == other.source_stage
            && self.blocks == other.blocks
    }

    pub(crate) fn is_blocking(&self) -> bool {
        // An unknown word counts as blocking, the safe choice.
        !matches!(self.urgency.as_str(), "important" | "low")
    }

    pub(crate) fn answered(mut self, answer: String, by: String, now: Timestamp) -> Self {
        self.status = ClarificationStatus::Answered;
        self.answer = Some(answer);
        self.answered_by = Some(by);
        self.answered = Some(stamp(now));
        self
    }

    /// Resolves a typed answer: the number or the id of an option, or free text.
    pub(crate) fn choose_answer(&self, typed: &str) -> Result<String, AnswerError> {
        let typed = typed.trim();
        let option = match typed.parse::<usize>() {
            Ok(number) if !self.options.is_empty() => {
                let found = number.checked_sub(1).and_then(|at| self.options.get(at));
                Some(found.ok_or(AnswerError::NoSuchOption { number, count: self.options.len() })?)
            }
            Ok(_) | Err(_) => self.options.iter().find(|option| option.id == typed),
        };
        match (option, typed) {
            (Some(option), _) => Ok(format!("{}: {}", option.id, option.label)),
            (None, "") => Err(AnswerError::Empty),
            (None, text) => Ok(text.to_owned()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("the answer is empty; nothing was changed")]
    Empty,
    #[error("there is no option {number}; choose 1 to {count}, or answer in words")]
    NoSuchOption { number: usize, count: usize },
}

pub(crate) fn render_clarification(question: &Clarification) -> String {
    let mut page = format!(
        "# {}: {}\n\n- Status: {}\n- Urgency: {}\n- Workstream: {}\n- Raised: {} ({})\n",
        question.id,
        question.question.lines().next().unwrap_or_default(),
        match question.status {
            ClarificationStatus::Pending => "pending",
            ClarificationStatus::Answered => "answered",
        },
        question.urgency,
        question.workstream,
        question.created,
        question.source_stage,
    );
    if !question.blocks.is_empty() {
        page.push_str(&format!("- Blocks: {}\n", question.blocks.join(", ")));
    }
    page.push_str(&format!("\n## Question\n\n{}\n", question.question));
    if !question.options.is_empty() {
        page.push_str("\n## Options\n\n");
        for (at, option) in question.options.iter().enumerate() {
            page.push_str(&format!("{}. **{}** ({})", at + 1, option.label, option.id));
            if !option.tradeoffs.is_empty() {
                page.push_str(&format!(": {}", option.tradeoffs));
            }
            page.push('\n');
        }
    }
    if let Some(answer) = &question.answer {
        let by = question.answered_by.as_deref().unwrap_or("a person");
        let at = question.answered.as_deref().unwrap_or("an unknown time");
        page.push_str(&format!("\n## Answer\n\n{answer}\n\nAnswered by {by} at {at}.\n"));
    }
    page
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rules::schema::Schema;

    pub(crate) fn sample() -> Clarification {
        let option = |id: &str, label: &str, tradeoffs: &str| AnswerOption {
            id: id.to_owned(),
            label: label.to_owned(),
            tradeoffs: tradeoffs.to_owned(),
        };
        let question = NewQuestion {
            text: "Which method?".to_owned(),
            options: vec![
                option("jwt", "JWT tokens", "Stateless"),
                option("session", "Cookies", ""),
            ],
            urgency: Urgency::Blocking,
            source_stage: "implementation",
            blocks: vec!["COMMIT-UA-003".to_owned()],
        };
        let workstream = WorkstreamId::parse("user_auth").unwrap();
        Clarification::new(
            ClarificationId::numbered(1),
            &workstream,
            question,
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn what_is_written_keeps_the_schema_and_reads_back() {
        for question in
            [sample(), sample().answered("jwt".to_owned(), "ada".to_owned(), Timestamp::UNIX_EPOCH)]
        {
            let value = serde_json::to_value(&question).unwrap();
            assert_eq!(Schema::Clarification.check(&value), Ok(()));
            let back: Clarification =
                Schema::Clarification.read(value.to_string().as_bytes()).unwrap();
            assert_eq!(back, question);
        }
    }

    #[test]
    fn fields_of_others_are_kept() {
        let mut value = serde_json::to_value(sample()).unwrap();
        value["mood"] = "calm".into();
        let back: Clarification = Schema::Clarification.read(value.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap()["mood"], "calm");
    }

    #[test]
    fn an_unknown_urgency_blocks() {
        let urgent =
            |word: &str| Clarification { urgency: word.to_owned(), ..sample() }.is_blocking();
        assert!(urgent("blocking") && urgent("critical!") && urgent(""));
        assert!(!urgent("important") && !urgent("low"));
    }

    #[test]
    fn an_answer_is_a_number_an_option_or_words() {
        let question = sample();
        assert_eq!(question.choose_answer("1").unwrap(), "jwt: JWT tokens");
        assert_eq!(question.choose_answer("session").unwrap(), "session: Cookies");
        assert_eq!(question.choose_answer(" neither \n").unwrap(), "neither");
        assert_eq!(question.choose_answer(" "), Err(AnswerError::Empty));
        assert!(question.choose_answer("3").unwrap_err().to_string().contains("1 to 2"));
        assert!(question.choose_answer("0").is_err());
        let open = Clarification { options: Vec::new(), ..question };
        assert_eq!(open.choose_answer("42").unwrap(), "42");
    }

    #[test]
    fn the_page_shows_question_options_and_answer() {
        insta::assert_snapshot!(render_clarification(&sample().answered("jwt".to_owned(), "ada".to_owned(), Timestamp::UNIX_EPOCH)), @r"
        # CLQ-001: Which method?

        - Status: answered
        - Urgency: blocking
        - Workstream: user_auth
        - Raised: 1970-01-01T00:00:00Z (implementation)
        - Blocks: COMMIT-UA-003

        ## Question

        Which method?

        ## Options

        1. **JWT tokens** (jwt): Stateless
        2. **Cookies** (session)

        ## Answer

        jwt

        Answered by ada at 1970-01-01T00:00:00Z.
        ");
    }
}
