//! Key bindings of `wf watch`.

use model::id::{ClarificationId, WorkstreamId};

use super::{Board, TypedLine, WorkstreamView};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPress {
    Up,
    Down,
    Enter,
    Escape,
    Erase,
    Letter(char),
    /// Ctrl-C.
    Interrupt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BoardAction {
    Stay,
    Quit,
    Answer { workstream: WorkstreamId, question: ClarificationId, words: String },
    Approve(WorkstreamId),
    Reject { workstream: WorkstreamId, words: String },
    ShowDiff(WorkstreamId),
    ShowLog(WorkstreamId),
}

/// Applies a key to the board and returns the action to run.
pub(crate) fn press(board: &mut Board, key: KeyPress) -> BoardAction {
    board.message.clear();
    if key == KeyPress::Interrupt {
        return BoardAction::Quit;
    }
    match board.typed.take() {
        None => browse(board, key),
        Some(line) => edit(board, line, key),
    }
}

fn browse(board: &mut Board, key: KeyPress) -> BoardAction {
    let last = board.rows.len().saturating_sub(1);
    match key {
        KeyPress::Letter('q') => return BoardAction::Quit,
        KeyPress::Up | KeyPress::Letter('k') => board.selected = board.selected.saturating_sub(1),
        KeyPress::Down | KeyPress::Letter('j') => board.selected = (board.selected + 1).min(last),
        KeyPress::Letter(letter) => {
            let chosen = board.chosen().cloned();
            return chosen.map_or(BoardAction::Stay, |chosen| about(board, &chosen, letter));
        }
        KeyPress::Enter => {
            let chosen = board.chosen().filter(|view| !view.questions.is_empty()).cloned();
            return chosen.map_or(BoardAction::Stay, |chosen| about(board, &chosen, 'a'));
        }
        KeyPress::Escape | KeyPress::Erase | KeyPress::Interrupt => {}
    }
    BoardAction::Stay
}

/// The keys that are about the chosen workstream.
fn about(board: &mut Board, chosen: &WorkstreamView, letter: char) -> BoardAction {
    let workstream = chosen.id.clone();
    match letter {
        'a' => match chosen.questions.first() {
            Some(question) => {
                let question = Some(question.id.clone());
                board.typed = Some(TypedLine { workstream, question, text: String::new() });
                BoardAction::Stay
            }
            None => {
                board.message = format!("{workstream} asks nothing");
                BoardAction::Stay
            }
        },
        'y' => BoardAction::Approve(workstream),
        'n' => {
            board.typed = Some(TypedLine { workstream, question: None, text: String::new() });
            BoardAction::Stay
        }
        'd' => BoardAction::ShowDiff(workstream),
        'l' => BoardAction::ShowLog(workstream),
        _ => BoardAction::Stay,
    }
}

fn edit(board: &mut Board, mut line: TypedLine, key: KeyPress) -> BoardAction {
    match key {
        KeyPress::Letter(letter) => line.text.push(letter),
        KeyPress::Erase => {
            line.text.pop();
        }
        KeyPress::Enter if !line.text.trim().is_empty() => {
            let (workstream, words) = (line.workstream, line.text.trim().to_owned());
            return match line.question {
                Some(question) => BoardAction::Answer { workstream, question, words },
                None => BoardAction::Reject { workstream, words },
            };
        }
        KeyPress::Escape => return BoardAction::Stay,
        KeyPress::Enter | KeyPress::Up | KeyPress::Down | KeyPress::Interrupt => {}
    }
    board.typed = Some(line);
    BoardAction::Stay
}

#[cfg(test)]
mod tests {
    use super::super::sample::{asking, board, view};
    use super::*;
    use crate::rules::status::WorkstreamStatus as S;

    /// What comes of keys that are pressed one after the other; `⏎` is Enter, `⎋` Escape, `⌫` the key that erases.
    fn after(board: &mut Board, keys: &str) -> BoardAction {
        let key = |letter| match letter {
            '⏎' => KeyPress::Enter,
            '⎋' => KeyPress::Escape,
            '⌫' => KeyPress::Erase,
            '↓' => KeyPress::Down,
            '↑' => KeyPress::Up,
            letter => KeyPress::Letter(letter),
        };
        keys.chars().map(key).fold(BoardAction::Stay, |_, key| press(board, key))
    }

    #[track_caller]
    fn check(keys: &str, expected: BoardAction) {
        let mut board = board(vec![asking("a", &["Tokens"]), view("b", S::Implement)]);
        assert_eq!(after(&mut board, keys), expected, "{keys}");
    }

    fn id(text: &str) -> WorkstreamId {
        WorkstreamId::parse(text).unwrap()
    }

    #[test]
    fn keys_lead_to_actions() {
        let answer = |words: &str| BoardAction::Answer {
            workstream: id("a"),
            question: ClarificationId::numbered(1),
            words: words.to_owned(),
        };
        check("q", BoardAction::Quit);
        check("a1⏎", answer("1"));
        check("⏎use q⌫JWT ⏎", answer("use JWT"));
        check("a⏎", BoardAction::Stay);
        check("a1⎋q", BoardAction::Quit);
        check("y", BoardAction::Approve(id("a")));
        check("↓y", BoardAction::Approve(id("b")));
        check("↓↓↓↑y", BoardAction::Approve(id("a")));
        check("jd", BoardAction::ShowDiff(id("b")));
        check("jkl", BoardAction::ShowLog(id("a")));
        check(
            "jntoo wide⏎",
            BoardAction::Reject { workstream: id("b"), words: "too wide".to_owned() },
        );
        check("x", BoardAction::Stay);
    }

    #[test]
    fn ctrl_c_ends_it_even_while_typing_and_an_empty_board_takes_every_key() {
        let mut typing = board(vec![asking("a", &[])]);
        assert_eq!(after(&mut typing, "aabc"), BoardAction::Stay);
        assert_eq!(press(&mut typing, KeyPress::Interrupt), BoardAction::Quit);
        assert_eq!(after(&mut board(Vec::new()), "a↓↑⏎ndly"), BoardAction::Stay);
    }

    #[test]
    fn an_answer_to_nothing_is_explained() {
        let mut board = board(vec![view("b", S::Implement)]);
        assert_eq!(after(&mut board, "a"), BoardAction::Stay);
        assert_eq!(board.message, "b asks nothing");
        after(&mut board, "j");
        assert_eq!(board.message, "");
    }
}
