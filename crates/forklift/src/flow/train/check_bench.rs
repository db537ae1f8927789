//! The fork's check on commits that no run has made: each in a fresh copy, in a box, with the result kept by tree.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use egress::EgressPolicy;
use engine::agent_run::BoxLayout;
use engine::box_command::{BoxCommand, BoxCommandSummary};
use engine::box_dir::BoxDir;
use engine::check::is_machine;
use engine::launch::{self, BoxStatus, Launcher};
use engine::workspace::{make_checkout, make_harness_state};
use host::git::SealedRepo;
use host::signal::Cancel;
use model::exit::ForkliftExit;
use model::id::{BoxName, BranchName, RunId, Sha};
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, BoxUser, MountAccess, Root};
use serde::{Deserialize, Serialize};
use shell::Ui;
use shell::runtime::stop_status;

use crate::commands::ForkliftDirs;
use crate::exit::{Failure, OrExit};
use crate::flow::run::workspace_failure;
use crate::rules::fork_file::{ForkRules, TimedCommand};

/// Boxes of a check: the set-up and the check itself.
const BOXES: [&str; 2] = ["setup", "check"];

/// Result of a check of a tree. Everything that it depends on is in its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckedTree {
    pub(crate) tree: Sha,
    pub(crate) summary: BoxCommandSummary,
}

/// Kind of box, network access and limits of the checks.
#[derive(Debug, Clone)]
pub(crate) struct BenchOptions {
    pub(crate) backend: BackendKind,
    pub(crate) image: Option<String>,
    pub(crate) policy: Option<EgressPolicy>,
    pub(crate) branch: BranchName,
}

pub(crate) struct CheckBench<'a> {
    ui: &'a Ui,
    folder: PathBuf,
    check: TimedCommand,
    setup: Option<TimedCommand>,
    options: BenchOptions,
    limits: BoxLimits,
    cancel: Cancel,
    /// True if results of earlier processes do not count.
    ignores_known: bool,
    /// Checks that were run, without those whose result was known.
    ran: Cell<usize>,
    /// Files of the results that this process used or made.
    used: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> CheckBench<'a> {
    /// Opens the results of a fork; the caller holds the fork's lock. Boxes that a killed process left are ended.
    pub(crate) async fn open(
        ui: &'a Ui,
        places: &ForkliftDirs,
        fork_key: &str,
        rules: &ForkRules,
        options: BenchOptions,
        cancel: Cancel,
    ) -> Result<Self, Failure> {
        let check = rules.check.clone().ok_or_else(no_check)?;
        let folder = checks_folder(places, fork_key);
        host::file::create_dirs(&folder).or_machine()?;
        remove_left(&folder).await?;
        Ok(Self {
            ui,
            folder,
            check,
            setup: rules.setup.clone(),
            options,
            limits: places.shared.box_limits(),
            cancel,
            ignores_known: false,
            ran: Cell::new(0),
            used: RefCell::default(),
        })
    }

    /// The same without the results of earlier processes.
    pub(crate) fn ignoring_known(self, ignores_known: bool) -> Self {
        Self { ignores_known, ..self }
    }

    /// Checks that were run so far.
    pub(crate) fn ran(&self) -> usize {
        self.ran.get()
    }

    /// Checks a commit, or returns what is known about its tree. `what` names it for people.
    pub(crate) async fn check(
        &self,
        repo: &SealedRepo,
        commit: &Sha,
        what: &str,
    ) -> Result<CheckedTree, Failure> {
        let file = self.file(&tree_of(repo, commit).await?);
        let counts = !self.ignores_known || self.used.borrow().contains(&file);
        if let Some(known) = load(&file).filter(|_| counts) {
            self.ui.note(&format!("{what}: {}, as known before", words(&known.summary)));
            self.used.borrow_mut().insert(file);
            return Ok(known);
        }
        self.check_again(repo, commit, what).await
    }

    /// Runs the check on a commit, whatever is known about its tree.
    pub(crate) async fn check_again(
        &self,
        repo: &SealedRepo,
        commit: &Sha,
        what: &str,
    ) -> Result<CheckedTree, Failure> {
        let tree = tree_of(repo, commit).await?;
        let file = self.file(&tree);
        self.ui.phase("check", &format!("check {}: {what}", self.ran.get() + 1));
        let folder = self.folder.join(format!("{tree}-{}", host::clock::boottime().as_nanos()));
        let summary = self.run(repo, commit, &folder).await;
        // What a box left is small, and the next bench removes it.
        host::file::remove_tree_safely(&folder).ok();
        let checked = CheckedTree { tree, summary: summary? };
        self.ran.set(self.ran.get() + 1);
        save(&file, &checked)?;
        self.used.borrow_mut().insert(file);
        self.ui.note(&format!("{what}: {}", words(&checked.summary)));
        Ok(checked)
    }

    /// Removes every result that is kept: a check that was seen to end in two ways on the same files says nothing about any.
    pub(crate) fn forget(&self) -> Result<(), Failure> {
        for entry in std::fs::read_dir(&self.folder).or_machine()?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "json") {
                std::fs::remove_file(&path).or_machine()?;
            }
        }
        self.used.borrow_mut().clear();
        Ok(())
    }

    fn file(&self, tree: &Sha) -> PathBuf {
        let setup = self.setup.as_ref().map_or("", |setup| setup.line.as_str());
        let BenchOptions { backend, image, policy, .. } = &self.options;
        let facts =
            format!("{tree}\0{}\0{setup}\0{backend}\0{image:?}\0{policy:?}", self.check.line);
        self.folder.join(format!("{}.json", model::digest::short_sha256(facts.as_bytes(), 16)))
    }

    /// Runs set-up and check. A set-up that fails says nothing about the tree, and neither does a machine that fails.
    async fn run(
        &self,
        repo: &SealedRepo,
        commit: &Sha,
        folder: &Path,
    ) -> Result<BoxCommandSummary, Failure> {
        host::file::create_dirs(folder).or_machine()?;
        let owner = BoxUser::of_caller();
        let workspace = folder.join("workspace");
        let made = make_checkout(repo, &self.options.branch, commit, &workspace, owner);
        made.await.map_err(workspace_failure)?;
        make_harness_state(&folder.join("state"), owner).or_machine()?;
        if let Some(setup) = &self.setup {
            let summary = self.run_line(folder, BOXES[0], setup).await?;
            if !summary.passed() {
                let text = format!(
                    "the fork's set-up failed ({}) on {}: {}",
                    summary.how(),
                    commit.short(),
                    summary.last_line()
                );
                return Err(Failure::usage(text));
            }
        }
        self.run_line(folder, BOXES[1], &self.check).await
    }

    async fn run_line(
        &self,
        folder: &Path,
        name: &str,
        command: &TimedCommand,
    ) -> Result<BoxCommandSummary, Failure> {
        self.refuse_if_stopped()?;
        let layout = BoxLayout {
            run: RunId::parse(&format!("check-{}", host::clock::boottime().as_nanos()))
                .or_exit(ForkliftExit::Internal)?,
            name: BoxName::parse(name).or_exit(ForkliftExit::Internal)?,
            box_dir: folder.join("boxes").join(name),
            root: self.options.image.clone().map_or(Root::HostUsr, Root::Image),
            workspace: folder.join("workspace"),
            access: MountAccess::ReadWrite,
            harness_state: folder.join("state"),
            user: BoxUser::of_caller(),
            limits: self.limits.clone(),
            deadline_secs: command.timeout_secs,
        };
        let mut line = BoxCommand::shell(layout, &command.line);
        line.policy = self.options.policy.clone();
        let launcher = Launcher::of_this_program(self.options.backend, Vec::new()).or_machine()?;
        let ran = line.run(&launcher, &self.cancel).await.or_machine()?;
        let summary = ran.summary(command.line.clone());
        self.refuse_if_stopped()?;
        if is_machine(&summary.ended) {
            let text = format!("the check could not be run: {}", summary.how());
            return Err(Failure::new(ForkliftExit::Machine, text));
        }
        Ok(summary)
    }

    fn refuse_if_stopped(&self) -> Result<(), Failure> {
        match self.cancel.reason() {
            Some(reason) => Err(Failure::new(stop_status(&reason), format!("stopped: {reason}"))),
            None => Ok(()),
        }
    }
}

