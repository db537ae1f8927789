//! Consent to delete: the same flags and words in every command that chooses by itself what goes.
//!
//! Such a command shows what it would delete first. With `--yes` it deletes it; on a terminal it asks; elsewhere it deletes
//! nothing and ends with the status for wrong usage, so that a job that forgot the flag fails in sight.

use std::io::{self, BufRead, Write};

use clap::Args;
use model::exit::ExitStatus;

use crate::failure::{Failure, OrExit};
use crate::ui::Ui;

/// Flags of a command that deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct ConfirmArgs {
    /// Delete without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Answer to the question whether to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Given,
    /// Nothing but a preview was asked for.
    DryRun,
    /// The person at the terminal said no.
    Declined,
    /// There is no terminal, and no flag.
    Missing,
}

impl ConfirmArgs {
    /// Consent as far as the flags give it; `None` where a person has to be asked.
    pub fn consent(self) -> Option<Consent> {
        match (self.yes, self.dry_run) {
            (_, true) => Some(Consent::DryRun),
            (true, false) => Some(Consent::Given),
            (false, false) => None,
        }
    }

    /// Asks a question that can be answered with yes, unless the flags or the lack of a terminal answer it.
    pub fn ask<S: ExitStatus>(self, ui: &Ui, question: &str) -> Result<Consent, Failure<S>> {
        match self.consent() {
            Some(consent) => Ok(consent),
            None if ui.is_json() || !host::terminal::is_present() => Ok(Consent::Missing),
            None if ask_on_terminal(ui, question).or_exit(S::GENERAL)? => Ok(Consent::Given),
            None => Ok(Consent::Declined),
        }
    }
}

impl Consent {
    /// Says on standard error what a preview leaves to do: the same command line with `--yes`. Returns the status.
    pub fn conclude<S: ExitStatus>(self, ui: &Ui, done: S) -> S {
        let command = || command_with_yes(&ui.command_line());
        match self {
            Self::Given => done,
            Self::DryRun => {
                ui.status(&format!("nothing was deleted; to delete: {}", command()));
                done
            }
            Self::Declined => {
                ui.status("nothing was deleted");
                done
            }
            Self::Missing => {
                let text = "nothing was deleted, because nobody can be asked here; to delete: ";
                let text = format!("{text}{}", command());
                ui.error_line(&text);
                S::USAGE
            }
        }
    }
}

/// The words of a command line with `--yes` at the end, as a shell reads them.
fn command_with_yes(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = words.iter().filter(|word| *word != "--dry-run").map(quoted);
    words.chain(["--yes".to_owned()]).collect::<Vec<_>>().join(" ")
}

/// Asks at the terminal. Everything but yes is no.
pub fn ask_on_terminal(ui: &Ui, question: &str) -> io::Result<bool> {
    ui.finish();
    let mut answer = String::new();
    write!(io::stderr(), "{question} [y/N] ")?;
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_type_is_the_one_that_was_typed_with_consent() {
        for (typed, expected) in [
            (&["wf", "prune"][..], "wf prune --yes"),
            (&["forklift", "prune", "--dry-run", "--keep", "0"], "forklift prune --keep 0 --yes"),
            (&["wf", "--project", "it's", "prune"], "wf --project 'it'\\''s' prune --yes"),
        ] {
            let words: Vec<String> = typed.iter().map(ToString::to_string).collect();
            assert_eq!(command_with_yes(&words), expected);
        }
    }

    #[test]
    fn a_dry_run_outranks_everything_and_no_flag_is_a_question() {
        for (yes, dry_run, expected) in [
            (false, false, None),
            (true, false, Some(Consent::Given)),
            (false, true, Some(Consent::DryRun)),
            (true, true, Some(Consent::DryRun)),
        ] {
            assert_eq!(ConfirmArgs { yes, dry_run }.consent(), expected);
        }
    }
}
