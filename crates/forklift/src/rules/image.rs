//! Programs that an image must contain, and the script that finds them.

use serde::Serialize;

/// Programs of every image.
const TOOLS: &str = "bash git gcc make cmake pkg-config python3 pip3 curl wget unzip openssl jq rg \
     fd tree tee";

/// Programs of runtimes, each with its runtime.
const RUNTIME_TOOLS: [(&str, &str); 4] =
    [("cargo", "rust"), ("node", "node"), ("bun", "bun"), ("pyenv", "pyenv")];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// `None` if the program is missing.
    pub(crate) version: Option<String>,
}

/// Script that prints a line for each program: its name, a tab and the first line of its version.
pub(crate) fn tools_script() -> String {
    let line = |name: &str| {
        let option = match name {
            "unzip" => "-v",
            "openssl" => "version",
            _ => "--version",
        };
        format!(
            "printf '%s\\t%s\\n' {name} \"$(command -v {name} > /dev/null && {name} {option} 2>&1 | head -n 1)\"\n"
        )
    };
    all_tools().map(line).collect()
}

fn all_tools() -> impl Iterator<Item = &'static str> {
    TOOLS.split_whitespace().chain(RUNTIME_TOOLS.map(|(name, _)| name))
}

pub(crate) fn parse_tools(text: &str) -> Vec<Tool> {
    let tool = |line: &str| {
        let (name, version) = line.split_once('\t')?;
        let version = Some(version.trim()).filter(|version| !version.is_empty());
        Some(Tool { name: name.to_owned(), version: version.map(str::to_owned) })
    };
    text.lines().filter_map(tool).collect()
}

/// Lists the missing programs of an image with these runtimes.
pub(crate) fn judge_tools(found: &[Tool], runtimes: &str) -> Vec<&'static str> {
    let there = |name: &str| found.iter().any(|tool| tool.name == name && tool.version.is_some());
    let promised = |runtime: &str| runtimes.split_whitespace().any(|word| word == runtime);
    let runtimes = RUNTIME_TOOLS.into_iter().filter(|(_, runtime)| promised(runtime));
    let expected = TOOLS.split_whitespace().chain(runtimes.map(|(name, _)| name));
    expected.filter(|name| !there(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_but(absent: &str) -> Vec<Tool> {
        let line = |name| {
            let version = if name == absent { "" } else { "1.0" };
            format!("{name}\t{version}\n")
        };
        parse_tools(&all_tools().map(line).collect::<String>())
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
        assert_eq!(script.lines().count(), 21);
        assert!(all_tools().all(|name| script.contains(&format!("command -v {name} "))));
    }
}
