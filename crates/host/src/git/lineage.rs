//! The merges by which a fork took in its upstream.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use model::id::Sha;

use super::call::{GitCall, argv, argv_with};
use super::{GitError, SealedRepo};

/// A merge of upstream into the fork, as people made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastMerge {
    pub sha: Sha,
    /// The fork's commit, its first parent.
    pub ours: Sha,
    /// Upstream's commit, its second parent.
    pub theirs: Sha,
}

/// Commits between which merges of upstream are looked for.
#[derive(Clone, Copy, Debug)]
pub struct LineageRange<'a> {
    /// The fork's commit.
    pub tip: &'a Sha,
    /// Tips of the fork's other branches.
    pub siblings: &'a [Sha],
    pub upstream: &'a Sha,
}

/// Most branches beside the tip that are read.
const SIBLINGS_CAP: usize = 1000;

/// Time limit for long histories, which are read without a commit graph.
const LINEAGE_LIMIT: Duration = Duration::from_secs(300);

impl SealedRepo {
    /// Lists the newest `limit` merges of upstream that are reachable from the tip or a sibling, oldest first by date.
    /// The second parent of such a merge is reachable from upstream, or, for merges below the tip, contains no commit
    /// of the fork, such as a release on a branch of upstream. Merges that upstream itself made are left out.
    pub async fn past_merges(
        &self,
        range: LineageRange<'_>,
        limit: usize,
    ) -> Result<Vec<PastMerge>, GitError> {
        let call = GitCall::new(argv_lineage(range)).within(LINEAGE_LIMIT);
        let answer = self.git.query(call).await?;
        let parse = |bytes| parse_lineage(bytes, range.tip);
        let mut merges = answer.parse(parse, "it is not a list of commits")?;
        Ok(merges.split_off(merges.len().saturating_sub(limit)))
    }

    /// Lists all merges of branches into a line of history, oldest first: those of two parents on the first-parent line of
    /// the tip.
    pub async fn branch_merges(&self, tip: &Sha) -> Result<Vec<PastMerge>, GitError> {
        let words = "rev-list --first-parent --merges --parents --reverse --end-of-options";
        let call = GitCall::new(argv_with(words, [tip.as_str(), "--"])).within(LINEAGE_LIMIT);
        let answer = self.git.query(call).await?;
        answer.parse(parse_branch_merges, "it is not a list of commits")
    }

    /// Place of the commit graph of its own objects.
    pub fn commit_graph(&self) -> PathBuf {
        self.path().join("objects/info/commit-graph")
    }

    /// Writes a commit graph of everything that is reachable from the tips. In long histories a merge is several times faster
    /// with it, if the repository is [told to believe it](Self::believing_commit_graph).
    pub async fn write_commit_graph(&self, tips: &[Sha]) -> Result<(), GitError> {
        let input: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        let call = GitCall::new(argv("commit-graph write --no-progress --stdin-commits"));
        self.git.run(call.within(LINEAGE_LIMIT).reading(input.as_bytes())).await
    }
}

fn argv_lineage(LineageRange { tip, siblings, upstream }: LineageRange<'_>) -> Vec<OsString> {
    let words = "rev-list --parents --boundary --date-order --reverse";
    let upstream = format!("^{upstream}");
    let tips = [tip].into_iter().chain(siblings.iter().take(SIBLINGS_CAP)).map(Sha::as_str);
    argv_with(words, tips.chain([upstream.as_str(), "--"]))
}

/// Parses lines of a commit and its parents; a dash marks upstream commits that are parents of the fork's.
fn parse_lineage(bytes: &[u8], tip: &Sha) -> Option<Vec<PastMerge>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let first = |line: &'_ str| line.split(' ').next().map(str::to_owned);
    let of_upstream: BTreeSet<String> =
        text.lines().filter_map(|line| first(line.strip_prefix('-')?)).collect();
    let commits: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('-'))
        .map(|line| line.split(' ').collect())
        .collect();
    let of_fork = forks_own(&commits, tip);
    let mut merges = Vec::new();
    for ids in &commits {
        let &[sha, ours, theirs] = ids.as_slice() else { continue };
        let is_reachable = of_upstream.contains(theirs) && !of_upstream.contains(ours);
        if is_reachable || of_fork.contains(ours) && !of_fork.contains(theirs) {
            let id = |text: &str| Sha::parse(text).ok();
            merges.push(PastMerge { sha: id(sha)?, ours: id(ours)?, theirs: id(theirs)? });
        }
    }
    Some(merges)
}

