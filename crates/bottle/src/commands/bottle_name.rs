//! The bottle that a command is about.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use shell::Ui;

use super::complete::bottle_names;
use crate::exit::Failure;
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;

/// Word for the newest bottle.
const LAST: &str = "last";

#[derive(Debug, Args)]
pub(crate) struct BottleNameArgs {
    /// The bottle: its name, the start of its name, or `last` [default: the newest one]
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: Option<String>,
}

impl BottleNameArgs {
    /// Finds the name of the bottle.
    pub(crate) fn find(&self, ui: &Ui, home: &Home) -> Result<String, Failure> {
        find_name(ui, home, self.slug.as_deref().unwrap_or(LAST))
    }
}

/// Finds the name of a bottle by what was typed: a name, the start of one, or `last`. One that was not typed is said.
pub(crate) fn find_name(ui: &Ui, home: &Home, typed: &str) -> Result<String, Failure> {
    let bottles = Bottle::all(home)?;
    if typed != LAST {
        let names: Vec<&str> = bottles.iter().map(|(name, _)| name.as_str()).collect();
        return choose_name(&names, typed).map_err(Failure::not_found);
    }
    let made = |(name, opened): (String, Result<_, Failure>)| {
        let (_, record): (Bottle, crate::flow::bottle::Record) = opened.ok()?;
        Some((record.created_at, name))
    };
    let newest = bottles.into_iter().filter_map(made).max();
    let text = "there are no bottles; start one with: bot-bottle start AGENT";
    let (_, name) = newest.ok_or_else(|| Failure::not_found(text))?;
    ui.status(&format!("the newest bottle: {name}"));
    Ok(name)
}

/// Chooses by the whole name, or by the start of exactly one. A name that nothing begins with is left to the one who opens it.
fn choose_name(names: &[&str], typed: &str) -> Result<String, String> {
    let begins: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(typed)).collect();
    match begins.as_slice() {
        _ if names.contains(&typed) => Ok(typed.to_owned()),
        [only] if !typed.is_empty() => Ok((*only).to_owned()),
        [] | [_] => Ok(typed.to_owned()),
        several => Err(format!("'{typed}' is the start of several: {}", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bottle_is_chosen_by_its_name_or_a_start_that_is_its_own() {
        let names = ["login", "login-2", "search"];
        for (typed, expected) in [
            ("login", Ok("login")),
            ("s", Ok("search")),
            ("login-", Ok("login-2")),
            ("nope", Ok("nope")),
            ("lo", Err("'lo' is the start of several: login, login-2")),
        ] {
            let found = choose_name(&names, typed);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{typed}");
        }
        assert_eq!(choose_name(&["one"], ""), Ok(String::new()));
    }
}
