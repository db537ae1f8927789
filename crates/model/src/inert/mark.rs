//! Marks by which forges recognise references, mentions, addresses, markup and commands, and the places where they are
//! broken.

use super::BREAK;

/// Surrounding of a text, which decides what would act in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surrounding {
    /// A code span or block: only searches of the source find anything in it.
    Code,
    Text,
}

/// Standards and advisories that are written like an issue of a tracker.
const NOT_TRACKERS: [&str; 7] = ["AES", "CVE", "CWE", "ISO", "RFC", "SHA", "UTF"];

/// Hexadecimal digits that read as a commit.
const COMMIT_MIN: usize = 7;

/// Languages of a code block that a forge only colours. Others may be drawn, run or applied.
const LANGUAGES: [&str; 26] = [
    "bash",
    "c",
    "console",
    "cpp",
    "css",
    "diff",
    "go",
    "html",
    "java",
    "javascript",
    "js",
    "json",
    "kotlin",
    "patch",
    "php",
    "py",
    "python",
    "rb",
    "ruby",
    "rust",
    "sh",
    "sql",
    "text",
    "toml",
    "ts",
    "yaml",
];

/// Inserts a break wherever a line would act. An issue with the number `own` may be referred to.
pub(super) fn break_marks(line: &str, surrounding: Surrounding, own: Option<u64>) -> String {
    let scan = LineScan { chars: line.chars().collect(), surrounding, own };
    let mut broken = String::with_capacity(line.len() + 8);
    for (at, &c) in scan.chars.iter().enumerate() {
        broken.push(c);
        if scan.acts_after(at) {
            broken.push(BREAK);
        }
    }
    broken
}

struct LineScan {
    chars: Vec<char>,
    surrounding: Surrounding,
    own: Option<u64>,
}

impl LineScan {
    /// Returns whether the mark at `at` acts together with what follows it.
    fn acts_after(&self, at: usize) -> bool {
        let Some(next) = self.get(at + 1) else { return false };
        let in_source = match self.chars[at] {
            '#' if self.is_own_issue(at) => return false,
            '#' | '!' => next.is_ascii_digit(),
            '-' => next.is_ascii_digit() && self.is_tracker(self.word_before(at)),
            ':' => self.slashes_follow(at),
            '/' => self.is_command(at),
            _ => false,
        };
        in_source || (self.surrounding == Surrounding::Text && self.acts_in_text(at, next))
    }

    fn acts_in_text(&self, at: usize, next: char) -> bool {
        match self.chars[at] {
            '@' => !next.is_whitespace(),
            '~' | '`' if self.is_end_of_fence(at) => true,
            '~' | '%' | '$' | '&' => may_name(next) || "\"\\#{_`$".contains(next),
            '#' => may_name(next) || next == '\\',
            '!' => matches!(next, '[' | '\\'),
            ']' => "([:".contains(next),
            '[' => self.is_special_bracket(at, next),
            '*' => self.rest_starts_with(at + 1, "iteration:"),
            '<' => next.is_ascii_alphabetic() || "/!?".contains(next),
            'w' | 'W' => matches!(next, '.' | '\\') && self.is_www(at),
            c if c.is_ascii_hexdigit() => self.is_part_of_commit(at),
            _ => false,
        }
    }

    fn get(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    fn rest_starts_with(&self, at: usize, words: &str) -> bool {
        words.chars().enumerate().all(|(offset, c)| self.get(at + offset) == Some(c))
    }

    /// Returns whether the `#` at `at` begins a reference to the run's own issue in its own repository.
    fn is_own_issue(&self, at: usize) -> bool {
        let Some(own) = self.own else { return false };
        let is_name = |c: char| c.is_alphanumeric() || "/_-.\\&".contains(c);
        let number = own.to_string();
        let after = self.get(at + 1 + number.len());
        at.checked_sub(1).is_none_or(|before| !is_name(self.chars[before]))
            && self.rest_starts_with(at + 1, &number)
            && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    }

    /// The word that ends before `at`; Markdown drops a backslash before a mark.
    fn word_before(&self, at: usize) -> &[char] {
        let backslashes = self.chars[..at].iter().rev().take_while(|c| **c == '\\').count();
        let end = at - backslashes;
        let is_word = |c: &&char| c.is_ascii_alphanumeric() || **c == '_';
        let length = self.chars[..end].iter().rev().take_while(is_word).count();
        &self.chars[end - length..end]
    }

    /// Returns whether a word and a number make an issue: `GH-1` on GitHub, `GL-1` on GitLab, `ABC-1` of a tracker.
    fn is_tracker(&self, word: &[char]) -> bool {
        let word: String = word.iter().collect();
        let is_forge = word.eq_ignore_ascii_case("gh") || word.eq_ignore_ascii_case("gl");
        let is_key = word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| !c.is_ascii_lowercase());
        is_forge || (is_key && !NOT_TRACKERS.contains(&word.as_str()))
    }

