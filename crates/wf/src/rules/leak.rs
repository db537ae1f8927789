//! Secrets in an agent's commits. Records show `***` in their place, so nobody could see them on the branch: they are
//! refused instead.

use std::collections::HashSet;

use model::redact::Redactor;

use super::conflict::contains;

/// Part of a line that is enough to find it.
const SHOWN_CHARS: usize = 80;

/// A file as a commit changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// Searches the new lines of files for secrets. `allowed` are paths in which what only looks like a token may stand; the
/// project's own secrets may stand nowhere. Returns the sentence of the first finding.
pub(crate) fn find_leak(
    files: &[ChangedFile],
    redactor: &Redactor,
    allowed: &[String],
) -> Option<String> {
    let shapes = Redactor::new([]);
    files.iter().find_map(|file| {
        let known: HashSet<&[u8]> = lines(&file.before).collect();
        let is_allowed = allowed.iter().any(|rule| contains(rule, &file.path));
        let mut new = lines(&file.after).filter(|line| !known.contains(line));
        let (line, is_own) = new.find_map(|line| {
            let shown = redactor.redact_bytes(line);
            let is_own = shown != shapes.redact_bytes(line);
            (shown != line && (is_own || !is_allowed)).then_some((shown, is_own))
        })?;
        Some(render_leak(&String::from_utf8_lossy(&file.path), &line, is_own))
    })
}

/// Searches the message of a commit.
pub(crate) fn find_leak_in_message(message: &[u8], redactor: &Redactor) -> Option<String> {
    let shown = redactor.redact_bytes(message);
    (shown != message).then(|| "the message of a commit holds a secret; leave it out".to_owned())
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

fn render_leak(path: &str, line: &[u8], is_own: bool) -> String {
    let line: String = String::from_utf8_lossy(line).trim().chars().take(SHOWN_CHARS).collect();
    let line = line.escape_debug();
    match is_own {
        true => format!("{path} would hold a secret of this project: {line}; leave it out"),
        false => format!(
            "{path} would hold what looks like a secret: {line}; leave it out, or name the path in SECRETS_ALLOWED_PATHS of the profile if it is none"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::secret::Secret;

    fn file(path: &str, before: &str, after: &str) -> ChangedFile {
        ChangedFile { path: path.into(), before: before.into(), after: after.into() }
    }

    fn find(file: ChangedFile) -> Option<String> {
        let redactor = Redactor::new([Secret::new("topsecretvalue123")]);
        find_leak(&[file], &redactor, &["fixtures/".to_owned()])
    }

    fn token() -> String {
        format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT")
    }

    #[test]
    fn a_secret_of_the_project_is_refused_everywhere_and_never_shown() {
        for path in ["leak.txt", "fixtures/leak.txt"] {
            let message = find(file(path, "", "key=topsecretvalue123\n")).unwrap();
            assert!(message.contains(path) && message.contains("key=***"), "{message}");
            assert!(!message.contains("topsecret"), "{message}");
        }
        // A zero byte does not hide it.
        assert!(find(file("a.bin", "", "\0topsecretvalue123\0")).is_some());
    }

    #[test]
    fn what_looks_like_a_token_is_refused_where_it_is_not_allowed() {
        let text = format!("token = {}\n", token());
        assert!(find(file("src/a.rs", "", &text)).unwrap().contains("SECRETS_ALLOWED_PATHS"));
        assert_eq!(find(file("fixtures/a", "", &text)), None);
    }

    #[test]
    fn lines_that_were_there_before_are_not_new() {
        let text = format!("token = {}\n", token());
        assert_eq!(find(file("src/a.rs", &text, &format!("{text}more\n"))), None);
        assert_eq!(find(file("src/a.rs", "", "nothing\n")), None);
    }

    #[test]
    fn a_message_is_searched_too() {
        let redactor = Redactor::new([]);
        assert!(find_leak_in_message(token().as_bytes(), &redactor).is_some());
        assert_eq!(find_leak_in_message(b"COMMIT-TF-001: add it", &redactor), None);
    }
}
