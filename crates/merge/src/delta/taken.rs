//! Changes of the fork that upstream has taken: evidence in both histories, and in the lines of upstream's files.
//!
//! Records of git and of people are evidence: the same patch, the same `Change-Id`, a message that names the commit, the same
//! author at the same second. Lines alone are a likeness, whatever their share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use host::git::{ChangedEntry, ComparedCommit, GitError, HistoryCommit, SealedRepo};
use model::id::Sha;
use serde::Serialize;

use super::history::OwnHistory;
use crate::contract::patches_of;
use crate::entry::{by_path, read_small};
use crate::likeness::Likeness;
use crate::provenance::read_provenance;

/// Commits whose patches are read at once, and bytes of them.
const PATCHES_AT_ONCE: usize = 300;
const PATCH_BYTES: usize = 48 << 20;

/// Largest file that is compared, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// Digits by which messages name a commit at least.
const ID_DIGITS: usize = 12;

/// A sign that a commit of upstream makes the same change as one of the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// The same patch id, which does not count blanks.
    SamePatch,
    /// The same `Change-Id`.
    SameChangeId,
    /// Upstream's message says that it brings the fork's commit.
    UpstreamNamesIt,
    /// The fork's message says that it brings upstream's commit.
    ForkNamesIt,
    /// The same subject by the same author at the same second.
    SameAuthorship,
}

impl Sign {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SamePatch => "the same patch but for blanks",
            Self::SameChangeId => "the same Change-Id",
            Self::UpstreamNamesIt => "upstream's message names it",
            Self::ForkNamesIt => "its message names upstream's",
            Self::SameAuthorship => "the same author, second and subject",
        }
    }
}

/// A commit of upstream that makes the same change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Twin {
    pub commit: Sha,
    pub sign: Sign,
    /// A later commit of upstream that says so and undoes it.
    pub reverted_by: Option<Sha>,
}

/// Looks for the twins of commits of the fork in upstream's history since the fork began.
pub async fn find_twins(
    repo: &SealedRepo,
    history: &OwnHistory,
    places: &BTreeSet<usize>,
    (target, since): (&Sha, &Sha),
) -> Result<BTreeMap<usize, Twin>, GitError> {
    let theirs = repo.history(std::slice::from_ref(target), std::slice::from_ref(since)).await?;
    let (mut found, reverts) = by_messages(history, places, &theirs);
    let open: BTreeSet<usize> =
        places.iter().copied().filter(|place| !found.contains_key(place)).collect();
    found.extend(by_patches(repo, history, &open, &theirs).await?);
    let mut twins = BTreeMap::new();
    for (place, (sign, commit)) in found {
        let claimed = reverts.get(&commit.as_str()[..ID_DIGITS]);
        let reverted_by = match claimed {
            Some(by) if undoes(repo, &commit, by).await? => Some(by.clone()),
            Some(_) | None => None,
        };
        twins.insert(place, Twin { commit, sign, reverted_by });
    }
    Ok(twins)
}

/// Share of a commit's lines that are there before it is undone, and up to which they may be there after.
const IS_THERE: f64 = 0.9;
const IS_UNDONE: f64 = 0.2;

