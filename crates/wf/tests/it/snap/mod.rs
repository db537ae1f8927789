//! Whole-output snapshots: what commands print and how they end, and what they leave on disk.

mod clarify;
mod conflicts;
mod docs;
mod help_queues;
mod help_runs;
mod help_workstreams;
mod json;
mod life;
mod lists;
mod lock;
mod merge;
mod new;
mod plan;
mod project;
mod run_agent;
mod run_gates;
mod run_json;
mod run_load;
mod run_plan;
mod run_test;
mod supervise;
mod tree;
mod uat;
mod usage;

use std::path::Path;

use crate::support::{Person, read};

/// Text of `--help`, without the exit statuses that every help text ends with.
fn help(words: &[&str]) -> String {
    let person = Person::unregistered();
    let text = person.ok(&[words, &["--help"]].concat());
    text.split("\nExit status:").next().unwrap_or_default().to_owned()
}

impl Person {
    /// Runs commands in sequence. Lines of standard error start with `! `.
    pub(crate) fn transcript(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| self.shot(args, &[])).collect()
    }

    /// Runs one command with these variables.
    pub(crate) fn shot(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        let output = self.hermetic.run(&mut command);
        // Tests may run as root or not.
        let lines = output.stderr.lines().filter(|line| !line.contains("wf runs as root"));
        let errors: String = lines.map(|line| format!("! {line}\n")).collect();
        let status = output.status.map_or("a signal".to_owned(), |status| status.to_string());
        let words: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        let text =
            format!("$ wf {}\n{}{errors}[{status}]\n", words.join(" "), ended(&output.stdout));
        self.redacted(&text)
    }

    /// The content of a file.
    pub(crate) fn file(&self, path: &Path) -> String {
        self.redacted(&read(path))
    }

    /// The paths below a folder, sorted. Of the folders of these names only the name is shown, and of a box only its name:
    /// what is in it is the engine's.
    pub(crate) fn tree(&self, folder: &Path, closed: &[&str]) -> String {
        let mut paths: Vec<String> = testkit::tree::entries(folder)
            .into_iter()
            .map(|path| {
                let name = path.strip_prefix(folder).expect("below").display().to_string();
                if path.is_dir() { format!("{name}/") } else { name }
            })
            .filter(|path| {
                let is_below =
                    |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.len() > 1);
                let is_in_box = path.starts_with("boxes/") && path.matches('/').count() > 2;
                !is_in_box && !closed.iter().any(|name| is_below(name))
            })
            .collect();
        paths.retain(|path| !path.starts_with("boxes/") || path.ends_with('/'));
        paths.sort();
        self.redacted(&(paths.join("\n") + "\n"))
    }

    /// The lines of meta.env that a run may change.
    pub(crate) fn meta_lines(&self, id: &str) -> String {
        let keys = ["STATUS", "BLOCKED_BY", "LAST_RESULT", "LAST_RUN_ID", "LAST_COMMIT_SHA"];
        let line = |key: &&str| format!("{key}={}\n", self.meta(id, key));
        self.redacted(&keys.iter().map(line).collect::<String>())
    }

    /// Takes out what differs from run to run: folders, times, commits and durations.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let text = self.hermetic.redact(&stamps(text));
        let text: String = text.split_inclusive('\n').map(durations).collect();
        // The second run of a micro-commit within one second gets a number.
        ["-001", "-002", "_none"].iter().fold(text, |text, end| {
            (2..5).fold(text, |text, number| text.replace(&format!("{end}-{number}"), end))
        })
    }
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}[no line break]\n")
    }
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '"', '\n']) {
        format!("{word:?}")
    } else {
        word.to_owned()
    }
}

/// Times in names of files: `20250115-120000_` of a run, `2025-01-15T12-00-00Z` of a closed workstream.
fn stamps(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = [("dddddddd-dddddd_", 15), ("dddd-dd-ddTdd-dd-ddZ", 20)]
            .into_iter()
            .find_map(|(shape, length)| has_shape(rest, shape).then_some(length));
        let taken = length.unwrap_or(next.len_utf8());
        out.push_str(if length.is_some() { "[STAMP]" } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    out
}

fn has_shape(text: &str, shape: &str) -> bool {
    let bytes = text.as_bytes().get(..shape.len());
    bytes.is_some_and(|bytes| {
        bytes.iter().zip(shape.bytes()).all(|(byte, want)| match want {
            b'd' => byte.is_ascii_digit(),
            other => *byte == other,
        })
    })
}

/// Replaces seconds in a line: in JSON, in a table, in `(1.5 s)` and in the last column of a list.
fn durations(line: &str) -> String {
    let is_number = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_digit())
            && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    let body = line.trim_end_matches(['\n', ',']);
    let end = &line[body.len()..];
    if let Some((key, number)) = body.rsplit_once(": ")
        && key.trim_end_matches('"').ends_with("duration_seconds")
        && is_number(number)
    {
        return format!("{key}: [N]{end}");
    }
    if body.starts_with("| ") {
        let cell = |cell: &str| match is_number(cell) && cell.contains('.') {
            true => "[N]".to_owned(),
            false => cell.to_owned(),
        };
        return body.split(" | ").map(cell).collect::<Vec<_>>().join(" | ") + end;
    }
    if let Some((before, number)) = body.strip_suffix(" s)").and_then(|rest| rest.rsplit_once('('))
        && is_number(number)
    {
        return format!("{before}([N] s){end}");
    }
    if let Some((before, number)) = body.strip_suffix(" s").and_then(|rest| rest.rsplit_once("  "))
        && is_number(number)
    {
        return format!("{before}  [N] s{end}");
    }
    line.to_owned()
}
