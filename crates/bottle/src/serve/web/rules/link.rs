//! Addresses on a forge that a page may point to.

use forge::ForgeKind;

/// The page of an issue. `web` is the forge's front page.
pub(crate) fn issue_url(
    kind: ForgeKind,
    web: &str,
    owner: &str,
    repo: &str,
    number: u64,
) -> Option<String> {
    let middle = match kind {
        ForgeKind::Gitea | ForgeKind::GitHub => "issues",
        ForgeKind::GitLab => "-/issues",
    };
    safe_href(&format!("{web}/{owner}/{repo}/{middle}/{number}"))
}

/// The page of a pull request.
pub(crate) fn pull_url(
    kind: ForgeKind,
    web: &str,
    owner: &str,
    repo: &str,
    number: u64,
) -> Option<String> {
    let middle = match kind {
        ForgeKind::Gitea => "pulls",
        ForgeKind::GitHub => "pull",
        ForgeKind::GitLab => "-/merge_requests",
    };
    safe_href(&format!("{web}/{owner}/{repo}/{middle}/{number}"))
}

/// An address that may stand in a link: one that a browser fetches and does not run.
pub(crate) fn safe_href(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\`".contains(c);
    (!rest.is_empty() && rest.chars().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_forge_has_its_own_addresses() {
        let both = |kind| {
            let web = "https://git.example";
            let issue = issue_url(kind, web, "a", "b", 3).unwrap_or_default();
            let pull = pull_url(kind, web, "a", "b", 4).unwrap_or_default();
            format!("{issue} {pull}")
        };
        assert_eq!(
            both(ForgeKind::Gitea),
            "https://git.example/a/b/issues/3 https://git.example/a/b/pulls/4"
        );
        assert_eq!(
            both(ForgeKind::GitHub),
            "https://git.example/a/b/issues/3 https://git.example/a/b/pull/4"
        );
        assert_eq!(
            both(ForgeKind::GitLab),
            "https://git.example/a/b/-/issues/3 https://git.example/a/b/-/merge_requests/4"
        );
    }

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
