//! Lines of a patch with their kinds, for the page.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    File,
    /// Information of git about a file, or the start of a hunk.
    Note,
    Added,
    Removed,
    Context,
}

impl LineKind {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Note => "note",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Context => "context",
        }
    }
}

pub(crate) fn parse_patch(text: &str) -> Vec<(LineKind, &str)> {
    let mut in_hunk = false;
    text.lines()
        .map(|line| {
            // Inside a hunk a line that begins with `--` is a removed one that begins with `-`.
            if line.starts_with("diff --git ") {
                in_hunk = false;
                return (LineKind::File, line);
            }
            if line.starts_with("@@ ") {
                in_hunk = true;
                return (LineKind::Note, line);
            }
            let kind = match (in_hunk, line.as_bytes().first()) {
                (true, Some(b'+')) => LineKind::Added,
                (true, Some(b'-')) => LineKind::Removed,
                (true, Some(b'\\')) | (false, _) => LineKind::Note,
                (true, _) => LineKind::Context,
            };
            (kind, line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_where_they_stand() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ come\n\\ No newline at end of file\n";
        let kinds: Vec<&str> = parse_patch(patch).iter().map(|(kind, _)| kind.class()).collect();
        assert_eq!(
            kinds,
            ["file", "note", "note", "note", "note", "context", "removed", "added", "note"]
        );
    }
}
