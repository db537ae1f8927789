//! Bottles that travel, in a build without the feature `postgres`: none does.

use std::collections::BTreeSet;
use std::path::Path;

use orchestrator_db::ForgeState;
use shell::doctor::Finding;

use super::bottle::Record;
use super::context::RunContext;
use super::fleet::fleet_of;
use super::home::Home;
use super::issue_row::IssueRows;
use crate::exit::Failure;
use crate::rules::bottle_place::{BottlePlace, SavedMark};

fn refuse() -> Failure {
    Failure::usage("fleet.bottles needs a bot-bottle that was built with --features postgres")
}

pub(crate) fn has_store(home: &Home) -> Result<bool, Failure> {
    match fleet_of(home)?.is_some_and(|fleet| fleet.bottles.is_some()) {
        true => Err(refuse()),
        false => Ok(false),
    }
}

pub(crate) fn saved_mark(_folder: &Path) -> Result<Option<SavedMark>, Failure> {
    Ok(None)
}

pub(crate) fn note_change(_folder: &Path) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn names_elsewhere(
    _home: &Home,
    _rows: IssueRows<'_>,
) -> Result<BTreeSet<String>, Failure> {
    Ok(BTreeSet::new())
}

pub(crate) async fn save_by_hand(context: RunContext<'_>, _slug: &str) -> Result<(), Failure> {
    has_store(context.home).map(drop)
}

pub(crate) fn save_claimed(context: RunContext<'_>, _slug: &str) -> Result<(), Failure> {
    has_store(context.home).map(drop)
}

pub(crate) fn mark_destroyed(_context: RunContext<'_>, _record: &Record) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn bring_here(
    _context: RunContext<'_>,
    _row: &ForgeState,
    _place: &BottlePlace,
    _source: &Path,
) -> Result<(), Failure> {
    Err(refuse())
}

pub(crate) fn restore_trimmed(_context: RunContext<'_>, _slug: &str) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn stored_record(_home: &Home, _row: &ForgeState) -> Result<Option<Record>, Failure> {
    Ok(None)
}

pub(crate) fn check_store(home: &Home) -> Vec<Finding> {
    match has_store(home) {
        Ok(_) => Vec::new(),
        Err(failure) => vec![Finding::bad("store", failure.to_string())],
    }
}
