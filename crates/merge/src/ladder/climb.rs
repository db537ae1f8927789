//! The way up: a merge, everything that the rungs may settle settled, and the rest with a brief for each conflict.
//!
//! All of it happens in memory and in a repository of ours; nothing of the repository's is run.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, NewEntry, SealedRepo, TreeEdit};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::{Declined, Outcome, Trust, decide, version_for};
use super::dispute::{Dispute, list_disputes, read_contents};
use super::gate;
use super::grade::Rung;
use super::habit::Choice;
use super::hunk::hunks;
use super::knowledge::Knowledge;
use super::receipt::Receipt;
use super::rule::{Regenerate, RegenerateFrom, Rules, Ruling};
use super::table::Table;
use super::touch::Touch;
use super::weigh::{Scales, Weighed};
use crate::clean::{Conflict, ConflictKind, conflicts_of};
use crate::path::TreePath;

/// The two commits that are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The fork's.
    pub ours: Sha,
    /// Upstream's.
    pub theirs: Sha,
}

/// A resolver that knows the language of a file: a program that the caller runs in a box.
pub trait Structure {
    /// The merged text, if the program has one.
    fn settle(&self, path: &TreePath, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>>;
}

/// How to climb.
#[derive(Clone, Copy)]
pub struct ClimbOptions<'a> {
    /// How sure an answer must be.
    pub trust: Trust,
    /// What the owner ruled.
    pub rules: &'a Rules,
    /// What other forks teach.
    pub table: &'a Table,
    /// What this fork's past teaches.
    pub knowledge: &'a Knowledge,
    /// The rung `structure`, where there is a program for it. Its answers are proposals: they are shown to
    /// whoever settles the rest.
    pub structure: Option<&'a dyn Structure>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Climb {
    /// The tree; what is in `rest` is in it as git left it, with markers.
    pub tree: Sha,
    /// What was settled, sorted by path.
    pub receipts: Vec<Receipt>,
    /// What was not, sorted by path.
    pub rest: Vec<Brief>,
    /// Files that were taken from one side and must be made anew by these commands.
    pub regenerate: Vec<(TreePath, Regenerate)>,
}

/// A conflict that somebody has to settle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The path.
    pub path: TreePath,
    /// Why it is in conflict.
    pub kind: ConflictKind,
    /// Other paths of the same conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<TreePath>,
    /// Why the rungs did not settle it.
    pub why: String,
    /// The hunks, as far as they can be shown.
    pub hunks: Vec<HunkBrief>,
    /// What a program that knows the language makes of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<String>,
    /// The fork's commits that touched it, newest first; see [`add_touches`](super::touch::add_touches).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours_commits: Vec<Touch>,
    /// Upstream's commits that touched it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs_commits: Vec<Touch>,
}

/// A hunk for somebody to settle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HunkBrief {
    /// In the common ancestor.
    pub base: String,
    /// In the fork.
    pub ours: String,
    /// In upstream.
    pub theirs: String,
    /// The surest answers, most sure first.
    pub proposals: Vec<Proposal>,
}

/// An answer that was not trusted enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The text.
    pub text: String,
    /// What kind of answer it is.
    pub grade: String,
    /// What answers of this kind are worth here.
    pub confidence: f64,
    /// The merge that it was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_from: Option<Sha>,
}

/// How many hunks of a file a brief shows, how much of each side, and how many answers.
const HUNKS_SHOWN: usize = 50;
const SIDE_SHOWN: usize = 8 << 10;
const PROPOSALS_SHOWN: usize = 2;
/// No more than this is written into a tree at once.
const EDITS_CAP: usize = 512 << 20;

