//! The reason why git failed, in one line for people: the words of git or of the server, without git's command line.

use super::GitError;

impl GitError {
    /// Renders the line of git's output that names the cause; other errors as they are.
    pub fn reason(&self) -> String {
        match self {
            Self::Failed { stderr, .. } => reason_in(stderr),
            Self::TimedOut { limit_secs, .. } => format!("no answer within {limit_secs} s"),
            Self::Cancelled { reason, .. } => reason.to_string(),
            other => model::error_chain(other),
        }
    }
}

/// Lines that follow a cause and do not name one.
const CONSEQUENCES: [&str; 4] = [
    "hint:",
    "fatal: Could not read from remote repository",
    "Please make sure you have the correct access rights",
    "and the repository exists",
];

/// The first line that git marks as an error, else the first one of the server.
fn reason_in(stderr: &str) -> String {
    let is_cause =
        |line: &&str| !line.is_empty() && !CONSEQUENCES.iter().any(|start| line.starts_with(start));
    let lines = || stderr.split(['\n', ';']).map(str::trim).filter(is_cause);
    let unmarked = |line: &'_ str| {
        ["fatal: ", "error: "].iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned)
    };
    let reason = lines().find_map(unmarked).or_else(|| lines().next().map(str::to_owned));
    match reason {
        Some(reason) if reason.contains("unrelated histories") => "unrelated histories".to_owned(),
        Some(reason) => reason,
        None => "git gave no reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_shown_without_hints_and_consequences() {
        let away = "fatal: '/nope' does not appear to be a git repository; fatal: Could not read from remote repository.";
        let refused = "ssh: connect to host x port 22: Connection refused\nfatal: Could not read from remote repository.";
        for (stderr, expected) in [
            (away, "'/nope' does not appear to be a git repository"),
            (refused, "ssh: connect to host x port 22: Connection refused"),
            ("hint: a; hint:; fatal: refusing to merge unrelated histories", "unrelated histories"),
            ("remote: Not found.\nfatal: repository 'x' not found", "repository 'x' not found"),
            ("hint: only this", "git gave no reason"),
            ("", "git gave no reason"),
        ] {
            assert_eq!(reason_in(stderr), expected);
        }
    }
}
