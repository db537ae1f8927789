//! Scanner of a Markdown text: top-level headings, and lines outside code and HTML.

use std::ops::Range;

use model::id::MicroCommitId;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

pub(super) struct MarkdownPage<'a> {
    text: &'a str,
    /// Headings of level 3 and above, in order.
    pub(super) headings: Vec<Heading>,
    /// Code and HTML, in order.
    dead: Vec<Range<usize>>,
    line_starts: Vec<usize>,
    strays: Vec<usize>,
}

pub(super) struct Heading {
    pub(super) start: usize,
    pub(super) kind: HeadingKind,
}

pub(super) enum HeadingKind {
    Commit { id: MicroCommitId, title: String },
    Malformed,
    Other,
}

impl<'a> MarkdownPage<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let line_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(line_ends.map(|(at, _)| at + 1)).collect();
        let mut page =
            Self { text, headings: Vec::new(), dead: Vec::new(), line_starts, strays: Vec::new() };
        page.walk();
        page.find_missing_blanks();
        page.headings.sort_by_key(|heading| heading.start);
        page
    }

    /// Collects top-level headings; headings inside quotations or lists do not count.
    fn walk(&mut self) {
        let mut containers = 0usize;
        for (event, range) in Parser::new(self.text).into_offset_iter() {
            match event {
                Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => containers += 1,
                Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => {
                    containers = containers.saturating_sub(1);
                }
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock)
                | Event::Html(_)
                | Event::InlineHtml(_)
                | Event::Code(_) => self.dead.push(range),
                Event::Start(Tag::Heading { level, .. }) if containers == 0 => {
                    self.note_heading(level, range.start);
                }
                _ => {}
            }
        }
    }

    fn note_heading(&mut self, level: HeadingLevel, start: usize) {
        let line = self.line_at(start);
        let is_commit = line.trim_start_matches(['#', ' ', '\t']).starts_with("COMMIT-");
        match level {
            HeadingLevel::H3 => {
                self.headings.push(Heading { start, kind: parse_heading(line) });
            }
            HeadingLevel::H1 | HeadingLevel::H2 => {
                self.strays.extend(is_commit.then_some(start));
                self.headings.push(Heading { start, kind: HeadingKind::Other });
            }
            HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => {
                self.strays.extend(is_commit.then_some(start));
            }
        }
    }

    /// Collects lines such as `###COMMIT`: not a heading in Markdown, but clearly meant as one.
    fn find_missing_blanks(&mut self) {
        let whole = 0..self.text.len();
        let found: Vec<usize> = self
            .live_lines(&whole)
            .filter(|(_, line)| line.starts_with("###COMMIT"))
            .map(|(start, _)| start)
            .collect();
        self.headings
            .extend(found.into_iter().map(|start| Heading { start, kind: HeadingKind::Malformed }));
    }

    /// The lines of a part that are neither code nor HTML, without their ends.
    pub(super) fn live_lines(&self, part: &Range<usize>) -> impl Iterator<Item = (usize, &'a str)> {
        let first = self.line_starts.partition_point(|&start| start < part.start);
        let last = self.line_starts.partition_point(|&start| start < part.end);
        self.line_starts[first..last]
            .iter()
            .filter(|&&start| !self.is_dead(start))
            .map(|&start| (start, self.line_at(start)))
    }

    /// Dead parts never overlap and come in order, so the last one that begins before decides.
    fn is_dead(&self, at: usize) -> bool {
        let next = self.dead.partition_point(|range| range.start <= at);
        // An inline part may lie within a block of the same start, and so the two before are looked at.
        self.dead[..next].iter().rev().take(2).any(|range| range.contains(&at))
    }

    fn line_at(&self, start: usize) -> &'a str {
        let rest = &self.text[start..];
        let line = rest.split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// Headings of another level that name a micro-commit.
    pub(super) fn stray_headings(&self) -> Vec<String> {
        let words = "this heading names a micro-commit but is not of level 3, so it is ignored";
        self.strays.iter().map(|&at| format!("line {}: {words}", self.line_of(at))).collect()
    }
}

/// Reads `### COMMIT-XX-NNN: title`.
fn parse_heading(line: &str) -> HeadingKind {
    let text = line.trim_start_matches(' ').trim_start_matches('#').trim_matches([' ', '\t']);
    if !text.starts_with("COMMIT") {
        return HeadingKind::Other;
    }
    let parsed = text.split_once(':').and_then(|(id, title)| {
        let title = title.trim_matches([' ', '\t']);
        let id = MicroCommitId::parse(id).ok()?;
        (!title.is_empty()).then(|| HeadingKind::Commit { id, title: title.to_owned() })
    });
    parsed.unwrap_or(HeadingKind::Malformed)
}

/// Position of the mark in `Done: [ ]`, and its value.
pub(super) fn parse_done(line: &str) -> Option<(usize, bool)> {
    let rest = line.strip_prefix("Done:")?;
    let inner = rest.trim_start_matches([' ', '\t']);
    let mark = line.len() - inner.len() + 1;
    let after = inner.strip_prefix('[')?;
    let is_done = match after.as_bytes().first()? {
        b' ' => false,
        b'x' | b'X' => true,
        _ => return None,
    };
    let tail = after[1..].strip_prefix(']')?;
    tail.trim_matches([' ', '\t']).is_empty().then_some((mark, is_done))
}

/// The words of a line `Superseded: …`.
pub(super) fn parse_superseded(line: &str) -> Option<&str> {
    line.strip_prefix("Superseded:").map(|words| words.trim_matches([' ', '\t', '\r']))
}

/// Reports whether a line looks like a mistyped Done line.
pub(super) fn is_nearly_done(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t', '-', '*', '+', '>', '_']);
    let word = bare.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("done"));
    let rest = bare.get(4..).unwrap_or_default().trim_start_matches([' ', '\t', '*', '_', ':']);
    word && rest.starts_with('[')
}

/// The bullets under a line that begins with "Acceptance".
pub(super) fn acceptance_bullets<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut bullets: Vec<String> = Vec::new();
    let mut inside = false;
    for line in lines {
        let bare = line.trim_matches([' ', '\t', '#', '*', '_', ':', '-']);
        if bare.get(..10).is_some_and(|word| word.eq_ignore_ascii_case("acceptance")) {
            inside = true;
        } else if !inside || line.trim().is_empty() {
        } else if let Some(text) = parse_bullet(line) {
            bullets.push(text.to_owned());
        } else if line.starts_with([' ', '\t']) {
            if let Some(last) = bullets.last_mut() {
                last.push(' ');
                last.push_str(line.trim());
            }
        } else {
            inside = false;
        }
    }
    bullets
}

fn parse_bullet(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches([' ', '\t']);
    let rest = ["- ", "* ", "+ "].iter().find_map(|bullet| rest.strip_prefix(bullet))?;
    let boxes = ["[ ] ", "[x] ", "[X] "];
    let text = boxes.iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest).trim();
    (!text.is_empty()).then_some(text)
}
