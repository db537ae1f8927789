//! Names of a project: the addresses of its repository and its packages, in one spelling.

/// Names by which advisories may know the upstream of a fork.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectNames(Vec<String>);

impl ProjectNames {
    /// From addresses of repositories, and names of packages such as `crates.io/serde`.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut found: Vec<String> = names.into_iter().filter_map(normal_name).collect();
        found.sort();
        found.dedup();
        Self(found)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether an address is one of the project's repository, or lies below it.
    pub(crate) fn has_address(&self, address: &str) -> bool {
        let Some(address) = normal_name(address) else { return false };
        self.0.iter().any(|name| {
            address
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns whether a package is the project: by its whole name, also with the version that Go appends.
    pub(crate) fn has_package(&self, package: &str) -> bool {
        let name = match package.rsplit_once("/v") {
            Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => package,
        };
        self.0.iter().any(|known| known == name || known == package)
    }
}

/// `https://user@GitHub.com/Owner/Name.git/` and `git@github.com:owner/name` are both `github.com/owner/name`. A path on this
/// machine is no name.
fn normal_name(text: &str) -> Option<String> {
    let text = text.trim();
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    if scheme == Some("file") || rest.starts_with(['/', '.', '~']) {
        return None;
    }
    let (host, path) = match (scheme, rest.split_once(':'), rest.split_once('/')) {
        (None, Some((host, path)), _) if !host.contains('/') => (host, path),
        (_, _, Some((host, path))) => (host, path),
        _ => return None,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_whole = !host.is_empty() && !path.is_empty();
    is_whole.then(|| format!("{host}/{path}").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name_however_it_is_written() {
        for text in [
            "https://github.com/Ethereum/go-ethereum",
            "https://me:secret@github.com/ethereum/go-ethereum.git/",
            "git@github.com:ethereum/go-ethereum.git",
            "ssh://git@github.com:22/ethereum/go-ethereum",
            "git://github.com/ethereum/go-ethereum",
        ] {
            assert_eq!(
                normal_name(text).as_deref(),
                Some("github.com/ethereum/go-ethereum"),
                "{text}"
            );
        }
        for text in ["/srv/git/x.git", "file:///srv/x", "../x", "x", "", "https://host/"] {
            assert_eq!(normal_name(text), None, "{text}");
        }
    }

    #[test]
    fn neighbours_with_a_longer_name_are_others() {
        let names = ProjectNames::new(["https://github.com/o/name", "crates.io/serde"]);
        assert!(names.has_address("https://github.com/O/Name/commit/abc"));
        assert!(!names.has_address("https://github.com/o/name-extra"));
        assert!(
            names.has_package("github.com/o/name") && names.has_package("github.com/o/name/v2")
        );
        assert!(names.has_package("crates.io/serde") && !names.has_package("npm/serde"));
        assert!(!names.has_package("github.com/o/name/vault"));
    }
}
