//! Inert text: text from elsewhere that a forge shows and does not act on.
//!
//! Commit subjects, paths, agents' answers and the output of commands are written by others. On a forge some words act
//! wherever they stand: "closes #3" closes an issue, `@all` notifies everyone, `![](https://…)` tells a server who reads,
//! a line with `/merge` is a command. Every text from elsewhere passes one of these functions before it is sent.
//!
//! Where the layout allows, the text goes into a code span or a code block: nothing in it is rendered. That alone is not
//! enough, because GitLab searches the source of a text for closing words. So each reference is also broken by an
//! invisible character. References are broken whatever word stands before them: an installation may have closing words
//! of its own, in any language.

mod mark;

use crate::escape::{escape_line, escape_terminal};
use mark::{Surrounding, break_marks};

/// Invisible, and part of no reference, mention, address or command.
const BREAK: char = '\u{200b}';

/// One line of plain text, for titles and commit messages. Nothing in it acts in Markdown either, but its formatting does.
pub fn inert_line(text: &str) -> String {
    break_marks(&escape_line(text), Surrounding::Text, None)
}

/// One line of a sentence in Markdown, without formatting of its own.
pub fn inert_prose(text: &str) -> String {
    let is_markup = |c: char| r"\`*_[]|~<>".contains(c);
    let text = inert_line(text);
    text.chars().flat_map(|c| is_markup(c).then_some('\\').into_iter().chain([c])).collect()
}

/// One line in a code span.
pub fn inert_code(text: &str) -> String {
    code_span(&break_marks(&escape_line(text), Surrounding::Code, None))
}

/// One line in a code span, for a cell of a table. Parsers disagree on escaped pipes in code, so a pipe is shown as its
/// number.
pub fn inert_cell(text: &str) -> String {
    inert_code(&text.replace('|', r"\x7c"))
}

/// One line as text of HTML.
pub fn inert_html(text: &str) -> String {
    inert_line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('`', "&grave;")
}

/// Lines in a code block whose fence the text cannot close.
pub fn inert_block(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| break_marks(&escape_terminal(line), Surrounding::Code, None))
        .collect();
    let lines = lines.join("\n");
    let fence = "`".repeat(longest_run(&lines).max(2) + 1);
    format!("{fence}text\n{lines}\n{fence}")
}

/// Markdown of an agent that may format its text: paragraphs, lists, emphasis and code stay, everything that reaches
/// beyond the text is broken. `own_issue` may be referred to.
pub fn inert_markdown(text: &str, own_issue: Option<u64>) -> String {
    let text = text.replace("\r\n", "\n").replace(BREAK, "");
    let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    let shown = |line: &str| -> String {
        // Joiners are part of words in several scripts and of emoji.
        line.split_inclusive(is_joiner)
            .map(|part| match part.strip_suffix(is_joiner) {
                Some(before) => format!("{}{}", escape_terminal(before), &part[before.len()..]),
                None => escape_terminal(part).into_owned(),
            })
            .collect()
    };
    let lines =
        text.split('\n').map(|line| break_marks(&shown(line), Surrounding::Text, own_issue));
    lines.collect::<Vec<_>>().join("\n")
}

fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    let touches = |c: char| c == '`' || c == ' ';
    let pad = if text.is_empty() || text.starts_with(touches) || text.ends_with(touches) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
