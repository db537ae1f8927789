//! Limits on an agent's change, judged from git and not from the agent's report.

use engine::evidence::SensitiveChange;
use model::id::{MicroCommitId, Sha};

use super::conflict::contains;

/// Change of the branch by IMPLEMENT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObservedChange {
    pub(crate) head_before: Sha,
    pub(crate) head_after: Sha,
    pub(crate) descends: bool,
    /// Subjects of the new commits, newest first.
    pub(crate) subjects: Vec<String>,
    pub(crate) changed: Vec<Vec<u8>>,
    pub(crate) lines_changed: u64,
    /// Content that is refused: links out of the repository, links to other repositories, oversized files.
    pub(crate) strange: Vec<String>,
    /// Files that act by themselves.
    pub(crate) sensitive: Vec<SensitiveChange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeLimits<'a> {
    pub(crate) id: &'a MicroCommitId,
    pub(crate) max_files: usize,
    pub(crate) max_lines: u64,
    /// Only paths below these may change; empty means any path.
    pub(crate) allowed: &'a [String],
    pub(crate) forbidden: &'a [String],
    pub(crate) expected: &'a [String],
}

/// Judges a change: warnings if it is within its limits, or else the first violation.
pub(crate) fn judge_change(
    change: &ObservedChange,
    limits: &ChangeLimits<'_>,
) -> Result<Vec<String>, String> {
    check_history(change, limits)?;
    if let Some(message) = change.strange.first() {
        return Err(message.clone());
    }
    check_paths(change, limits)?;
    check_sensitive(change, limits)?;
    check_size(change, limits)?;
    Ok(unexpected(change, limits))
}

fn check_history(change: &ObservedChange, limits: &ChangeLimits<'_>) -> Result<(), String> {
    if change.head_after == change.head_before {
        return Err("no commit was created".to_owned());
    }
    if !change.descends {
        return Err("the history of the branch was rewritten".to_owned());
    }
    let prefix = format!("{}:", limits.id);
    match change.subjects.iter().find(|subject| !subject.starts_with(&prefix)) {
        Some(subject) => Err(format!("the commit \"{subject}\" does not start with {prefix}")),
        None => Ok(()),
    }
}

fn check_paths(change: &ObservedChange, limits: &ChangeLimits<'_>) -> Result<(), String> {
    for path in &change.changed {
        if let Some(forbidden) = limits.forbidden.iter().find(|prefix| is_forbidden(prefix, path)) {
            let path = String::from_utf8_lossy(path);
            return Err(format!("{path} was changed, but {forbidden} is forbidden"));
        }
        if !limits.allowed.is_empty() && !limits.allowed.iter().any(|rule| contains(rule, path)) {
            let (path, allowed) = (String::from_utf8_lossy(path), limits.allowed.join(" "));
            return Err(format!("{path} was changed, but only {allowed} is allowed"));
        }
    }
    Ok(())
}

/// Files that act by themselves take effect in the user's own worktree, so a person names them first.
fn check_sensitive(change: &ObservedChange, limits: &ChangeLimits<'_>) -> Result<(), String> {
    let named = |path: &str| {
        let mut rules = limits.allowed.iter().chain(limits.expected);
        rules.any(|rule| contains(rule, path.as_bytes()))
    };
    match change.sensitive.iter().find(|sensitive| !named(&sensitive.path)) {
        Some(sensitive) => Err(format!(
            "{} was changed and waits for a person: name it in ALLOWED_PATHS of the profile or in EXPECTED_PATHS of the workstream",
            sensitive.message()
        )),
        None => Ok(()),
    }
}

/// A bare name such as `.env` is forbidden in every folder, a path only at its place.
fn is_forbidden(rule: &str, path: &[u8]) -> bool {
    let name = rule.trim_end_matches('/');
    contains(rule, path)
        || (!name.contains('/')
            && path.split(|&byte| byte == b'/').any(|part| part == name.as_bytes()))
}

