//! One line of an env file, parsed into parts that together give the same line again.

use super::fault::EnvFault;
use super::value::{check_any, check_bare};
use std::fmt;

/// A line with its line end.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum EnvLine {
    /// A blank line or a comment.
    Other(String),
    Entry(EnvEntry),
}

/// An assignment in its parts; `before`, `written` and `after` make up the line.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct EnvEntry {
    /// Up to the value: the indent, the key, `=`, and blanks when a value follows.
    pub(super) before: String,
    pub(super) key: String,
    /// The value as written, with its quotes.
    pub(super) written: String,
    pub(super) value: String,
    /// Behind the value: blanks, a comment, the line end.
    pub(super) after: String,
}

impl EnvLine {
    pub(super) fn entry(&self) -> Option<&EnvEntry> {
        match self {
            Self::Other(_) => None,
            Self::Entry(entry) => Some(entry),
        }
    }

    /// Text with the line end; the last line may lack it.
    pub(super) fn tail(&self) -> &str {
        match self {
            Self::Other(raw) => raw,
            Self::Entry(entry) => &entry.after,
        }
    }
}

impl fmt::Display for EnvLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(raw) => f.write_str(raw),
            Self::Entry(EnvEntry { before, written, after, .. }) => {
                write!(f, "{before}{written}{after}")
            }
        }
    }
}

/// Reads a line, given with its line end.
pub(super) fn parse_line(raw: &str) -> Result<EnvLine, EnvFault> {
    let body = raw.strip_suffix("\r\n").or_else(|| raw.strip_suffix('\n')).unwrap_or(raw);
    let text = body.trim_start_matches(BLANKS);
    if text.is_empty() || text.starts_with('#') {
        return Ok(EnvLine::Other(raw.to_owned()));
    }
    let equals = body.find('=').ok_or(EnvFault::NoEquals)?;
    let key = body[..equals].trim_matches(BLANKS);
    if !is_key(key) {
        return Err(EnvFault::BadKey);
    }
    let (blanks, written, value) = parse_value(key, &body[equals + 1..])?;
    let start = equals + 1 + blanks;
    Ok(EnvLine::Entry(EnvEntry {
        before: raw[..start].to_owned(),
        key: key.to_owned(),
        written: written.to_owned(),
        value: value.to_owned(),
        after: raw[start + written.len()..].to_owned(),
    }))
}

/// Returns whether a text can be a key.
pub(crate) fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Parses the text behind `=`: the number of blanks before the value, the value as written, and the value. Blanks before
/// an absent value count as behind it, so that a value set later stays apart from the comment.
fn parse_value<'a>(key: &str, rest: &'a str) -> Result<(usize, &'a str, &'a str), EnvFault> {
    let text = rest.trim_start_matches(BLANKS);
    let blanks = rest.len() - text.len();
    if text.is_empty() || (blanks > 0 && text.starts_with('#')) {
        return Ok((0, "", ""));
    }
    let (written, value) = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => parse_quoted(key, text, quote)?,
        _ => parse_bare(key, text)?,
    };
    check_any(key, value)?;
    Ok((blanks, written, value))
}

fn parse_quoted<'a>(key: &str, text: &'a str, quote: char) -> Result<(&'a str, &'a str), EnvFault> {
    let Some(len) = text[1..].find(quote) else {
        return Err(EnvFault::Unclosed { key: key.to_owned(), quote });
    };
    let (written, behind) = text.split_at(len + 2);
    if !is_only_comment(behind) {
        return Err(EnvFault::AfterQuote { key: key.to_owned() });
    }
    Ok((written, &text[1..=len]))
}

fn parse_bare<'a>(key: &str, text: &'a str) -> Result<(&'a str, &'a str), EnvFault> {
    let (written, behind) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
    if !is_only_comment(behind) {
        return Err(EnvFault::Blank { key: key.to_owned() });
    }
    check_bare(key, written)?;
    Ok((written, written))
}

/// Returns whether nothing follows a value but blanks, or blanks and a comment.
fn is_only_comment(behind: &str) -> bool {
    let text = behind.trim_start_matches(BLANKS);
    text.is_empty() || (text.len() < behind.len() && text.starts_with('#'))
}
