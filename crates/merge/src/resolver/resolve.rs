//! Resolves the conflicts of one merge: trusted answers go into the tree, every other conflict gets a brief.
//!
//! All of it happens in memory and in the host's own repository. No hook, filter or merge driver of the fork runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use host::git::{GitError, NewEntry, SealedRepo, TreeEdit};
use model::id::Sha;

use super::answer_class::ResolveStrategy;
use super::brief::{Brief, Proposal};
use super::conflict::{FileConflict, FileVersion, list_conflicts, read_contents};
use super::decide::{Declined, ResolvedContent, TrustThreshold, decide, version_for};
use super::gate;
use super::habit::Resolution;
use super::hunk::Side;
use super::knowledge::Knowledge;
use super::receipt::Receipt;
use super::rule::{PathRule, Regenerate, ResolveRules};
use super::scorer::{ScoredConflict, Scorer};
use super::structure::{RatedMerger, StructuralAnswer, ThreeVersions};
use super::table::Table;
use crate::clean::{Conflict, ConflictKind, conflicts_of};
use crate::path::TreePath;

/// The two commits of a merge: the fork's and upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeHeads {
    pub ours: Sha,
    pub theirs: Sha,
}

/// Result of the command that generates a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegeneratedFile {
    Text(Vec<u8>),
    /// The command failed or left no usable file, for this reason.
    Failed(String),
}

/// Results of the regeneration commands that a first resolution requested, by path.
pub type RegeneratedFiles = BTreeMap<TreePath, RegeneratedFile>;

/// Options of [`resolve_conflicts`].
#[derive(Clone, Copy)]
pub struct ResolveOptions<'a> {
    /// Confidence that an answer needs.
    pub trust: TrustThreshold,
    /// The owner's rules for paths.
    pub rules: &'a ResolveRules,
    /// Shipped values, from other forks.
    pub table: &'a Table,
    /// Values learned from this fork's merges.
    pub knowledge: &'a Knowledge,
    /// The program of the `structure` strategy, if one is installed. It gets the files that the other strategies left open.
    pub structure: Option<RatedMerger<'a>>,
    /// Results of regeneration commands. A file with a `regenerate` rule that is missing here is taken from one side and
    /// listed in [`ResolvedMerge::regenerate`]; the caller runs its command and resolves again.
    pub regenerated: &'a RegeneratedFiles,
}

static NO_RULES: ResolveRules = ResolveRules::new();
static NO_KNOWLEDGE: LazyLock<Knowledge> = LazyLock::new(Knowledge::default);
static NOT_REGENERATED: RegeneratedFiles = RegeneratedFiles::new();

impl ResolveOptions<'_> {
    /// Options with this threshold and the shipped table, without rules, history or programs.
    pub fn at(trust: TrustThreshold) -> Self {
        Self {
            trust,
            rules: &NO_RULES,
            table: Table::shipped(),
            knowledge: &NO_KNOWLEDGE,
            structure: None,
            regenerated: &NOT_REGENERATED,
        }
    }
}

/// A merge with its resolved and its open conflicts.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedMerge {
    /// The tree. Files of `rest` are in it as git left them, with conflict markers.
    pub tree: Sha,
    /// Resolved conflicts, sorted by path.
    pub receipts: Vec<Receipt>,
    /// Open conflicts, sorted by path.
    pub rest: Vec<Brief>,
    /// Files that were taken from one side and have to be regenerated with these commands.
    pub regenerate: Vec<(TreePath, Regenerate)>,
}

/// Most files that the structural merger gets in one merge.
const STRUCTURE_CAP: usize = 200;
/// Most bytes of resolved content in one tree.
const EDITS_CAP: usize = 512 << 20;

/// Merges two commits that have a common ancestor and resolves conflicts at the trust threshold of `options`.
pub async fn resolve_conflicts(
    repo: &SealedRepo,
    heads: &MergeHeads,
    options: ResolveOptions<'_>,
) -> Result<ResolvedMerge, GitError> {
    let merged = repo.merge_tree(&heads.ours, &heads.theirs).await?;
    let mut conflicts = list_conflicts(&merged);
    let mut run = ResolverRun::new(options, conflicts.len());
    let mut done = 0;
    while done < conflicts.len() {
        let count = read_contents(repo, &mut conflicts[done..]).await?;
        let all = conflicts.len();
        let batch = &mut conflicts[done..done + count];
        run.take_batch(batch, all);
        run.ask_structural_merger(batch).await;
        batch.iter_mut().for_each(FileConflict::forget);
        done += count;
    }
    run.brief_pathless(conflicts_of(&merged), &conflicts);
    run.rest.sort_by(|one, other| one.path.cmp(&other.path));
    run.receipts.sort_by(|one, other| one.path.cmp(&other.path));
    let tree = if run.edits.is_empty() {
        merged.tree
    } else {
        repo.edit_tree(&merged.tree, &run.edits).await?
    };
    let ResolverRun { receipts, rest, regenerate, .. } = run;
    Ok(ResolvedMerge { tree, receipts, rest, regenerate })
}

