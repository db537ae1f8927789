//! Making a workspace of a repository with 50,000 files and 20,000 commits, beside `git clone --no-hardlinks`.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::workspace::{WorkspaceOptions, make_workspace};
use host::git::UserRepo;
use model::id::{BranchName, Sha};
use sandbox::spec::BoxUser;
use testkit::measure::{Comparison, compare, time};
use testkit::repo::{Size, make_big};

const SIZE: Size = Size { files: 50_000, commits: 20_000 };
const ROUNDS: usize = 3;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("source.git");
    make_big(&source, SIZE);
    let (mirror, out) = (dir.path().join("mirror.git"), dir.path().join("out"));
    let ours = || {
        let took = time(|| runtime.block_on(workspace(&source, &mirror, &out)));
        settle(&out);
        took
    };
    let clone = || {
        let words = ["clone", "--quiet", "--no-hardlinks"];
        let took = time(|| run(Command::new("git").args(words).arg(&source).arg(&out)));
        settle(&out);
        took
    };
    let first = ours();
    let comparison = compare(ROUNDS, ours, clone);
    let cold = Comparison { ours: first, yardstick: comparison.yardstick };
    cold.print(
        "workspace in, first run of a fork",
        "git clone --no-hardlinks",
        1.0,
        Duration::ZERO,
    );
    comparison.print(
        "workspace in, every run after",
        "git clone --no-hardlinks",
        1.0,
        Duration::ZERO,
    );
}

async fn workspace(source: &Path, mirror: &Path, out: &Path) {
    let repo = UserRepo::discover(source).await.expect("a repository");
    let base = repo.resolve_commit("refs/heads/main").await.expect("an answer").expect("a commit");
    let wish = WorkspaceOptions {
        branch: BranchName::parse("main").expect("legal"),
        others: vec![("upstream/main".to_owned(), Sha::clone(&base))],
        base,
        owner: BoxUser::of_caller(),
        merge: None,
    };
    make_workspace(&repo, &wish, out, mirror, None).await.expect("a workspace");
}

/// Removing the result and writing the rest to disk belong to nobody's time; the next round starts with a quiet disk.
fn settle(out: &Path) {
    std::fs::remove_dir_all(out).expect("removed");
    run(&mut Command::new("sync"));
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}
