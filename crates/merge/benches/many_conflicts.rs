//! What many conflicts at once cost: a merge with 300 files in conflict, within its promise, and one with 100,000.

use std::fmt::Write as _;
use std::time::Duration;

use host::git::{ObjectFormat, SealedRepo};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::{MergeHeads, ResolveOptions, resolve_conflicts};
use testkit::measure::row;

const PROMISED: Duration = Duration::from_secs(5);

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let took = runtime.block_on(merge(Shape { content: 300, gone: 0 }));
    let word = if took <= PROMISED { "ok" } else { "OVER" };
    row(&format!(
        "300 files in conflict, resolved or briefed: {took:.2?}, promised {PROMISED:?}: {word}"
    ));
    let took = runtime.block_on(merge(Shape { content: 2_000, gone: 98_000 }));
    row(&format!("100,000 files in conflict, resolved or briefed: {took:.2?}"));
}

/// How many files both sides changed, and how many the fork deleted and upstream changed.
struct Shape {
    content: usize,
    gone: usize,
}

async fn merge(shape: Shape) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.expect("a repository");
    repo.fast_import(&history(&shape)).await.expect("imported");
    let tip = async |name: &str| repo.resolve_commit(name).await.expect("asked").expect("there");
    let heads =
        MergeHeads { ours: tip("refs/heads/fork").await, theirs: tip("refs/heads/upstream").await };
    let options = ResolveOptions::at(TrustThreshold::DEFAULT);
    let begun = std::time::Instant::now();
    let done = resolve_conflicts(&repo, &heads, options).await.expect("resolved");
    let took = begun.elapsed();
    assert_eq!(done.receipts.len() + done.rest.len(), shape.content + shape.gone);
    took
}

/// Files of 200 lines in which every tenth line was changed by both, and small ones that the fork deleted.
fn history(shape: &Shape) -> String {
    let mut stream = String::new();
    for branch in ["first", "fork", "upstream"] {
        stream.push_str(&format!("commit refs/heads/{branch}\n"));
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        if branch != "first" {
            stream.push_str("from refs/heads/first\n");
        }
        for number in 0..shape.content {
            let line = |at: usize| match at % 10 {
                5 => format!("{branch} has {at} words in file {number}\n"),
                _ => format!("this is line {} of a file\n", number + at),
            };
            let text: String = (0..200).map(line).collect();
            put(&mut stream, &format!("dir{}/file{number}", number % 50), &text);
        }
        for number in 0..shape.gone {
            let name = format!("gone{}/file{number}", number % 100);
            match branch {
                "fork" => stream.push_str(&format!("D {name}\n")),
                _ => put(&mut stream, &name, &format!("{branch} {number}\n")),
            }
        }
    }
    stream
}

fn put(stream: &mut String, name: &str, text: &str) {
    let written = writeln!(stream, "M 100644 inline {name}\ndata {}\n{text}", text.len());
    written.expect("a string takes everything");
}
