//! The rung `structure`: a program that knows the language of a file. It is never linked; whoever climbs brings it and runs
//! it in a box. What its answers are worth is learned from the fork's newest merges, like everything else.

use std::collections::BTreeSet;
use std::pin::Pin;

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::analysis::analyze_hunk;
use super::answer_class::{AnswerClass, ResolveStrategy};
use super::conflict::FileConflict;
use super::decide::TrustThreshold;
use super::gate;
use super::history::HistoryRange;
use super::human::{HumanResolution, compare, human_answers};
use super::hunk::{hunks, join};
use super::record::{Lesson, PrecisionRecord};
use super::replay::observe_merge;
use super::scorer::is_resolvable;
use super::table::Table;
use crate::path::TreePath;
use crate::three::text::bare;

/// A program that merges files whose language it knows.
pub trait StructuralMerger {
    /// Which program in which version, for the receipts.
    fn program(&self) -> &str;
    /// What it makes of each file; nothing where it has no answer.
    fn merge_files<'a>(&'a self, questions: &'a [ThreeVersions]) -> Answers<'a>;
}

/// What a program makes of files, once it has ended.
pub type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Option<Vec<u8>>>> + 'a>>;

/// A file in three versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreeVersions {
    /// Where it is.
    pub path: TreePath,
    /// In the common ancestor; empty where it has none.
    pub base: Vec<u8>,
    /// In the fork.
    pub ours: Vec<u8>,
    /// In upstream.
    pub theirs: Vec<u8>,
}

/// The program, and what its answers were worth so far.
#[derive(Clone, Copy)]
pub struct RatedMerger<'a> {
    /// The program.
    pub program: &'a dyn StructuralMerger,
    /// Its record in this fork.
    pub record: &'a StructureRecord,
}

/// How a program did in a fork.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructureRecord {
    /// The program; another one starts anew.
    pub program: String,
    /// The merges that it was tried on.
    pub seen: Vec<Sha>,
    /// How often it was right.
    pub record: PrecisionRecord,
}

/// An answer that passed the gates.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuralAnswer {
    /// The text.
    pub text: Vec<u8>,
    /// What kind of answer it is.
    pub answer_class: AnswerClass,
    /// What such answers are worth here.
    pub confidence: f64,
}

/// A larger file takes such a program too long.
const FILE_CAP: usize = 512 << 10;
/// So many of the newest merges are looked at, and so many files of each: a program takes a while for each of them.
const MERGES_CAP: usize = 30;
const FILES_CAP: usize = 10;

impl ThreeVersions {
    /// What can be asked about a dispute: text of a size that ends in time, on both sides.
    #[must_use]
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
    /// Weighs an answer, if the gates let it through.
    #[must_use]
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

impl StructuralAnswer {
    /// Whether it may be acted upon.
    #[must_use]
    pub fn is_trusted(&self, trust: TrustThreshold) -> bool {
        trust.allows(self.confidence)
    }
}

/// A program that comes to what the words alone come to is right more often.
fn answer_class_of(conflict: &FileConflict, text: &[u8]) -> AnswerClass {
    let by_words: Option<Vec<Vec<u8>>> = hunks(&conflict.pieces)
        .map(|hunk| {
            let analysis = analyze_hunk(hunk);
            analysis.apart.or(analysis.touching)
        })
        .collect();
    let by_words = by_words.map(|texts| join(&conflict.pieces, texts.iter().map(Vec::as_slice)));
    let is_alike = by_words.is_some_and(|by_words| bare(&by_words) == bare(text));
    AnswerClass::new(
        ResolveStrategy::Structure,
        "program",
        if is_alike { "like-words" } else { "alone" },
    )
}

/// Tries the program on the newest merges of a fork that it was not tried on yet.
pub async fn learn_structure(
    repo: &SealedRepo,
    range: HistoryRange<'_>,
    kept: Option<StructureRecord>,
    program: &dyn StructuralMerger,
) -> Result<StructureRecord, GitError> {
    let all = repo.past_merges(range.tip, range.upstream, usize::MAX).await?;
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
        // A merge that cannot be looked at teaches nothing; the ladder's own past names it.
        let Ok(facts) = observe_merge(repo, merge).await else { continue };
        let asked = facts.conflicts.into_iter().filter_map(|(conflict, human)| {
            ThreeVersions::about(&conflict).map(|question| (question, conflict, human))
        });
        cases.push(asked.take(FILES_CAP).collect::<Vec<_>>());
    }
    record.take(&cases, program).await;
    record.seen.extend(new.into_iter().map(|merge| merge.sha.clone()));
    Ok(record)
}

type Case = (ThreeVersions, FileConflict, HumanResolution);

impl StructureRecord {
    /// All files are asked about at once, because starting a box takes longer than an answer; each merge is one lesson.
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
                    lessons.push(lesson(conflict, human, &text));
                }
            }
            self.record.learn(Table::shipped(), &lessons);
        }
    }
}

fn lesson(conflict: &FileConflict, human: &HumanResolution, text: &[u8]) -> Lesson {
    Lesson {
        answer_class: answer_class_of(conflict, text),
        path: conflict.path.to_string(),
        agreed: agrees(conflict, human, text),
    }
}

/// Whether people committed the same, or put the same in place of each hunk.
#[must_use]
pub fn agrees(conflict: &FileConflict, human: &HumanResolution, text: &[u8]) -> bool {
    if compare(Some(text), human.bytes.as_deref()).holds() {
        return true;
    }
    let given = human_answers(&conflict.pieces, text);
    let same = |(given, human): (&Option<Vec<u8>>, &Option<Vec<u8>>)| match (given, human) {
        (Some(given), Some(human)) => bare(given) == bare(human),
        _ => false,
    };
    !given.is_empty() && given.iter().zip(&human.hunks).all(same)
}
