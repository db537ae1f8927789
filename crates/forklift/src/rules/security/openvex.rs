//! Findings as an OpenVEX document: for each vulnerability whether the fork is affected.

use model::digest::short_sha256;
use serde_json::{Value, json};

use super::finding::{FindingSource, FixFinding, Report};
use super::presence::{State, Sureness};
use super::project::ProjectNames;

const CONTEXT: &str = "https://openvex.dev/ns/v0.2.0";

/// Renders every finding of an advisory or with an identifier. `author` is who answers for the document.
pub(crate) fn render_openvex(report: &Report, author: &str) -> Value {
    let product = json!({"@id": product_id(report)});
    let statements: Vec<Value> =
        report.findings.iter().map(|finding| render_statement(finding, &product)).collect();
    let content = json!([report.base, report.at, statements]).to_string();
    // The format has no field for what could not be read.
    let problems =
        report.problems().iter().map(|it| format!("; incomplete: {it}")).collect::<String>();
    json!({
        "@context": CONTEXT,
        "@id": format!("https://openvex.dev/docs/public/vex-{}", short_sha256(content.as_bytes(), 32)),
        "author": author,
        "timestamp": report.at,
        "version": 1,
        "tooling": format!("forklift security{problems}"),
        "statements": statements,
    })
}

fn render_statement(finding: &FixFinding, product: &Value) -> Value {
    // Whoever reads the document acts on a status without looking, so a likely one is none.
    let status = match (finding.state, finding.sureness) {
        (State::Missing, _) => "affected",
        (State::NotAffected, Sureness::Certain) => "not_affected",
        (State::Present, Sureness::Certain) => "fixed",
        (State::Unclear | State::NotAffected | State::Present, _) => "under_investigation",
    };
    let mut statement = json!({
        "vulnerability": {"name": finding.id, "aliases": finding.aliases, "description": finding.summary},
        "products": [product],
        "status": status,
        "status_notes": format!("{}: {} ({}, {})", finding.state_words(), finding.why, source_words(&finding.source), sure(finding)),
    });
    match (finding.state, finding.sureness) {
        (State::Missing, _) => {
            let action = format!("Land upstream's fix: forklift security land {}", finding.id);
            statement["action_statement"] = json!(action);
        }
        (State::NotAffected, Sureness::Certain) => {
            statement["justification"] = json!("vulnerable_code_not_present");
        }
        (State::Unclear | State::NotAffected | State::Present, _) => {}
    }
    statement
}

fn sure(finding: &FixFinding) -> &'static str {
    match finding.sureness {
        Sureness::Certain => "by what git records",
        Sureness::Likely => "by the lines of the files",
        Sureness::Unknown => "a person has to look",
    }
}

fn source_words(source: &FindingSource) -> &'static str {
    match source {
        FindingSource::Advisory { .. } => "from an advisory",
        FindingSource::Message => "from the message of a commit of upstream",
        FindingSource::Tag { .. } => "from the message of a tag of upstream",
    }
}

/// The fork at the commit that was looked at, as a package URL.
fn product_id(report: &Report) -> String {
    let names = ProjectNames::new([report.origin.as_str()]);
    let name = names.iter().next().map(str::to_owned);
    match name.as_deref().map(|name| (name.strip_prefix("github.com/"), name)) {
        Some((Some(path), _)) => format!("pkg:github/{path}@{}", report.base),
        Some((None, name)) => {
            let folder = name.rsplit('/').next().unwrap_or(name);
            format!("pkg:generic/{folder}@{}?vcs_url=git%2Bhttps://{name}", report.base)
        }
        None => {
            let folder = report.fork.file_name().unwrap_or_default().to_string_lossy();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let folder: String =
                folder.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
            format!("pkg:generic/{folder}@{}", report.base)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::{finding, report};
    use super::super::severity::Severity;
    use super::*;

    #[test]
    fn every_state_has_its_status_and_what_the_format_asks_for() {
        let states = [State::Missing, State::Unclear, State::NotAffected, State::Present];
        let certain = |state| FixFinding {
            sureness: Sureness::Certain,
            ..finding("A-1", state, Severity::High)
        };
        let findings = states.map(certain).to_vec();
        let vex = render_openvex(&report(findings), "Ada");
        let status = |at: usize| vex["statements"][at]["status"].as_str().unwrap().to_owned();
        let found: Vec<String> = (0..4).map(status).collect();
        assert_eq!(found, ["affected", "under_investigation", "not_affected", "fixed"]);
        assert!(vex["statements"][0]["action_statement"].as_str().unwrap().contains("land A-1"));
        assert_eq!(vex["statements"][2]["justification"], "vulnerable_code_not_present");
        let product = format!("pkg:github/me/fork@{}", "b".repeat(40));
        assert_eq!(vex["statements"][0]["products"][0]["@id"], product);
        assert_eq!(vex["timestamp"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_only_likely_is_under_investigation() {
        let states = [State::NotAffected, State::Present];
        let findings = states.map(|state| finding("A-1", state, Severity::High)).to_vec();
        let vex = render_openvex(&report(findings), "Ada");
        for at in 0..2 {
            assert_eq!(vex["statements"][at]["status"], "under_investigation");
            assert!(vex["statements"][at].get("justification").is_none());
            assert!(vex["statements"][at]["status_notes"].to_string().contains("likely"));
        }
    }

    #[test]
    fn a_fork_without_an_address_is_named_by_its_folder() {
        let mut report = report(Vec::new());
        report.origin = "/srv/git/x.git".to_owned();
        report.fork = "/src/my fork".into();
        assert!(product_id(&report).starts_with("pkg:generic/my-fork@bbb"));
        report.origin = "https://git.example.org/a/b".to_owned();
        assert!(product_id(&report).ends_with("?vcs_url=git%2Bhttps://git.example.org/a/b"));
    }
}