/// State of one [`resolve_conflicts`] call.
struct ResolverRun<'a> {
    options: ResolveOptions<'a>,
    conflict_count: usize,
    edits: Vec<TreeEdit>,
    edit_bytes: usize,
    receipts: Vec<Receipt>,
    rest: Vec<Brief>,
    regenerate: Vec<(TreePath, Regenerate)>,
    /// Files given to the structural merger so far.
    merged_by_structure: usize,
}

impl<'a> ResolverRun<'a> {
    fn new(options: ResolveOptions<'a>, conflict_count: usize) -> Self {
        Self {
            options,
            conflict_count,
            edits: Vec::new(),
            edit_bytes: 0,
            receipts: Vec::new(),
            rest: Vec::new(),
            regenerate: Vec::new(),
            merged_by_structure: 0,
        }
    }

    /// Decides about the conflicts of a batch, whose answers are weighed together.
    fn take_batch(&mut self, batch: &[FileConflict], all: usize) {
        let open: Vec<&FileConflict> =
            batch.iter().filter(|conflict| !self.is_ruled(conflict)).collect();
        let mut scored: Vec<ScoredConflict> =
            open.iter().map(|conflict| self.score(conflict)).collect();
        let mut pairs: Vec<(&FileConflict, &mut ScoredConflict)> =
            open.iter().copied().zip(&mut scored).collect();
        let ResolveOptions { table, knowledge, .. } = self.options;
        knowledge.standings.limit(table, &mut pairs, all - batch.len());
        for (conflict, scored) in open.into_iter().zip(&scored) {
            self.take(conflict, scored);
        }
    }

    /// Returns whether a rule of the owner resolved the conflict.
    fn is_ruled(&mut self, conflict: &FileConflict) -> bool {
        let rule = self.options.rules.rule_at(conflict.path.as_bytes()).cloned();
        rule.is_some_and(|rule| self.follow(conflict, &rule))
    }

    fn take(&mut self, conflict: &FileConflict, scored: &ScoredConflict) {
        match decide(conflict, scored, self.trust_at(conflict)) {
            Ok(decision) if self.put(conflict, &decision.outcome) => {
                self.receipts.push(Receipt::of(conflict, scored, &decision));
            }
            Ok(_) => self.leave(conflict, scored, Declined::NoAnswer.to_string()),
            Err(declined) => self.leave(conflict, scored, declined.to_string()),
        }
    }

    fn score(&self, conflict: &FileConflict) -> ScoredConflict {
        let ResolveOptions { table, knowledge, .. } = self.options;
        Scorer { table, knowledge, conflict_count: self.conflict_count }.score(conflict)
    }

    fn trust_at(&self, conflict: &FileConflict) -> TrustThreshold {
        self.options.rules.trust_at(conflict.path.as_bytes(), self.options.trust)
    }

    /// Gives open conflicts of the batch to the structural merger. An answer below the threshold becomes a proposal.
    async fn ask_structural_merger(&mut self, batch: &[FileConflict]) {
        let Some(structured) = self.options.structure else { return };
        let open: BTreeSet<TreePath> = self.rest.iter().map(|brief| brief.path.clone()).collect();
        let open: Vec<(&FileConflict, ThreeVersions)> = batch
            .iter()
            .filter(|conflict| open.contains(&conflict.path))
            .filter_map(|conflict| Some((conflict, ThreeVersions::about(conflict)?)))
            .take(STRUCTURE_CAP.saturating_sub(self.merged_by_structure))
            .collect();
        if open.is_empty() {
            return;
        }
        self.merged_by_structure += open.len();
        let (conflicts, questions): (Vec<_>, Vec<_>) = open.into_iter().unzip();
        let answers = structured.program.merge_files(&questions).await;
        for (conflict, answer) in conflicts.into_iter().zip(answers) {
            let score = |text| structured.score(self.options.table, conflict, text);
            if let Some(found) = answer.and_then(score) {
                self.use_structural_answer(structured.program.program(), conflict, found);
            }
        }
    }

    fn use_structural_answer(
        &mut self,
        program: &str,
        conflict: &FileConflict,
        found: StructuralAnswer,
    ) {
        let Some(at) = self.rest.iter().position(|brief| brief.path == conflict.path) else {
            return;
        };
        if self.trust_at(conflict).allows(found.confidence) {
            let (receipt, outcome) = Receipt::of_structure(conflict, found, program);
            if self.put(conflict, &outcome) {
                self.rest.remove(at);
                self.receipts.push(receipt);
            }
            return;
        }
        self.rest[at].structure = Some(Proposal::of_structure(&found, program));
    }

