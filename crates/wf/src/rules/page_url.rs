//! Address of a web page: what is asked for where, and where a redirect leads.

use std::fmt;

use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageScheme {
    Https,
    Http,
}

/// Address of a page. It holds no user and no fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageUrl {
    pub(crate) scheme: PageScheme,
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query, in ASCII.
    pub(crate) path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum PageUrlError {
    #[error("it is no http or https address")]
    Scheme,
    #[error("it names a user or a password, which would be shown and recorded")]
    User,
    #[error("it names no host")]
    NoHost,
    #[error("it names no valid port")]
    Port,
    #[error("it holds a character that no address holds")]
    Character,
    #[error("it leads from https to http")]
    Downgrade,
}

/// The scheme of an address that may be read, and what follows it.
pub(crate) fn strip_scheme(text: &str) -> Option<(PageScheme, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => Some((PageScheme::Https, rest)),
        _ if scheme.eq_ignore_ascii_case("http") => Some((PageScheme::Http, rest)),
        _ => None,
    }
}

impl PageScheme {
    fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

impl PageUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, PageUrlError> {
        let (scheme, rest) = strip_scheme(text).ok_or(PageUrlError::Scheme)?;
        // A browser takes a backslash for a slash, and a reader may too.
        let is_odd = |character: char| character.is_whitespace() || character.is_control();
        if rest.contains(is_odd) || rest.contains('\\') {
            return Err(PageUrlError::Character);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(PageUrlError::User);
        }
        let (host, port) = split_port(authority);
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(PageUrlError::NoHost);
        }
        let port = match port {
            None | Some("") => scheme.port(),
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0).ok_or(PageUrlError::Port)?
            }
            Some(_) => return Err(PageUrlError::Port),
        };
        Ok(Self { scheme, host: host.to_owned(), port, path: render_path(path) })
    }

    /// Where a redirect from here leads.
    pub(crate) fn join(&self, location: &str) -> Result<Self, PageUrlError> {
        let location = location.trim();
        let place = self.origin();
        let query = self.path.find('?').unwrap_or(self.path.len());
        let folder = self.path[..query].rfind('/').map_or(0, |at| at + 1);
        let next = match location {
            _ if location.starts_with("//") => format!("{}:{location}", self.scheme.name()),
            _ if location.starts_with('/') => format!("{place}{location}"),
            _ if location.starts_with('?') => format!("{place}{}{location}", &self.path[..query]),
            _ if location.contains("://") => location.to_owned(),
            _ => format!("{place}{}{location}", &self.path[..folder]),
        };
        let next = Self::parse(&next)?;
        match (self.scheme, next.scheme) {
            (PageScheme::Https, PageScheme::Http) => Err(PageUrlError::Downgrade),
            _ => Ok(next),
        }
    }

    /// The host as it is written in an address and in a header, with a port that is not the usual one.
    pub(crate) fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port == self.scheme.port() {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }

    fn origin(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.authority())
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

/// Splits host and port; the colons of an address in brackets are its own.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let after = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[after..].find(':') {
        Some(at) => (&authority[..after + at], Some(&authority[after + at + 1..])),
        None => (authority, None),
    }
}

/// Path and query without the fragment, which servers do not get; what is not ASCII is percent-encoded.
fn render_path(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let slash = if text.starts_with('/') { "" } else { "/" };
    let mut path = slash.to_owned();
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if !b"\"<>`{}|^".contains(&byte) => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parsed(text: &str) -> String {
        PageUrl::parse(text).expect("an address").to_string()
    }

    #[test]
    fn an_address_is_read_in_any_form_that_people_paste() {
        assert_eq!(parsed("https://a.example"), "https://a.example/");
        assert_eq!(parsed("HTTPS://a.example:443/x?y=1#part"), "https://a.example/x?y=1");
        assert_eq!(parsed("http://a.example:8080?x"), "http://a.example:8080/?x");
        assert_eq!(parsed("http://[::1]:8080/é"), "http://[::1]:8080/%C3%A9");
        assert_eq!(PageUrl::parse("http://[::1]/").expect("an address").host, "::1");
    }

    #[test]
    fn an_address_that_could_mean_two_things_is_refused() {
        for (text, error) in [
            ("ftp://a.example/", PageUrlError::Scheme),
            ("https://ada:x@a.example/", PageUrlError::User),
            ("https://a.example\\@b.example/", PageUrlError::Character),
            ("https://a.example/ x", PageUrlError::Character),
            ("https:///x", PageUrlError::NoHost),
            ("https://a.example:0/", PageUrlError::Port),
            ("https://a.example:+80/", PageUrlError::Port),
            ("https://a.example:99999/", PageUrlError::Port),
        ] {
            assert_eq!(PageUrl::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_redirect_leads_where_a_browser_would_go_and_never_out_of_tls() {
        let here = PageUrl::parse("https://a.example/docs/old?x=1").expect("an address");
        for (location, expected) in [
            ("new", "https://a.example/docs/new"),
            ("/top", "https://a.example/top"),
            ("?y=2", "https://a.example/docs/old?y=2"),
            ("//b.example/x", "https://b.example/x"),
            ("https://b.example:8443/x", "https://b.example:8443/x"),
        ] {
            let joined = here.join(location).map(|url| url.to_string());
            assert_eq!(joined.as_deref(), Ok(expected), "{location}");
        }
        assert_eq!(here.join("http://a.example/"), Err(PageUrlError::Downgrade));
        assert_eq!(here.join("https://u@a.example/"), Err(PageUrlError::User));
    }
}
