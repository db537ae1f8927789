//! Releases of upstream between which a vulnerability stood, in the order of their versions.

use std::cmp::Ordering;

/// One beginning of a vulnerability, in releases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReleaseSpan {
    /// `None` for "always was there".
    pub(crate) introduced: Option<String>,
    /// Releases with the fix, each of which is enough.
    pub(crate) fixed: Vec<String>,
}

impl ReleaseSpan {
    /// Arranges the events of one range: a release fixes every beginning before it.
    pub(crate) fn arrange(introduced: &[Option<String>], fixed: &[String]) -> Vec<Self> {
        let ends = |begin: Option<&String>| -> Vec<String> {
            let is_after = |fix: &&String| match begin {
                None => true,
                // With one beginning there is nothing to tell apart.
                Some(_) if introduced.len() == 1 => true,
                Some(begin) => compare_versions(begin, fix) == Some(Ordering::Less),
            };
            fixed.iter().filter(is_after).cloned().collect()
        };
        let begins: Vec<Option<&String>> = match introduced.is_empty() {
            true => vec![None],
            false => introduced.iter().map(Option::as_ref).collect(),
        };
        let span = |begin: Option<&String>| Self { introduced: begin.cloned(), fixed: ends(begin) };
        begins.into_iter().map(span).collect()
    }
}

/// Compares two versions by semantic versioning; `None` if one is not written so.
fn compare_versions(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (ReleaseVersion::parse(one)?, ReleaseVersion::parse(other)?);
    Some(one.numbers.cmp(&other.numbers).then_with(|| match (one.preview, other.preview) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => compare_previews(one, other),
    }))
}

struct ReleaseVersion<'a> {
    numbers: [u64; 4],
    preview: Option<&'a str>,
}

impl<'a> ReleaseVersion<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let text = text.split('+').next().unwrap_or(text);
        let (digits, preview) = match text.split_once('-') {
            Some((digits, preview)) => (digits, Some(preview)),
            None => (text, None),
        };
        let parts: Vec<&str> = digits.split('.').collect();
        let mut numbers = [0; 4];
        if parts.len() > numbers.len() {
            return None;
        }
        for (slot, part) in numbers.iter_mut().zip(parts) {
            let is_plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            *slot = is_plain.then(|| part.parse().ok()).flatten()?;
        }
        Some(Self { numbers, preview })
    }
}

/// Compares `rc.1` and `rc.10` part by part; a number comes before a word.
fn compare_previews(one: &str, other: &str) -> Ordering {
    let parts = |text: &'_ str| -> Vec<(bool, u64, String)> {
        let part = |part: &str| match part.parse::<u64>() {
            Ok(number) => (false, number, String::new()),
            Err(_) => (true, 0, part.to_owned()),
        };
        text.split('.').map(part).collect()
    };
    parts(one).cmp(&parts(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(introduced: &[&str], fixed: &[&str]) -> Vec<(String, Vec<String>)> {
        let begins: Vec<Option<String>> =
            introduced.iter().map(|it| (*it != "0").then(|| (*it).to_owned())).collect();
        let fixed: Vec<String> = fixed.iter().map(|it| (*it).to_owned()).collect();
        let spans = ReleaseSpan::arrange(&begins, &fixed).into_iter();
        spans.map(|it| (it.introduced.unwrap_or_default(), it.fixed)).collect()
    }

    #[test]
    fn a_release_fixes_the_beginnings_before_it_alone() {
        let found = spans(&["0", "2.0"], &["2.3", "1.5"]);
        assert_eq!(found[0].1, ["2.3", "1.5"]);
        assert_eq!(found[1], ("2.0".to_owned(), vec!["2.3".to_owned()]));
        assert_eq!(spans(&["0", "2.0"], &["1.5"])[1].1, [""; 0]);
        assert_eq!(spans(&["2.0", "10.0"], &["9.0"])[1].1, [""; 0]);
        assert_eq!(spans(&["0", "1:2-3"], &["1.5"])[1].1, [""; 0]);
    }

    #[test]
    fn versions_are_compared_by_number_and_a_preview_comes_before_its_release() {
        for (one, other) in [
            ("1.9.0", "1.10.0"),
            ("v2.0.0-rc.1", "2.0"),
            ("2.0-rc.2", "2.0-rc.10"),
            ("2.0-1", "2.0-a"),
        ] {
            assert_eq!(compare_versions(one, other), Some(Ordering::Less), "{one} {other}");
            assert_eq!(compare_versions(other, one), Some(Ordering::Greater), "{one} {other}");
        }
        assert_eq!(compare_versions("1.0", "v1.0.0+build"), Some(Ordering::Equal));
        assert_eq!(compare_versions("1.x", "1.0"), None);
    }
}
