//! Wrong usage in one line: the word that is wrong, the word that was probably meant, and the command that explains.
//!
//! clap's own texts have five lines; what they are made of is taken from the error's context instead.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A mistake on a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UsageError {
    /// A sentence without a full stop.
    pub(crate) message: String,
    /// The command that shows the right usage.
    pub(crate) help: String,
}

impl UsageError {
    /// The whole error as one line.
    pub(crate) fn line(&self) -> String {
        let see = if self.message.ends_with('?') { " See" } else { "; see" };
        format!("{}{see}: {}", self.message, self.help)
    }
}

/// Describes an error of clap about these words, the first of which is the program's name.
pub(crate) fn describe(error: &clap::Error, command: &Command, words: &[OsString]) -> UsageError {
    let wrong = negative_value(error, words)
        .or_else(|| wrong(error))
        .unwrap_or_else(|| first_sentence(error));
    let meant = meant(error).map(|word| format!("; did you mean '{word}'?")).unwrap_or_default();
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let command = command_of(&usage).unwrap_or_else(|| named_command(command, words));
    UsageError { message: format!("{wrong}{meant}"), help: format!("{command} --help") }
}

/// Names what is wrong; `None` for the kinds that hardly ever occur.
fn wrong(error: &clap::Error) -> Option<String> {
    let argument = text(error, ContextKind::InvalidArg);
    let value = text(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            Some(format!("unknown command '{}'", text(error, ContextKind::InvalidSubcommand)?))
        }
        ErrorKind::UnknownArgument => {
            let argument = argument?;
            let kind = if argument.starts_with('-') { "unknown option" } else { "unexpected word" };
            Some(format!("{kind} '{argument}'"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg, ", ")?;
            let verb = if missing.contains(", ") { "are" } else { "is" };
            Some(format!("{missing} {verb} missing"))
        }
        ErrorKind::InvalidValue => {
            let flag = flag_of(&argument?).to_owned();
            let choices = list(error, ContextKind::ValidValue, ", ");
            let choices = choices.map(|known| format!(": choose one of {known}"));
            let choices = choices.unwrap_or_default();
            Some(match value?.as_str() {
                "" => format!("{flag} needs a value{choices}"),
                value => format!("'{value}' is not a value of {flag}{choices}"),
            })
        }
        ErrorKind::ValueValidation => {
            Some(wrong_value(flag_of(&argument?), &value?, error.source()))
        }
        ErrorKind::ArgumentConflict => conflict(error, argument),
        ErrorKind::TooManyValues => {
            Some(format!("{} takes no further value '{}'", flag_of(&argument?), value?))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Some("a subcommand is required".to_owned())
        }
        _ => None,
    }
}

/// A number below zero after an option: clap takes it for another option.
fn negative_value(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let argument = text(error, ContextKind::InvalidArg)?;
    let is_number = argument.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit());
    let at =
        words.iter().position(|word| word.to_str().is_some_and(|it| it.starts_with(&argument)))?;
    let (flag, value) = (words.get(at.checked_sub(1)?)?.to_str()?, words.get(at)?.to_str()?);
    let is_value = is_number && error.kind() == ErrorKind::UnknownArgument && flag.starts_with('-');
    is_value.then(|| format!("{flag} cannot be '{value}'"))
}

/// Says in words what a parser of values has against one.
fn wrong_value(flag: &str, value: &str, source: Option<&(dyn Error + 'static)>) -> String {
    let Some(source) = source else { return format!("{flag} cannot be '{value}'") };
    if let Some(number) = source.downcast_ref::<ParseIntError>() {
        return match number.kind() {
            IntErrorKind::Zero => format!("{flag} needs a number of at least 1, not '{value}'"),
            IntErrorKind::PosOverflow => format!("{flag} cannot be as large as '{value}'"),
            _ => format!("{flag} needs a whole number, not '{value}'"),
        };
    }
    if source.is::<ParseFloatError>() {
        return format!("{flag} needs a number, not '{value}'");
    }
    let reason = source.to_string();
    if let Some((low, high)) = reason.split_once(" is not in ").and_then(|(_, range)| bounds(range))
    {
        return match high {
            Some(high) => format!("{flag} needs a number from {low} to {high}, not '{value}'"),
            None => format!("{flag} needs a number of at least {low}, not '{value}'"),
        };
    }
    match reason.contains(value) {
        true => format!("{flag}: {reason}"),
        false => format!("{flag} '{value}': {reason}"),
    }
}

/// Reads a range as clap writes it: `1..=86400`, `1..10`, or `1..` without an end.
fn bounds(range: &str) -> Option<(&str, Option<String>)> {
    let (low, high) = range.split_once("..")?;
    let high = match high.strip_prefix('=') {
        Some(high) => Some(high.to_owned()),
        None => high.parse::<i128>().ok().map(|end| (end - 1).to_string()),
    };
    Some((low, high))
}

fn conflict(error: &clap::Error, argument: Option<String>) -> Option<String> {
    let first = argument.or_else(|| text(error, ContextKind::InvalidSubcommand))?;
    let first = flag_of(&first);
    match list(error, ContextKind::PriorArg, " and ") {
        Some(other) if flag_of(&other) == first => Some(format!("{first} is given more than once")),
        Some(other) => Some(format!("{first} cannot be used with {}", flag_of(&other))),
        None => Some(format!("{first} cannot be used with the other arguments")),
    }
}

/// Word that was probably meant.
fn meant(error: &clap::Error) -> Option<String> {
    let nearest =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let word = nearest.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        // The nearest one comes last.
        ContextValue::Strings(words) => words.last().cloned(),
        _ => None,
    });
    word.map(|word| match word.split_once(" <") {
        Some((flag, _)) => flag.to_owned(),
        None => word,
    })
    .or_else(|| flag_of_subcommand(error))
}

