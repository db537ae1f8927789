//! Quoting for a shell.

use crate::escape::is_unsafe;
use std::borrow::Cow;

/// Quotes a word: bare, in single quotes, or with `$'…'` if it holds unsafe characters. The result is one line and safe
/// to display.
pub(super) fn quote(word: &str) -> Cow<'_, str> {
    if !word.is_empty() && word.bytes().all(is_plain) {
        Cow::Borrowed(word)
    } else if word.contains(is_unsafe) {
        Cow::Owned(format!("$'{}'", word.chars().map(escape).collect::<String>()))
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte)
}

fn escape(c: char) -> String {
    match c {
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        '\\' | '\'' => format!(r"\{c}"),
        c if !is_unsafe(c) => c.to_string(),
        c if c.is_ascii() => format!(r"\x{:02x}", c as u32),
        c => format!(r"\U{:08x}", c as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_needed() {
        for (word, quoted) in [
            ("a-b_c/d.e:f=g", "a-b_c/d.e:f=g"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(x)", "'$(x)'"),
            ("it's", r"'it'\''s'"),
            ("é", "'é'"),
            ("~", "'~'"),
            ("a\nb\\", r"$'a\nb\\'"),
            ("\x1b[0m", r"$'\x1b[0m'"),
            ("\u{202e}x", r"$'\U0000202ex'"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
