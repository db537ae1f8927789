//! Addresses: the repository that a remote's URL names, on a server or in a folder, and the front page of a
//! forge. Pure.
//!
//! Remotes follow git's rules: a scheme, or `host:path` without a slash before the colon, or else a path. A
//! user name and a password in a URL are dropped at once, so that an address can be shown.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{Host, Url};

/// Characters that are escaped in a segment of a path and in a value of a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// On a server that may be a forge.
    Hosted(ForgeAddress),
    /// In a folder on this machine.
    Local(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Https,
    Http,
    /// SSH, with a scheme or in the short form `git@host:owner/repo`.
    Ssh,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeAddress {
    pub scheme: Scheme,
    /// The server, in lower case; an IPv6 address without its brackets.
    pub host: String,
    /// The port, where the URL names one that is not the default.
    pub port: Option<u16>,
    /// Path before the owner, without slashes at its ends: the sub-path of an installation, or, on forges that have
    /// them, the outer groups.
    pub prefix: String,
    pub owner: String,
    /// The repository, without `.git`.
    pub repo: String,
}

/// Front page of a forge, below which its pages and its API are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebBase(Url);

impl ForgeAddress {
    /// Parses a remote's URL. `None` if it names no repository of an owner: another protocol, a helper
    /// program, a path without an owner.
    pub fn parse_remote(url: &str) -> Option<Remote> {
        if url.is_empty() || url.contains(char::is_control) {
            return None;
        }
        if let Some((scheme, rest)) = url.split_once("://") {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "https" => Scheme::Https,
                "http" => Scheme::Http,
                "ssh" | "git+ssh" | "ssh+git" => Scheme::Ssh,
                "file" => {
                    return decode(rest).filter(|path| !path.is_empty()).map(Remote::Local);
                }
                _ => return None,
            };
            return parse_hosted(scheme, rest);
        }
        match split_short_form(url) {
            // `ext::` and similar forms start a program.
            Some((_, path)) if path.starts_with(':') => None,
            Some((authority, path)) => parse_hosted(Scheme::Ssh, &format!("{authority}/{path}")),
            None => Some(Remote::Local(url.to_owned())),
        }
    }

    /// Returns the front page of the repository's forge. For SSH that is a guess: HTTPS on the default port,
    /// without a sub-path.
    pub fn web_base(&self) -> WebBase {
        let (scheme, port, prefix) = match self.scheme {
            Scheme::Https => ("https", self.port, self.prefix.as_str()),
            Scheme::Http => ("http", self.port, self.prefix.as_str()),
            // The port is that of the SSH server, and Gitea has no sub-path there.
            Scheme::Ssh => ("https", None, ""),
        };
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let path = prefix.split('/').map(encode).collect::<Vec<_>>().join("/");
        let url = Url::parse(&format!("{scheme}://{host}{port}/{path}"));
        WebBase(url.expect("the parts of an address were parsed from a URL"))
    }

    /// Returns the front page of a forge that is not installed under a sub-path.
    pub(crate) fn root_base(&self) -> WebBase {
        let mut base = self.web_base();
        base.0.set_path("");
        base
    }

    /// Returns the path of a project with its outer groups, without the sub-path of the installation.
    pub(crate) fn project_path(&self, base: &WebBase) -> String {
        let outer = match self.scheme {
            Scheme::Https | Scheme::Http => {
                let prefix = base.0.path().trim_matches('/');
                self.prefix.strip_prefix(prefix).unwrap_or(&self.prefix).trim_start_matches('/')
            }
            Scheme::Ssh => self.prefix.as_str(),
        };
        let parts = [outer, &self.owner, &self.repo];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }

    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }
}

impl WebBase {
    /// Parses the address of a forge's front page, such as `https://example.org:3000/git`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut url = parse_http(text)?;
        segments(&url)?;
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        (url.query().is_none() && url.fragment().is_none()).then_some(Self(url))
    }

    /// Returns the server; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        bare_host(&self.0)
    }

    /// Returns whether a token would travel unencrypted to another machine.
    pub fn sends_in_the_clear(&self) -> bool {
        let is_loopback = match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.0.scheme() == "http" && !is_loopback
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(crate) fn with_host(mut self, host: &str) -> Self {
        // An invalid host is refused and leaves the old one.
        self.0.set_host(Some(host)).ok();
        self
    }

    /// Returns the page below this one with these segments as its own front page.
    pub(crate) fn below(&self, segments: &[&str]) -> Self {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), join(segments)));
        Self(url)
    }

    /// Returns a URL below the front page, each segment escaped.
    pub(crate) fn url(&self, segments: &[&str]) -> String {
        format!("{self}{}", join(segments))
    }
}

