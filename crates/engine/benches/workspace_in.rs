//! Making a workspace of a repository with 50,000 files and 20,000 commits, beside `git clone --no-hardlinks`.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::workspace::{WorkspaceWish, make_workspace};
use host::git::{ObjectFormat, SealedRepo, UserRepo};
use model::id::{BranchName, Sha};
use sandbox::spec::BoxUser;
use testkit::measure::{Comparison, compare, time};

const FILES: usize = 50_000;
const COMMITS: usize = 20_000;
const ROUNDS: usize = 3;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("source.git");
    runtime.block_on(generate(&source));
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
    let wish = WorkspaceWish {
        branch: BranchName::parse("main").expect("legal"),
        others: vec![("upstream/main".to_owned(), Sha::clone(&base))],
        base,
        owner: BoxUser::for_caller(host::env::uid(), host::env::gid()),
    };
    make_workspace(&repo, &wish, out, mirror, None).await.expect("a workspace");
}

/// Removing the result and writing the rest to disk belong to nobody's time; the next round starts with a quiet disk.
fn settle(out: &Path) {
    std::fs::remove_dir_all(out).expect("removed");
    run(&mut Command::new("sync"));
}

async fn generate(path: &Path) {
    let repo = SealedRepo::init_bare(path, ObjectFormat::Sha1).await.expect("a repository");
    let mut stream = String::from(
        "commit refs/heads/main\nmark :1\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 4\ninit\n",
    );
    for number in 0..FILES {
        entry(&mut stream, number, 0);
    }
    for commit in 2..=COMMITS {
        writeln!(
            stream,
            "commit refs/heads/main\nmark :{commit}\ncommitter A <a@example.invalid> {} +0000\ndata 6\nchange\nfrom :{}",
            1_700_000_000 + commit,
            commit - 1
        )
        .expect("text");
        entry(&mut stream, commit * 7919 % FILES, commit);
    }
    repo.fast_import(&stream).await.expect("imported");
    run(Command::new("git").arg("-C").arg(path).args(["repack", "-adq"]));
}

fn entry(stream: &mut String, number: usize, commit: usize) {
    let text = format!("file {number} at {commit}\n{}", "a line of text\n".repeat(number % 40));
    let folder = format!("dir{}/sub{}", number % 100, number / 100 % 10);
    write!(stream, "M 100644 inline {folder}/f{number}.txt\ndata {}\n{text}\n", text.len())
        .expect("text");
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}
