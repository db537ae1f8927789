//! Buttons of the board in the browser, and the command that each of them is.

/// A button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoardButton {
    /// The last part of its address.
    pub(crate) name: &'static str,
    /// Message after it was pressed.
    pub(crate) done: &'static str,
    kind: ButtonKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ButtonKind {
    Answer,
    Accept,
    Refuse,
    Approve,
    Reject,
    Run,
}

const BUTTONS: [BoardButton; 6] = [
    BoardButton { name: "answer", done: "Answered.", kind: ButtonKind::Answer },
    BoardButton { name: "accept", done: "Accepted.", kind: ButtonKind::Accept },
    BoardButton {
        name: "refuse",
        done: "Not accepted; the fix is in the plan.",
        kind: ButtonKind::Refuse,
    },
    BoardButton { name: "approve", done: "Approved.", kind: ButtonKind::Approve },
    BoardButton { name: "reject", done: "Rejected.", kind: ButtonKind::Reject },
    BoardButton { name: "run", done: "A run goes on in the background.", kind: ButtonKind::Run },
];

pub(crate) fn parse_button(name: &str) -> Option<BoardButton> {
    BUTTONS.into_iter().find(|button| button.name == name)
}

impl BoardButton {
    /// The words of the command. What a person typed follows `=` or `--`, so that it is never a flag.
    pub(crate) fn argv(&self, id: &str, subject: &str, text: &str) -> Result<Vec<String>, String> {
        let text = text.trim();
        let of = format!("--workstream={id}");
        let needs_text =
            matches!(self.kind, ButtonKind::Answer | ButtonKind::Refuse | ButtonKind::Reject);
        if needs_text && text.is_empty() {
            return Err("the text is empty; write what you mean".to_owned());
        }
        let words: Vec<&str> = match self.kind {
            ButtonKind::Answer => vec!["clarify", "answer", &of, "--", subject, text],
            ButtonKind::Accept => vec!["uat", "pass", &of, "--", subject],
            ButtonKind::Refuse => {
                let issues: Vec<String> = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .map(|line| format!("--issues={line}"))
                    .collect();
                let words = ["uat", "fail", &of].map(str::to_owned).into_iter().chain(issues);
                return Ok(words.chain(["--".to_owned(), subject.to_owned()]).collect());
            }
            ButtonKind::Approve => vec!["approve", "--", id],
            ButtonKind::Reject => {
                let message = format!("--message={text}");
                return Ok(["reject", &message, "--", id].map(str::to_owned).to_vec());
            }
            ButtonKind::Run => vec!["run", "--loop", "--detach", "--", id],
        };
        Ok(words.into_iter().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, subject: &str, text: &str, expected: &[&str]) {
        assert_eq!(parse_button(name).unwrap().argv("tf", subject, text).unwrap(), expected);
    }

    #[test]
    fn a_button_is_a_command_and_words_are_no_flags() {
        check(
            "answer",
            "CLQ-001",
            " --all ",
            &["clarify", "answer", "--workstream=tf", "--", "CLQ-001", "--all"],
        );
        check("accept", "UAT-001", "", &["uat", "pass", "--workstream=tf", "--", "UAT-001"]);
        check(
            "refuse",
            "UAT-001",
            "too slow\r\n\n-x\n",
            &[
                "uat",
                "fail",
                "--workstream=tf",
                "--issues=too slow",
                "--issues=-x",
                "--",
                "UAT-001",
            ],
        );
        check("reject", "", "no", &["reject", "--message=no", "--", "tf"]);
        check("approve", "", "", &["approve", "--", "tf"]);
        check("run", "", "", &["run", "--loop", "--detach", "--", "tf"]);
    }

    #[test]
    fn an_empty_text_and_an_unknown_button_are_refused() {
        for name in ["answer", "refuse", "reject"] {
            assert!(parse_button(name).unwrap().argv("tf", "x", " \n").is_err(), "{name}");
        }
        assert_eq!(parse_button("merge"), None);
        assert_eq!(parse_button("delete"), None);
    }
}