    /// Returns whether two slashes follow, each perhaps after a backslash.
    fn slashes_follow(&self, at: usize) -> bool {
        let mut marks = self.chars[at + 1..].iter().filter(|c| **c != '\\');
        marks.next() == Some(&'/') && marks.next() == Some(&'/')
    }

    /// Returns whether the line is a command: a slash and one word before anything else. A path has more slashes.
    fn is_command(&self, at: usize) -> bool {
        let is_first = self.chars[..at].iter().all(|c| c.is_whitespace() || *c == '>');
        let mut word = self.chars[at + 1..].iter().take_while(|c| !c.is_whitespace()).peekable();
        is_first
            && word.peek().is_some_and(|c| c.is_ascii_alphanumeric())
            && word.all(|c| c.is_ascii_alphanumeric() || "_-:+".contains(*c))
    }

    /// Footnotes, wiki links, boxes to tick, and references such as `[issue:1]`.
    fn is_special_bracket(&self, at: usize, next: char) -> bool {
        let is_box = matches!(next, ' ' | 'x' | 'X' | '~') && self.get(at + 2) == Some(']');
        let name = self.chars[at + 1..].iter().take_while(|c| c.is_ascii_lowercase() || **c == '_');
        let length = name.count();
        let is_typed = length > 0 && self.get(at + 1 + length) == Some(':');
        matches!(next, '^' | '[') || is_box || is_typed
    }

    fn is_www(&self, at: usize) -> bool {
        let Some(start) = at.checked_sub(2) else { return false };
        let is_name = self.chars[start..=at].iter().all(|c| c.eq_ignore_ascii_case(&'w'));
        let before = start.checked_sub(1).map(|before| self.chars[before]);
        is_name && before.is_none_or(|c| !c.is_alphanumeric())
    }

    /// Returns whether something that reads as a commit is to be broken after `at`, so that no piece of it does.
    fn is_part_of_commit(&self, at: usize) -> bool {
        let is_hex = |c: &&char| c.is_ascii_hexdigit();
        let until = self.chars[..=at].iter().rev().take_while(is_hex).count();
        if until % (COMMIT_MIN - 1) != 0 {
            return false;
        }
        let length = until + self.chars[at + 1..].iter().take_while(is_hex).count();
        let before = (at + 1).checked_sub(until + 1).and_then(|before| self.get(before));
        let after = self.get(at + 1 + length - until);
        let is_longer = |c: char| c.is_ascii_alphanumeric();
        length >= COMMIT_MIN && !before.is_some_and(is_longer) && !after.is_some_and(is_longer)
    }

    /// Returns whether `at` ends the fence of a code block in a language that a forge does more with than to colour it.
    fn is_end_of_fence(&self, at: usize) -> bool {
        let mark = self.chars[at];
        if self.get(at + 1) == Some(mark) {
            return false;
        }
        let length = self.chars[..=at].iter().rev().take_while(|c| **c == mark).count();
        let is_margin = |c: &char| c.is_whitespace() || c.is_ascii_digit() || ">-*+.)".contains(*c);
        if length < 3 || !self.chars[..at + 1 - length].iter().all(is_margin) {
            return false;
        }
        let language: String = self.chars[at + 1..].iter().collect();
        let language = language.trim().to_ascii_lowercase();
        !language.is_empty() && !LANGUAGES.contains(&language.as_str())
    }
}

/// Returns whether a name or number may begin with a character.
fn may_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || (!c.is_ascii() && !c.is_whitespace())
}
