//! What an image has to hold, and how it is asked.

use serde::Serialize;

/// A program and what it is asked for its version, and the runtime that brings it if it is not always there.
const TOOLS: [(&str, &str, Option<&str>); 21] = [
    ("bash", "--version", None),
    ("git", "--version", None),
    ("gcc", "--version", None),
    ("make", "--version", None),
    ("cmake", "--version", None),
    ("pkg-config", "--version", None),
    ("python3", "--version", None),
    ("pip3", "--version", None),
    ("curl", "--version", None),
    ("wget", "--version", None),
    ("unzip", "-v", None),
    ("openssl", "version", None),
    ("jq", "--version", None),
    ("rg", "--version", None),
    ("fd", "--version", None),
    ("tree", "--version", None),
    ("tee", "--version", None),
    ("cargo", "--version", Some("rust")),
    ("node", "--version", Some("node")),
    ("bun", "--version", Some("bun")),
    ("pyenv", "--version", Some("pyenv")),
];

/// A program that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// What it says of its version; nothing if it is not there.
    pub(crate) version: Option<String>,
}

/// The script that asks each of them, one line each: a name, a tab and the first line of the answer.
pub(crate) fn tools_script() -> String {
    let ask = |(name, question, _): &(&str, &str, Option<&str>)| {
        format!(
            "printf '%s\\t%s\\n' {name} \"$(command -v {name} > /dev/null && {name} {question} 2>&1 | head -n 1)\"\n"
        )
    };
    TOOLS.iter().map(ask).collect()
}

/// Reads the answers.
pub(crate) fn parse_tools(text: &str) -> Vec<Tool> {
    let tool = |line: &str| {
        let (name, version) = line.split_once('\t')?;
        let version = Some(version.trim()).filter(|version| !version.is_empty());
        Some(Tool { name: name.to_owned(), version: version.map(str::to_owned) })
    };
    text.lines().filter_map(tool).collect()
}

/// What is missing of what an image with these runtimes has to hold.
pub(crate) fn judge_tools(found: &[Tool], runtimes: &str) -> Vec<&'static str> {
    let there = |name: &str| found.iter().any(|tool| tool.name == name && tool.version.is_some());
    let promised = |runtime: &str| runtimes.split_whitespace().any(|word| word == runtime);
    TOOLS
        .iter()
        .filter(|(name, _, runtime)| runtime.is_none_or(promised) && !there(name))
        .map(|(name, ..)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_but(absent: &str) -> Vec<Tool> {
        let line = |(name, ..): &(&str, &str, Option<&str>)| {
            let version = if *name == absent { "" } else { "1.0" };
            format!("{name}\t{version}\n")
        };
        parse_tools(&TOOLS.iter().map(line).collect::<String>())
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(judge_tools(&all_but("jq"), "rust node bun pyenv"), ["jq"]);
        assert!(judge_tools(&all_but(""), "").is_empty());
        assert_eq!(judge_tools(&[], "").len(), 17, "an image that says nothing has nothing");
    }

    #[test]
    fn a_runtime_that_was_left_out_is_not_missed() {
        assert!(judge_tools(&all_but("bun"), "rust node").is_empty());
        assert_eq!(judge_tools(&all_but("bun"), "rust bun"), ["bun"]);
    }

    #[test]
    fn the_script_asks_for_every_tool() {
        let script = tools_script();
        assert_eq!(script.lines().count(), TOOLS.len());
        assert!(TOOLS.iter().all(|(name, ..)| script.contains(&format!("command -v {name} "))));
    }
}
