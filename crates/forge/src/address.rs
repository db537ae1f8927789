//! What a remote's URL names: a repository on a forge, or a folder on this machine. Pure.
//!
//! The rules are git's own: a scheme, or `host:path` where no slash stands before the colon, or else a path. A user name
//! and a password in a URL are left out at once, so that an address can be shown.

use std::fmt;

/// Where a remote is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// A repository on a server that may be a forge.
    Hosted(ForgeAddress),
    /// A folder on this machine, as git was told of it.
    Local(String),
}

/// How a remote is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP with TLS.
    Https,
    /// HTTP in the clear.
    Http,
    /// SSH, with a scheme or in the short form `git@host:owner/repo`.
    Ssh,
}

/// A repository on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeAddress {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// The server, in lower case; an IPv6 address without its brackets.
    pub host: String,
    /// The port, where the URL names one.
    pub port: Option<u16>,
    /// What stands before the owner, without slashes at its ends: the sub-path of an installation, or, on forges that
    /// have them, the outer groups.
    pub prefix: String,
    /// The user or organisation.
    pub owner: String,
    /// The repository, without `.git`.
    pub repo: String,
}

/// Where a forge's web pages and its API are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebBase {
    /// Whether with TLS.
    pub(crate) tls: Tls,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Without slashes at its ends, already fit for a URL.
    pub(crate) prefix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    On,
    Off,
}

impl ForgeAddress {
    /// Reads a remote's URL. `None` if it names no repository of an owner: another protocol, a helper program, a path
    /// with no owner in it.
    pub fn parse_remote(url: &str) -> Option<Remote> {
        if url.is_empty() || url.contains(char::is_control) {
            return None;
        }
        if let Some((scheme, rest)) = url.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "https" => parse_hosted(Scheme::Https, rest),
                "http" => parse_hosted(Scheme::Http, rest),
                "ssh" | "git+ssh" | "ssh+git" => parse_hosted(Scheme::Ssh, rest),
                "file" => decode(rest).filter(|path| !path.is_empty()).map(Remote::Local),
                _ => None,
            };
        }
        match split_short_form(url) {
            // `ext::` and its like start a program.
            Some((_, path)) if path.starts_with(':') => None,
            Some((authority, path)) => {
                let host = parse_host(without_user(authority))?;
                let place = (Scheme::Ssh, host, None);
                parse_path(place, path.split(['?', '#']).next().unwrap_or_default())
            }
            None => Some(Remote::Local(url.to_owned())),
        }
    }

    /// Where the web pages of this repository's forge should be. For SSH that is a guess: HTTPS on the usual port.
    pub fn web_base(&self) -> WebBase {
        let (tls, port, prefix) = match self.scheme {
            Scheme::Https => (Tls::On, self.port, self.prefix.as_str()),
            Scheme::Http => (Tls::Off, self.port, self.prefix.as_str()),
            // The port is that of the SSH server, and Gitea has no sub-path there.
            Scheme::Ssh => (Tls::On, None, ""),
        };
        let prefix = prefix.split('/').map(encode_segment).collect::<Vec<_>>().join("/");
        WebBase { tls, host: self.host.clone(), port: port.unwrap_or(tls.usual_port()), prefix }
    }

    /// The front page of a forge that is not installed under a sub-path.
    pub(crate) fn root_base(&self) -> WebBase {
        WebBase { prefix: String::new(), ..self.web_base() }
    }

    /// The whole path of a project with its outer groups, without the sub-path of the installation.
    pub(crate) fn project_path(&self, base: &WebBase) -> String {
        let outer = match self.scheme {
            Scheme::Https | Scheme::Http => {
                let rest = self.prefix.strip_prefix(&base.prefix).unwrap_or(&self.prefix);
                rest.trim_start_matches('/')
            }
            Scheme::Ssh => self.prefix.as_str(),
        };
        let parts = [outer, &self.owner, &self.repo];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// The repository as people name it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }
}