/// Merges two commits that have an ancestor in common, as far as the rungs are trusted.
pub async fn climb(
    repo: &SealedRepo,
    ends: &Ends,
    options: ClimbOptions<'_>,
) -> Result<Climb, GitError> {
    let merged = repo.merge_tree(&ends.ours, &ends.theirs).await?;
    let mut disputes = list_disputes(&merged);
    let mut ascent = Ascent { conflicts: disputes.len(), ..Ascent::new(options) };
    let mut done = 0;
    while done < disputes.len() {
        let count = read_contents(repo, &mut disputes[done..]).await?;
        for dispute in &mut disputes[done..done + count] {
            ascent.take(dispute);
            dispute.forget();
        }
        done += count;
    }
    ascent.name_the_others(conflicts_of(&merged), &disputes);
    ascent.rest.sort_by(|one, other| one.path.cmp(&other.path));
    let tree = if ascent.edits.is_empty() {
        merged.tree
    } else {
        repo.edit_tree(&merged.tree, &ascent.edits).await?
    };
    let Ascent { receipts, rest, regenerate, .. } = ascent;
    Ok(Climb { tree, receipts, rest, regenerate })
}

/// What was decided so far.
struct Ascent<'a> {
    options: ClimbOptions<'a>,
    conflicts: usize,
    edits: Vec<TreeEdit>,
    edit_bytes: usize,
    receipts: Vec<Receipt>,
    rest: Vec<Brief>,
    regenerate: Vec<(TreePath, Regenerate)>,
}

impl<'a> Ascent<'a> {
    fn new(options: ClimbOptions<'a>) -> Self {
        Self {
            options,
            conflicts: 0,
            edits: Vec::new(),
            edit_bytes: 0,
            receipts: Vec::new(),
            rest: Vec::new(),
            regenerate: Vec::new(),
        }
    }

    fn take(&mut self, dispute: &Dispute) {
        if let Some(ruling) = self.options.rules.ruling_at(dispute.path.as_bytes()).cloned()
            && self.follow(dispute, &ruling)
        {
            return;
        }
        let ClimbOptions { table, knowledge, rules, trust, .. } = self.options;
        let weighed = Scales { table, knowledge, conflicts: self.conflicts }.weigh(dispute);
        let trust = rules.trust_at(dispute.path.as_bytes(), trust);
        match decide(dispute, &weighed, trust) {
            Ok(decision) if self.put(dispute, &decision.outcome) => {
                self.receipts.push(Receipt::of(dispute, &weighed, &decision));
            }
            Ok(_) => self.leave(dispute, &weighed, &Declined::NoAnswer),
            Err(declined) => self.leave(dispute, &weighed, &declined),
        }
    }

    /// A conflict can have several paths, or be about a folder or a name that has no version of its own.
    fn name_the_others(&mut self, conflicts: Vec<Conflict>, disputes: &[Dispute]) {
        let known: BTreeSet<&TreePath> = disputes.iter().map(|dispute| &dispute.path).collect();
        let open = self.rest.iter_mut().map(|brief| (brief.path.clone(), brief));
        let mut open: BTreeMap<TreePath, &mut Brief> = open.collect();
        let mut others = Vec::new();
        for Conflict { path, kind, also } in conflicts {
            match open.get_mut(&path) {
                Some(brief) => brief.also = also,
                None if !known.contains(&path) => {
                    others.push(Brief::without_hunks(path, kind, also));
                }
                None => {}
            }
        }
        self.rest.extend(others);
    }

    /// A ruling can be followed where the side that it names has the file.
    fn follow(&mut self, dispute: &Dispute, ruling: &Ruling) -> bool {
        let (choice, rung) = match ruling {
            Ruling::Ours => (Choice::Ours, Rung::Policy),
            Ruling::Theirs => (Choice::Theirs, Rung::Policy),
            Ruling::Regenerate(Regenerate { from: RegenerateFrom::Ours, .. }) => {
                (Choice::Ours, Rung::Regenerate)
            }
            Ruling::Regenerate(Regenerate { from: RegenerateFrom::Theirs, .. }) => {
                (Choice::Theirs, Rung::Regenerate)
            }
            Ruling::Trust(_) => return false,
        };
        let stays_put = !matches!(
            dispute.kind,
            ConflictKind::FileDirectory
                | ConflictKind::RenameRename
                | ConflictKind::RenameCollision
                | ConflictKind::DirectoryRename
        );
        let outcome = Outcome::Whole(if version_for(dispute, choice).is_some() {
            choice
        } else {
            Choice::Absent
        });
        let needs_file = matches!(ruling, Ruling::Regenerate(_));
        if !stays_put || (needs_file && outcome == Outcome::Whole(Choice::Absent)) {
            return false;
        }
        if !self.put(dispute, &outcome) {
            return false;
        }
        self.receipts.push(Receipt::of_ruling(dispute, &outcome, rung));
        if let Ruling::Regenerate(how) = ruling {
            self.regenerate.push((dispute.path.clone(), how.clone()));
        }
        true
    }

