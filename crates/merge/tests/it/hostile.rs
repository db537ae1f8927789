//! An upstream that means harm: nothing of it is run, nothing odd reaches a terminal, and however much it sends, everything
//! is accounted for within bounds.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::time::Duration;

use host::git::{ObjectFormat, SealedRepo};
use merge::clean::ConflictKind;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};
use testkit::Hermetic;

use crate::resolver::{paths, resolve_at};
use crate::world::{FORK, UPSTREAM, World};

#[tokio::test]
async fn odd_names_links_and_other_repositories_are_left_and_named() {
    let world = World::new(&[("swap", "1\n"), ("file", "1\n")]);
    let odd: &[u8] = b"new\nline \xe2\x80\xae\xff";
    for (branch, text) in [(FORK, "fork\n"), (UPSTREAM, "upstream\n")] {
        world.on(branch);
        std::fs::write(world.odd_file(odd), text).unwrap();
        std::fs::write(world.odd_file(b".gitattributes"), "* merge=evil filter=evil\n").unwrap();
        world.repo.commit("odd");
    }
    world.write(FORK, "swap", "fork\n");
    world.on(UPSTREAM);
    std::fs::remove_file(world.odd_file(b"swap")).unwrap();
    symlink("/etc/passwd", world.odd_file(b"swap")).unwrap();
    world.repo.commit("a link");
    let resolved = resolve_at(&world, 0.0).await;
    let (done, rest) = paths(&resolved);
    assert!(
        done.iter().chain(&rest).all(|path| !path.contains('\n') && !path.contains('\u{202e}'))
    );
    assert!(rest.iter().any(|path| path.starts_with("swap")), "{rest:?}");
    assert!(!done.iter().any(|path| path.starts_with("swap")), "{done:?}");
    let all = done.iter().chain(&rest);
    assert_eq!(all.filter(|path| path.starts_with("new")).count(), 1);
}

#[tokio::test]
async fn a_swapped_submodule_is_left_and_named() {
    let world = World::new(&[("x", "1\n")]);
    for branch in [FORK, UPSTREAM] {
        let commit = world.write(branch, &format!("only-{branch}"), "x\n");
        let link = format!("160000,{commit},sub");
        world.on(branch).git(&["update-index", "--add", "--cacheinfo", &link]);
        world.repo.commit_index("a submodule");
    }
    let resolved = resolve_at(&world, 0.0).await;
    assert!(
        resolved.rest.iter().any(|brief| brief.path.to_string() == "sub"),
        "{:?}",
        resolved.rest
    );
}

#[tokio::test]
async fn huge_and_binary_files_are_not_looked_into() {
    let world = World::new(&[("big", "1\n"), ("bin", "\0one")]);
    let huge = |word: &str| word.repeat(1 << 20);
    world.write(FORK, "big", huge("fork "));
    world.write(FORK, "bin", "\0two");
    world.write(UPSTREAM, "big", huge("upstream "));
    world.write(UPSTREAM, "bin", "\0three");
    let resolved = resolve_at(&world, 0.9).await;
    let kinds: Vec<_> = resolved.rest.iter().map(|brief| (brief.kind, brief.hunks.len())).collect();
    assert!(kinds.iter().all(|(_, hunks)| *hunks == 0), "{kinds:?}");
    assert_eq!(resolved.receipts.len() + resolved.rest.len(), 2);
}

#[tokio::test]
async fn a_file_that_became_another_repository_is_left_and_named() {
    let world = World::new(&[("lib", "1\n"), ("x", "1\n")]);
    world.write(FORK, "lib", "fork\n");
    let commit = world.write(UPSTREAM, "x", "2\n");
    world.on(UPSTREAM).git(&["rm", "--quiet", "lib"]);
    let link = format!("160000,{commit},lib");
    world.repo.git(&["update-index", "--add", "--cacheinfo", &link]);
    world.repo.commit_index("a submodule");
    let resolved = resolve_at(&world, 0.0).await;
    let (done, rest) = paths(&resolved);
    assert!(rest.iter().any(|path| path.starts_with("lib")), "{rest:?}");
    assert!(!done.iter().any(|path| path.starts_with("lib")), "{done:?}");
}

/// Far above what it takes: it is there so that a hang is a failure and not a wait.
const PATIENCE: Duration = Duration::from_secs(1200);
/// What the whole process may have held at any time, with all other tests beside this one.
const MEMORY_LIMIT_KIB: u64 = 1536 << 10;

#[tokio::test]
async fn a_hundred_thousand_conflicts_are_accounted_for_within_bounds() {
    const GONE: usize = 98_000;
    const CONTENT: usize = 2_000;
    let resolved =
        tokio::time::timeout(PATIENCE, resolve_many(GONE, CONTENT)).await.expect("a hang");
    assert_eq!(resolved.receipts.len() + resolved.rest.len(), GONE + CONTENT + 1);
    let many = resolved.rest.iter().find(|brief| brief.path.to_string() == "many").unwrap();
    assert!(many.hunks.is_empty(), "nobody resolves nine thousand hunks one by one");
    let gone = |kind| kind == ConflictKind::DeleteModify;
    let briefs = resolved.rest.iter().filter(|brief| gone(brief.kind)).count();
    let receipts = resolved.receipts.iter().filter(|receipt| gone(receipt.kind)).count();
    assert_eq!(briefs + receipts, GONE);
    let peak = peak_memory_kib();
    assert!(peak < MEMORY_LIMIT_KIB, "{peak} KiB");
}

/// A fork that deleted so many files which upstream changed, changed so many more, and one in nine thousand places.
async fn resolve_many(gone: usize, content: usize) -> ResolvedMerge {
    let hermetic = Hermetic::new();
    let path = hermetic.root().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    let mut stream = String::new();
    for branch in ["first", "fork", "upstream"] {
        writeln!(stream, "commit refs/heads/{branch}").unwrap();
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        if branch != "first" {
            stream.push_str("from refs/heads/first\n");
        }
        for number in 0..gone {
            let name = format!("gone{}/file{number}", number % 100);
            if branch == "fork" {
                writeln!(stream, "D {name}").unwrap();
            } else {
                put(&mut stream, &name, &format!("{branch} {number}\n"));
            }
        }
        for number in 0..content {
            put(&mut stream, &format!("dir/file{number}"), &format!("{branch} {number}\n"));
        }
        let many: String =
            (0..9000).map(|line| format!("{branch} {line}\nsame {line}\n")).collect();
        put(&mut stream, "many", &many);
    }
    repo.fast_import(&stream).await.unwrap();
    let tip = async |name: &str| repo.resolve_commit(name).await.unwrap().unwrap();
    let heads =
        MergeHeads { ours: tip("refs/heads/fork").await, theirs: tip("refs/heads/upstream").await };
    let options = ResolveOptions::at(TrustThreshold::DEFAULT);
    resolve_conflicts(&repo, &heads, options).await.unwrap()
}

fn put(stream: &mut String, name: &str, text: &str) {
    writeln!(stream, "M 100644 inline {name}\ndata {}\n{text}", text.len()).unwrap();
}

/// The most that this process ever held.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
