//! A host name, normalised and checked once.
//!
//! Numbers are not names. That includes the old notations that resolvers still understand, such as `127.1` or
//! `0x7f000001`: a name whose last label is a number is an address. A URL library would take such an address, decode
//! percent escapes and drop tabs and line ends: it repairs what is refused here.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

/// Returns the port of an authority, or `default` if it names none. `None` means that it names one that does not exist:
/// such a request must not be taken for one to the usual port.
#[must_use]
pub(crate) fn port_of(authority: &str, default: u16) -> Option<u16> {
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let after_host = match place.rsplit_once(']') {
        Some((_, after)) => after,
        None => place.find(':').map_or("", |at| &place[at..]),
    };
    if after_host.is_empty() {
        return Some(default);
    }
    // A parser of numbers would also take a sign.
    let digits = after_host.strip_prefix(':')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// A DNS name: lower case, ASCII, no trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostFault {
    #[error("it is empty")]
    Empty,
    #[error("it is an address, not a name")]
    Address,
    /// It, or one of its labels, is longer than DNS can carry.
    #[error("it is too long for a name")]
    TooLong,
    #[error("it is not a valid name")]
    Malformed,
}

const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

impl HostName {
    /// Parses a name in any case, in Unicode or in its ASCII form, with or without a trailing dot.
    pub fn parse(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Empty);
        }
        if text.len() > 4 * NAME_MAX {
            return Err(HostFault::TooLong);
        }
        if text.starts_with('[') || text.parse::<IpAddr>().is_ok() {
            return Err(HostFault::Address);
        }
        let Ok(ascii) = idna::domain_to_ascii(text) else { return Err(HostFault::Malformed) };
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        check(name)?;
        Ok(Self(name.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it lies below `suffix`, on a label boundary; a name does not lie below itself.
    #[must_use]
    pub fn is_below(&self, suffix: &Self) -> bool {
        self.0.strip_suffix(&suffix.0).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(name: &str) -> Result<(), HostFault> {
    if name.is_empty() {
        return Err(HostFault::Empty);
    }
    if name.len() > NAME_MAX || name.split('.').any(|label| label.len() > LABEL_MAX) {
        return Err(HostFault::TooLong);
    }
    // Host names have no underscores by the standard, but some in use do.
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !name.split('.').all(is_label) {
        return Err(HostFault::Malformed);
    }
    if name.rsplit('.').next().is_some_and(is_number) { Err(HostFault::Address) } else { Ok(()) }
}

fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").map(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    label.bytes().all(|b| b.is_ascii_digit()) || hex == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, HostFault>) {
        let parsed = HostName::parse(text);
        assert_eq!(parsed.as_ref().map(HostName::as_str).map_err(|f| *f), expected, "{text}");
    }

    #[test]
    fn names_come_to_one_spelling() {
        check("example.org", Ok("example.org"));
        check("EXAMPLE.Org.", Ok("example.org"));
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("XN--BCHER-KVA.example", Ok("xn--bcher-kva.example"));
        check("ｅｘａｍｐｌｅ.org", Ok("example.org"));
        check("_dmarc.example.org", Ok("_dmarc.example.org"));
        check("localhost", Ok("localhost"));
    }

    #[test]
    fn addresses_are_no_names_in_any_spelling() {
        for text in ["127.0.0.1", "::1", "[::1]", "2130706433", "0x7f000001", "127.1", "0177.0.0.1"]
        {
            check(text, Err(HostFault::Address));
        }
        for text in ["169.254.169.254.", "1.0x7f", "a.b.7", "１２７.0.0.1"] {
            check(text, Err(HostFault::Address));
        }
        check("7.example", Ok("7.example"));
    }

    #[test]
    fn what_dns_cannot_carry_is_refused() {
        check("", Err(HostFault::Empty));
        check(".", Err(HostFault::Empty));
        check(&"a".repeat(64), Err(HostFault::TooLong));
        check(&["a"; 200].join("."), Err(HostFault::TooLong));
        for text in
            ["a..b", "a b", "a/b", "a@b", "a\nb", "-a.b", "a-.b", "a:1", "..", "a\0.b", "*.b"]
        {
            check(text, Err(HostFault::Malformed));
        }
    }

    #[test]
    fn a_port_that_does_not_exist_is_not_the_usual_one() {
        let check =
            |authority, expected| assert_eq!(port_of(authority, 80), expected, "{authority}");
        for authority in ["a.example", "[::1]", "u:p@a.example", ""] {
            check(authority, Some(80));
        }
        check("a.example:8080", Some(8080));
        check("u:1@a.example:81", Some(81));
        check("[::1]:82", Some(82));
        let none =
            ["a:99999", "a:65536", "a:", "a:x", "a:-1", "a:+80", "a: 80", "a:80:81", "[::1]x"];
        none.into_iter().for_each(|authority| check(authority, None));
    }

    #[test]
    fn below_means_on_a_label_boundary() {
        let name = |text| HostName::parse(text).unwrap();
        assert!(name("a.example.org").is_below(&name("example.org")));
        assert!(name("a.b.example.org").is_below(&name("example.org")));
        assert!(!name("example.org").is_below(&name("example.org")));
        assert!(!name("badexample.org").is_below(&name("example.org")));
    }
}
