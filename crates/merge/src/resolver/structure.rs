//! The `structure` strategy: an external program that merges files by syntax. The caller provides it and runs it in a box.
//! The precision of its answers is measured on the fork's newest merges.

use std::collections::BTreeSet;
use std::pin::Pin;

use host::git::{GitError, LineageRange, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::analysis::analyze_hunk;
use super::answer_class::{AnswerClass, ResolveStrategy};
use super::conflict::FileConflict;
use super::gate;
use super::human::HumanResolution;
use super::hunk::{hunks, join};
use super::record::{Lesson, PrecisionRecord};
use super::replay::observe_merge;
use super::scorer::is_resolvable;
use super::table::Table;
use crate::path::TreePath;
use crate::three::text::bare;

/// A program that merges files by syntax.
pub trait StructuralMerger {
    /// Name and version, for the receipts.
    fn program(&self) -> &str;
    /// Merges each file; `None` where it has no answer.
    fn merge_files<'a>(&'a self, questions: &'a [ThreeVersions]) -> Answers<'a>;
}

/// Future of the merged files.
pub type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Option<Vec<u8>>>> + 'a>>;

/// A file in three versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreeVersions {
    pub path: TreePath,
    /// The common ancestor's text; empty if there is none.
    pub base: Vec<u8>,
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
}

/// A structural merger with its measured precision.
#[derive(Clone, Copy)]
pub struct RatedMerger<'a> {
    pub program: &'a dyn StructuralMerger,
    pub record: &'a StructureRecord,
}

/// Precision of a structural merger in a fork.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructureRecord {
    /// Name and version; the record of another one is discarded.
    pub program: String,
    pub seen: Vec<Sha>,
    pub record: PrecisionRecord,
}

/// An answer that passed the gate.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralAnswer {
    pub text: Vec<u8>,
    pub answer_class: AnswerClass,
    /// Measured precision of the class in this fork.
    pub confidence: f64,
}

/// Largest version of a file that is given to the program.
const FILE_CAP: usize = 512 << 10;
/// Most merges that are tried, newest first, and most files of each. The program needs a while for each file.
const MERGES_CAP: usize = 30;
const FILES_CAP: usize = 10;

impl ThreeVersions {
    /// The versions of a conflict, if both sides have a text of at most `FILE_CAP` bytes.
    pub fn about(conflict: &FileConflict) -> Option<Self> {
        let [base, ours, theirs] = conflict.texts().filter(|_| is_resolvable(conflict))?;
        let is_small = [base, ours, theirs].iter().all(|side| side.len() <= FILE_CAP);
        is_small.then(|| Self {
            path: conflict.path.clone(),
            base: base.to_vec(),
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
        })
    }
}

impl RatedMerger<'_> {
    /// Scores an answer that passes the gate.
    pub fn score(
        &self,
        table: &Table,
        conflict: &FileConflict,
        text: Vec<u8>,
    ) -> Option<StructuralAnswer> {
        gate::judge(conflict, &text).ok()?;
        let answer_class = answer_class_of(conflict, &text);
        let path = conflict.path.to_string();
        let confidence = self.record.record.confidence(table, &answer_class, &path);
        Some(StructuralAnswer { text, answer_class, confidence })
    }
}

/// Class of an answer. One that equals the token merge is right more often.
fn answer_class_of(conflict: &FileConflict, text: &[u8]) -> AnswerClass {
    let by_words: Option<Vec<Vec<u8>>> = hunks(&conflict.pieces)
        .map(|hunk| {
            let analysis = analyze_hunk(hunk);
            analysis.apart.or(analysis.touching)
        })
        .collect();
    let by_words = by_words.map(|texts| join(&conflict.pieces, texts.iter().map(Vec::as_slice)));
    let is_alike = by_words.is_some_and(|by_words| bare(&by_words) == bare(text));
    let detail = if is_alike { "like-words" } else { "alone" };
    AnswerClass::new(ResolveStrategy::Structure, "program", detail)
}

/// Tries the program on the newest merges that it was not tried on yet.
pub async fn learn_structure(
    repo: &SealedRepo,
    range: LineageRange<'_>,
    kept: Option<StructureRecord>,
    program: &dyn StructuralMerger,
) -> Result<StructureRecord, GitError> {
    let all = repo.past_merges(range, usize::MAX).await?;
    let reachable: BTreeSet<&Sha> = all.iter().map(|merge| &merge.sha).collect();
    let is_of = |kept: &StructureRecord| {
        kept.program == program.program() && kept.seen.iter().all(|sha| reachable.contains(sha))
    };
    let mut record = kept.filter(is_of).unwrap_or_else(|| StructureRecord {
        program: program.program().to_owned(),
        ..StructureRecord::default()
    });
    let seen: BTreeSet<Sha> = record.seen.iter().cloned().collect();
    let newest = all.len().saturating_sub(MERGES_CAP);
    let new: Vec<&PastMerge> =
        all.iter().skip(newest).filter(|merge| !seen.contains(&merge.sha)).collect();
    let mut cases = Vec::new();
    for merge in &new {
        // A merge that cannot be read is skipped; `history::learn` reports it.
        let Ok(facts) = observe_merge(repo, merge).await else { continue };
        let answerable = facts.conflicts.into_iter().filter_map(|(conflict, human)| {
            ThreeVersions::about(&conflict).map(|question| (question, conflict, human))
        });
        cases.push(answerable.take(FILES_CAP).collect::<Vec<_>>());
    }
    record.take(&cases, program).await;
    record.seen.extend(new.into_iter().map(|merge| merge.sha.clone()));
    Ok(record)
}

type Case = (ThreeVersions, FileConflict, HumanResolution);

impl StructureRecord {
    /// Gives all files to the program at once, because starting a box takes longer than an answer. Each merge counts as one.
    async fn take(&mut self, merges: &[Vec<Case>], program: &dyn StructuralMerger) {
        let questions: Vec<ThreeVersions> =
            merges.iter().flatten().map(|(question, ..)| question.clone()).collect();
        if questions.is_empty() {
            return;
        }
        let mut answers = program.merge_files(&questions).await.into_iter();
        for merge in merges {
            let mut lessons = Vec::new();
            for (_, conflict, human) in merge {
                let Some(text) = answers.next().flatten() else { continue };
                if gate::judge(conflict, &text).is_ok() {
                    lessons.push(Lesson {
                        answer_class: answer_class_of(conflict, &text),
                        path: conflict.path.to_string(),
                        agreed: human.agree_with_file(conflict, &text),
                    });
                }
            }
            self.record.learn(Table::shipped(), &lessons);
        }
    }
}