fn check_size(change: &ObservedChange, limits: &ChangeLimits<'_>) -> Result<(), String> {
    let files = change.changed.len();
    if files > limits.max_files {
        return Err(format!(
            "{files} files were changed; at most {} are allowed",
            limits.max_files
        ));
    }
    if change.lines_changed > limits.max_lines {
        let (lines, max) = (change.lines_changed, limits.max_lines);
        return Err(format!("{lines} lines were changed; at most {max} are allowed"));
    }
    Ok(())
}

/// Expected paths are a forecast, so a change outside them is only a warning.
fn unexpected(change: &ObservedChange, limits: &ChangeLimits<'_>) -> Vec<String> {
    if limits.expected.is_empty() {
        return Vec::new();
    }
    let is_expected = |path: &Vec<u8>| limits.expected.iter().any(|prefix| contains(prefix, path));
    let outside = change.changed.iter().filter(|path| !is_expected(path));
    outside
        .map(|path| format!("{} is outside the expected paths", String::from_utf8_lossy(path)))
        .collect()
}

#[cfg(test)]
mod tests {
    use model::sensitive_path::SensitiveKind;

    use super::*;

    fn good() -> ObservedChange {
        ObservedChange {
            head_before: Sha::parse(&"a".repeat(40)).unwrap(),
            head_after: Sha::parse(&"b".repeat(40)).unwrap(),
            descends: true,
            subjects: vec!["COMMIT-TF-001: Add it".to_owned()],
            changed: vec![b"mk/a".to_vec(), b"other".to_vec()],
            lines_changed: 12,
            strange: Vec::new(),
            sensitive: Vec::new(),
        }
    }

    fn judge(change: &ObservedChange) -> Result<Vec<String>, String> {
        let limits = ChangeLimits {
            id: &MicroCommitId::parse("COMMIT-TF-001").unwrap(),
            max_files: 2,
            max_lines: 20,
            allowed: &["mk/".to_owned(), "other".to_owned(), "app/".to_owned(), "c".to_owned()],
            forbidden: &["secrets/".to_owned(), ".env".to_owned(), "ci/keys".to_owned()],
            expected: &["mk/".to_owned()],
        };
        judge_change(change, &limits)
    }

    #[test]
    fn good_work_passes_and_unexpected_paths_only_warn() {
        assert_eq!(judge(&good()).unwrap(), ["other is outside the expected paths"]);
    }

    #[track_caller]
    fn refused(edit: impl FnOnce(&mut ObservedChange), message: &str) {
        let mut change = good();
        edit(&mut change);
        let error = judge(&change).unwrap_err();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn every_bound_holds() {
        refused(|change| change.head_after = change.head_before.clone(), "no commit");
        refused(|change| change.descends = false, "rewritten");
        refused(
            |change| change.subjects.push("fix".to_owned()),
            "does not start with COMMIT-TF-001:",
        );
        refused(|change| change.strange.push("a leads out".to_owned()), "a leads out");
        refused(
            |change| change.changed = vec![b"lib/x".to_vec()],
            "only mk/ other app/ c is allowed",
        );
        refused(|change| change.changed = vec![b"secrets/x".to_vec()], "forbidden");
        refused(|change| change.changed = vec![b"app/.env".to_vec()], ".env is forbidden");
        refused(|change| change.changed.push(b"c".to_vec()), "3 files");
        refused(|change| change.lines_changed = 21, "21 lines");
    }

    #[test]
    fn what_acts_by_itself_waits_until_a_person_names_it() {
        let change =
            |path: &str| SensitiveChange { path: path.to_owned(), kind: SensitiveKind::GitHook };
        let text = ".husky/pre-commit (git hook) was changed and waits for a person";
        refused(|it| it.sensitive.push(change(".husky/pre-commit")), text);
        let mut named = good();
        named.sensitive.push(change("mk/.husky/pre-commit"));
        assert!(judge(&named).is_ok());
    }

    #[test]
    fn a_name_that_only_looks_alike_is_allowed() {
        let mut change = good();
        change.changed = vec![b"mk/.env.sample".to_vec(), b"mk/ci/keys".to_vec()];
        assert_eq!(judge(&change), Ok(Vec::new()));
    }
}
