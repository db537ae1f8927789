//! Takes out of a text what differs from run to run: temporary folders, SHAs, dates and run ids.

use std::path::Path;

/// Replaces temporary folders by `[TMP]`, SHAs by `[SHA]`, dates by `[TIME]`, the time in run ids by `[STAMP]` and the end
/// of a demo's folder by `[RANDOM]`. Reports of steps that take long are left out: how many there are depends on the machine.
///
/// A shortened SHA is seven or more hexadecimal digits, letters and numerals mixed, or twelve numerals; words like
/// `defaced` and `ed25519` stay.
pub fn redact_snapshot(text: &str) -> String {
    let temp = std::env::temp_dir();
    let temp = format!("{}/.tmp", temp.display().to_string().trim_end_matches('/'));
    let is_report = |line: &&str| line.starts_with("  ") && line.trim_end().ends_with(" s so far");
    let text: String = text.split_inclusive('\n').filter(|line| !is_report(line)).collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut at_word_start = true;
    while let Some(next) = rest.chars().next() {
        if let Some(length) =
            rest.strip_prefix(&temp).map(|after| temp.len() + run_of(after, is_word))
        {
            out.push_str("[TMP]");
            rest = &rest[length..];
        } else if let Some(length) = demo_folder(rest) {
            out.push_str("-demo-[RANDOM]");
            rest = &rest[length..];
        } else if let Some((name, length)) = volatile(rest).filter(|_| at_word_start) {
            out.push_str(name);
            rest = &rest[length..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
        // An underscore joins the parts of a run id, so a new word follows it.
        at_word_start = !out.ends_with(|last: char| last.is_alphanumeric());
    }
    out
}

/// The same, with one folder known by name.
pub(super) fn redact_below(root: &Path, text: &str) -> String {
    redact_snapshot(&text.replace(&*root.to_string_lossy(), "[ROOT]"))
}

/// `-demo-x7Rw2a`, the end of a demo's temporary folder.
fn demo_folder(text: &str) -> Option<usize> {
    let random = run_of(text.strip_prefix("-demo-")?, is_word);
    (random == 6).then_some("-demo-".len() + random)
}

/// Volatile text at the start of the given one, and its length.
fn volatile(text: &str) -> Option<(&'static str, usize)> {
    stamp(text)
        .map(|length| ("[STAMP]", length))
        .or_else(|| time(text).map(|length| ("[TIME]", length)))
        .or_else(|| sha(text).map(|length| ("[SHA]", length)))
}

/// `20250115_120000`, as in run ids, with the number that a second run within one second gets.
fn stamp(text: &str) -> Option<usize> {
    let numbered = ["dddddddd_dddddd-d", "dddddddd_dddddd_d", "dddddddd_dddddd"];
    let mut lengths = numbered.iter().filter_map(|form| shape(text, form));
    let is_whole =
        |length: &usize| !text[*length..].starts_with(|next: char| next.is_alphanumeric());
    lengths.find(is_whole)
}

/// RFC 3339 with either separator, fraction and zone optional; git's default date; `1735689600 +0000`.
fn time(text: &str) -> Option<usize> {
    if let Some(length) =
        shape(text, "dddddddddd +dddd").or_else(|| shape(text, "dddddddddd -dddd"))
    {
        return Some(length);
    }
    let mut length = shape(text, "dddd-dd-ddTdd:dd:dd")
        .or_else(|| shape(text, "dddd-dd-dd dd:dd:dd"))
        .or_else(|| git_date(text))?;
    if let Some(fraction) = text[length..].strip_prefix('.') {
        length += 1 + run_of(fraction, |c| c.is_ascii_digit());
    }
    let zone = &text[length..];
    let zone =
        ["Z", "+dd:dd", "-dd:dd", " +dddd", " -dddd"].iter().find_map(|form| shape(zone, form));
    Some(length + zone.unwrap_or(0))
}

/// `Wed Jan 1 00:00:00 2025`, day of one or two digits.
fn git_date(text: &str) -> Option<usize> {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    days.iter().find(|day| text.starts_with(**day))?;
    shape(text, "aaa aaa d dd:dd:dd dddd").or_else(|| shape(text, "aaa aaa dd dd:dd:dd dddd"))
}

fn sha(text: &str) -> Option<usize> {
    let length = run_of(text, |c| matches!(c, '0'..='9' | 'a'..='f'));
    let word = &text[..length];
    let whole = !text[length..].starts_with(is_word);
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let has_letter = word.contains(|c: char| c.is_alphabetic());
    // The programs shorten to twelve digits; one SHA in three hundred then has numerals alone.
    let is_short = has_digit && (length == 12 || (has_letter && (7..64).contains(&length)));
    let is_sha = is_short || length == 40 || length == 64;
    (whole && is_sha && word != "ed25519").then_some(length)
}

/// The length of `form` if the text starts with it: `d` is a digit, `a` a letter, the rest itself.
fn shape(text: &str, form: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..form.len())?;
    let fits = bytes.iter().zip(form.bytes()).all(|(byte, want)| match want {
        b'd' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        other => *byte == other,
    });
    fits.then_some(form.len())
}

fn run_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_goes() {
        check("merged 0123456789abcdef0123456789abcdef01234567.", "merged [SHA].");
        check("0123abc..4567def", "[SHA]..[SHA]");
        check("in /tmp/wf-demo-a1B2c3/greeter", "in /tmp/wf-demo-[RANDOM]/greeter");
        check("717948570515 is kept", "[SHA] is kept");
        check("at 2025-01-15T12:00:00.123Z, then", "at [TIME], then");
        check("2025-01-15 12:00:00 +0100 x", "[TIME] x");
        check("Date: Wed Jan 1 00:00:00 2025 +0000", "Date: [TIME]");
        check("1735689600 +0000", "[TIME]");
        check("runs/my-fork_20250115_120000_2/log", "runs/my-fork_[STAMP]/log");
        check("runs/my-fork_20250115_120000-2/log", "runs/my-fork_[STAMP]/log");
        let temp = std::env::temp_dir().join(".tmpAb3xYz/work/a b");
        check(&format!("cd {}", temp.display()), "cd [TMP]/work/a b");
    }

    #[test]
    fn words_and_numbers_stay() {
        for text in [
            "defaced feedface",
            "an ed25519 key",
            "12345678 bytes",
            "x0123abc4",
            "3 files, 2025-01-15",
            "é 0123abcg",
            "$1 – ü",
            "",
        ] {
            check(text, text);
        }
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(redact_snapshot(text), expected);
    }
}
