//! Tables over the rules: every combination of what they decide from, and whole texts of what they write.

mod budget;
mod closed_run;
mod decide;
mod forge_env;
mod hook;
mod judge;
mod leak;
mod manifest;
mod mount;
mod prompt;
mod provenance;
mod pull_text;
mod sample;
mod statement;
mod target;
mod verification;
