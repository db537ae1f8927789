//! Origin of a request: from this server's own page, and meant for this server.
//!
//! A page elsewhere can send forms here, and a name elsewhere can be pointed at this machine. The first shows in the headers
//! about a request's origin, the second in the requested host name.

use core::net::IpAddr;

/// True if a request may come from a page of ours, by its headers `Sec-Fetch-Site` and `Origin`. Without these the form's
/// token decides.
pub fn is_ours(
    (site, origin): (Option<&str>, Option<&str>),
    host: &str,
    public_url: Option<&str>,
) -> bool {
    match (site, origin) {
        // `none` is an address that a user typed, which no form sends.
        (Some(site), _) => site == "same-origin",
        // Because no page of ours sends a referrer, browsers without the header above send `null`.
        (None, None | Some("null")) => true,
        (None, Some(origin)) => {
            let own = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
            own || public_url.is_some_and(|url| url.trim_end_matches('/') == origin)
        }
    }
}

/// True if a host name can be ours: an address, `localhost`, or the public name. A stranger may have pointed any other
/// name at this machine, and their page would count as ours.
pub fn knows_host(host: &str, public_url: Option<&str>) -> bool {
    let name = without_port(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || public_url
            .and_then(authority)
            .is_some_and(|own| name.eq_ignore_ascii_case(without_port(own)) && !name.is_empty())
}

fn authority(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split('/').next()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1:8473";
    const PUBLIC: Option<&str> = Some("https://bottles.example/");

    #[track_caller]
    fn check(site: Option<&str>, origin: Option<&str>, expected: bool) {
        assert_eq!(is_ours((site, origin), HERE, PUBLIC), expected, "{site:?} {origin:?}");
    }

    #[test]
    fn a_form_of_another_page_is_told_by_its_site() {
        check(Some("same-origin"), Some("null"), true);
        check(Some("cross-site"), None, false);
        check(Some("same-site"), None, false);
        check(Some("none"), None, false);
        check(Some("cross-site"), Some("http://127.0.0.1:8473"), false);
    }

    #[test]
    fn without_a_site_the_origin_counts() {
        check(None, Some("http://127.0.0.1:8473"), true);
        check(None, Some("https://bottles.example"), true);
        check(None, Some("https://evil.example"), false);
        check(None, Some("http://127.0.0.1:8473.evil.example"), false);
        check(None, Some("null"), true);
        check(None, None, true);
    }

    #[test]
    fn a_strangers_name_for_this_machine_is_not_ours() {
        for host in [
            "127.0.0.1:8473",
            "[::1]:8473",
            "localhost",
            "LOCALHOST:1",
            "10.0.0.7",
            "bottles.example",
            "bottles.example:443",
        ] {
            assert!(knows_host(host, PUBLIC), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8473", "", "bottles.example.evil", "localhost.evil"]
        {
            assert!(!knows_host(host, PUBLIC), "{host}");
        }
        assert!(!knows_host("bottles.example", None));
    }
}
