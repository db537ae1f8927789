//! Advisories in the OSV format, as JSON or YAML.
//!
//! The files come from elsewhere: sizes and numbers have limits, identifiers have an alphabet, and text keeps no control
//! character.

use std::collections::BTreeSet;

use model::id::Sha;
use serde::Deserialize;

use super::advisory::{Advisory, AdvisoryId, AdvisoryRange, BadId, Point};
use super::severity::Severity;

/// Bytes of a file. The largest of the public databases have a few megabytes, most of it lists of versions.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// Bytes of one text.
const TEXT_BYTES: usize = 300;

/// Entries of one list: aliases, references, affected packages, ranges and events. A file with more is refused: what is left out
/// may be the entry that matters.
const MOST_ENTRIES: usize = 10_000;

/// Format of a file, by the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OsvFormat {
    Json,
    Yaml,
}

impl OsvFormat {
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        let at = name.iter().rposition(|&byte| byte == b'.')?;
        let end = &name[at + 1..];
        match end.to_ascii_lowercase().as_slice() {
            b"json" => Some(Self::Json),
            b"yaml" | b"yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OsvFault {
    #[error("it has more than {MOST_BYTES} bytes")]
    Size,
    #[error("it is not UTF-8")]
    Text,
    #[error("it is not an advisory: {0}")]
    Shape(String),
    /// A document of another kind.
    #[error("it is not an advisory: it has no id")]
    Other,
    #[error("a list in it has more than {MOST_ENTRIES} entries")]
    Entries,
    #[error(transparent)]
    Id(#[from] BadId),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OsvText {
    id: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    aliases: Vec<String>,
    summary: Option<String>,
    details: Option<String>,
    withdrawn: Option<String>,
    modified: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    severity: Vec<SeverityText>,
    #[serde(deserialize_with = "or_empty")]
    affected: Vec<AffectedText>,
    #[serde(deserialize_with = "or_empty")]
    references: Vec<ReferenceText>,
    database_specific: SpecificText,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SeverityText {
    score: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReferenceText {
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AffectedText {
    package: PackageText,
    #[serde(deserialize_with = "or_empty")]
    severity: Vec<SeverityText>,
    #[serde(deserialize_with = "or_empty")]
    ranges: Vec<RangeText>,
    ecosystem_specific: SpecificText,
    database_specific: SpecificText,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PackageText {
    name: Option<String>,
    ecosystem: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RangeText {
    #[serde(rename = "type")]
    kind: Option<String>,
    repo: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    events: Vec<EventText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventText {
    introduced: Option<String>,
    fixed: Option<String>,
}

/// The parts of a database's own fields that several databases share. Anything else in them is ignored, whatever its type.
#[derive(Debug, Default)]
struct SpecificText {
    severity: Option<String>,
    fixed_range: Option<String>,
}

impl<'de> Deserialize<'de> for SpecificText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Ok(Self { severity: text("severity"), fixed_range: text("fixed_range") })
    }
}

/// Some databases write `null` for an empty list.
fn or_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// Parses one file. Fields that are not known do not matter.
pub(crate) fn parse_osv(bytes: &[u8], format: OsvFormat) -> Result<Advisory, OsvFault> {
    if bytes.len() > MOST_BYTES {
        return Err(OsvFault::Size);
    }
    let text = std::str::from_utf8(bytes).map_err(|_error| OsvFault::Text)?;
    let shape = |error: &dyn std::fmt::Display| {
        let error = error.to_string();
        OsvFault::Shape(clean(error.lines().next().unwrap_or_default()))
    };
    let written: OsvText = match format {
        OsvFormat::Json => serde_json::from_str(text).map_err(|error| shape(&error))?,
        OsvFormat::Yaml => serde_saphyr::from_str(text).map_err(|error| shape(&error))?,
    };
    let Some(id) = &written.id else {
        return Err(match written.affected.is_empty() {
            true => OsvFault::Other,
            false => OsvFault::Shape("it has no id".to_owned()),
        });
    };
    let id = AdvisoryId::parse(id)?;
    refuse_long_lists(&written)?;
    let summary = written.summary.as_deref().or(written.details.as_deref()).unwrap_or_default();
    let fixes = written.references.iter();
    let fixes = fixes.filter(|reference| reference.kind.as_deref() == Some("FIX"));
    let aliases = written.aliases.iter();
    Ok(Advisory {
        id,
        aliases: aliases.filter_map(|alias| AdvisoryId::parse(alias).ok()).collect(),
        summary: clean(summary.lines().next().unwrap_or_default()),
        severity: severity_of(&written),
        is_withdrawn: written.withdrawn.is_some(),
        modified: written.modified.as_deref().and_then(|text| text.parse().ok()),
        packages: written.affected.iter().flat_map(|one| package_names(&one.package)).collect(),
        ranges: written.affected.iter().flat_map(ranges_of).collect(),
        fix_urls: fixes.filter_map(|fix| fix.url.as_deref().map(clean)).collect(),
    })
}

fn refuse_long_lists(written: &OsvText) -> Result<(), OsvFault> {
    let ranges = written.affected.iter().flat_map(|one| &one.ranges);
    let counts = [
        written.aliases.len(),
        written.references.len(),
        written.affected.len(),
        ranges.clone().count(),
        ranges.map(|range| range.events.len()).sum(),
    ];
    match counts.iter().any(|count| *count > MOST_ENTRIES) {
        true => Err(OsvFault::Entries),
        false => Ok(()),
    }
}

/// The worst severity that the file states; the word of a database outranks a vector.
fn severity_of(written: &OsvText) -> Severity {
    let affected = written.affected.iter();
    let specific =
        affected.clone().flat_map(|one| [&one.ecosystem_specific, &one.database_specific]);
    let words =
        specific.chain([&written.database_specific]).filter_map(|it| it.severity.as_deref());
    let word = words.map(Severity::of_word).min().unwrap_or(Severity::Unknown);
    let vectors = affected.flat_map(|one| &one.severity).chain(&written.severity);
    let vectors = vectors.filter_map(|it| it.score.as_deref());
    let computed = vectors.map(Severity::of_vector).min().unwrap_or(Severity::Unknown);
    if word == Severity::Unknown { computed } else { word }
}

fn package_names(package: &PackageText) -> Vec<String> {
    let Some(name) = &package.name else { return Vec::new() };
    let name = clean(name).to_lowercase();
    let ecosystem = package.ecosystem.as_deref().map(clean).unwrap_or_default().to_lowercase();
    let whole = format!("{ecosystem}/{name}");
    vec![name, whole]
}

fn ranges_of(affected: &AffectedText) -> Vec<AdvisoryRange> {
    let within = affected.database_specific.fixed_range.as_deref().and_then(parse_commit_range);
    let packages = package_names(&affected.package);
    let range = |range: &RangeText| {
        let is_git = range.kind.as_deref() == Some("GIT");
        let point = |text: &str| match (is_git, Sha::parse(text)) {
            (true, Ok(commit)) => Some(Point::Commit(commit)),
            (true, Err(_)) => None,
            (false, _) => Some(Point::Version(clean(text))),
        };
        let begins = range.events.iter().filter_map(|event| event.introduced.as_deref());
        let fixed = range.events.iter().filter_map(|event| event.fixed.as_deref());
        let fixed: Vec<Point> = fixed.filter_map(point).collect();
        let ends = |end: &Sha| fixed.iter().filter_map(Point::commit).any(|commit| commit == end);
        let introduced: BTreeSet<Option<Point>> =
            begins.map(|text| if text == "0" { None } else { point(text) }).collect();
        AdvisoryRange {
            repo: range.repo.as_deref().map(clean).filter(|_| is_git),
            packages: packages.clone(),
            fixed_within: within.clone().filter(|(_, end)| ends(end)),
            introduced: introduced.into_iter().collect(),
            fixed,
        }
    };
    affected.ranges.iter().map(range).collect()
}

/// Parses `from:to`, as the database of OSS-Fuzz has it.
fn parse_commit_range(text: &str) -> Option<(Sha, Sha)> {
    let (from, to) = text.split_once(':')?;
    Some((Sha::parse(from).ok()?, Sha::parse(to).ok()?))
}

/// A text without control characters and of limited length.
fn clean(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= TEXT_BYTES);
    let text = &text[..end.unwrap_or(text.len())];
    let is_odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if is_odd(c) { ' ' } else { c }).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn json(text: &str) -> Result<Advisory, OsvFault> {
        parse_osv(text.as_bytes(), OsvFormat::Json)
    }

    #[test]
    fn a_file_of_the_go_database_is_read() {
        let advisory = json(&format!(
            r#"{{"schema_version": "1.3.1", "id": "GO-2021-0063", "aliases": ["CVE-2020-26264", "../x"],
            "summary": "Nil pointer", "affected": [{{"package": {{"name": "github.com/ethereum/go-ethereum",
            "ecosystem": "Go"}}, "ranges": [{{"type": "SEMVER", "events": [{{"introduced": "0"}}, {{"fixed": "1.9.25"}}]}}],
            "ecosystem_specific": {{"imports": [{{"path": "x"}}]}}}}],
            "references": [{{"type": "FIX", "url": "https://github.com/ethereum/go-ethereum/commit/{A}"}},
            {{"type": "WEB", "url": "https://github.com/ethereum/go-ethereum/commit/{B}"}}]}}"#
        ));
        let advisory = advisory.expect("good");
        assert_eq!(advisory.aliases.len(), 1);
        assert!(advisory.is_called("cve-2020-26264") && advisory.is_called("GO-2021-0063"));
        assert_eq!(advisory.fix_commits().map(|it| it.to_string()).collect::<Vec<_>>(), [A]);
        assert_eq!(advisory.packages[1], "go/github.com/ethereum/go-ethereum");
        let fixed = &advisory.ranges[0].fixed;
        assert_eq!(fixed, &[Point::Version("1.9.25".to_owned())]);
    }

    #[test]
    fn a_file_of_oss_fuzz_is_read() {
        let text = format!(
            "id: OSV-2024-1\nsummary: Heap-buffer-overflow\naffected:\n- package: {{name: x, ecosystem: OSS-Fuzz}}\n  \
             ranges:\n  - type: GIT\n    repo: https://github.com/x/y\n    events:\n    - introduced: {A}\n    \
             - fixed: {B}\n  versions: [b1, 2]\n  ecosystem_specific:\n    severity: MEDIUM\n  database_specific:\n    \
             fixed_range: {A}:{B}\nschema_version: 1.6.0\n"
        );
        let advisory = parse_osv(text.as_bytes(), OsvFormat::Yaml).expect("good");
        assert_eq!(advisory.severity, Severity::Medium);
        let range = &advisory.ranges[0];
        assert_eq!(range.repo.as_deref(), Some("https://github.com/x/y"));
        assert!(range.fixed_within.is_some());
        assert_eq!(range.introduced[0].as_ref().unwrap().commit().unwrap().as_str(), A);
    }

    #[test]
    fn the_order_of_events_says_nothing() {
        let ranges = |events: &[String]| {
            let events = events.join(",");
            let text = format!(
                r#"{{"id": "X-1", "affected": [{{"ranges": [{{"type": "GIT", "events": [{events}]}}]}}]}}"#
            );
            json(&text).expect("good").ranges
        };
        let events = [
            r#"{"introduced": "0"}"#.to_owned(),
            format!(r#"{{"fixed": "{A}"}}"#),
            format!(r#"{{"introduced": "{B}"}}"#),
        ];
        let sorted = ranges(&events);
        assert_eq!((sorted[0].introduced.len(), sorted[0].fixed.len()), (2, 1));
        let [a, b, c] = events;
        assert_eq!(ranges(&[c, b, a]), sorted);
    }

    #[test]
    fn no_entry_of_a_long_list_is_left_out_without_a_word() {
        let text = |count: usize| {
            let other = r#"{"package": {"name": "p"}},"#.repeat(count);
            format!(
                r#"{{"id": "X-1", "affected": [{other} {{"ranges": [{{"type": "GIT", "events": [{{"fixed": "{A}"}}]}}]}}]}}"#
            )
        };
        assert_eq!(json(&text(300)).expect("good").fix_commits().count(), 1);
        assert!(matches!(json(&text(MOST_ENTRIES)), Err(OsvFault::Entries)));
    }

    #[test]
    fn a_document_of_another_kind_is_told_from_a_broken_advisory() {
        assert!(matches!(json(r#"{"name": "x", "version": "1"}"#), Err(OsvFault::Other)));
        assert!(matches!(json(r#"{"affected": [{}]}"#), Err(OsvFault::Shape(_))));
        assert!(matches!(json(r#"{"id": "X-1", "aliases": [1]}"#), Err(OsvFault::Shape(_))));
    }

    #[test]
    fn what_is_no_advisory_is_refused_with_a_reason() {
        let fault = |text: &str| json(text).expect_err("refused").to_string();
        assert!(fault("{}").contains("no id"));
        assert!(fault("[1]").contains("not an advisory"));
        assert!(fault("{\"id\": \"../../x\"}").contains("cannot be the identifier"));
        let deep = format!("{{\"id\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(fault(&deep).contains("not an advisory"));
        let large = format!("{{\"id\": \"{}\"}}", "x".repeat(MOST_BYTES));
        assert!(fault(&large).contains("bytes"));
        assert!(matches!(parse_osv(b"\xff", OsvFormat::Yaml), Err(OsvFault::Text)));
    }

    #[test]
    fn a_document_that_multiplies_itself_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            let row = [below.as_str(); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{row}]\n"));
        }
        text.push_str("id: X-1\ndatabase_specific: {severity: *a11}\n");
        assert!(parse_osv(text.as_bytes(), OsvFormat::Yaml).is_err());
    }

    #[test]
    fn text_keeps_no_control_character_and_no_great_length() {
        let summary = format!("a\\u001b[2J\\u202eb\\n{}", "c".repeat(10));
        let advisory = json(&format!(r#"{{"id": "X-1", "summary": "{summary}"}}"#)).expect("good");
        assert_eq!(advisory.summary, "a [2J b");
        let long = json(&format!(r#"{{"id": "X-1", "summary": "{}"}}"#, "ü".repeat(1000)));
        assert!(long.expect("good").summary.len() <= TEXT_BYTES + 1);
    }

    #[test]
    fn only_files_of_the_two_formats_count() {
        assert_eq!(OsvFormat::of_name(b"a/b.JSON"), Some(OsvFormat::Json));
        assert_eq!(OsvFormat::of_name(b"b.yml"), Some(OsvFormat::Yaml));
        assert_eq!(OsvFormat::of_name(b"README.md"), None);
        assert_eq!(OsvFormat::of_name(b"json"), None);
    }
}
