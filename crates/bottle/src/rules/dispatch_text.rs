//! Title and text of an issue that is opened for a dispatch.

/// Longest title.
const TITLE_MAX_CHARS: usize = 120;

/// Mark of the issue of a dispatch, by which it is found again. It is invisible on the page of the issue.
pub(crate) fn dispatch_mark(id: &str) -> String {
    format!("<!-- bot-bottle:dispatch {id} -->")
}

/// Text of the issue: the mark, the prompt, and who asked for it.
pub(crate) fn render_dispatch(id: &str, prompt: &str, origin: &str) -> String {
    format!("{}\n{}\n\n---\nDispatched by {origin}.", dispatch_mark(id), prompt.trim())
}

/// Title of the issue: the one that was asked for, or else the first line of the prompt.
pub(crate) fn choose_title(title: Option<&str>, prompt: &str) -> String {
    let first = prompt.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let first = first.clone().find(|line| !line.is_empty()).unwrap_or_default();
    let chosen = title.map(str::trim).filter(|title| !title.is_empty()).unwrap_or(first);
    match chosen.chars().count() <= TITLE_MAX_CHARS {
        true => chosen.to_owned(),
        false => {
            let cut: String = chosen.chars().take(TITLE_MAX_CHARS - 1).collect();
            format!("{}…", cut.trim_end())
        }
    }
}

/// Returns whether a text can be the id of a dispatch: it is part of a comment in HTML.
pub(crate) fn is_dispatch_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:@".contains(c);
    let is_part = |part: &str| !part.is_empty() && part.chars().all(plain);
    (1..=128).contains(&id.len()) && id.split('-').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_the_first_line_of_the_prompt() {
        assert_eq!(
            choose_title(None, "\n# Update the lock file\n\nAll of it."),
            "Update the lock file"
        );
        assert_eq!(choose_title(Some("Locks"), "Update"), "Locks");
        assert_eq!(choose_title(Some(" "), "Update"), "Update");
        let long = choose_title(None, &"word ".repeat(100));
        assert!(long.chars().count() <= TITLE_MAX_CHARS && long.ends_with("word…"), "{long}");
    }

    #[test]
    fn the_text_has_the_mark_first_and_names_who_asked() {
        let text = render_dispatch("d1", "Do it.\n", "the schedule 'nightly'");
        assert!(text.starts_with(&dispatch_mark("d1")));
        assert!(
            text.contains("\nDo it.\n") && text.ends_with("Dispatched by the schedule 'nightly'.")
        );
    }

    #[test]
    fn an_id_cannot_end_the_comment_that_it_is_in() {
        assert!(is_dispatch_id("nightly@2026-11-15T03:00:00Z"));
        for id in ["", "a b", "a-->b", "a--b", "-a", "a-", "ü", &"x".repeat(129)] {
            assert!(!is_dispatch_id(id), "{id}");
        }
    }
}
