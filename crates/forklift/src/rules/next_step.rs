//! The command that follows a verdict.

use model::id::BranchName;

use super::judge::{Verdict, held_changes, objections};
use crate::flow::record::ForkRunRecord;

/// Paths that the next command names.
const PATHS_NAMED: usize = 4;

/// Longest time limit of an agent, in seconds.
const MOST_SECS: u64 = 86_400;

/// The command to type next; `None` where nothing is left to do.
pub(crate) fn next_command(record: &ForkRunRecord, verdict: &Verdict) -> Option<String> {
    let run = &record.run;
    if let Some(flags) = flags_to_publish(record, verdict) {
        return Some(format!("forklift publish {run}{flags}"));
    }
    // Only a workspace in which an agent has been can be continued.
    let again = if record.agent_box.is_some() { "resume" } else { "retry" };
    Some(match verdict {
        Verdict::UpToDate | Verdict::Withdrawn { .. } => return None,
        Verdict::Publish => match &record.publication {
            Some(sent) if sent.is_published() => look_at(record, &sent.branch),
            Some(_) | None => format!("forklift publish {run}"),
        },
        Verdict::AwaitingReview { branch, .. } => look_at(record, branch),
        Verdict::Stuck => format!("forklift resume {run} --answer \"...\""),
        Verdict::TimedOut => {
            let secs = record.settings.timeout_secs.saturating_mul(2).min(MOST_SECS);
            format!("forklift resume {run} --timeout {secs}")
        }
        Verdict::AgentFailed { .. } => format!("forklift log {run}; forklift {again} {run}"),
        Verdict::Waiting { .. } | Verdict::Stopped | Verdict::CheckFailed { .. } => {
            format!("forklift {again} {run}")
        }
        Verdict::WorkLost
        | Verdict::TestsLost { .. }
        | Verdict::TestsNotRun { .. }
        | Verdict::UpstreamDropped { .. }
        | Verdict::NotIntegrated
        | Verdict::ForkLost => {
            format!("forklift {again} {run} --instruction \"...\"")
        }
        Verdict::Refused { reasons } => refused(record, reasons, again),
        Verdict::SetupFailed { .. } => {
            format!(
                "correct setup in FORK.md on {}, then: forklift retry {run}",
                record.fork.branch
            )
        }
        Verdict::Infra { .. } => format!("forklift doctor; forklift retry {run}"),
    })
}

/// Flags of the command that publishes a closed run later; `None` if there is nothing to publish.
fn flags_to_publish(meta: &ForkRunRecord, verdict: &Verdict) -> Option<String> {
    let sent = meta.publication.as_ref();
    match verdict {
        Verdict::Publish if sent.is_some_and(|sent| sent.problem.is_some()) => Some(String::new()),
        Verdict::WorkLost | Verdict::TestsLost { .. } => Some(" --accept-loss".to_owned()),
        Verdict::UpstreamDropped { .. } | Verdict::TestsNotRun { .. } => {
            Some(" --accept-dropped".to_owned())
        }
        Verdict::Refused { .. } => {
            // Other reasons stay whatever is allowed.
            let evidence = meta.evidence.as_ref()?;
            let allowed = meta.settings.allowed_paths();
            let paths = held_changes(evidence, &allowed).map(|change| change.path.clone());
            let paths: Vec<String> = paths.collect();
            let allowed = [allowed, paths.clone()].concat();
            objections(evidence, &allowed).is_empty().then(|| allow_flags(&paths))?
        }
        Verdict::CheckFailed { .. } => {
            let changed = meta.check_changed.as_ref()?;
            let paths: Vec<String> = changed.files.iter().map(ToString::to_string).collect();
            changed.with_agent_files.passed().then(|| allow_flags(&paths))?
        }
        _ => None,
    }
}

/// Flags that allow these paths; `None` if there are none or many, or if a name means something to a shell or as a pattern.
fn allow_flags(paths: &[String]) -> Option<String> {
    let is_plain = |path: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        path.chars().all(is_plain) && !path.starts_with('-')
    };
    let can_be_typed = (1..=PATHS_NAMED).contains(&paths.len()) && paths.iter().all(is_plain);
    can_be_typed.then(|| paths.iter().map(|path| format!(" --allow-path {path}")).collect())
}

/// Shows a published branch against the fork's own.
fn look_at(record: &ForkRunRecord, branch: &BranchName) -> String {
    let (origin, base) = (&record.fork.remotes.origin, &record.fork.branch);
    format!("git fetch {origin} && git diff {origin}/{base}...{origin}/{branch}")
}

fn refused(record: &ForkRunRecord, reasons: &[String], again: &str) -> String {
    let run = &record.run;
    let names = |flag: &str| reasons.iter().any(|reason| reason.contains(flag));
    match () {
        () if names("--allow-unrelated") => format!("forklift retry {run} --allow-unrelated"),
        () if names("--allow-path") => format!("forklift {again} {run} --allow-path PATTERN"),
        () => format!("forklift {again} {run} --instruction \"...\""),
    }
}

#[cfg(test)]
mod tests {
    use model::id::RunId;
    use serde_json::json;

    use super::*;
    use crate::rules::pull_text::tests::record;

    fn every_verdict() -> Vec<Verdict> {
        let (how, run) = ("x".to_owned(), RunId::parse("fork_20260101_000000").expect("legal"));
        let refused = |reason: &str| Verdict::Refused { reasons: vec![reason.to_owned()] };
        let branch = BranchName::parse("forklift/fork_20260101_000000").expect("legal");
        vec![
            Verdict::UpToDate,
            Verdict::Publish,
            Verdict::AwaitingReview { run: run.clone(), branch, pull: None },
            Verdict::Withdrawn { run },
            Verdict::TimedOut,
            Verdict::Stuck,
            Verdict::AgentFailed { how: how.clone() },
            Verdict::Waiting { until: None },
            Verdict::NotIntegrated,
            Verdict::ForkLost,
            Verdict::WorkLost,
            Verdict::UpstreamDropped { reasons: Vec::new() },
            Verdict::TestsLost { tests: Vec::new() },
            Verdict::TestsNotRun { tests: Vec::new() },
            Verdict::CheckFailed { how: how.clone() },
            Verdict::SetupFailed { how: how.clone() },
            refused("if that is right, say --allow-unrelated"),
            refused("allow it with --allow-path"),
            refused("conflict markers were left: a"),
            Verdict::Stopped,
            Verdict::Infra { reason: how },
        ]
    }

    #[test]
    fn every_verdict_has_its_next_command() {
        let mut record = record(&json!({}));
        let lines: Vec<String> = every_verdict()
            .iter()
            .map(|verdict| {
                let next = next_command(&record, verdict).unwrap_or_else(|| "-".to_owned());
                format!("{:<17} {next}", verdict.word())
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
        record.agent_box = None;
        let stopped = next_command(&record, &Verdict::Stopped).expect("a command");
        assert!(stopped.starts_with("forklift retry "), "{stopped}");
    }
}
