//! The way up: a merge, everything that the rungs may settle settled, and the rest with a brief for each conflict.
//!
//! All of it happens in memory and in a repository of ours; nothing of the repository's is run.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, NewEntry, SealedRepo, TreeEdit};
use model::id::Sha;

use super::brief::{Brief, Proposal};
use super::decide::{Declined, Outcome, Trust, decide, version_for};
use super::dispute::{Dispute, list_disputes, read_contents};
use super::gate;
use super::grade::Rung;
use super::habit::Choice;
use super::knowledge::Knowledge;
use super::receipt::Receipt;
use super::rule::{Regenerate, RegenerateFrom, Rules, Ruling};
use super::structure::{Question, Structural, Structured};
use super::table::Table;
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

/// What the program that makes a file made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// This.
    Text(Vec<u8>),
    /// Nothing, for this reason.
    Failed(String),
}

/// Files that were made anew, after a first climb named them.
pub type Remade = BTreeMap<TreePath, Made>;

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
    /// The rung `structure`, where there is a program for it. It is asked about what the others left.
    pub structure: Option<Structured<'a>>,
    /// Files that were made anew. A ruled file that is not among them is taken from one side and named in
    /// [`Climb::regenerate`], so that somebody can run its command and climb again.
    pub remade: &'a Remade,
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

