//! The rung `structure`: a program that knows the language of a file. It is never linked; whoever climbs brings it and runs
//! it in a box. What its answers are worth is learned from the fork's newest merges, like everything else.

use std::collections::BTreeSet;
use std::pin::Pin;

use host::git::{GitError, PastMerge, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::decide::Trust;
use super::dispute::Dispute;
use super::gate;
use super::grade::{Grade, Rung};
use super::history::PastEnds;
use super::hunk::{hunks, join};
use super::people::{People, answers_of_people, compare};
use super::plain::look;
use super::record::{Lesson, Record};
use super::replay::observe_past;
use super::table::Table;
use super::weigh::is_settled_here;
use crate::path::TreePath;
use crate::three::text::bare;

/// A program that merges files whose language it knows.
pub trait Structure {
    /// Which program in which version, for the receipts.
    fn program(&self) -> &str;
    /// What it makes of each file; nothing where it has no answer.
    fn settle<'a>(&'a self, questions: &'a [Question]) -> Answers<'a>;
}

/// What a program makes of files, once it has ended.
pub type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Option<Vec<u8>>>> + 'a>>;

/// A file in three versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
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
pub struct Structured<'a> {
    /// The program.
    pub program: &'a dyn Structure,
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
    pub record: Record,
}

/// An answer that passed the gates.
#[derive(Clone, Debug, PartialEq)]
pub struct Structural {
    /// The text.
    pub text: Vec<u8>,
    /// What kind of answer it is.
    pub grade: Grade,
    /// What such answers are worth here.
    pub confidence: f64,
}

/// A larger file takes such a program too long.
const FILE_CAP: usize = 512 << 10;
/// So many of the newest merges are looked at, and so many files of each: a program takes a while for each of them.
const MERGES_CAP: usize = 30;
const FILES_CAP: usize = 10;

impl Question {
    /// What can be asked about a dispute: text of a size that ends in time, on both sides.
    #[must_use]
    pub fn about(dispute: &Dispute) -> Option<Self> {
        let [base, ours, theirs] = dispute.texts().filter(|_| is_settled_here(dispute))?;
        let is_small = [base, ours, theirs].iter().all(|side| side.len() <= FILE_CAP);
        is_small.then(|| Self {
            path: dispute.path.clone(),
            base: base.to_vec(),
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
        })
    }
}

impl Structured<'_> {
    /// Weighs an answer, if the gates let it through.
    #[must_use]
    pub fn weigh(&self, table: &Table, dispute: &Dispute, text: Vec<u8>) -> Option<Structural> {
        gate::judge(dispute, &text).ok()?;
        let grade = grade_of(dispute, &text);
        let path = dispute.path.to_string();
        let confidence = self.record.record.confidence(table, &grade, &path);
        Some(Structural { text, grade, confidence })
    }
}

impl Structural {
    /// Whether it may be acted upon.
    #[must_use]
    pub fn is_trusted(&self, trust: Trust) -> bool {
        trust.allows(self.confidence)
    }
}

/// A program that comes to what the words alone come to is right more often.
fn grade_of(dispute: &Dispute, text: &[u8]) -> Grade {
    let by_words: Option<Vec<Vec<u8>>> = hunks(&dispute.pieces)
        .map(|hunk| {
            let plain = look(hunk);
            plain.apart.or(plain.touching)
        })
        .collect();
    let by_words = by_words.map(|texts| join(&dispute.pieces, texts.iter().map(Vec::as_slice)));
    let is_alike = by_words.is_some_and(|by_words| bare(&by_words) == bare(text));
    Grade::new(Rung::Structure, "program", if is_alike { "like-words" } else { "alone" })
}

/// Tries the program on the newest merges of a fork that it was not tried on yet.
pub async fn learn_structure(
    repo: &SealedRepo,
    ends: PastEnds<'_>,
    kept: Option<StructureRecord>,
    program: &dyn Structure,
) -> Result<StructureRecord, GitError> {
    let all = repo.past_merges(ends.tip, ends.upstream, usize::MAX).await?;
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
        let Ok(facts) = observe_past(repo, merge).await else { continue };
        let asked = facts.disputes.into_iter().filter_map(|(dispute, people)| {
            Question::about(&dispute).map(|question| (question, dispute, people))
        });
        cases.push(asked.take(FILES_CAP).collect::<Vec<_>>());
    }
    record.take(&cases, program).await;
    record.seen.extend(new.into_iter().map(|merge| merge.sha.clone()));
    Ok(record)
}

type Case = (Question, Dispute, People);

impl StructureRecord {
    /// All files are asked about at once, because starting a box takes longer than an answer; each merge is one lesson.
    async fn take(&mut self, merges: &[Vec<Case>], program: &dyn Structure) {
        let questions: Vec<Question> =
            merges.iter().flatten().map(|(question, ..)| question.clone()).collect();
        if questions.is_empty() {
            return;
        }
        let mut answers = program.settle(&questions).await.into_iter();
        for merge in merges {
            let mut lessons = Vec::new();
            for (_, dispute, people) in merge {
                let Some(text) = answers.next().flatten() else { continue };
                if gate::judge(dispute, &text).is_ok() {
                    lessons.push(lesson(dispute, people, &text));
                }
            }
            self.record.learn(Table::shipped(), &lessons);
        }
    }
}

fn lesson(dispute: &Dispute, people: &People, text: &[u8]) -> Lesson {
    Lesson {
        grade: grade_of(dispute, text),
        path: dispute.path.to_string(),
        agreed: agrees(dispute, people, text),
    }
}

/// Whether people committed the same, or put the same in place of each hunk.
#[must_use]
pub fn agrees(dispute: &Dispute, people: &People, text: &[u8]) -> bool {
    if compare(Some(text), people.bytes.as_deref()).holds() {
        return true;
    }
    let given = answers_of_people(&dispute.pieces, text);
    let same = |(given, people): (&Option<Vec<u8>>, &Option<Vec<u8>>)| match (given, people) {
        (Some(given), Some(people)) => bare(given) == bare(people),
        _ => false,
    };
    !given.is_empty() && given.iter().zip(&people.hunks).all(same)
}
