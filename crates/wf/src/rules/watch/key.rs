//! What a key means.

use model::id::{ClarificationId, WorkstreamId};

use super::{Board, Mode, Seen};

/// A key, whatever the terminal calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    Up,
    Down,
    Enter,
    Escape,
    Erase,
    Letter(char),
    /// Ctrl-C.
    Interrupt,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing but what is on the screen.
    Stay,
    Quit,
    Answer {
        workstream: WorkstreamId,
        question: ClarificationId,
        words: String,
    },
    Approve(WorkstreamId),
    Reject {
        workstream: WorkstreamId,
        words: String,
    },
    ShowDiff(WorkstreamId),
    ShowLog(WorkstreamId),
}

/// Acts on the board, and says what is to be done beside it.
pub(crate) fn press(board: &mut Board, key: Press) -> Action {
    board.message.clear();
    if key == Press::Interrupt {
        return Action::Quit;
    }
    match std::mem::take(&mut board.mode) {
        Mode::Browse => browse(board, key),
        Mode::Answer { workstream, question, typed } => match edit(typed, key) {
            Edit::On(typed) => {
                board.mode = Mode::Answer { workstream, question, typed };
                Action::Stay
            }
            Edit::Done(words) => Action::Answer { workstream, question, words },
            Edit::GivenUp => Action::Stay,
        },
        Mode::Reject { workstream, typed } => match edit(typed, key) {
            Edit::On(typed) => {
                board.mode = Mode::Reject { workstream, typed };
                Action::Stay
            }
            Edit::Done(words) => Action::Reject { workstream, words },
            Edit::GivenUp => Action::Stay,
        },
    }
}

fn browse(board: &mut Board, key: Press) -> Action {
    let last = board.rows.len().saturating_sub(1);
    match key {
        Press::Letter('q') => return Action::Quit,
        Press::Up | Press::Letter('k') => board.selected = board.selected.saturating_sub(1),
        Press::Down | Press::Letter('j') => board.selected = (board.selected + 1).min(last),
        Press::Letter(letter) => {
            let chosen = board.chosen().cloned();
            return chosen.map_or(Action::Stay, |chosen| about(board, &chosen, letter));
        }
        Press::Enter => {
            let chosen = board.chosen().filter(|seen| !seen.questions.is_empty()).cloned();
            return chosen.map_or(Action::Stay, |chosen| about(board, &chosen, 'a'));
        }
        Press::Escape | Press::Erase | Press::Interrupt => {}
    }
    Action::Stay
}

/// The keys that are about the chosen workstream.
fn about(board: &mut Board, chosen: &Seen, letter: char) -> Action {
    let workstream = chosen.id.clone();
    match letter {
        'a' => match chosen.questions.first() {
            Some(question) => {
                let question = question.id.clone();
                board.mode = Mode::Answer { workstream, question, typed: String::new() };
                Action::Stay
            }
            None => refuse(board, format!("{workstream} asks nothing")),
        },
        'y' => Action::Approve(workstream),
        'n' => {
            board.mode = Mode::Reject { workstream, typed: String::new() };
            Action::Stay
        }
        'd' => Action::ShowDiff(workstream),
        'l' => Action::ShowLog(workstream),
        _ => Action::Stay,
    }
}

fn refuse(board: &mut Board, words: String) -> Action {
    board.message = words;
    Action::Stay
}

/// What a key does to a line that is being typed.
enum Edit {
    On(String),
    Done(String),
    GivenUp,
}

fn edit(mut typed: String, key: Press) -> Edit {
    match key {
        Press::Letter(letter) => typed.push(letter),
        Press::Erase => {
            typed.pop();
        }
        Press::Enter if !typed.trim().is_empty() => return Edit::Done(typed.trim().to_owned()),
        Press::Escape => return Edit::GivenUp,
        Press::Enter | Press::Up | Press::Down | Press::Interrupt => {}
    }
    Edit::On(typed)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{asking, board, seen};
    use super::*;
    use crate::rules::status::WorkstreamStatus as S;

    /// What comes of keys that are pressed one after the other; `⏎` is Enter, `⎋` Escape, `⌫` the key that erases.
    fn after(board: &mut Board, keys: &str) -> Action {
        let key = |letter| match letter {
            '⏎' => Press::Enter,
            '⎋' => Press::Escape,
            '⌫' => Press::Erase,
            '↓' => Press::Down,
            '↑' => Press::Up,
            letter => Press::Letter(letter),
        };
        keys.chars().map(key).fold(Action::Stay, |_, key| press(board, key))
    }

    #[track_caller]
    fn check(keys: &str, expected: Action) {
        let mut board = board(vec![asking("a", &["Tokens"]), seen("b", S::Implement)]);
        assert_eq!(after(&mut board, keys), expected, "{keys}");
    }

    fn id(text: &str) -> WorkstreamId {
        WorkstreamId::parse(text).unwrap()
    }

    #[test]
    fn keys_lead_to_actions() {
        let answer = |words: &str| Action::Answer {
            workstream: id("a"),
            question: ClarificationId::numbered(1),
            words: words.to_owned(),
        };
        check("q", Action::Quit);
        check("a1⏎", answer("1"));
        check("⏎use q⌫JWT ⏎", answer("use JWT"));
        check("a⏎", Action::Stay);
        check("a1⎋q", Action::Quit);
        check("y", Action::Approve(id("a")));
        check("↓y", Action::Approve(id("b")));
        check("↓↓↓↑y", Action::Approve(id("a")));
        check("jd", Action::ShowDiff(id("b")));
        check("jkl", Action::ShowLog(id("a")));
        check("jntoo wide⏎", Action::Reject { workstream: id("b"), words: "too wide".to_owned() });
        check("x", Action::Stay);
    }

    #[test]
    fn ctrl_c_ends_it_even_while_typing_and_an_empty_board_takes_every_key() {
        let mut typing = board(vec![asking("a", &[])]);
        assert_eq!(after(&mut typing, "aabc"), Action::Stay);
        assert_eq!(press(&mut typing, Press::Interrupt), Action::Quit);
        assert_eq!(after(&mut board(Vec::new()), "a↓↑⏎ndly"), Action::Stay);
    }

    #[test]
    fn an_answer_to_nothing_is_explained() {
        let mut board = board(vec![seen("b", S::Implement)]);
        assert_eq!(after(&mut board, "a"), Action::Stay);
        assert_eq!(board.message, "b asks nothing");
        after(&mut board, "j");
        assert_eq!(board.message, "");
    }
}
