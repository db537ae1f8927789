//! Whole tables of the rules: every input of a decision beside its result, and every page as it is rendered.

mod agent;
mod board;
mod change;
mod config;
mod gate;
mod overlap;
mod page;
mod pipeline;
mod plan;
mod profile;
mod prompt;
mod result;
mod status;

use model::env_file::EnvFile;
use model::id::{MicroCommitId, Sha};

use super::meta::{Meta, parse_meta};
use super::plan::{Plan, parse_plan};

/// A plan of two micro-commits; the first is done and has acceptance criteria.
const PLAN: &str = "# Plan: Log in\n\n### COMMIT-LG-001: Add a form\n\nIt has two fields.\n\nAcceptance:\n- the form is shown\n- the password is hidden\n\nDone: [x]\n\n### COMMIT-LG-002: Check the password\n\nDone: [ ]\n";

fn plan() -> Plan {
    parse_plan(PLAN).unwrap()
}

fn sha(digit: char) -> Sha {
    Sha::parse(&digit.to_string().repeat(40)).unwrap()
}

fn commit_id() -> MicroCommitId {
    MicroCommitId::parse("COMMIT-LG-001").unwrap()
}

fn env(text: &str) -> EnvFile {
    EnvFile::parse(text).unwrap()
}

/// The meta.env of a workstream between two micro-commits.
const META: &str = "ID=login\nTITLE=\"Log in\"\nBRANCH=feat/login\nWORKTREE=/ops/worktrees/login\nBASE_BRANCH=main\nBASE_SHA=cccccccccccccccccccccccccccccccccccccccc\nSTATUS=implement\nEXPECTED_PATHS=src/\nCREATED_AT=2025-01-15T10:00:00Z\nLAST_REFRESHED=2025-01-15T12:00:00Z\nLAST_COMMIT_SHA=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";

fn meta() -> Meta {
    parse_meta(&env(META), "login").unwrap()
}