fn parse_branch_merges(bytes: &[u8]) -> Option<Vec<PastMerge>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut merges = Vec::new();
    for line in text.lines() {
        let ids: Vec<Sha> =
            line.split(' ').map(|id| Sha::parse(id).ok()).collect::<Option<Vec<Sha>>>()?;
        if let [sha, ours, theirs] = ids.as_slice() {
            let [sha, ours, theirs] = [sha, ours, theirs].map(Clone::clone);
            merges.push(PastMerge { sha, ours, theirs });
        }
    }
    Some(merges)
}

/// Collects the fork's commits: its first-parent line and everything built on it. Parents come first.
fn forks_own<'a>(commits: &[Vec<&'a str>], tip: &'a Sha) -> HashSet<&'a str> {
    let parents: HashMap<&str, &[&'a str]> =
        commits.iter().filter_map(|ids| Some((*ids.first()?, ids.get(1..)?))).collect();
    let mut main_line: HashSet<&str> = HashSet::new();
    let mut next = Some(tip.as_str());
    while let Some((commit, before)) = next.and_then(|id| parents.get_key_value(id)) {
        main_line.insert(commit);
        next = before.first().copied();
    }
    let mut own = HashSet::new();
    for ids in commits {
        let Some((commit, before)) = ids.split_first() else { continue };
        if main_line.contains(commit) || before.iter().any(|parent| own.contains(parent)) {
            own.insert(*commit);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(letter: char) -> String {
        letter.to_string().repeat(40)
    }

    #[test]
    fn merges_of_branches_have_two_parents() {
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(id);
        let text = format!("{c} {a} {b}\n{d} {c} {a} {b}\n");
        let merges = parse_branch_merges(text.as_bytes()).unwrap();
        assert_eq!(merges.len(), 1, "an octopus teaches nothing");
        assert_eq!((merges[0].ours.as_str(), merges[0].theirs.as_str()), (a.as_str(), b.as_str()));
        assert!(parse_branch_merges(b"x y").is_none());
    }

    #[test]
    fn merges_that_bring_upstream_in_are_found() {
        let [a, b, c, d, e, u, v] = ['a', 'b', 'c', 'd', 'e', '1', '2'].map(id);
        let text = [
            format!("-{u}"),
            format!("-{v} {u}"),
            format!("{a} {u}"),
            format!("{b} {a} {v}"),
            format!("{c} {b} {a}"),
            format!("{d} {u} {v}"),
            format!("{e} {b} {c} {v}"),
        ];
        let tip = Sha::parse(&e).unwrap();
        let merges = parse_lineage(text.join("\n").as_bytes(), &tip).unwrap();
        assert_eq!(merges.len(), 1);
        assert_eq!(
            (merges[0].sha.as_str(), merges[0].ours.as_str(), merges[0].theirs.as_str()),
            (b.as_str(), a.as_str(), v.as_str())
        );
        assert_eq!(parse_lineage(b"", &tip).unwrap(), []);
        assert!(parse_lineage(format!("-{v}\nx {a} {v}\n").as_bytes(), &tip).is_none());
    }

    /// Upstream releases are often commits on branches that never return to its main branch.
    #[test]
    fn releases_that_upstream_made_aside_are_upstream_too() {
        let [a, b, c, d, e, f, r, s, u] = ['a', 'b', 'c', 'd', 'e', 'f', '1', '2', '3'].map(id);
        let text = [
            format!("-{u}"),
            format!("{r} {u}"),
            format!("{a} {u}"),
            format!("{b} {a} {r}"),
            format!("{c} {a}"),
            format!("{d} {b} {c}"),
            format!("{s} {r}"),
            format!("{e} {s} {d}"),
            format!("{f} {d} {s}"),
        ];
        let tip = Sha::parse(&f).unwrap();
        let merges = parse_lineage(text.join("\n").as_bytes(), &tip).unwrap();
        let found: Vec<&str> = merges.iter().map(|merge| merge.sha.as_str()).collect();
        assert_eq!(found, [b, f], "neither the fork's own branch nor a merge the other way round");
    }

    #[test]
    fn the_question_names_both_ends_by_their_whole_ids() {
        let [a, b] = ['a', 'b'].map(|letter| Sha::parse(&id(letter)).unwrap());
        let range = LineageRange { tip: &a, siblings: &[], upstream: &b };
        let argv = argv_lineage(range).join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(argv, @"rev-list --parents --boundary --date-order --reverse aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ^bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }
}
