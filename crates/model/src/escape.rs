//! Escaping of untrusted text for display.
//!
//! An agent, a commit message or a forge comment may hold characters that move the cursor, change colours, reorder text
//! or are invisible. They are shown as escapes. Existing backslashes stay as they are: the result is for display and not
//! for parsing.

use std::borrow::Cow;

/// Escapes characters that act on a terminal or are invisible; line feeds and tabs stay.
pub fn escape_terminal(text: &str) -> Cow<'_, str> {
    escape_where(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

/// Like [`escape_terminal`], and escapes line feeds and tabs too: the result is one line.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape_where(text, is_unsafe)
}

/// Returns whether a character acts on a terminal, has no width, or changes the order of what is read.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

fn escape_where(text: &str, unsafe_here: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&unsafe_here) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        if unsafe_here(c) { shown.push_str(&escape(c)) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn escape(c: char) -> String {
    match c {
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        c if c.is_ascii() => format!("\\x{:02x}", c as u32),
        c => format!("\\u{{{:x}}}", c as u32),
    }
}

/// Returns whether a format character has no width or changes the direction of text. Variation selectors are exempt,
/// since ordinary emoji use them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}'                  // soft hyphen
        | '\u{061c}'                // Arabic letter mark
        | '\u{180e}'                // Mongolian vowel separator
        | '\u{200b}'..='\u{200f}'   // zero-width, left-to-right and right-to-left marks
        | '\u{2028}'..='\u{202e}'   // line and paragraph separators, bidi embeddings and overrides
        | '\u{2060}'..='\u{206f}'   // word joiner, bidi isolates, deprecated controls
        | '\u{feff}'                // byte order mark
        | '\u{fff9}'..='\u{fffb}'   // interlinear annotation
        | '\u{e0000}'..='\u{e007f}' // tags: a whole hidden alphabet
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, terminal: &str, line: &str) {
        assert_eq!(escape_terminal(text), terminal);
        assert_eq!(escape_line(text), line);
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(escape_terminal("grüße\n\t日本 👍🏽"), Cow::Borrowed(_)));
    }

    #[test]
    fn line_feeds_and_tabs_are_escaped_only_where_one_line_is_wanted() {
        check("a\n\tb", "a\n\tb", "a\\n\\tb");
    }

    #[test]
    fn control_characters_are_shown_not_sent() {
        check("\x1b[2Jx\x07\x7f\0", "\\x1b[2Jx\\x07\\x7f\\x00", "\\x1b[2Jx\\x07\\x7f\\x00");
        check("50%\rdone", "50%\\rdone", "50%\\rdone");
        check("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}", "\\u{9b}31m\\u{85}");
    }

    #[test]
    fn what_hides_or_reorders_text_is_shown() {
        for c in "\u{202a}\u{202e}\u{2066}\u{2069}\u{200b}\u{200d}\u{200e}\u{200f}\u{61c}\u{feff}\u{2028}\u{2029}\u{e0041}".chars() {
            check(&format!("a{c}b"), &format!("a\\u{{{:x}}}b", c as u32), &format!("a\\u{{{:x}}}b", c as u32));
        }
    }

    proptest! {
        #[test]
        fn escaped_text_is_safe_and_escaping_again_changes_nothing(text in any::<String>()) {
            let once = escape_line(&text).into_owned();
            prop_assert!(!once.chars().any(is_unsafe));
            prop_assert!(matches!(escape_line(&once), Cow::Borrowed(_)));
        }
    }
}
