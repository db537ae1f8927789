//! Names of run directories: `YYYYMMDD-HHMMSS_project_workstream_microcommit`, in UTC. They are made, and never
//! taken apart again.

use jiff::Timestamp;
use model::id::{MicroCommitId, ProjectName, WorkstreamId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunTopic<'a> {
    Pending,
    None,
    Merge,
    Plan,
    Review,
    Update,
    MicroCommit(&'a MicroCommitId),
}

/// Start of the names of all runs of this second.
pub(crate) fn run_stem(now: Timestamp, project: &ProjectName, workstream: &WorkstreamId) -> String {
    format!("{}_{project}_{workstream}", now.strftime("%Y%m%d-%H%M%S"))
}

/// The name of a run; from the second attempt on with a number.
pub(crate) fn run_name(stem: &str, topic: RunTopic<'_>, attempt: u32) -> String {
    let topic = match topic {
        RunTopic::Pending => "pending",
        RunTopic::None => "none",
        RunTopic::Merge => "merge",
        RunTopic::Plan => "plan",
        RunTopic::Review => "review",
        RunTopic::Update => "update",
        RunTopic::MicroCommit(id) => id.as_str(),
    };
    if attempt < 2 { format!("{stem}_{topic}") } else { format!("{stem}_{topic}-{attempt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_moment_project_workstream_and_topic() {
        let now = Timestamp::from_second(1_736_942_400).unwrap();
        let project = ProjectName::parse("myproject").unwrap();
        let stem = run_stem(now, &project, &WorkstreamId::parse("test_framework").unwrap());
        let id = MicroCommitId::parse("COMMIT-TF-001").unwrap();
        assert_eq!(
            run_name(&stem, RunTopic::MicroCommit(&id), 1),
            "20250115-120000_myproject_test_framework_COMMIT-TF-001"
        );
        assert_eq!(
            run_name(&stem, RunTopic::None, 2),
            "20250115-120000_myproject_test_framework_none-2"
        );
        assert!(run_name(&stem, RunTopic::Pending, 1).ends_with("_pending"));
    }
}