impl fmt::Display for WebBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// Escapes a text that is to be one segment of a path or one value of a query, so that it cannot lead elsewhere.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn join(segments: &[&str]) -> String {
    segments.iter().map(|segment| format!("/{}", encode(segment))).collect()
}

/// Splits `[user@]host:path`, the host possibly in brackets. A slash before the colon makes it a path.
fn split_short_form(url: &str) -> Option<(&str, &str)> {
    let start = match url.find('[') {
        Some(open) if !url[..open].contains(['/', ':']) => url[open..].find(']')? + open,
        Some(_) | None => 0,
    };
    let colon = url[start..].find(':')? + start;
    let (authority, path) = (&url[..colon], &url[colon + 1..]);
    (!authority.contains('/')).then_some((authority, path))
}

/// Parses a hosted remote. Every scheme is parsed as a web address: only for those does the library check the host.
fn parse_hosted(scheme: Scheme, rest: &str) -> Option<Remote> {
    let stand_in = match scheme {
        Scheme::Https | Scheme::Ssh => "https",
        Scheme::Http => "http",
    };
    let url = parse_http(&format!("{stand_in}://{rest}"))?;
    let mut segments = segments(&url)?;
    let repo = segments.pop()?;
    let repo = repo.strip_suffix(".git").unwrap_or(&repo).to_owned();
    let owner = segments.pop().filter(|_| is_name(&repo))?;
    let (host, port, prefix) = (bare_host(&url).to_owned(), url.port(), segments.join("/"));
    Some(Remote::Hosted(ForgeAddress { scheme, host, port, prefix, owner, repo }))
}

/// Parses a web address and drops the user in it. Refuses `..` segments and blanks, which the library would repair.
fn parse_http(text: &str) -> Option<Url> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str());
    let climbs = rest.split(['/', '?', '#']).any(|segment| matches!(segment, "." | ".."));
    if !is_web
        || climbs
        || rest.starts_with('/')
        || rest.contains(|c: char| c.is_control() || " \\".contains(c))
    {
        return None;
    }
    let mut url = Url::parse(text).ok()?;
    if bare_host(&url).is_empty() || bare_host(&url).starts_with(['-', '.']) {
        return None;
    }
    // Only an address without a host refuses these.
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    Some(url)
}

/// Returns the segments of a path, decoded; `None` if one of them could lead elsewhere.
fn segments(url: &Url) -> Option<Vec<String>> {
    let named = url.path().split('/').filter(|segment| !segment.is_empty());
    named.map(|segment| decode(segment).filter(|text| is_name(text))).collect()
}

fn bare_host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !matches!(text, "." | "..")
        && !text.contains(|c: char| c.is_control() || "/\\".contains(c))
}

