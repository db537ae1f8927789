//! `wf` as people meet it: the real binary, real git, real make. The modules have the names that the specification gives
//! its test files.

mod agents;
mod always;
mod crash;
mod golden;
mod life;
mod never;
mod older_version;
mod play;
mod readme;
mod shell;
mod support;
mod terminal;
mod test_archive;
mod test_boundaries;
mod test_commands;
mod test_conflicts;
mod test_envparse;
mod test_interview;
mod test_locking;
mod test_merge;
mod test_merge_forge;
mod test_planparse;
mod test_prune;
mod test_schemas;
mod test_secrets;
mod test_update;
mod test_wf_clarification;
mod test_wf_implement;
mod test_wf_new;
mod test_wf_plan;
mod test_wf_run_fail_review;
mod test_wf_run_fail_test;
mod test_wf_run_once;
mod test_wf_uat;
mod test_wf_watch;
