//! A tool call for people: what the agent did, and how it ended.

use serde_json::Value;

use crate::field::{input_summary, list, snippet, text};

/// Bytes of a tool's output that are kept: its end, where test runners and compilers print their sums.
const OUTPUT_KEPT: usize = 8 * 1024;

/// A tool call that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolUse {
    pub(crate) name: String,
    /// Summary of its input, in one short line.
    pub(crate) detail: String,
    pub(crate) kind: ToolKind,
    /// As a sentence in the past, such as "edited src/a.rs +3 −1".
    pub(crate) action: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// A command line, whose output may be that of a test runner.
    Command,
    Other,
}

/// The end of a tool call, as the agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolResult {
    pub(crate) ok: bool,
    pub(crate) status: Option<i32>,
    pub(crate) output: String,
    /// Milliseconds, from agents that measure them.
    pub(crate) took_ms: Option<u64>,
}

impl ToolUse {
    pub(crate) fn new(name: &str, input: Option<&Value>) -> Self {
        let (kind, action) = match input {
            Some(input) => describe(name, input),
            None => (ToolKind::Other, format!("called {}", snippet(name))),
        };
        Self { name: snippet(name), detail: input_summary(input), kind, action }
    }

    pub(crate) fn command(name: &str, command: &str) -> Self {
        let detail = snippet(command);
        let action = format!("ran `{}`", snippet(shell_line(command)));
        Self { name: snippet(name), detail, kind: ToolKind::Command, action }
    }

    pub(crate) fn other(name: &str, detail: String, action: String) -> Self {
        Self { name: snippet(name), detail, kind: ToolKind::Other, action }
    }
}

impl ToolResult {
    pub(crate) fn new(ok: bool, output: &str) -> Self {
        let cut = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_KEPT));
        Self { ok, output: output[cut..].to_owned(), ..Self::default() }
    }

    pub(crate) fn with_status(self, status: Option<i64>) -> Self {
        Self { status: status.and_then(|status| status.try_into().ok()), ..self }
    }
}

/// Describes a call by the fields of its input. Agents name their tools differently, and their fields much alike.
fn describe(name: &str, input: &Value) -> (ToolKind, String) {
    let field = |names: &[&str]| names.iter().find_map(|name| text(input, name));
    let path = field(&["/file_path", "/filePath", "/path", "/notebook_path"]);
    let old = field(&["/old_string", "/oldString", "/oldText"]);
    let new = field(&["/new_string", "/newString", "/newText", "/new_source"]);
    let tool = name.to_ascii_lowercase();
    let action = if let Some(command) = text(input, "/command") {
        return (ToolKind::Command, format!("ran `{}`", snippet(shell_line(command))));
    } else if let (Some(path), Some(new)) = (path, new) {
        let (added, removed) = line_counts(old.unwrap_or_default(), new);
        format!("edited {} +{added} −{removed}", snippet(path))
    } else if let (Some(path), false) = (path, list(input, "/edits").is_empty()) {
        let (added, removed) = edit_counts(list(input, "/edits"));
        format!("edited {} +{added} −{removed}", snippet(path))
    } else if let (Some(path), Some(content)) = (path, text(input, "/content")) {
        let lines = content.lines().count();
        format!("wrote {}, {lines} {}", snippet(path), if lines == 1 { "line" } else { "lines" })
    } else if let Some(pattern) = field(&["/pattern", "/query"]) {
        format!("searched for {}", snippet(pattern))
    } else if let Some(url) = text(input, "/url") {
        format!("fetched {}", snippet(url))
    } else if let (Some(path), true) = (path, tool.contains("read")) {
        format!("read {}", snippet(path))
    } else {
        let detail = input_summary(Some(input));
        let detail = if detail == "{}" { String::new() } else { format!(" {detail}") };
        format!("called {}{detail}", snippet(name))
    };
    (ToolKind::Other, action)
}

fn edit_counts(edits: &[Value]) -> (usize, usize) {
    let field = |edit: &Value, names: [&str; 3]| {
        names.iter().find_map(|name| text(edit, name)).unwrap_or_default().to_owned()
    };
    edits.iter().fold((0, 0), |(added, removed), edit| {
        let old = field(edit, ["/old_string", "/oldString", "/oldText"]);
        let new = field(edit, ["/new_string", "/newString", "/newText"]);
        let (more, less) = line_counts(&old, &new);
        (added + more, removed + less)
    })
}

/// Counts lines added and removed by one replacement, without those that begin and end both texts.
fn line_counts(old: &str, new: &str) -> (usize, usize) {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    (new.len() - head - tail, old.len() - head - tail)
}

/// Returns the line that a shell was given: some agents report `/bin/bash -lc 'the line'`.
fn shell_line(command: &str) -> &str {
    let given = ["/bin/bash -lc ", "bash -lc ", "/bin/sh -c ", "sh -c "]
        .iter()
        .find_map(|shell| command.strip_prefix(shell));
    let Some(given) = given else { return command };
    let quoted = |quote: char| given.strip_prefix(quote)?.strip_suffix(quote);
    match quoted('\'').or_else(|| quoted('"')) {
        // A quote inside means that it is not one plain word.
        Some(line) if !line.contains(['\'', '"']) => line,
        Some(_) | None => given,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(name: &str, input: Value, expected: &str) {
        assert_eq!(ToolUse::new(name, Some(&input)).action, expected);
    }

    #[test]
    fn calls_are_described_whatever_the_agent_calls_its_fields() {
        check("Bash", json!({"command": "npm test"}), "ran `npm test`");
        check("shell", json!({"command": "/bin/bash -lc 'npm test'"}), "ran `npm test`");
        check("shell", json!({"command": "bash -lc \"a 'b'\""}), "ran `\"a 'b'\"`");
        let edit = json!({"file_path": "src/a.rs", "old_string": "a\nb\nc", "new_string": "a\nx\ny\nz\nc"});
        check("Edit", edit, "edited src/a.rs +3 −1");
        let edit = json!({"filePath": "a", "oldString": "x", "newString": ""});
        check("edit", edit, "edited a +0 −1");
        let edits = json!({"path": "a", "edits": [{"oldText": "1", "newText": "1\n2"}, {"oldText": "3", "newText": "4"}]});
        check("edit", edits, "edited a +2 −1");
        check("Write", json!({"file_path": "a", "content": "1\n"}), "wrote a, 1 line");
        check("Read", json!({"file_path": "a"}), "read a");
        check("Grep", json!({"pattern": "fn main", "path": "src"}), "searched for fn main");
        check("WebFetch", json!({"url": "https://example.com"}), "fetched https://example.com");
        check(
            "mcp__forge__read_issue",
            json!({"number": 3}),
            "called mcp__forge__read_issue {\"number\":3}",
        );
        check("signal_done", json!({}), "called signal_done");
    }

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let long = format!("{}é3 failed", "é".repeat(OUTPUT_KEPT));
        let kept = ToolResult::new(true, &long).output;
        assert!(kept.len() <= OUTPUT_KEPT && kept.ends_with("3 failed"), "{}", kept.len());
    }
}
