//! Addresses that a page may point to.

/// An address for a link: one that a browser fetches and does not run.
pub(crate) fn safe_href(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\`".contains(c);
    (!rest.is_empty() && rest.chars().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_never_runs_anything() {
        for text in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//h/x",
            "https://",
            "https://a\" x",
            "HTTPS://h",
        ] {
            assert_eq!(safe_href(text), None, "{text}");
        }
        assert!(safe_href("https://git.example/a/b/pulls/4").is_some());
    }
}