/// Returns whether a commit undoes another one, by what it does: a message may quote a revert, or speak of another branch.
async fn undoes(repo: &SealedRepo, commit: &Sha, by: &Sha) -> Result<bool, GitError> {
    let asked = [(commit.clone(), None), (by.clone(), None)];
    let [done, undone]: [Vec<ChangedEntry>; 2] = match repo.changes_of(&asked).await?.try_into() {
        Ok(both) => both,
        Err(_) => return Ok(false),
    };
    let undone = by_path(undone);
    let both: Vec<(&ChangedEntry, &ChangedEntry)> =
        done.iter().filter_map(|it| Some((it, undone.get(&it.path)?))).collect();
    let sides = both.iter().flat_map(|(one, other)| [&one.old, &one.new, &other.old, &other.new]);
    let texts = read_small(repo, sides.flatten().collect(), FILE_BYTES).await?;
    let empty = Vec::new();
    let text = |id: &Option<Sha>| id.as_ref().map_or(Some(&empty), |id| texts.get(id));
    let (mut before, mut after, mut whole) = (Likeness::default(), Likeness::default(), 0);
    for (one, other) in both {
        whole += usize::from((&other.old, &other.new) == (&one.new, &one.old));
        let (Some(old), Some(new)) = (text(&one.old), text(&one.new)) else { continue };
        let (Some(from), Some(to)) = (text(&other.old), text(&other.new)) else { continue };
        before += Likeness::measure_all(old, new, from);
        after += Likeness::measure_all(old, new, to);
    }
    let was_there = before.added_share().is_none_or(|share| share >= IS_THERE)
        && before.removed_share().is_none_or(|share| share <= IS_UNDONE);
    let is_undone = after.added_share().is_none_or(|share| share <= IS_UNDONE)
        && after.removed_share().is_none_or(|share| share >= IS_THERE);
    let has_lines = before.added + before.removed > 0;
    Ok((has_lines && was_there && is_undone) || (whole > 0 && whole == done.len()))
}

type Signs = BTreeMap<usize, (Sign, Sha)>;

/// Commits that undo others, by the beginnings of the ids of those.
type Reverts = HashMap<String, Sha>;

/// Twins by what the messages and the headers of both sides say.
fn by_messages(
    history: &OwnHistory,
    places: &BTreeSet<usize>,
    theirs: &[HistoryCommit],
) -> (Signs, Reverts) {
    let mut index = UpstreamIndex::default();
    let mut reverts = Reverts::new();
    for commit in theirs {
        let provenance = read_provenance(&commit.message);
        for id in provenance.reverts {
            reverts.insert(id[..ID_DIGITS].to_owned(), commit.sha.clone());
        }
        index.add(commit, provenance.brings);
    }
    let mut found = Signs::new();
    for &place in places {
        if let Some(twin) = index.find(&history.commits[place]) {
            found.insert(place, twin);
        }
    }
    (found, reverts)
}

/// Upstream's commits by what may name them.
#[derive(Default)]
struct UpstreamIndex<'a> {
    ids: HashMap<&'a str, &'a Sha>,
    change_ids: HashMap<&'a str, &'a Sha>,
    names: HashMap<String, &'a Sha>,
    authorships: HashMap<(&'a str, i64, &'a str), &'a Sha>,
}

impl<'a> UpstreamIndex<'a> {
    fn add(&mut self, commit: &'a HistoryCommit, brings: Vec<String>) {
        self.ids.insert(&commit.sha.as_str()[..ID_DIGITS], &commit.sha);
        if let Some(id) = change_id(&commit.message) {
            self.change_ids.insert(id, &commit.sha);
        }
        self.names.extend(brings.into_iter().map(|id| (id[..ID_DIGITS].to_owned(), &commit.sha)));
        if commit.parents.len() < 2 {
            self.authorships.insert(authorship(commit), &commit.sha);
        }
    }

    fn find(&self, own: &HistoryCommit) -> Option<(Sign, Sha)> {
        let id = &own.sha.as_str()[..ID_DIGITS];
        let brings = || {
            let brings = read_provenance(&own.message).brings;
            brings.iter().find_map(|id| self.ids.get(&id[..ID_DIGITS]).copied())
        };
        let by_change_id =
            || change_id(&own.message).and_then(|id| self.change_ids.get(id).copied());
        let by_author = || {
            let is_telling = own.authored > 0 && !own.subject().is_empty();
            self.authorships.get(&authorship(own)).copied().filter(|_| is_telling)
        };
        let signs: [(Sign, Option<&Sha>); 4] = [
            (Sign::UpstreamNamesIt, self.names.get(id).copied()),
            (Sign::SameChangeId, by_change_id()),
            (Sign::ForkNamesIt, brings()),
            (Sign::SameAuthorship, by_author()),
        ];
        signs.into_iter().find_map(|(sign, sha)| Some((sign, sha?.clone())))
    }
}

