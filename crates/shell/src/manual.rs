//! Manual pages: what the command line says of itself, with examples, files, variables and exit statuses.

use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use model::exit::ExitStatus;

/// Parts of a program's manual that its command line does not have.
#[derive(Debug, Clone, Copy)]
pub struct Manual {
    /// Examples by the words of the subcommand, one command line a line; the program itself has no words.
    pub examples: &'static [(&'static str, &'static str)],
    pub files: &'static [(&'static str, &'static str)],
    pub environment: &'static [(&'static str, &'static str)],
}

/// Variables that all programs read.
const COMMON_ENVIRONMENT: [(&str, &str); 6] = [
    ("BOTTLEWORKS_CONFIG", "the configuration that the programs share, instead of the usual file"),
    (
        "BOTTLEWORKS_PROVIDER, BOTTLEWORKS_MODEL",
        "the agent and its model, before the configuration",
    ),
    ("BOTTLEWORKS_FORGE_TOKEN", "the token of the forge"),
    (
        "ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY",
        "the key of the model, by its server",
    ),
    ("NO_COLOR", "no colours, if it is set to anything"),
    (
        "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME, XDG_CACHE_HOME",
        "the folders below which files are",
    ),
];

const COMMON_FILES: [(&str, &str); 2] = [
    (
        "~/.config/bottleworks/config.toml",
        "agents, keys, forges, limits, notification and identity",
    ),
    ("~/.local/share/bottleworks/agents", "the programs of agents that were installed"),
];

/// Adds the examples to the help of subcommands that have none.
pub(crate) fn with_examples(mut command: Command, manual: &Manual) -> Command {
    // The help of the program itself ends with the exit statuses.
    for (words, lines) in manual.examples.iter().filter(|(words, _)| !words.is_empty()) {
        let words: Vec<&str> = words.split_whitespace().collect();
        command = add_example(command, &words, lines);
    }
    command
}

fn add_example(command: Command, words: &[&str], lines: &str) -> Command {
    match words {
        [] => {
            let before = command.get_after_help().map(|text| format!("{text}\n\n"));
            let before = before.unwrap_or_default();
            match before.contains("Examples:\n") {
                true => command,
                false => command.after_help(format!("{before}Examples:\n{}", indented(lines))),
            }
        }
        [name, rest @ ..] => {
            let name = (*name).to_owned();
            command.mut_subcommand(name, |inner| add_example(inner, rest, lines))
        }
    }
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Writes the page of a program and of each of its subcommands into a folder.
pub(crate) fn write_pages<S: ExitStatus>(
    command: &Command,
    manual: &Manual,
    folder: &Path,
) -> io::Result<()> {
    let mut command = with_examples(command.clone(), manual).disable_help_subcommand(true);
    command.build();
    write_page_and_below::<S>(command, manual, folder, &[])
}

fn write_page_and_below<S: ExitStatus>(
    command: Command,
    manual: &Manual,
    folder: &Path,
    words: &[String],
) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned() {
        let words = [words, &[inner.get_name().to_owned()]].concat();
        write_page_and_below::<S>(inner, manual, folder, &words)?;
    }
    let man = Man::new(command.clone());
    let page = render_page::<S>(command, manual, &words.join(" "))?;
    std::fs::write(folder.join(man.get_filename()), page)
}

/// Renders one page; `words` are those of the subcommand.
pub(crate) fn render_page<S: ExitStatus>(
    command: Command,
    manual: &Manual,
    words: &str,
) -> io::Result<Vec<u8>> {
    let examples = manual.examples.iter().find(|(of, _)| *of == words).map(|(_, lines)| *lines);
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let more = own.split_once("Exit status:\n").and_then(|(_, table)| table.split_once("\n\n"));
    let (notes, shown) = own.split_once("Examples:\n").unwrap_or_default();
    let examples = examples.map_or_else(|| shown.to_owned(), indented);
    let has_subcommands = command.get_subcommands().any(|inner| !inner.is_hide_set());
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if !notes.trim().is_empty() {
        writeln!(page, ".PP\n.nf\n{}\n.fi", escaped(notes.trim_end()))?;
    }
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    if !examples.is_empty() {
        writeln!(page, ".SH EXAMPLES\n.nf\n{}\n.fi", escaped(&examples))?;
    }
    write_terms(&mut page, "FILES", manual.files.iter().chain(&COMMON_FILES))?;
    write_terms(&mut page, "ENVIRONMENT", COMMON_ENVIRONMENT.iter().chain(manual.environment))?;
    let rows: Vec<_> = S::ALL.iter().map(|status| status.row()).collect();
    let codes: Vec<String> = rows.iter().map(|row| row.code.to_string()).collect();
    let rows: Vec<(&str, &str)> =
        codes.iter().zip(&rows).map(|(code, row)| (code.as_str(), row.meaning)).collect();
    write_terms(&mut page, "EXIT STATUS", rows.iter())?;
    if let Some((_, more)) = more {
        writeln!(page, ".PP\n{}", escaped(more))?;
    }
    Ok(page)
}