/// A check in words.
pub(crate) fn words(summary: &BoxCommandSummary) -> String {
    engine::check::check_words(summary)
}

async fn tree_of(repo: &SealedRepo, commit: &Sha) -> Result<Sha, Failure> {
    let trees = repo.trees_of(std::slice::from_ref(commit)).await.or_machine()?;
    let unknown = || Failure::new(ForkliftExit::Internal, format!("{commit} has no tree"));
    trees.into_iter().flatten().next().ok_or_else(unknown)
}

fn no_check() -> Failure {
    Failure::usage("the fork has no check").with_remedy(
        "add one to FORK.md on the fork's main branch, such as `check: make test`, or name it: --check COMMAND",
    )
}

fn checks_folder(places: &ForkliftDirs, fork_key: &str) -> PathBuf {
    places.runs.with_file_name("checks").join(fork_key)
}

fn load(file: &Path) -> Option<CheckedTree> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn save(file: &Path, checked: &CheckedTree) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(checked).or_exit(ForkliftExit::Internal)?;
    host::file::write_atomic(file, &bytes, 0o600).or_machine()
}

/// Ends the boxes of a killed process and removes their folders. Results are files and stay.
async fn remove_left(folder: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder).or_machine()?.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        for name in BOXES {
            let left = BoxDir::new(path.join("boxes").join(name));
            if !left.path().is_dir() {
                continue;
            }
            match launch::box_status(&left).or_machine()? {
                BoxStatus::Running | BoxStatus::Orphaned => {
                    launch::end(&left).await.or_machine()?;
                }
                BoxStatus::NeverStarted | BoxStatus::Ended(_) => {}
            }
        }
        host::file::remove_tree_safely(&path).or_machine()?;
    }
    Ok(())
}
