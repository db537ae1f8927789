//! A rule: the hosts that one entry of an allow-list or deny-list covers.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::host::{HostFault, HostName};

/// `example.org`, `*.example.org` or either with a port, as in `example.org:443`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowRule {
    host: HostName,
    reach: HostMatch,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostMatch {
    Exact,
    Below,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// A bare star equals the profile `open`, which must be chosen by name.
    #[error("{0:?} would allow every host; choose the profile open if that is meant")]
    Everything(String),
    #[error("in {0:?} the star must stand for whole labels in front, as in *.example.org")]
    Star(String),
    #[error("{0:?} has no valid port after the colon")]
    Port(String),
    /// An address: addresses change owners, and a certificate proves names.
    #[error("{0:?} is an address; name the host instead")]
    Address(String),
    #[error("{text:?} is not a host rule: {fault}")]
    Host { text: String, fault: HostFault },
}

impl AllowRule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.starts_with('[') || text.parse::<std::net::IpAddr>().is_ok() {
            return Err(RuleError::Address(text.to_owned()));
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(text, port)?)),
            None => (text, None),
        };
        if matches!(name, "*" | "*." | "*.*") {
            return Err(RuleError::Everything(text.to_owned()));
        }
        let (name, reach) = match name.strip_prefix("*.") {
            Some(suffix) => (suffix, HostMatch::Below),
            None => (name, HostMatch::Exact),
        };
        if name.contains('*') {
            return Err(RuleError::Star(text.to_owned()));
        }
        let host = HostName::parse(name).map_err(|fault| match fault {
            HostFault::Address => RuleError::Address(text.to_owned()),
            fault => RuleError::Host { text: text.to_owned(), fault },
        })?;
        Ok(Self { host, reach, port })
    }

    #[must_use]
    pub fn covers(&self, host: &HostName, port: u16) -> bool {
        let is_named = match self.reach {
            HostMatch::Exact => *host == self.host,
            HostMatch::Below => host.is_below(&self.host),
        };
        is_named && self.port.is_none_or(|only| only == port)
    }
}

fn parse_port(text: &str, port: &str) -> Result<u16, RuleError> {
    let number = port.parse().ok().filter(|number| *number != 0);
    number.ok_or_else(|| RuleError::Port(text.to_owned()))
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = match self.reach {
            HostMatch::Exact => "",
            HostMatch::Below => "*.",
        };
        write!(f, "{star}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for AllowRule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        Self::parse(&text)
    }
}

impl From<AllowRule> for String {
    fn from(rule: AllowRule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: &str, target: &str, expected: bool) {
        let (host, port) = target.rsplit_once(':').unwrap();
        let covers = AllowRule::parse(rule)
            .unwrap()
            .covers(&HostName::parse(host).unwrap(), port.parse().unwrap());
        assert_eq!(covers, expected, "{rule} {target}");
    }

    #[test]
    fn a_plain_name_is_exact() {
        check("example.org", "example.org:443", true);
        check("Example.ORG.", "example.org:80", true);
        check("example.org", "a.example.org:443", false);
        check("example.org", "badexample.org:443", false);
    }

    #[test]
    fn a_star_covers_what_is_below_and_not_the_name_itself() {
        check("*.example.org", "a.example.org:443", true);
        check("*.example.org", "a.b.example.org:443", true);
        check("*.example.org", "example.org:443", false);
        check("*.example.org", "badexample.org:443", false);
        check("*.bücher.example", "a.xn--bcher-kva.example:443", true);
    }

    #[test]
    fn a_port_narrows_the_rule() {
        check("example.org:443", "example.org:443", true);
        check("example.org:443", "example.org:80", false);
    }

    #[test]
    fn what_is_no_rule_is_refused_with_a_hint() {
        let refused = |text: &str| AllowRule::parse(text).unwrap_err().to_string();
        assert!(refused("*").ends_with("choose the profile open if that is meant"));
        assert!(refused("*:443").ends_with("choose the profile open if that is meant"));
        for text in ["10.0.0.1", "::1", "[::1]:443", "127.1", "10.0.0.1:80"] {
            assert!(refused(text).ends_with("name the host instead"), "{text}");
        }
        assert!(refused("a*.example.org").contains("whole labels in front"));
        assert!(refused("a.*.org").contains("whole labels in front"));
        for text in ["example.org:0", "example.org:", "example.org:https", "example.org:70000"] {
            assert!(refused(text).contains("no valid port"), "{text}");
        }
        assert!(refused("").contains("it is empty"));
        assert!(refused("https//x").contains("not a valid name"));
    }

    #[test]
    fn a_rule_is_shown_as_it_is_read() {
        for text in ["example.org", "*.example.org", "example.org:443", "*.example.org:80"] {
            assert_eq!(AllowRule::parse(text).unwrap().to_string(), text);
        }
    }
}