/// So many files are asked about in the language they are written in.
const ASKED_CAP: usize = 200;
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
        let batch = &mut disputes[done..done + count];
        batch.iter().for_each(|dispute| ascent.take(dispute));
        ascent.ask_structure(batch).await;
        batch.iter_mut().for_each(Dispute::forget);
        done += count;
    }
    ascent.name_the_others(conflicts_of(&merged), &disputes);
    ascent.rest.sort_by(|one, other| one.path.cmp(&other.path));
    ascent.receipts.sort_by(|one, other| one.path.cmp(&other.path));
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
    /// How many files were asked about in their language.
    asked: usize,
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
            asked: 0,
        }
    }

    fn take(&mut self, dispute: &Dispute) {
        if let Some(ruling) = self.options.rules.ruling_at(dispute.path.as_bytes()).cloned()
            && self.follow(dispute, &ruling)
        {
            return;
        }
        let weighed = self.weigh(dispute);
        match decide(dispute, &weighed, self.trust_at(dispute)) {
            Ok(decision) if self.put(dispute, &decision.outcome) => {
                self.receipts.push(Receipt::of(dispute, &weighed, &decision));
            }
            Ok(_) => self.leave(dispute, &weighed, Declined::NoAnswer.to_string()),
            Err(declined) => self.leave(dispute, &weighed, declined.to_string()),
        }
    }

    fn weigh(&self, dispute: &Dispute) -> Weighed {
        let ClimbOptions { table, knowledge, .. } = self.options;
        Scales { table, knowledge, conflicts: self.conflicts }.weigh(dispute)
    }

    fn trust_at(&self, dispute: &Dispute) -> Trust {
        self.options.rules.trust_at(dispute.path.as_bytes(), self.options.trust)
    }

    /// Asks the program about what the other rungs left of these. What it is not trusted with becomes a proposal.
    async fn ask_structure(&mut self, batch: &[Dispute]) {
        let Some(structured) = self.options.structure else { return };
        let open: BTreeSet<TreePath> = self.rest.iter().map(|brief| brief.path.clone()).collect();
        let asked: Vec<(&Dispute, Question)> = batch
            .iter()
            .filter(|dispute| open.contains(&dispute.path))
            .filter_map(|dispute| Some((dispute, Question::about(dispute)?)))
            .take(ASKED_CAP.saturating_sub(self.asked))
            .collect();
        if asked.is_empty() {
            return;
        }
        self.asked += asked.len();
        let (disputes, questions): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let answers = structured.program.settle(&questions).await;
        for (dispute, answer) in disputes.into_iter().zip(answers) {
            let weigh = |text| structured.weigh(self.options.table, dispute, text);
            if let Some(found) = answer.and_then(weigh) {
                self.follow_structure(structured.program.program(), dispute, found);
            }
        }
    }

    fn follow_structure(&mut self, program: &str, dispute: &Dispute, found: Structural) {
        let Some(at) = self.rest.iter().position(|brief| brief.path == dispute.path) else {
            return;
        };
        if found.is_trusted(self.trust_at(dispute)) {
            let (receipt, outcome) = Receipt::of_structure(dispute, found, program);
            if self.put(dispute, &outcome) {
                self.rest.remove(at);
                self.receipts.push(receipt);
            }
            return;
        }
        self.rest[at].structure = Some(Proposal::of_structure(&found, program));
    }

    /// A conflict can have several paths, or be about a folder or a name that has no version of its own.
    fn name_the_others(&mut self, conflicts: Vec<Conflict>, disputes: &[Dispute]) {
        let known: BTreeSet<&TreePath> = disputes.iter().map(|dispute| &dispute.path).collect();
        let numbered = self.rest.iter().enumerate();
        let open: BTreeMap<TreePath, usize> =
            numbered.map(|(at, brief)| (brief.path.clone(), at)).collect();
        for Conflict { path, kind, also } in conflicts {
            match open.get(&path) {
                Some(&at) => self.rest[at].also = also,
                None if !known.contains(&path) => {
                    let nearby = &self.options.knowledge.nearby;
                    self.rest.push(Brief::without_hunks(path, kind, also, nearby));
                }
                None => {}
            }
        }
    }

    /// A ruling can be followed where the conflict is about one path.
    fn follow(&mut self, dispute: &Dispute, ruling: &Ruling) -> bool {
        let stays_put = !matches!(
            dispute.kind,
            ConflictKind::FileDirectory
                | ConflictKind::RenameRename
                | ConflictKind::RenameCollision
                | ConflictKind::DirectoryRename
        );
        let choice = match ruling {
            _ if !stays_put => return false,
            Ruling::Ours => Choice::Ours,
            Ruling::Theirs => Choice::Theirs,
            Ruling::Regenerate(how) => return self.make_anew(dispute, how),
            Ruling::Trust(_) => return false,
        };
        let outcome = Outcome::Whole(side_or_nothing(dispute, choice));
        if !self.put(dispute, &outcome) {
            return false;
        }
        self.receipts.push(Receipt::of_ruling(dispute, &outcome, Rung::Policy));
        true
    }

    /// What was made anew is judged like every other result. What has still to be made starts from the side that was
    /// ruled, which must have the file.
    fn make_anew(&mut self, dispute: &Dispute, how: &Regenerate) -> bool {
        let options = self.options;
        let text = match options.remade.get(&dispute.path) {
            None => return self.start_from_a_side(dispute, how),
            Some(Made::Text(text)) => {
                gate::judge(dispute, text).map(|()| text).map_err(|why| why.to_string())
            }
            Some(Made::Failed(why)) => Err(why.clone()),
        };
        match text {
            Ok(text) => {
                let outcome = Outcome::Text(text.clone());
                if !self.put(dispute, &outcome) {
                    return false;
                }
                self.receipts.push(Receipt::of_remade(dispute, &outcome, &how.command));
            }
            Err(why) => {
                let why = format!("its command (`{}`) did not make it anew: {why}", how.command);
                self.leave(dispute, &self.weigh(dispute), why);
            }
        }
        true
    }

    fn start_from_a_side(&mut self, dispute: &Dispute, how: &Regenerate) -> bool {
        let choice = match how.from {
            RegenerateFrom::Ours => Choice::Ours,
            RegenerateFrom::Theirs => Choice::Theirs,
        };
        let outcome = Outcome::Whole(side_or_nothing(dispute, choice));
        if outcome == Outcome::Whole(Choice::Absent) || !self.put(dispute, &outcome) {
            return false;
        }
        self.receipts.push(Receipt::of_ruling(dispute, &outcome, Rung::Regenerate));
        self.regenerate.push((dispute.path.clone(), how.clone()));
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

    fn leave(&mut self, dispute: &Dispute, weighed: &Weighed, why: String) {
        self.rest.push(Brief::of(dispute, weighed, why, &self.options.knowledge.nearby));
    }
}

/// The side, or that there is nothing, as the side has it.
fn side_or_nothing(dispute: &Dispute, choice: Choice) -> Choice {
    if version_for(dispute, choice).is_some() { choice } else { Choice::Absent }
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

impl Dispute {
    /// Lets go of the contents, of which there may be many.
    fn forget(&mut self) {
        self.pieces = Vec::new();
        for version in [&mut self.base, &mut self.ours, &mut self.theirs].into_iter().flatten() {
            version.bytes = None;
        }
    }
}