/// The flag of a subcommand, written before it or without it: clap's tip is "'list --all' exists".
fn flag_of_subcommand(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else {
        return None;
    };
    tips.iter().find_map(|tip| {
        let tip = tip.to_string();
        Some(tip.strip_prefix('\'')?.strip_suffix("' exists")?.to_owned())
    })
}

/// Names of the program and the subcommand in a usage text: the words before the first argument.
fn command_of(usage: &str) -> Option<String> {
    let words = usage.strip_prefix("Usage:")?.split_whitespace();
    let names = words.take_while(|word| !word.starts_with(['<', '[', '-', '.']));
    Some(names.collect::<Vec<_>>().join(" ")).filter(|names| !names.is_empty())
}

/// The same from the command line itself: not every error has a usage text.
fn named_command(command: &Command, words: &[OsString]) -> String {
    let (mut names, mut at) = (command.get_name().to_owned(), command);
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(next) = at.find_subcommand(word) {
            names = format!("{names} {}", next.get_name());
            at = next;
        }
    }
    names
}

/// An option without its value's name; a positional argument as it is.
fn flag_of(argument: &str) -> &str {
    match argument.split_once([' ', '=']) {
        Some((flag, _)) if flag.starts_with('-') => flag.trim_end_matches("[="),
        _ => argument,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn list(error: &clap::Error, kind: ContextKind, between: &str) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) if !texts.is_empty() => Some(texts.join(between)),
        _ => None,
    }
}

/// clap's own words, up to the first empty line.
fn first_sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, value_parser};

    use super::*;

    fn command() -> Command {
        let seconds = Arg::new("timeout").long("timeout").value_name("SECONDS");
        let count = Arg::new("last").long("last").value_parser(value_parser!(usize));
        let share = Arg::new("trust").long("trust").value_parser(value_parser!(f64));
        let mode = Arg::new("mode").long("mode").value_parser(["always", "never"]);
        let target = |text: &str| Err::<String, _>(format!("the tag '{text}' is not there"));
        Command::new("tool")
            .subcommand_required(true)
            .subcommand(
                Command::new("copy").args(["FROM", "TO"].map(|it| Arg::new(it).required(true))),
            )
            .subcommand(Command::new("list").arg(Arg::new("all").long("all")))
            .subcommand(
                Command::new("run")
                    .arg(Arg::new("name").value_name("NAME").required(true))
                    .arg(seconds.value_parser(value_parser!(u64).range(1..=86_400)))
                    .args([count, share, mode])
                    .arg(Arg::new("target").long("target").value_parser(target))
                    .arg(Arg::new("once").long("once").action(ArgAction::SetTrue))
                    .arg(
                        Arg::new("loop")
                            .long("loop")
                            .action(ArgAction::SetTrue)
                            .conflicts_with("once"),
                    ),
            )
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = command().try_get_matches_from(&words).expect_err("wrong usage");
        assert_eq!(describe(&error, &command(), &words).line(), expected);
    }

    #[test]
    fn a_wrong_word_is_named_with_the_one_that_was_meant() {
        check("tool lsit", "unknown command 'lsit'; did you mean 'list'? See: tool --help");
        check("tool zzz", "unknown command 'zzz'; see: tool --help");
        check(
            "tool list --al x",
            "unknown option '--al'; did you mean '--all'? See: tool list --help",
        );
        check("tool run a --zzz", "unknown option '--zzz'; see: tool run --help");
        check("tool list this", "unexpected word 'this'; see: tool list --help");
    }

    #[test]
    fn an_option_of_a_subcommand_is_found() {
        check(
            "tool --all list",
            "unknown option '--all'; did you mean 'list --all'? See: tool --help",
        );
    }

    #[test]
    fn a_missing_word_is_named() {
        check("tool copy", "<FROM>, <TO> are missing; see: tool copy --help");
        check("tool run", "<NAME> is missing; see: tool run --help");
        check("tool run a --timeout", "--timeout needs a value; see: tool run --help");
        check("tool", "a subcommand is required; see: tool --help");
    }

    #[test]
    fn a_number_is_asked_for_in_words() {
        let see = "see: tool run --help";
        check(
            "tool run a --timeout abc",
            &format!("--timeout needs a whole number, not 'abc'; {see}"),
        );
        check(
            "tool run a --timeout 0",
            &format!("--timeout needs a number from 1 to 86400, not '0'; {see}"),
        );
        let huge = "99999999999999999999";
        check(
            &format!("tool run a --timeout {huge}"),
            &format!("--timeout cannot be as large as '{huge}'; {see}"),
        );
        check("tool run a --last=-1", &format!("--last needs a whole number, not '-1'; {see}"));
        check("tool run a --last -12", &format!("--last cannot be '-12'; {see}"));
        check("tool run a --trust much", &format!("--trust needs a number, not 'much'; {see}"));
    }

    #[test]
    fn a_value_that_is_none_of_the_choices_names_them() {
        check(
            "tool run a --mode alway",
            "'alway' is not a value of --mode: choose one of always, never; did you mean 'always'? \
             See: tool run --help",
        );
        check(
            "tool run a --target v9",
            "--target: the tag 'v9' is not there; see: tool run --help",
        );
    }

    #[test]
    fn options_that_exclude_each_other_are_both_named() {
        check(
            "tool run a --loop --once",
            "--loop cannot be used with --once; see: tool run --help",
        );
        check(
            "tool run a --last 1 --last 2",
            "--last is given more than once; see: tool run --help",
        );
    }
}