fn authorship(commit: &HistoryCommit) -> (&str, i64, &str) {
    (commit.author.email.as_str(), commit.authored, bare_subject(commit.subject()))
}

/// A subject without the number that a forge appends.
fn bare_subject(subject: &str) -> &str {
    subject.rsplit_once(" (#").map_or(subject, |(bare, _)| bare).trim()
}

fn change_id(message: &str) -> Option<&str> {
    let value = message.lines().rev().find_map(|line| line.strip_prefix("Change-Id: "))?.trim();
    let is_id = value.len() == 41 && value.starts_with('I');
    (is_id && value[1..].bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(value)
}

/// Twins by patch id. Only commits that touch exactly the same paths can make the same change.
async fn by_patches(
    repo: &SealedRepo,
    history: &OwnHistory,
    places: &BTreeSet<usize>,
    theirs: &[HistoryCommit],
) -> Result<Signs, GitError> {
    let paths = history.paths_of(places);
    let wanted: BTreeSet<&BTreeSet<Vec<u8>>> = paths.values().collect();
    let plain: Vec<ComparedCommit> =
        theirs.iter().filter(|it| it.parents.len() < 2).map(|it| (it.sha.clone(), None)).collect();
    let changed = repo.changes_of(&plain).await?;
    let mut same_paths = Vec::new();
    for ((sha, _), entries) in plain.into_iter().zip(changed) {
        let paths: BTreeSet<Vec<u8>> = entries.into_iter().map(|entry| entry.path).collect();
        if wanted.contains(&paths) {
            same_paths.push((sha, paths));
        }
    }
    let shared: BTreeSet<&BTreeSet<Vec<u8>>> = same_paths.iter().map(|(_, paths)| paths).collect();
    let ours: Vec<usize> = places
        .iter()
        .copied()
        .filter(|it| paths.get(it).is_some_and(|it| shared.contains(it)))
        .collect();
    let known: Vec<Sha> = same_paths.iter().map(|(sha, _)| sha.clone()).collect();
    let known = patch_ids(repo, &known).await;
    let known: HashMap<Sha, Sha> = known.into_iter().map(|(sha, id)| (id, sha)).collect();
    let own: Vec<Sha> = ours.iter().map(|&place| history.commits[place].sha.clone()).collect();
    let own: HashMap<Sha, Sha> = patch_ids(repo, &own).await.into_iter().collect();
    let twin = |place: usize| {
        let id = own.get(&history.commits[place].sha)?;
        Some((place, (Sign::SamePatch, known.get(id)?.clone())))
    };
    Ok(ours.into_iter().filter_map(twin).collect())
}

/// The patch ids of commits. One whose objects git cannot read is left out, and keeps no other from being compared.
async fn patch_ids(repo: &SealedRepo, commits: &[Sha]) -> Vec<(Sha, Sha)> {
    let mut found = Vec::new();
    let mut open: Vec<&[Sha]> = commits.chunks(PATCHES_AT_ONCE).collect();
    while let Some(some) = open.pop() {
        match patches_of(repo, some, PATCH_BYTES).await {
            Ok(patches) => {
                found.extend(patches.into_iter().filter_map(|(sha, it)| Some((sha, it.patch_id?))));
            }
            Err(_) if some.len() > 1 => {
                let (one, other) = some.split_at(some.len() / 2);
                open.extend([one, other]);
            }
            Err(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_id_is_one_of_gerrits() {
        let id = format!("I{}", "0a".repeat(20));
        assert_eq!(change_id(&format!("x\n\nChange-Id: {id}\n")), Some(id.as_str()));
        assert_eq!(change_id("x\n\nChange-Id: I12\n"), None);
    }

    #[test]
    fn the_number_of_a_pull_request_does_not_part_twins() {
        assert_eq!(bare_subject("Parse faster (#12)"), bare_subject("Parse faster"));
    }
}
