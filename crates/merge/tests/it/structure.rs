//! A program that knows the language: it earns its trust in the fork's own merges, and until then it only proposes.

use std::cell::RefCell;

use host::git::LineageRange;
use merge::resolver::answer_class::ResolveStrategy;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::structure::{
    Answers, RatedMerger, StructuralMerger, StructureRecord, ThreeVersions, learn_structure,
};
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};

use crate::resolver::{people_merge, read};
use crate::world::{FORK, UPSTREAM, World};

/// Answers like this, and notes what it was asked.
struct Program<F> {
    answer: F,
    asked: RefCell<Vec<Vec<String>>>,
}

fn program<F: Fn(&ThreeVersions) -> Option<Vec<u8>>>(answer: F) -> Program<F> {
    Program { answer, asked: RefCell::default() }
}

impl<F: Fn(&ThreeVersions) -> Option<Vec<u8>>> StructuralMerger for Program<F> {
    fn program(&self) -> &str {
        "weaver 1.0"
    }

    fn merge_files<'a>(&'a self, questions: &'a [ThreeVersions]) -> Answers<'a> {
        let paths = questions.iter().map(|question| question.path.to_string()).collect();
        self.asked.borrow_mut().push(paths);
        Box::pin(async move { questions.iter().map(&self.answer).collect() })
    }
}

/// Upstream's text with the fork's last line.
#[expect(clippy::unnecessary_wraps, reason = "a program may have no answer")]
fn weave(question: &ThreeVersions) -> Option<Vec<u8>> {
    let text = String::from_utf8(question.ours.clone()).unwrap();
    let own = text.lines().last().unwrap_or_default().to_owned() + "\n";
    Some([question.theirs.as_slice(), own.as_bytes()].concat())
}

async fn ask(
    world: &World,
    program: &dyn StructuralMerger,
    record: &StructureRecord,
) -> ResolvedMerge {
    let heads = MergeHeads { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let structure = Some(RatedMerger { program, record });
    let options = ResolveOptions { structure, ..ResolveOptions::at(TrustThreshold::DEFAULT) };
    resolve_conflicts(&world.sealed().await, &heads, options).await.unwrap()
}

async fn learned(world: &World, program: &dyn StructuralMerger) -> StructureRecord {
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let range = LineageRange { tip: &tip, siblings: &[], upstream: &upstream };
    learn_structure(&world.sealed().await, range, None, program).await.unwrap()
}

/// A fork whose people always did as the program would.
fn woven(merges: usize) -> World {
    let world = World::new(&[("code", "zero\n")]);
    world.write(FORK, "code", "zero\nfork's own line\n");
    for round in 0..merges {
        world.write(UPSTREAM, "code", format!("word {round} entirely new\n"));
        let text = format!("word {round} entirely new\nfork's own line\n");
        people_merge(&world, &[("code", Some(&text))]);
    }
    world.write(UPSTREAM, "code", "the newest word of all\n");
    world
}

#[tokio::test]
async fn a_program_acts_once_it_was_right_often_enough_here() {
    let world = woven(25);
    let program = program(weave);
    let record = learned(&world, &program).await;
    assert_eq!((record.program.as_str(), record.seen.len()), ("weaver 1.0", 25));
    assert_eq!(program.asked.borrow().len(), 1, "the past is one box");
    let resolved = ask(&world, &program, &record).await;
    assert_eq!(resolved.rest, []);
    let step = &resolved.receipts[0].steps[0];
    assert_eq!(
        (step.strategy, step.program.as_deref()),
        (ResolveStrategy::Structure, Some("weaver 1.0"))
    );
    let text = read(&world, &resolved, "code").await.unwrap();
    assert_eq!(text, "the newest word of all\nfork's own line\n");
}

#[tokio::test]
async fn a_program_that_was_not_tried_here_only_proposes() {
    let world = woven(0);
    let program = program(weave);
    let resolved = ask(&world, &program, &StructureRecord::default()).await;
    let proposal = resolved.rest[0].structure.as_ref().unwrap();
    assert_eq!(proposal.answer_class, "weaver 1.0");
    assert!(proposal.text.contains("fork's own line") && proposal.confidence < 0.9);
    assert_eq!(resolved.receipts, []);
}

#[tokio::test]
async fn what_a_gate_refuses_is_not_even_proposed() {
    let world = woven(0);
    let resolved =
        ask(&world, &program(|_| Some(b"<<<<<<< a\n".to_vec())), &StructureRecord::default()).await;
    assert_eq!((resolved.rest.len(), resolved.rest[0].structure.clone()), (1, None));
}

#[tokio::test]
async fn a_program_sees_only_text_that_the_other_strategies_left() {
    let world = World::new(&[("gone", "1\n"), ("open", "1\n"), ("bin", "\0one")]);
    world.remove(FORK, "gone");
    for (path, ours, theirs) in [("open", "fork\n", "upstream\n"), ("bin", "\0two", "\0three")] {
        world.write(FORK, path, ours);
        world.write(UPSTREAM, path, theirs);
    }
    world.write(UPSTREAM, "gone", "2\n");
    let program = program(|_| None);
    ask(&world, &program, &StructureRecord::default()).await;
    assert_eq!(*program.asked.borrow(), [["open"]]);
}

#[tokio::test]
async fn another_version_starts_anew_and_merges_that_were_seen_are_not_asked_again() {
    let world = woven(3);
    let program = program(weave);
    let record = learned(&world, &program).await;
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let range = LineageRange { tip: &tip, siblings: &[], upstream: &upstream };
    let sealed = world.sealed().await;
    let again = learn_structure(&sealed, range, Some(record.clone()), &program).await.unwrap();
    assert_eq!((again == record, program.asked.borrow().len()), (true, 1));
    let older = StructureRecord { program: "weaver 0.9".to_owned(), ..record.clone() };
    let anew = learn_structure(&sealed, range, Some(older), &program).await.unwrap();
    assert_eq!((anew == record, program.asked.borrow().len()), (true, 2));
}
