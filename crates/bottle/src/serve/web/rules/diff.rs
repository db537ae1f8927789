//! Lines of a patch with their kinds, for the page.

/// Lines of a patch, each with its CSS class: `file`, `note`, `added`, `removed` or `context`.
pub(crate) fn parse_patch(text: &str) -> Vec<(&'static str, &str)> {
    let mut in_hunk = false;
    text.lines()
        .map(|line| {
            // Inside a hunk a line that begins with `--` is a removed one that begins with `-`.
            if line.starts_with("diff --git ") {
                in_hunk = false;
                return ("file", line);
            }
            if line.starts_with("@@ ") {
                in_hunk = true;
                return ("note", line);
            }
            let class = match (in_hunk, line.as_bytes().first()) {
                (true, Some(b'+')) => "added",
                (true, Some(b'-')) => "removed",
                (true, Some(b'\\')) | (false, _) => "note",
                (true, _) => "context",
            };
            (class, line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_where_they_stand() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ come\n\\ No newline at end of file\n";
        let classes: Vec<&str> = parse_patch(patch).iter().map(|(class, _)| *class).collect();
        assert_eq!(
            classes,
            ["file", "note", "note", "note", "note", "context", "removed", "added", "note"]
        );
    }
}