fn write_terms<'a>(
    page: &mut Vec<u8>,
    heading: &str,
    terms: impl Iterator<Item = &'a (&'a str, &'a str)>,
) -> io::Result<()> {
    writeln!(page, ".SH \"{heading}\"")?;
    for (term, meaning) in terms {
        writeln!(page, ".TP\n\\fB{}\\fR\n{}", escaped(term), escaped(meaning))?;
    }
    Ok(())
}

/// Escapes what roff would take for a command: backslashes, hyphens, and a dot or an apostrophe at the start of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Tries the examples of a program: each subcommand without subcommands of its own has one, and each can be parsed.
/// Returns what is wrong. For the tests of the programs.
pub fn check_examples(command: &Command, manual: &Manual) -> Vec<String> {
    let name = command.get_name().to_owned();
    let mut wrong = Vec::new();
    let mut leaves = Vec::new();
    collect_leaves(command, "", &mut leaves);
    let command = with_examples(command.clone(), manual);
    for leaf in &leaves {
        let words: Vec<&str> = leaf.split(' ').collect();
        let mut at = &command;
        for word in words {
            at = at.find_subcommand(word).unwrap_or(at);
        }
        let help = at.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !help.contains("Examples:\n") {
            wrong.push(format!("{leaf} has no example"));
        }
    }
    for (of, lines) in manual.examples {
        for line in lines.lines() {
            let line = line.split("  #").next().unwrap_or_default().trim();
            let words = split_words(line);
            let starts = format!("{name} {of}");
            if !line.starts_with(starts.trim_end()) {
                wrong.push(format!("{line} is no example of {of}"));
            } else if let Err(error) = command.clone().try_get_matches_from(words) {
                wrong.push(format!("{line}: {error}"));
            }
        }
    }
    wrong
}

fn collect_leaves(command: &Command, above: &str, leaves: &mut Vec<String>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let words = format!("{above} {}", inner.get_name()).trim_start().to_owned();
        match inner.has_subcommands() {
            true => collect_leaves(inner, &words, leaves),
            false => leaves.push(words),
        }
    }
}

/// Splits a line as a shell would, as far as examples need it: single and double quotes, and no expansion.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => {
                words.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty()));
            }
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use model::exit::ForkliftExit;

    use super::*;

    const MANUAL: Manual = Manual {
        examples: &[("list", "tool list --all\ntool list 'a b'  # one of them")],
        files: &[("~/.tool", "settings")],
        environment: &[("TOOL_HOME", "where it is")],
    };

    fn command() -> Command {
        let all = clap::Arg::new("all").long("all").action(clap::ArgAction::SetTrue);
        let list = Command::new("list").about("List things").arg(all).arg(clap::Arg::new("name"));
        Command::new("tool").about("A tool").subcommand(list)
    }

    #[test]
    fn a_page_has_the_usual_sections_in_their_order() {
        let mut command = with_examples(command(), &MANUAL);
        command.build();
        let list = command.find_subcommand("list").expect("there").clone();
        let page = render_page::<ForkliftExit>(list, &MANUAL, "list").expect("rendered");
        let page = String::from_utf8(page).expect("UTF-8");
        let mut at = 0;
        for heading in
            ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS"]
        {
            let found = page[at..].find(heading).unwrap_or_else(|| panic!("{heading}: {page}"));
            at += found;
        }
        assert!(page.contains("tool list \\-\\-all") && page.contains("TOOL_HOME"), "{page}");
        assert!(!page.contains("EXTRA"), "{page}");
    }

    #[test]
    fn examples_are_checked_against_the_command_line() {
        assert_eq!(check_examples(&command(), &MANUAL), Vec::<String>::new());
        let wrong = Manual { examples: &[("list", "tool list --al")], ..MANUAL };
        assert_eq!(check_examples(&command(), &wrong).len(), 1);
        let none = Manual { examples: &[], ..MANUAL };
        assert_eq!(check_examples(&command(), &none), ["list has no example"]);
    }
}