    /// Whether there was room for it.
    fn put(&mut self, dispute: &Dispute, outcome: &Outcome) -> bool {
        let entry = match outcome {
            Outcome::Whole(choice) => match version_for(dispute, *choice) {
                Some(version) => NewEntry::Object { mode: version.mode, id: version.id.clone() },
                None => NewEntry::Nothing,
            },
            Outcome::Text(bytes) => {
                if self.edit_bytes + bytes.len() > EDITS_CAP {
                    return false;
                }
                self.edit_bytes += bytes.len();
                NewEntry::Content { mode: mode_of(dispute), bytes: bytes.clone() }
            }
        };
        self.edits.push(TreeEdit { path: dispute.path.as_bytes().to_vec(), entry });
        true
    }

    fn leave(&mut self, dispute: &Dispute, weighed: &Weighed, why: &Declined) {
        let structure = dispute.texts().and_then(|[base, ours, theirs]| {
            let text = self.options.structure?.settle(&dispute.path, base, ours, theirs)?;
            gate::judge(dispute, &text).is_ok().then(|| shown(&text))
        });
        self.rest.push(Brief {
            why: why.to_string(),
            hunks: hunk_briefs(dispute, weighed),
            structure,
            ..Brief::without_hunks(dispute.path.clone(), dispute.kind, Vec::new())
        });
    }
}

/// A side that changed the mode is followed.
fn mode_of(dispute: &Dispute) -> u32 {
    let mode = |side: &Option<super::dispute::Version>| side.as_ref().map(|side| side.mode);
    match (mode(&dispute.base), mode(&dispute.ours), mode(&dispute.theirs)) {
        (base, Some(ours), Some(theirs)) if base == Some(ours) => theirs,
        (_, Some(ours), _) => ours,
        (_, None, theirs) => theirs.unwrap_or(0o100_644),
    }
}

fn hunk_briefs(dispute: &Dispute, weighed: &Weighed) -> Vec<HunkBrief> {
    let mut weighed = weighed.hunks.iter();
    let brief = |hunk: &super::hunk::Hunk| HunkBrief {
        base: shown(&hunk.base),
        ours: shown(&hunk.ours),
        theirs: shown(&hunk.theirs),
        proposals: weighed.next().map(proposals).unwrap_or_default(),
    };
    hunks(&dispute.pieces).take(HUNKS_SHOWN).map(brief).collect()
}

/// The surest ones that say different things.
fn proposals(hunk: &super::weigh::WeighedHunk) -> Vec<Proposal> {
    let mut sorted: Vec<_> = hunk.candidates.iter().collect();
    sorted.sort_by(|one, other| other.worth.total_cmp(&one.worth));
    let mut seen: BTreeMap<&[u8], ()> = BTreeMap::new();
    sorted.retain(|candidate| seen.insert(&candidate.text, ()).is_none());
    let proposal = |candidate: &super::weigh::Candidate| Proposal {
        text: shown(&candidate.text),
        grade: candidate.grade.name.clone(),
        confidence: candidate.worth,
        learned_from: candidate.learned_from.clone(),
    };
    sorted.into_iter().take(PROPOSALS_SHOWN).map(proposal).collect()
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SIDE_SHOWN)]).into_owned()
}

impl Brief {
    fn without_hunks(path: TreePath, kind: ConflictKind, also: Vec<TreePath>) -> Self {
        Self {
            path,
            kind,
            also,
            why: Declined::NoAnswer.to_string(),
            hunks: Vec::new(),
            structure: None,
            ours_commits: Vec::new(),
            theirs_commits: Vec::new(),
        }
    }
}

impl Dispute {
    /// Lets go of the contents, of which there may be many.
    fn forget(&mut self) {
        self.pieces = Vec::new();
        for version in [&mut self.base, &mut self.ours, &mut self.theirs].into_iter().flatten() {
            version.bytes = None;
        }
    }
}
