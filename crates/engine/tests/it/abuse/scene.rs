//! The scene of an attempt: a rig with small limits, canaries on the host, and a project where there has to be one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use sandbox::spec::{BoxLimits, MIB};
use tempfile::TempDir;
use testkit::Fork;
use testkit::abuse::{Attempt, Canaries, Expect, SECRET_MARK, variable};
use testkit::repo::markers;

use crate::support::{Project, Ran, Rig, Sh};

/// How long an attempt that would go on for ever may go on.
const SHORT_SECS: u64 = 3;

/// How long it then has to end well.
const GRACE_MS: u64 = 500;

/// Small enough to be reached soon.
const LIMITS: BoxLimits = BoxLimits {
    pids: 64,
    memory_bytes: 256 * MIB,
    cpu_percent: 200,
    file_bytes: 32 * MIB,
    workspace_bytes: 64 * MIB,
    workspace_entries: 2000,
    free_floor_bytes: 64 * MIB,
    open_files: 1024,
    tmp_bytes: 16 * MIB,
};

/// What the agent did before it turned bad, where there is a repository: a commit that comes out.
const HONEST_WORK: &str =
    "echo work >work.txt && git add work.txt && git commit --quiet -m work || exit 1\n";

/// Everything that an attempt may touch, and what it must not touch.
pub(super) struct Scene<'a> {
    pub(super) rig: &'a Rig,
    /// The fork behind the workspace, for attempts on repositories.
    pub(super) project: Option<Project>,
    pub(super) canaries: Canaries,
    host: TempDir,
}

impl<'a> Scene<'a> {
    pub(super) async fn new(rig: &'a Rig, attempt: &Attempt) -> Self {
        let project = match needs_repository(attempt) {
            true => Some(Project::new(|hermetic| Fork::new(hermetic).clean_merge()).await),
            false => None,
        };
        if let Some(project) = &project {
            project.fill(rig).await;
        }
        let host = tempfile::tempdir().expect("a folder of the host");
        let scene = Self { rig, project, canaries: Canaries::start(host.path()), host };
        fs::create_dir(scene.markers()).expect("a folder of markers");
        // Whoever runs code of the agent's on the host must be able to leave a mark, whatever their user.
        for folder in [scene.host.path().to_path_buf(), scene.markers()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("our own folder");
        }
        scene
    }

    /// Makes the attempt in a box of its own.
    pub(super) async fn run(&self, attempt: &Attempt) -> Ran {
        let before = if self.project.is_some() { HONEST_WORK } else { "" };
        let sh = self.sh(&format!("{before}{}", attempt.script));
        match attempt.expect {
            Expect::EndsAtDeadline => sh.deadline_secs(SHORT_SECS).grace_ms(GRACE_MS).run().await,
            Expect::Blocked | Expect::EndsBox(_) | Expect::Daemons | Expect::HostSide => {
                sh.run().await
            }
        }
    }

    /// A box with small limits whose launcher knows a secret.
    pub(super) fn sh(&self, script: &str) -> Sh<'a> {
        let sh = self.rig.sh(script).limits(|limits| *limits = LIMITS);
        sh.envs(self.env()).secret(&format!("{SECRET_MARK}of-the-launcher"))
    }

    /// Where code of the agent's leaves its marks if the host runs it.
    pub(super) fn markers(&self) -> PathBuf {
        self.host.path().join("markers")
    }

    /// The canaries live, and nothing of the agent's was executed on the host.
    pub(super) fn assert_unharmed(&mut self) {
        assert!(self.canaries.process_lives(), "a process of the host was ended");
        assert_eq!(markers(&self.markers()), [""; 0]);
    }

    fn env(&self) -> BTreeMap<String, String> {
        let mut env = self.canaries.env();
        let values = [
            (variable::MARKER_DIR, self.markers().display().to_string()),
            (variable::PIDS_LIMIT, LIMITS.pids.to_string()),
            (variable::MEMORY_LIMIT, LIMITS.memory_bytes.to_string()),
            (variable::TMP_LIMIT, LIMITS.tmp_bytes.to_string()),
            (variable::FILE_LIMIT, LIMITS.file_bytes.to_string()),
            (variable::WORKSPACE_LIMIT, LIMITS.workspace_bytes.to_string()),
            (variable::INODE_LIMIT, LIMITS.workspace_entries.to_string()),
        ];
        env.extend(values.map(|(name, value)| (name.to_owned(), value)));
        env
    }
}

/// The attempts whose point is what git makes of it.
fn needs_repository(attempt: &Attempt) -> bool {
    matches!(
        attempt.name,
        "own-suid"
            | "hostile-git"
            | "forge-moved-ref"
            | "forge-replace"
            | "forge-graft"
            | "forged-identity"
            | "odd-branches"
    )
}