    /// Adds the other paths of open conflicts, and briefs for conflicts at a folder or name without a version of its own.
    fn brief_pathless(&mut self, reported: Vec<Conflict>, conflicts: &[FileConflict]) {
        let known: BTreeSet<&TreePath> = conflicts.iter().map(|conflict| &conflict.path).collect();
        let numbered = self.rest.iter().enumerate();
        let open: BTreeMap<TreePath, usize> =
            numbered.map(|(at, brief)| (brief.path.clone(), at)).collect();
        for Conflict { path, kind, also } in reported {
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

    /// Applies a rule. Conflicts that span several paths cannot be resolved by a rule for one.
    fn follow(&mut self, conflict: &FileConflict, rule: &PathRule) -> bool {
        let stays_put = !matches!(
            conflict.kind,
            ConflictKind::FileDirectory
                | ConflictKind::RenameRename
                | ConflictKind::RenameCollision
                | ConflictKind::DirectoryRename
        );
        let side = match rule {
            _ if !stays_put => return false,
            PathRule::Ours => Side::Ours,
            PathRule::Theirs => Side::Theirs,
            PathRule::Regenerate(how) => return self.use_regenerated(conflict, how),
            PathRule::Trust(_) => return false,
        };
        let outcome = ResolvedContent::Whole(side_or_nothing(conflict, side));
        if !self.put(conflict, &outcome) {
            return false;
        }
        self.receipts.push(Receipt::of_rule(conflict, &outcome, ResolveStrategy::Policy));
        true
    }

    /// Uses the output of a regeneration command after the same gate as any other result. Before the command has run, the
    /// file starts from one side, which must have it.
    fn use_regenerated(&mut self, conflict: &FileConflict, how: &Regenerate) -> bool {
        let options = self.options;
        let text = match options.regenerated.get(&conflict.path) {
            None => return self.start_from_a_side(conflict, how),
            Some(RegeneratedFile::Text(text)) => {
                gate::judge(conflict, text).map(|()| text).map_err(|why| why.to_string())
            }
            Some(RegeneratedFile::Failed(why)) => Err(why.clone()),
        };
        match text {
            Ok(text) => {
                let outcome = ResolvedContent::Text(text.clone());
                if !self.put(conflict, &outcome) {
                    return false;
                }
                self.receipts.push(Receipt::of_regenerated(conflict, &outcome, &how.command));
            }
            Err(why) => {
                let why = format!("its command (`{}`) failed: {why}", how.command);
                self.leave(conflict, &self.score(conflict), why);
            }
        }
        true
    }

    fn start_from_a_side(&mut self, conflict: &FileConflict, how: &Regenerate) -> bool {
        let outcome = ResolvedContent::Whole(side_or_nothing(conflict, how.from));
        if outcome == ResolvedContent::Whole(Resolution::Absent) || !self.put(conflict, &outcome) {
            return false;
        }
        self.receipts.push(Receipt::of_rule(conflict, &outcome, ResolveStrategy::Regenerate));
        self.regenerate.push((conflict.path.clone(), how.clone()));
        true
    }

    /// Adds a tree edit; false if the size limit is reached.
    fn put(&mut self, conflict: &FileConflict, outcome: &ResolvedContent) -> bool {
        let entry = match outcome {
            ResolvedContent::Whole(choice) => match version_for(conflict, *choice) {
                Some(version) => NewEntry::Object { mode: version.mode, id: version.id.clone() },
                None => NewEntry::Nothing,
            },
            ResolvedContent::Text(bytes) => {
                if self.edit_bytes + bytes.len() > EDITS_CAP {
                    return false;
                }
                self.edit_bytes += bytes.len();
                NewEntry::Content { mode: mode_of(conflict), bytes: bytes.clone() }
            }
        };
        self.edits.push(TreeEdit { path: conflict.path.as_bytes().to_vec(), entry });
        true
    }

    fn leave(&mut self, conflict: &FileConflict, scored: &ScoredConflict, why: String) {
        self.rest.push(Brief::of(conflict, scored, why, &self.options.knowledge.nearby));
    }
}

/// The side, or `Absent` if it has no file.
fn side_or_nothing(conflict: &FileConflict, side: Side) -> Resolution {
    let choice = match side {
        Side::Ours => Resolution::Ours,
        Side::Theirs => Resolution::Theirs,
    };
    if version_for(conflict, choice).is_some() { choice } else { Resolution::Absent }
}

/// Mode of the result: the side that changed it wins.
fn mode_of(conflict: &FileConflict) -> u32 {
    let mode = |side: &Option<FileVersion>| side.as_ref().map(|side| side.mode);
    match (mode(&conflict.base), mode(&conflict.ours), mode(&conflict.theirs)) {
        (base, Some(ours), Some(theirs)) if base == Some(ours) => theirs,
        (_, Some(ours), _) => ours,
        (_, None, theirs) => theirs.unwrap_or(0o100_644),
    }
}
