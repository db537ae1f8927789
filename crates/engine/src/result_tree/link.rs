//! Symbolic links of a result, followed within its tree.
//!
//! A link may lead through other links, so each is followed name by name, twice: with the names as they are, and folded as
//! a file system that ignores case would read them.

use std::collections::{BTreeSet, HashMap};

use host::git::{Blob, GitError, SealedRepo};
use model::id::Sha;
use model::sensitive_path::{fold_path, sensitive_below, sensitive_path};

use super::show_path;

/// Bytes of a link's target. Some systems accept no more.
const TARGET_BYTES: u64 = 1023;

/// Links that one link may lead through, as in Linux.
const MOST_HOPS: usize = 40;

/// Depth of the folder that a link leads to.
const MOST_NAMES: usize = 512;

/// Names that are followed for all links of one tree.
const MOST_STEPS: usize = 1_000_000;

/// Links of a result that neither side has.
#[derive(Debug, Default)]
pub(crate) struct LinkFacts {
    /// Lead out of the tree, or into the repository's own folder.
    pub(crate) leaving: Vec<String>,
    /// Cannot be followed: loops and empty targets.
    pub(crate) broken: Vec<String>,
    pub(crate) long: Vec<String>,
    pub(crate) aliases: Vec<LinkAlias>,
}

/// Link that gives a sensitive name to another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkAlias {
    pub(crate) link: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

