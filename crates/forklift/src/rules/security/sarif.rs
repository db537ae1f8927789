//! Findings as SARIF 2.1.0, which forges and dashboards read.

use serde_json::{Value, json};

use super::finding::{FixFinding, Report};
use super::presence::State;
use super::severity::Severity;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Files that a result points to.
const LOCATIONS: usize = 10;

/// Renders what is missing, unclear or only likely to be there. What the fork has for certain is not a result.
pub(crate) fn render_sarif(report: &Report, version: &str) -> Value {
    let open = || report.findings.iter().filter(|finding| finding.is_listed());
    let problems = report.problems();
    let notices: Vec<Value> =
        problems.iter().map(|text| json!({"level": "error", "message": {"text": text}})).collect();
    let rules: Vec<Value> = open().map(render_rule).collect();
    let results: Vec<Value> = open().enumerate().map(|(at, it)| render_result(at, it)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "forklift", "semanticVersion": version, "rules": rules,
            }},
            "automationDetails": {"id": "forklift-security/"},
            "columnKind": "utf16CodeUnits",
            "versionControlProvenance": [{
                "repositoryUri": report.origin, "revisionId": report.base, "branch": report.branch,
            }],
            "invocations": [{
                "executionSuccessful": problems.is_empty(), "toolExecutionNotifications": notices,
            }],
            "results": results,
        }],
    })
}

fn render_rule(finding: &FixFinding) -> Value {
    let mut rule = json!({
        "id": finding.id,
        "shortDescription": {"text": title(finding)},
        "properties": {"tags": ["security"], "aliases": finding.aliases},
    });
    if let Some(score) = score(finding.severity) {
        rule["properties"]["security-severity"] = json!(score);
    }
    rule
}

fn render_result(index: usize, finding: &FixFinding) -> Value {
    let paths = finding.fixes.iter().flat_map(|fix| &fix.paths).take(LOCATIONS);
    let locations: Vec<Value> = paths
        .map(|path| {
            let place = json!({"uri": encode_path(path), "uriBaseId": "%SRCROOT%"});
            json!({"physicalLocation": {"artifactLocation": place, "region": {"startLine": 1}}})
        })
        .collect();
    let commits: Vec<_> = finding.fixes.iter().map(|fix| &fix.commit).collect();
    let text = format!("{} The fix is {}: {}.", title(finding), finding.state_words(), finding.why);
    json!({
        "ruleId": finding.id,
        "ruleIndex": index,
        "level": level(finding),
        "message": {"text": text},
        "locations": locations,
        "partialFingerprints": {"advisory/v1": finding.id},
        "properties": {
            "state": finding.state, "sureness": finding.sureness, "severity": finding.severity,
            "fixCommits": commits, "applies": finding.applies_words(), "source": finding.source,
        },
    })
}

fn title(finding: &FixFinding) -> String {
    let summary = finding.summary.trim_end_matches('.');
    match summary.is_empty() {
        true => format!("{}.", finding.id),
        false => format!("{}: {summary}.", finding.id),
    }
}

fn level(finding: &FixFinding) -> &'static str {
    match (finding.state, finding.severity) {
        (State::Missing, Severity::Critical | Severity::High) => "error",
        (State::Missing, _) => "warning",
        _ => "note",
    }
}

/// The middle of the range of each word, as a number that forges sort by.
fn score(severity: Severity) -> Option<&'static str> {
    match severity {
        Severity::Critical => Some("9.5"),
        Severity::High => Some("8.0"),
        Severity::Medium => Some("5.5"),
        Severity::Low => Some("2.0"),
        Severity::Unknown => None,
    }
}

/// A path as a relative address.
fn encode_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Database;
    use super::super::finding::tests::{finding, report};
    use super::super::presence::Sureness;
    use super::*;

    #[test]
    fn open_findings_are_results_with_their_rule() {
        let sarif = render_sarif(
            &report(vec![
                finding("A-1", State::Missing, Severity::High),
                finding("A-2", State::Unclear, Severity::High),
                FixFinding {
                    sureness: Sureness::Certain,
                    ..finding("A-3", State::Present, Severity::High)
                },
            ]),
            "1.2.3",
        );
        let run = &sarif["runs"][0];
        assert_eq!(sarif["version"], "2.1.0");
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        assert_eq!((&results[0]["level"], &results[1]["level"]), (&json!("error"), &json!("note")));
        let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(place, "src/a%20b.c");
        assert_eq!(results[0]["message"]["text"], "A-1: s. The fix is missing: why.");
    }

    #[test]
    fn what_could_not_be_read_is_a_notification_and_no_success() {
        let run = |report: &Report| render_sarif(report, "1")["runs"][0]["invocations"][0].clone();
        let mut report = report(Vec::new());
        assert_eq!(run(&report)["executionSuccessful"], true);
        report.databases.push(Database {
            source: "/adv".to_owned(),
            commit: None,
            files: 3,
            matching: 0,
            unreadable: 1,
            first_unreadable: Some("a.json: too large".to_owned()),
        });
        let found = run(&report);
        assert_eq!(found["executionSuccessful"], false);
        let text = found["toolExecutionNotifications"][0]["message"]["text"].to_string();
        assert!(text.contains("1 file of /adv could not be read, such as a.json"), "{text}");
    }

    #[test]
    fn a_path_cannot_pass_for_an_address() {
        assert_eq!(encode_path("https://x?y#z"), "https%3A//x%3Fy%23z");
        assert_eq!(encode_path("ü/a.c"), "%C3%BC/a.c");
    }
}
