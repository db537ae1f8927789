//! Rendering of the board as lines of text. Text from outside is escaped.

use jiff::Timestamp;
use model::escape::escape_line;

use super::{Board, TypedLine, WorkstreamView};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Chosen,
    Pressing,
    Faint,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoardLine {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BoardPage {
    pub(crate) lines: Vec<BoardLine>,
}

/// The head, the names of the columns, a rule, and the line of keys.
const AROUND: usize = 4;
/// The lines about the chosen workstream.
const DETAILS: usize = 7;
const KEYS: &str = "a answer  y approve  n reject  d diff  l log  j/k move  q quit";

/// Renders the board for a screen of that many columns and rows; it has exactly that many lines.
pub(crate) fn render_page(board: &Board, now: Timestamp, columns: usize, rows: usize) -> BoardPage {
    let details = if rows >= AROUND + DETAILS + 3 { DETAILS } else { 0 };
    let room = rows.saturating_sub(AROUND + details).max(1);
    // The chosen one is always on the screen.
    let first = board.selected.saturating_sub(room - 1);
    let mut lines = vec![line(head(board), Tone::Faint), line(columns_head(), Tone::Faint)];
    for (at, view) in board.rows.iter().enumerate().skip(first).take(room) {
        let tone = match (at == board.selected, view.need().is_some()) {
            (true, _) => Tone::Chosen,
            (false, true) => Tone::Pressing,
            (false, false) => Tone::Plain,
        };
        lines.push(line(row(view, at == board.selected, now), tone));
    }
    if board.rows.is_empty() {
        lines.push(line("No active workstreams. Start one: wf new", Tone::Plain));
    }
    lines.resize(2 + room, line("", Tone::Plain));
    lines.push(line("─".repeat(columns), Tone::Faint));
    let mut about = board.chosen().map(about_chosen).unwrap_or_default();
    about.resize(details, line("", Tone::Plain));
    lines.extend(about);
    lines.push(last_line(board));
    lines.truncate(rows);
    for line in &mut lines {
        line.text = line.text.chars().take(columns).collect();
    }
    BoardPage { lines }
}

fn line(text: impl Into<String>, tone: Tone) -> BoardLine {
    BoardLine { text: text.into(), tone }
}

fn head(board: &Board) -> String {
    let needing = board.rows.iter().filter(|view| view.rank() == 0).count();
    let running = board.rows.iter().filter(|view| view.active_stage.is_some()).count();
    let all = board.rows.len();
    format!("wf watch {}: {needing} need you, {running} at work, {all} in all", board.project)
}

fn columns_head() -> String {
    format!("  {:<16} {:<21} {:>7} {}", "WORKSTREAM", "STATUS", "PLAN", "NEEDS YOU, OR AT WORK")
}

fn row(view: &WorkstreamView, is_chosen: bool, now: Timestamp) -> String {
    let plan = view.progress.map_or("?".to_owned(), |(done, all)| format!("{done}/{all}"));
    let work = view.active_stage.as_ref().map(|work| {
        let secs = now.duration_since(work.since).as_secs().max(0);
        format!("{} {}", escape_line(&work.stage), elapsed(secs))
    });
    let last = match (view.need(), work) {
        (Some(need), Some(work)) => format!("{need} ({work})"),
        (Some(words), None) | (None, Some(words)) => words,
        (None, None) => String::new(),
    };
    let mark = if is_chosen { ">" } else { " " };
    format!("{mark} {:<16} {:<21} {plan:>7} {last}", view.id.as_str(), view.status)
}

fn elapsed(secs: i64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        _ => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
    }
}

/// Details of the selected workstream: its question with the options, or its next step.
fn about_chosen(view: &WorkstreamView) -> Vec<BoardLine> {
    let mut lines = vec![line(format!("{}: {}", view.id, escape_line(&view.title)), Tone::Plain)];
    let Some(question) = view.questions.first() else {
        let need = view.next().map(|need| format!("Next: {need}"));
        lines.extend(need.map(|need| line(need, Tone::Pressing)));
        return lines;
    };
    let text = format!("{} {}", question.id, escape_line(&question.text));
    lines.push(line(text, Tone::Pressing));
    for (at, option) in question.options.iter().enumerate() {
        lines.push(line(format!("  {}) {}", at + 1, escape_line(option)), Tone::Plain));
    }
    lines
}

fn last_line(board: &Board) -> BoardLine {
    let Some(TypedLine { workstream, question, text }) = &board.typed else {
        return match board.message.is_empty() {
            true => line(KEYS, Tone::Faint),
            false => line(escape_line(&board.message), Tone::Plain),
        };
    };
    let text = escape_line(text);
    let prompt = match question {
        Some(question) => format!("Answer to {question} (Enter, Esc): {text}_"),
        None => format!("Why is {workstream} rejected (Enter, Esc)? {text}_"),
    };
    line(prompt, Tone::Plain)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{asking, board, view, working};
    use super::*;
    use crate::rules::status::WorkstreamStatus as S;

    fn text(board: &Board, columns: usize, rows: usize) -> String {
        let now = Timestamp::from_second(75).unwrap();
        let page = render_page(board, now, columns, rows);
        assert_eq!(page.lines.len(), rows);
        let lines: Vec<&str> = page.lines.iter().map(|line| line.text.trim_end()).collect();
        lines.join("\n")
    }

    #[test]
    fn a_board_fits_on_eighty_by_twenty_four() {
        let board = board(vec![asking("tf", &["Tokens", "Cookies"]), working("busy")]);
        let page = text(&board, 80, 24);
        for words in [
            "wf watch app: 1 need you, 1 at work, 2 in all",
            "> tf               blocked:clarification     1/3 answer CLQ-001",
            "  busy             blocked:test              1/3 test 1m15s",
            "CLQ-001 Which?\n  1) Tokens\n  2) Cookies",
            KEYS,
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
        assert!(page.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_chosen_one_is_on_the_screen_however_small_it_is() {
        let rows = (0..50).map(|n| view(&format!("w{n:02}"), S::Implement)).collect();
        let mut board = board(rows);
        board.selected = 40;
        for size in [24, 10, 5, 2, 1] {
            let page = text(&board, 80, size);
            assert!(size < 5 || page.contains("> w40"), "{size}\n{page}");
        }
    }

    #[test]
    fn words_from_outside_cannot_reach_the_terminal() {
        let mut row = asking("tf", &["\x1b[2J"]);
        row.questions[0].text = "a\nb\x1b]0;x\x07".to_owned();
        let page = text(&board(vec![row]), 80, 24);
        assert!(!page.contains(['\x1b', '\x07']), "{page:?}");
    }

    #[test]
    fn times_are_short() {
        let times = [0, 59, 60, 3599, 3600, 90_000].map(elapsed);
        assert_eq!(times, ["0s", "59s", "1m00s", "59m59s", "1h00m", "25h00m"]);
    }
}
