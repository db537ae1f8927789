//! Whether what an agent did stays within its bounds, judged from what git says and not from what the agent says (D77,
//! D79).

use model::id::{MicroCommitId, Sha};

use super::conflict::contains;

/// The worktree before and after IMPLEMENT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aftermath {
    pub(crate) head_before: Sha,
    pub(crate) head_after: Sha,
    pub(crate) descends: bool,
    /// Subjects of the new commits, newest first.
    pub(crate) subjects: Vec<String>,
    pub(crate) changed: Vec<Vec<u8>>,
    pub(crate) lines_changed: u64,
    /// What no repository should hold: links that lead out of it, links to others, giants.
    pub(crate) strange: Vec<String>,
}

/// What the micro-commit may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds<'a> {
    pub(crate) id: &'a MicroCommitId,
    pub(crate) max_files: usize,
    pub(crate) max_lines: u64,
    /// Where alone changes may be; nothing means anywhere.
    pub(crate) allowed: &'a [String],
    pub(crate) forbidden: &'a [String],
    pub(crate) expected: &'a [String],
}

/// Within its bounds, with warnings, or not, with the first reason.
pub(crate) fn judge_bounds(after: &Aftermath, bounds: &Bounds<'_>) -> Result<Vec<String>, String> {
    check_history(after, bounds)?;
    check_content(after)?;
    check_paths(after, bounds)?;
    check_size(after, bounds)?;
    Ok(unexpected(after, bounds))
}

fn check_history(after: &Aftermath, bounds: &Bounds<'_>) -> Result<(), String> {
    if after.head_after == after.head_before {
        return Err("no commit was created".to_owned());
    }
    if !after.descends {
        return Err("the history of the branch was rewritten".to_owned());
    }
    let prefix = format!("{}:", bounds.id);
    match after.subjects.iter().find(|subject| !subject.starts_with(&prefix)) {
        Some(subject) => Err(format!("the commit \"{subject}\" does not start with {prefix}")),
        None => Ok(()),
    }
}

fn check_content(after: &Aftermath) -> Result<(), String> {
    after.strange.first().map_or(Ok(()), |words| Err(words.clone()))
}

fn check_paths(after: &Aftermath, bounds: &Bounds<'_>) -> Result<(), String> {
    for path in &after.changed {
        if let Some(forbidden) = bounds.forbidden.iter().find(|prefix| is_forbidden(prefix, path)) {
            let path = String::from_utf8_lossy(path);
            return Err(format!("{path} was changed, but {forbidden} is forbidden"));
        }
        if !bounds.allowed.is_empty() && !bounds.allowed.iter().any(|rule| contains(rule, path)) {
            let (path, allowed) = (String::from_utf8_lossy(path), bounds.allowed.join(" "));
            return Err(format!("{path} was changed, but only {allowed} is allowed"));
        }
    }
    Ok(())
}

/// A bare name such as `.env` is forbidden in every folder, a path only where it is.
fn is_forbidden(rule: &str, path: &[u8]) -> bool {
    let name = rule.trim_end_matches('/');
    contains(rule, path)
        || (!name.contains('/')
            && path.split(|&byte| byte == b'/').any(|part| part == name.as_bytes()))
}

fn check_size(after: &Aftermath, bounds: &Bounds<'_>) -> Result<(), String> {
    let files = after.changed.len();
    if files > bounds.max_files {
        return Err(format!(
            "{files} files were changed; at most {} are allowed",
            bounds.max_files
        ));
    }
    if after.lines_changed > bounds.max_lines {
        let (lines, max) = (after.lines_changed, bounds.max_lines);
        return Err(format!("{lines} lines were changed; at most {max} are allowed"));
    }
    Ok(())
}

/// Expected paths are a forecast, so leaving them is only worth a word.
fn unexpected(after: &Aftermath, bounds: &Bounds<'_>) -> Vec<String> {
    if bounds.expected.is_empty() {
        return Vec::new();
    }
    let is_expected = |path: &Vec<u8>| bounds.expected.iter().any(|prefix| contains(prefix, path));
    let outside = after.changed.iter().filter(|path| !is_expected(path));
    outside
        .map(|path| format!("{} is outside the expected paths", String::from_utf8_lossy(path)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Aftermath {
        Aftermath {
            head_before: Sha::parse(&"a".repeat(40)).unwrap(),
            head_after: Sha::parse(&"b".repeat(40)).unwrap(),
            descends: true,
            subjects: vec!["COMMIT-TF-001: Add it".to_owned()],
            changed: vec![b"mk/a".to_vec(), b"other".to_vec()],
            lines_changed: 12,
            strange: Vec::new(),
        }
    }

    fn judge(after: &Aftermath) -> Result<Vec<String>, String> {
        let bounds = Bounds {
            id: &MicroCommitId::parse("COMMIT-TF-001").unwrap(),
            max_files: 2,
            max_lines: 20,
            allowed: &["mk/".to_owned(), "other".to_owned(), "app/".to_owned(), "c".to_owned()],
            forbidden: &["secrets/".to_owned(), ".env".to_owned(), "ci/keys".to_owned()],
            expected: &["mk/".to_owned()],
        };
        judge_bounds(after, &bounds)
    }

    #[test]
    fn good_work_passes_and_unexpected_paths_only_warn_d79() {
        assert_eq!(judge(&good()).unwrap(), ["other is outside the expected paths"]);
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Aftermath), words: &str) {
        let mut after = good();
        change(&mut after);
        let error = judge(&after).unwrap_err();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn every_bound_holds_d77_d79() {
        refused(|after| after.head_after = after.head_before.clone(), "no commit");
        refused(|after| after.descends = false, "rewritten");
        refused(
            |after| after.subjects.push("fix".to_owned()),
            "does not start with COMMIT-TF-001:",
        );
        refused(|after| after.strange.push("a leads out".to_owned()), "a leads out");
        refused(
            |after| after.changed = vec![b"lib/x".to_vec()],
            "only mk/ other app/ c is allowed",
        );
        refused(|after| after.changed = vec![b"secrets/x".to_vec()], "forbidden");
        refused(|after| after.changed = vec![b"app/.env".to_vec()], ".env is forbidden");
        refused(|after| after.changed.push(b"c".to_vec()), "3 files");
        refused(|after| after.lines_changed = 21, "21 lines");
    }

    #[test]
    fn a_name_that_only_looks_alike_is_allowed() {
        let mut after = good();
        after.changed = vec![b"mk/.env.sample".to_vec(), b"mk/ci/keys".to_vec()];
        assert_eq!(judge(&after), Ok(Vec::new()));
    }
}