/// Follows the links of `tip`, a commit, and leaves out those that one of `sides` has with the same end.
pub(crate) async fn observe_links(
    repo: &SealedRepo,
    tip: &Sha,
    sides: &[&Sha],
) -> Result<LinkFacts, GitError> {
    let links = read_links(repo, tip).await?;
    let mut facts = LinkFacts { aliases: aliases(&links), ..LinkFacts::default() };
    let mut faults = find_faults(&links);
    for side in sides {
        if faults.is_empty() {
            break;
        }
        let known = find_faults(&read_links(repo, side).await?);
        faults.retain(|fault| !known.contains(fault));
    }
    for LinkFault { path, kind, .. } in faults {
        let shown = show_path(&path);
        match kind {
            LinkFaultKind::Leaves => facts.leaving.push(shown),
            LinkFaultKind::Broken => facts.broken.push(shown),
            LinkFaultKind::Long { bytes } => {
                facts.long.push(format!("link target of {bytes} bytes: {shown}"));
            }
        }
    }
    Ok(facts)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SymbolicLink {
    path: Vec<u8>,
    /// The beginning of the target.
    target: Vec<u8>,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LinkFault {
    path: Vec<u8>,
    target: Vec<u8>,
    kind: LinkFaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkFaultKind {
    Leaves,
    Broken,
    Long { bytes: u64 },
}

async fn read_links(repo: &SealedRepo, commit: &Sha) -> Result<Vec<SymbolicLink>, GitError> {
    let (paths, ids): (Vec<_>, Vec<_>) = repo.list_links(commit).await?.into_iter().unzip();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let cap = usize::try_from(TARGET_BYTES).unwrap_or(usize::MAX);
    let blobs = repo.read_blobs(&ids, cap).await?;
    let link = |(path, blob): (Vec<u8>, Option<Blob>)| {
        let Blob { bytes: target, size: bytes } = blob?;
        Some(SymbolicLink { path, target, bytes })
    };
    Ok(paths.into_iter().zip(blobs).filter_map(link).collect())
}

fn find_faults(links: &[SymbolicLink]) -> BTreeSet<LinkFault> {
    let mut tables = [LinkTable::new(links, exact_names), LinkTable::new(links, folded_names)];
    let fault = |link: &SymbolicLink| {
        let kind = match link.bytes {
            0 => Some(LinkFaultKind::Broken),
            bytes if bytes > TARGET_BYTES => Some(LinkFaultKind::Long { bytes }),
            _ => tables.iter_mut().find_map(|table| match table.follow(link) {
                LinkEnd::Inside(_) => None,
                LinkEnd::Leaves => Some(LinkFaultKind::Leaves),
                LinkEnd::Broken => Some(LinkFaultKind::Broken),
            }),
        };
        let (path, target) = (link.path.clone(), link.target.clone());
        kind.map(|kind| LinkFault { path, target, kind })
    };
    links.iter().filter_map(fault).collect()
}

/// Ends of the links whose own path, or a path below it, is sensitive.
fn aliases(links: &[SymbolicLink]) -> Vec<LinkAlias> {
    let mut table = LinkTable::new(links, exact_names);
    let named = |link: &SymbolicLink| {
        sensitive_path(&link.path).or_else(|| sensitive_below(&link.path))?;
        match table.follow(link) {
            LinkEnd::Inside(end) => Some(LinkAlias { link: link.path.clone(), end }),
            LinkEnd::Leaves | LinkEnd::Broken => None,
        }
    };
    links.iter().filter_map(named).collect()
}

type SplitNames = fn(&[u8]) -> Vec<Vec<u8>>;

fn exact_names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

fn folded_names(path: &[u8]) -> Vec<Vec<u8>> {
    fold_path(path).into_iter().map(String::into_bytes).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum LinkEnd {
    /// Ends at this path of the tree, which need not exist.
    Inside(Vec<u8>),
    Leaves,
    Broken,
}

/// Targets of all links by their paths.
struct LinkTable<'a> {
    names: SplitNames,
    targets: HashMap<Vec<u8>, &'a [u8]>,
    steps: usize,
}

impl<'a> LinkTable<'a> {
    fn new(links: &'a [SymbolicLink], names: SplitNames) -> Self {
        let row = |link: &'a SymbolicLink| (names(&link.path).join(&b'/'), link.target.as_slice());
        Self { names, targets: links.iter().map(row).collect(), steps: 0 }
    }

    fn follow(&mut self, link: &SymbolicLink) -> LinkEnd {
        let mut here = (self.names)(&link.path);
        here.pop();
        if is_absolute(&link.target) {
            return LinkEnd::Leaves;
        }
        let mut ahead = self.ahead(&link.target);
        let mut hops = 0;
        while let Some(name) = ahead.pop() {
            self.steps += 1;
            if self.steps > MOST_STEPS || here.len() > MOST_NAMES {
                return LinkEnd::Broken;
            }
            match name.as_slice() {
                b"." => continue,
                b".." if here.pop().is_none() => return LinkEnd::Leaves,
                b".." => continue,
                name if is_git_dir(name) => return LinkEnd::Leaves,
                _ => here.push(name),
            }
            let Some(target) = self.targets.get(&here.join(&b'/')).copied() else { continue };
            hops += 1;
            if hops > MOST_HOPS {
                return LinkEnd::Broken;
            }
            if is_absolute(target) {
                return LinkEnd::Leaves;
            }
            here.pop();
            ahead.extend(self.ahead(target));
        }
        LinkEnd::Inside(here.join(&b'/'))
    }

    /// Names of a target, the next one last.
    fn ahead(&self, target: &[u8]) -> Vec<Vec<u8>> {
        let mut names = (self.names)(target);
        names.reverse();
        names
    }
}

/// A drive letter or a backslash is absolute on Windows.
fn is_absolute(target: &[u8]) -> bool {
    match target {
        [b'/' | b'\\', ..] => true,
        [drive, b':', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

fn is_git_dir(name: &[u8]) -> bool {
    matches!(fold_path(name).first().map(String::as_str), Some(".git" | "git~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pairs: &[(&str, &str)]) -> Vec<SymbolicLink> {
        let link = |&(path, target): &(&str, &str)| SymbolicLink {
            path: path.as_bytes().to_vec(),
            target: target.as_bytes().to_vec(),
            bytes: target.len() as u64,
        };
        pairs.iter().map(link).collect()
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: &[(&str, LinkFaultKind)]) {
        let found = find_faults(&links(pairs));
        let found: Vec<(String, LinkFaultKind)> =
            found.iter().map(|fault| (show_path(&fault.path), fault.kind)).collect();
        let expected: Vec<(String, LinkFaultKind)> =
            expected.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
        assert_eq!(found, expected, "{pairs:?}");
    }

    #[test]
    fn a_link_may_wander_inside_the_tree_but_not_out_of_it() {
        use LinkFaultKind::Leaves;
        for (path, target) in
            [("a", "b"), ("dir/a", "../b"), ("dir/a", "x/../../b"), ("a", "nowhere"), ("d/a", "..")]
        {
            check(&[(path, target)], &[]);
        }
        for (path, target) in [
            ("a", "../b"),
            ("dir/a", "../../etc/passwd"),
            ("a", "/etc/passwd"),
            ("dir/a", "../x/../../b"),
            ("a", "C:\\Windows"),
            ("a", "..\\x"),
        ] {
            check(&[(path, target)], &[(path, Leaves)]);
        }
    }

    #[test]
    fn a_link_through_links_is_followed_to_its_end() {
        use LinkFaultKind::Leaves;
        check(&[("a/b/l", "../.."), ("x", "a/b/l/../../../etc")], &[("x", Leaves)]);
        check(&[("a/b/l", "../.."), ("x", "a/b/l/c")], &[]);
        check(&[("l", "a/b/c"), ("x", "l/../../..")], &[]);
        check(&[("x", "l/../..")], &[("x", Leaves)]);
        check(&[("a/B/l", "../.."), ("x", "A/b/L/../y")], &[("x", Leaves)]);
    }

    #[test]
    fn loops_and_the_repositorys_own_folder_are_faults() {
        use LinkFaultKind::{Broken, Leaves};
        check(&[("a", "b"), ("b", "a")], &[("a", Broken), ("b", Broken)]);
        check(&[("a", "a/x")], &[("a", Broken)]);
        check(&[("d/up", "..")], &[]);
        check(&[("h", ".git/hooks")], &[("h", Leaves)]);
        check(&[("h", ".GIT/hooks")], &[("h", Leaves)]);
        check(&[("h", "")], &[("h", Broken)]);
        let long = "x".repeat(5000);
        check(&[("h", &long)], &[("h", LinkFaultKind::Long { bytes: 5000 })]);
    }

    #[test]
    fn a_sensitive_name_may_be_a_link_to_another_file() {
        let links = links(&[(".cursorrules", "docs/rules.md"), ("readme", "docs/a.md")]);
        let expected = LinkAlias { link: b".cursorrules".to_vec(), end: b"docs/rules.md".to_vec() };
        assert_eq!(aliases(&links), [expected]);
    }
}
