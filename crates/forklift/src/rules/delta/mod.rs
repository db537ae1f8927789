//! The inventory of a fork: named changes with intent, size, age and state.
//!
//! - `fork_toml`: the changes that a fork declares
//! - `page`: the inventory as a page, with a plot
//! - `report`: the inventory as data
//! - `series`: names and headers of a patch series
//! - `table`: the inventory for people
//! - `check`: which changes to drop, and what would remain

pub(crate) mod check;
pub(crate) mod fork_toml;
pub(crate) mod page;
pub(crate) mod report;
pub(crate) mod series;
pub(crate) mod table;