/// Decodes percent escapes; `None` for an invalid escape or invalid UTF-8.
fn decode(text: &str) -> Option<String> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    text.split('%').skip(1).all(is_escape).then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address as `scheme host port prefix owner repo`, its web base after it.
    #[track_caller]
    fn check(url: &str, expected: &str) {
        let shown = match ForgeAddress::parse_remote(url) {
            None => "nothing".to_owned(),
            Some(Remote::Local(path)) => format!("local {path}"),
            Some(Remote::Hosted(found)) => {
                let ForgeAddress { scheme, host, port, prefix, owner, repo } = &found;
                let port = port.map_or("-".to_owned(), |port| port.to_string());
                format!("{scheme:?} {host} {port} [{prefix}] {owner} {repo} {}", found.web_base())
            }
        };
        assert_eq!(shown, expected, "{url}");
    }

    #[test]
    fn a_web_url_names_owner_and_repository() {
        let usual = "Https git.example - [] alice hooks https://git.example";
        check("https://git.example/alice/hooks.git", usual);
        check("https://git.example/alice/hooks", usual);
        check("HTTPS://Git.Example/alice/hooks.git/", usual);
        check("https://git.example:/alice/hooks", usual);
        check("http://127.0.0.1:3000/a/b", "Http 127.0.0.1 3000 [] a b http://127.0.0.1:3000");
        check("http://[::1]:3000/a/b.git", "Http ::1 3000 [] a b http://[::1]:3000");
    }

    #[test]
    fn a_user_and_a_password_are_left_out() {
        let bare = "Https git.example - [] a b https://git.example";
        check("https://bot:s3cret@git.example/a/b", bare);
        check("https://bot:p@ss@git.example/a/b", bare);
    }

    #[test]
    fn an_installation_may_live_under_a_path() {
        check(
            "https://example.org/tools/git/a/b.git",
            "Https example.org - [tools/git] a b https://example.org/tools/git",
        );
    }

    #[test]
    fn ssh_has_two_forms_and_its_port_is_not_that_of_the_web() {
        let usual = "Ssh git.example - [] a b https://git.example";
        check("git@git.example:a/b.git", usual);
        check("git.example:a/b", usual);
        check("git@git.example:/a/b.git", usual);
        check("ssh://git@git.example/a/b.git", usual);
        check("git+ssh://git.example/a/b.git", usual);
        check("ssh://git@git.example:2222/a/b", "Ssh git.example 2222 [] a b https://git.example");
        check("git@[2001:db8::1]:a/b.git", "Ssh 2001:db8::1 - [] a b https://[2001:db8::1]");
    }

    #[test]
    fn paths_and_file_urls_are_local() {
        check("/srv/git/b.git", "local /srv/git/b.git");
        check("../b.git", "local ../b.git");
        check("./a:b/c", "local ./a:b/c");
        check("b.git", "local b.git");
        check("file:///srv/my%20git/b.git", "local /srv/my git/b.git");
    }

    #[test]
    fn what_names_no_repository_of_an_owner_is_nothing() {
        for url in [
            "",
            "https://git.example",
            "https://git.example/only",
            "git@git.example:only.git",
            "git://git.example/a/b",
            "ext::sh -c evil",
            "https://git.example/a/..",
            "https://git.example/a/%2e%2e",
            "https://git.example/a/b%2Fc",
            "https://git.example/a/%zz",
            "https://git.example:99999/a/b",
            "https://git example/a/b",
            "https://-oProxy/a/b",
            "https://git.example/a/b\nHost: x",
            "https://git.example/a/.git",
            "https://git.example/a/...git",
            "file://",
        ] {
            check(url, "nothing");
        }
    }

    #[test]
    fn odd_characters_survive_as_one_segment() {
        check(
            "https://git.example/a%20b/c%3Fd",
            "Https git.example - [] a b c?d https://git.example",
        );
        let base = WebBase::parse("https://git.example/my%20git/").unwrap();
        let expected = "https://git.example/my%20git/repos/a%2Fb/%C3%A9";
        assert_eq!(base.url(&["repos", "a/b", "é"]), expected);
    }

    #[test]
    fn a_project_has_its_outer_groups_and_not_the_installation() {
        let path = |url: &str, web: Option<&str>| {
            let Some(Remote::Hosted(address)) = ForgeAddress::parse_remote(url) else {
                panic!("{url}");
            };
            let base = web.map_or_else(|| address.root_base(), |web| WebBase::parse(web).unwrap());
            address.project_path(&base)
        };
        assert_eq!(path("https://gitlab.example/a/b.git", None), "a/b");
        assert_eq!(path("https://gitlab.example/g/sub/b.git", None), "g/sub/b");
        assert_eq!(path("git@gitlab.example:g/sub/b.git", None), "g/sub/b");
        let web = Some("https://gitlab.example/tools");
        assert_eq!(path("https://gitlab.example/tools/g/a/b.git", web), "g/a/b");
        assert_eq!(path("git@gitlab.example:g/a/b.git", web), "g/a/b");
    }

    #[test]
    fn a_front_page_is_read_and_shown_again() {
        for url in ["https://git.example", "http://git.example:3000/git", "http://[::1]:3000"] {
            assert_eq!(WebBase::parse(url).unwrap().to_string(), url);
        }
        assert_eq!(WebBase::parse("http://a.example:80/").unwrap().to_string(), "http://a.example");
        for bad in
            ["git.example", "ssh://git.example", "https://", "https://a/../b", "https://a/?x"]
        {
            assert_eq!(WebBase::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_plain_http_to_another_machine_is_in_the_clear() {
        let clear = |url| WebBase::parse(url).unwrap().sends_in_the_clear();
        assert!(clear("http://git.example"));
        assert!(!clear("https://git.example"));
        assert!(!clear("http://127.0.0.1:3000"));
        assert!(!clear("http://[::1]:3000"));
        assert!(!clear("http://localhost"));
        assert!(clear("http://localhost.example"));
    }
}
