//! One supervised run: workspace in, box, workspace out, evidence.
//!
//! A product observes, judges and publishes; everything between is here. The [`shim`] is a process of its own, so a box
//! outlives the command that started it; [`launch`] starts it and finds it again.

pub mod agent_log;
pub mod agent_plan;
pub mod agent_result;
pub mod agent_run;
pub mod attribution;
pub mod box_command;
pub mod box_dir;
pub mod check;
pub mod evidence;
pub mod export;
pub mod install;
pub mod launch;
pub mod lease_file;
pub mod mirror;
pub mod publish;
pub mod record;
pub mod report;
mod result_tree;
pub mod run;
pub mod scratch;
pub mod shim;
pub mod sweep;
pub mod terminal;
pub mod test_count;
pub mod test_report;
pub mod trial;
pub mod workspace;
