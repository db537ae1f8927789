//! A repository as large as the ones that promises about speed are made for.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Repo;
use crate::program::{self, SYSTEM_PATH};

/// Size of the repository.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Files in the last commit.
    pub files: usize,
    /// Commits.
    pub commits: usize,
}

/// Makes a bare repository of this size at `path`, in one pack, with everything on `main`.
///
/// # Panics
/// When git cannot do it.
pub fn make_big(path: &Path, size: Size) {
    let repo = Repo::init_bare(path);
    let mut import = git();
    import.arg("-C").arg(path).args(["fast-import", "--quiet", "--done"]);
    let mut child = import.stdin(Stdio::piped()).spawn().expect("git starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(stream(size).as_bytes()).expect("git reads");
    drop(input);
    assert!(child.wait().expect("git ends").success(), "fast-import failed");
    repo.git(&["repack", "-adq"]);
}

fn stream(size: Size) -> String {
    let mut stream = String::from(
        "commit refs/heads/main\nmark :1\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 4\ninit\n",
    );
    for number in 0..size.files {
        entry(&mut stream, number, 0);
    }
    for commit in 2..=size.commits {
        writeln!(
            stream,
            "commit refs/heads/main\nmark :{commit}\ncommitter A <a@example.invalid> {} +0000\ndata 6\nchange\nfrom :{}",
            1_700_000_000 + commit,
            commit - 1
        )
        .expect("text");
        entry(&mut stream, commit * 7919 % size.files, commit);
    }
    stream + "done\n"
}

fn entry(stream: &mut String, number: usize, commit: usize) {
    let text = format!("file {number} at {commit}\n{}", "a line of text\n".repeat(number % 40));
    let folder = format!("dir{}/sub{}", number % 100, number / 100 % 10);
    write!(stream, "M 100644 inline {folder}/f{number}.txt\ndata {}\n{text}\n", text.len())
        .expect("text");
}

fn git() -> Command {
    let mut command = program::command("git");
    command.env("PATH", SYSTEM_PATH);
    command
}
