//! Properties of a new line that a person should know about before reading on: it turns code off, it has letters that hide or
//! look like others, or it names a host. Pure.

use std::collections::BTreeSet;

use model::sensitive_path::{has_hidden_character, plain_letter};

/// Beginnings of lines, without blanks and in lower case, that turn off the code behind them.
const STARTS: [&str; 19] = [
    "#if0",
    "#iffalse",
    "#ifdef0",
    "iffalse",
    "if0",
    "ifnottrue",
    "if!true",
    "eliffalse",
    "whilefalse",
    "while0",
    "/*",
    "<!--",
    "\"\"\"",
    "'''",
    "=begin",
    "=pod",
    "__end__",
    "#[cfg(any())]",
    "#[cfg(false)]",
];

/// Conditions, without blanks and in lower case, that never hold.
const NEVER: [&str; 7] =
    ["if(false", "if(0)", "if(0&&", "if(!true", "while(false", "while(0)", "&&false"];

/// Returns whether a line may turn off the code behind it, such as the start of a comment.
pub(super) fn turns_off(line: &[u8]) -> bool {
    let bare: Vec<u8> = line.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect();
    let bare = String::from_utf8_lossy(&bare).to_ascii_lowercase();
    // A loop that runs once is an old way to write a macro.
    let is_macro = bare.starts_with('}');
    is_preprocessor_condition(line)
        || opens_comment(line)
        || STARTS.iter().any(|start| is_start(&bare, start))
        || (!is_macro && NEVER.iter().any(|never| has_part(&bare, never)))
}

/// Returns whether the preprocessor of C decides whether what follows is compiled: what a build defines is not known here. The
/// guard of a header is none.
fn is_preprocessor_condition(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let Some(rest) = text.trim().strip_prefix('#') else { return false };
    let rest = rest.trim_start();
    let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let condition = rest[word.len()..].trim();
    let name = condition.trim_end_matches('_').to_ascii_lowercase();
    let is_guard = ["_h", "_hh", "_hpp", "_hxx", "_included"].iter().any(|end| name.ends_with(end));
    match word {
        "ifndef" => !is_guard,
        "ifdef" => !condition.is_empty(),
        _ => false,
    }
}

/// Returns whether a comment that a line begins does not end in it. A pattern such as `src/**/*.rs` begins none.
fn opens_comment(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let begins = |open: &str, close: &str| {
        let Some(at) = text.rfind(open) else { return false };
        let is_after_code =
            text[..at].ends_with(|c: char| c.is_whitespace() || ";{})>,".contains(c));
        is_after_code && !text[at + open.len()..].contains(close)
    };
    begins("/*", "*/") || begins("<!--", "-->")
}

/// A word must not go on: `if0` is a condition, `if0x` is not.
fn is_start(bare: &str, start: &str) -> bool {
    let Some(rest) = bare.strip_prefix(start) else { return false };
    let ends_in_word = start.ends_with(|c: char| c.is_ascii_alphanumeric());
    !ends_in_word || !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn has_part(bare: &str, part: &str) -> bool {
    bare.match_indices(part).any(|(at, _)| is_start(&bare[at..], part))
}

/// Returns whether a line has characters that are not seen, or a word in which ASCII letters stand beside letters that look like
/// them.
pub(super) fn hides_letters(line: &[u8]) -> bool {
    if line.is_ascii() {
        return false;
    }
    let text = String::from_utf8_lossy(line);
    let is_mixed = |word: &str| {
        let looks_plain =
            |c: char| !c.is_ascii() && c.to_lowercase().all(|c| plain_letter(c).is_ascii());
        word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(looks_plain)
    };
    has_hidden_character(&text)
        || text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_mixed)
}

/// Hosts of the addresses in a line.
pub(super) fn hosts(line: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(line);
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let is_end = |c: char| c.is_whitespace() || "/\\?#\"'`<>()[]{},;|".contains(c);
        let authority = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        if host.contains('.') && host.chars().all(|c| c.is_alphanumeric() || ".-_".contains(c)) {
            found.insert(host);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_never_hold_turn_code_off() {
        for line in [
            "if False:",
            "  if 0:",
            "if (false) {",
            "if(false)",
            "if ( 0 ) {",
            "if (!true)",
            "#if 0",
            "#  if 0 // later",
            "while False:",
            "if not True:",
            "if (ready && false) {",
            "else if (false) {",
            "/* begin",
            "__END__",
            "foo(); /*",
            "} /* the rest",
            "<p> <!-- off",
            "#ifdef NEVER_SET",
            "# ifndef ALWAYS_SET",
        ] {
            assert!(turns_off(line.as_bytes()), "{line}");
        }
        for line in [
            "if (falsey)",
            "if0x = 3",
            "} while (0)",
            "x = false",
            "return 0;",
            "#if A > 1",
            "#ifndef LIB_PART_H_",
            "#endif /* A */",
            "foo(); /* why */",
            "paths: [src/**/*.rs, x]",
        ] {
            assert!(!turns_off(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn letters_that_hide_or_look_like_others_are_seen() {
        let mixed = "def p\u{0430}y():";
        let bidi = "if admin: \u{202e}# nothing";
        let zero = "se\u{200b}cret = 1";
        for line in [mixed, bidi, zero] {
            assert!(hides_letters(line.as_bytes()), "{line}");
        }
        for line in [
            "plain",
            "na\u{ef}ve = 1",
            "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}",
            "x = \"\u{4f60}\u{597d}\"",
        ] {
            assert!(!hides_letters(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn hosts_are_read_out_of_addresses() {
        let line =
            b"\"resolved\": \"https://u:p@Registry.Evil.example:8080/a.tgz\", git://b.example";
        let expected = ["b.example", "registry.evil.example"];
        assert_eq!(hosts(line).into_iter().collect::<Vec<_>>(), expected);
        assert!(hosts(b"a :// b, http://localhost/x").is_empty());
    }
}