impl WebBase {
    /// Reads the address of a forge's front page, such as `https://example.org:3000/git`.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => Tls::On,
            "http" => Tls::Off,
            _ => return None,
        };
        if rest.contains(['?', '#']) || rest.contains(char::is_control) {
            return None;
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split_port(without_user(authority))?;
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let segments = segments.map(|segment| decode(segment).filter(|text| is_name(text)));
        let segments = segments.collect::<Option<Vec<String>>>()?;
        let prefix = segments.iter().map(|text| encode_segment(text)).collect::<Vec<_>>().join("/");
        Some(Self { tls, host: parse_host(host)?, port: port.unwrap_or(tls.usual_port()), prefix })
    }

    /// The server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether a token would travel unencrypted, other than within this machine.
    pub fn sends_in_the_clear(&self) -> bool {
        let loopback = self.host == "localhost"
            || self.host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        self.tls == Tls::Off && !loopback
    }

    /// The path below the server's root, with a slash before every part.
    pub(crate) fn path(&self, segments: &[&str]) -> String {
        let mut path = String::new();
        if !self.prefix.is_empty() {
            path.push('/');
            path.push_str(&self.prefix);
        }
        for segment in segments {
            path.push('/');
            path.push_str(&encode_segment(segment));
        }
        path
    }

    /// A page below the front page, for people and for git.
    pub(crate) fn page(&self, segments: &[&str]) -> String {
        let root = Self { prefix: String::new(), ..self.clone() };
        format!("{root}{}", self.path(segments))
    }

    /// The server as a `Host` header names it.
    pub(crate) fn authority(&self) -> String {
        let Self { host, port, tls, .. } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        if *port == tls.usual_port() { host } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for WebBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.tls {
            Tls::On => "https",
            Tls::Off => "http",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.path(&[]))
    }
}

impl Tls {
    fn usual_port(self) -> u16 {
        match self {
            Self::On => 443,
            Self::Off => 80,
        }
    }
}

/// Makes any text one segment of a path.
pub(crate) fn encode_segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// `[user@]host:path`, the host perhaps in brackets. A slash before the colon makes it a path.
fn split_short_form(url: &str) -> Option<(&str, &str)> {
    let start = match url.find('[') {
        Some(open) if !url[..open].contains(['/', ':']) => url[open..].find(']')? + open,
        Some(_) | None => 0,
    };
    let colon = url[start..].find(':')? + start;
    let (authority, path) = (&url[..colon], &url[colon + 1..]);
    (!authority.contains('/')).then_some((authority, path))
}

fn parse_hosted(scheme: Scheme, rest: &str) -> Option<Remote> {
    let (authority, path) = rest.split_once('/')?;
    let (host, port) = split_port(without_user(authority))?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    parse_path((scheme, parse_host(host)?, port), path)
}

fn parse_path(place: (Scheme, String, Option<u16>), path: &str) -> Option<Remote> {
    let (scheme, host, port) = place;
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let segments: Vec<String> = segments.map(decode).collect::<Option<_>>()?;
    let [outer @ .., owner, repo] = segments.as_slice() else { return None };
    let repo = repo.strip_suffix(".git").unwrap_or(repo);
    let sound = outer.iter().map(String::as_str).chain([owner.as_str(), repo]).all(is_name);
    sound.then(|| {
        let (owner, repo, prefix) = (owner.clone(), repo.to_owned(), outer.join("/"));
        Remote::Hosted(ForgeAddress { scheme, host, port, prefix, owner, repo })
    })
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let inside_brackets = authority.ends_with(']');
    match authority.rsplit_once(':') {
        // Git allows a colon with no port behind it.
        Some((host, "")) => Some((host, None)),
        Some((host, port)) if !inside_brackets => Some((host, Some(port.parse().ok()?))),
        Some(_) | None => Some((authority, None)),
    }
}

fn parse_host(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address: std::net::Ipv6Addr = inner.parse().ok()?;
        return Some(address.to_string());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let sound = !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(fits);
    sound.then(|| text.to_ascii_lowercase())
}

/// What may be a part of a path without leading anywhere else.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !matches!(text, "." | "..")
        && !text.contains(|c: char| c.is_control() || "/\\".contains(c))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok())?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
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
        assert_eq!(base.path(&["repos", "a/b", "é"]), "/my%20git/repos/a%2Fb/%C3%A9");
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
        assert!(!clear("http://localhost"));
    }
}
