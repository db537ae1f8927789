//! A fork with its pins, the workspace that the engine makes of it, and the way back out.

use std::path::{Path, PathBuf};

use engine::evidence::{Bounds, Evidence, Pins, gather};
use engine::export::{ExportRequest, Exported, export, make_import_repo};
use engine::workspace::{
    AGENT_IDENTITY, WorkspaceError, WorkspaceNotes, WorkspaceOptions, make_workspace,
};
use host::git::{SealedRepo, UserEnv, UserRepo};
use model::id::{BranchName, Sha};
use sandbox::spec::BoxUser;
use testkit::{Fork, Hermetic, Repo};

use super::Rig;

/// A person's fork, with the commits that a run would pin.
pub(crate) struct Project {
    pub(crate) hermetic: Hermetic,
    pub(crate) fork: Fork,
    pub(crate) repo: UserRepo,
    pub(crate) pins: Pins,
}

impl Project {
    /// A fork in some state, with upstream fetched, as it is before a run.
    pub(crate) async fn new(make: impl FnOnce(&Hermetic) -> Fork) -> Self {
        let hermetic = Hermetic::new();
        let fork = make(&hermetic);
        fork.checkout.git(&["fetch", "--quiet", "--no-write-fetch-head", "upstream"]);
        let repo = UserRepo::discover_as(fork.checkout.dir(), user_env(&hermetic));
        let repo = repo.await.expect("a repository");
        let pins = Pins { base: sha(&fork.origin, "main"), upstream: sha(&fork.upstream, "main") };
        Self { hermetic, fork, repo, pins }
    }

    /// Pins what fork and upstream have now.
    pub(crate) fn pin_again(&mut self) {
        self.fork.checkout.git(&["fetch", "--quiet", "--no-write-fetch-head", "upstream"]);
        self.pins.base = sha(&self.fork.origin, "main");
        self.pins.upstream = sha(&self.fork.upstream, "main");
    }

    /// The branch that the agent works on.
    pub(crate) fn branch() -> BranchName {
        BranchName::parse("main").expect("a branch name")
    }

    /// Where the mirror of this fork is kept.
    pub(crate) fn mirror(&self) -> PathBuf {
        self.hermetic.root().join("cache/mirrors/fork.git")
    }

    /// Makes a workspace of the pinned commits at `path`.
    pub(crate) async fn workspace_at(&self, path: &Path) -> Result<WorkspaceNotes, WorkspaceError> {
        let wish = WorkspaceOptions {
            branch: Self::branch(),
            base: self.pins.base.clone(),
            others: vec![("upstream/main".to_owned(), self.pins.upstream.clone())],
            owner: BoxUser::of_caller(),
            merge: None,
        };
        make_workspace(&self.repo, &wish, path, &self.mirror(), None).await
    }

    /// Makes the workspace of a rig.
    pub(crate) async fn fill(&self, rig: &Rig) {
        self.workspace_at(&rig.workspace()).await.expect("a workspace");
    }

    /// Takes the agent's branch out of a rig's workspace, and gathers what can be said about it.
    pub(crate) async fn import(&self, rig: &Rig) -> Imported {
        self.import_within(rig, Bounds::default()).await
    }

    pub(crate) async fn import_within(&self, rig: &Rig, bounds: Bounds) -> Imported {
        let repo = self.import_repo(rig).await;
        let agent_box = rig.sh("").spec;
        let wish = ExportRequest {
            run: rig.run(),
            agent_box: &agent_box,
            branch: &Self::branch(),
            known: &[self.pins.base.clone(), self.pins.upstream.clone()],
            lists_uncommitted: true,
        };
        let exported = export(&rig.launcher, &wish, &repo, next_export(rig)).await;
        let exported = exported.expect("an export");
        let evidence = match &exported {
            Exported::Tip(tip) => {
                let found = gather(&repo, &self.pins, tip, &[AGENT_IDENTITY], bounds).await;
                Some(found.expect("evidence"))
            }
            Exported::NothingNew | Exported::NoBranch | Exported::Refused(_) => None,
        };
        Imported { repo, exported, evidence }
    }

    /// The host's own repository of the run, made anew.
    pub(crate) async fn import_repo(&self, rig: &Rig) -> SealedRepo {
        let pins = [&self.pins.base, &self.pins.upstream];
        make_import_repo(&rig.dir().join("repo.git"), &self.repo, &self.mirror(), &pins)
            .await
            .expect("a repository")
    }
}

/// What came out of a workspace.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) repo: SealedRepo,
    pub(crate) exported: Exported,
    pub(crate) evidence: Option<Evidence>,
}

impl Imported {
    /// The evidence of a branch that came out.
    pub(crate) fn evidence(&self) -> &Evidence {
        self.evidence.as_ref().unwrap_or_else(|| panic!("no evidence: {:?}", self.exported))
    }

    /// Every ref of the host's repository, with the ones that it began with.
    pub(crate) fn refs(&self) -> Vec<String> {
        let refs = Repo::open(self.repo.path()).git(&["for-each-ref", "--format=%(refname)"]);
        refs.lines().map(str::to_owned).collect()
    }
}

/// A box is never run twice, so every export has the next number.
pub(crate) fn next_export(rig: &Rig) -> u32 {
    let taken = |n: &u32| rig.dir().join(format!("boxes/export-{n}")).exists();
    (1..).find(|n| !taken(n)).expect("a free number")
}

/// A person with a home of their own and no configuration.
pub(crate) fn user_env(hermetic: &Hermetic) -> UserEnv {
    let home = hermetic.home().into_os_string();
    UserEnv::new([("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), home)])
        .with("GIT_CONFIG_NOSYSTEM", "1")
}

fn sha(repo: &Repo, name: &str) -> Sha {
    Sha::parse(&repo.sha(name)).expect("a commit")
}
