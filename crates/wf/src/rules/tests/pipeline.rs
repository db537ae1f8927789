//! Steps after every outcome of every stage.

use crate::rules::pipeline::{
    Cycle, Ending, EndingKind, NextCycle, RunMode, RunStage, StageOutcome, Transition, next_cycle,
};
use crate::rules::profile::Pause;
use model::exit::WfExit;

/// Every stage that a cycle can be in.
fn reachable() -> Vec<Cycle> {
    let mut cycles = vec![Cycle::start()];
    let mut add = |from: Cycle, outcome: StageOutcome| match from.next(outcome) {
        Transition::Enter(next) => {
            cycles.push(next);
            Some(next)
        }
        Transition::Finish(_) => None,
    };
    let mut cycle = Cycle::start();
    while let Some(next) = add(cycle, StageOutcome::Passed) {
        cycle = next;
    }
    let check = add(Cycle::start(), StageOutcome::AllDone).unwrap();
    add(check, StageOutcome::Passed);
    // The check before the acceptance has the same name as the one before a micro-commit.
    cycles.sort_by_key(|cycle| cycle.stage);
    cycles.dedup_by_key(|cycle| cycle.stage);
    cycles
}

fn table(outcome: impl Fn(RunStage) -> StageOutcome) -> String {
    let row = |cycle: Cycle| {
        let stage = cycle.stage;
        let next = match cycle.next(outcome(stage)) {
            Transition::Enter(next) => format!("enters {}", next.stage.key()),
            Transition::Finish(ending) => render(&ending),
        };
        format!("{:<14} {next}\n", stage.key())
    };
    reachable().into_iter().map(row).collect()
}

fn render(ending: &Ending) -> String {
    let becomes = ending.becomes.map_or("-", |status| status.word());
    format!(
        "ends {}, status {}, kind {:?}, workstream {becomes}, waits for [{}], message {:?}",
        ending.outcome.word(),
        ending.exit.code(),
        ending.kind,
        ending.blocked_by.join(" "),
        ending.message
    )
}

#[test]
fn passing_leads_to_the_next_stage() {
    insta::assert_snapshot!(table(|_| StageOutcome::Passed), @r#"
    lock           enters load
    load           enters select
    select         enters clarification
    clarification  enters implement
    implement      enters test
    test           enters review
    review         enters qa_gate
    qa_gate        enters docs
    docs           enters update_state
    update_state   ends passed, status 0, kind MicroCommit, workstream -, waits for [], message ""
    uat            ends passed, status 0, kind Accepted, workstream merge-ready, waits for [], message ""
    "#);
}

#[test]
fn a_failure_ends_with_the_status_of_its_stage() {
    insta::assert_snapshot!(table(|stage| StageOutcome::failed(stage, "broken")), @r#"
    lock           ends failed, status 3, kind NotPassed, workstream -, waits for [], message "broken"
    load           ends failed, status 4, kind NotPassed, workstream -, waits for [], message "broken"
    select         ends failed, status 4, kind NotPassed, workstream -, waits for [], message "broken"
    clarification  ends failed, status 8, kind NotPassed, workstream -, waits for [], message "broken"
    implement      ends failed, status 4, kind NotPassed, workstream implement, waits for [], message "broken"
    test           ends failed, status 5, kind NotPassed, workstream blocked:test, waits for [], message "broken"
    review         ends failed, status 6, kind NotPassed, workstream -, waits for [], message "broken"
    qa_gate        ends failed, status 7, kind NotPassed, workstream implement, waits for [], message "broken"
    docs           ends failed, status 1, kind NotPassed, workstream implement, waits for [], message "broken"
    update_state   ends failed, status 9, kind NotPassed, workstream implement, waits for [], message "broken"
    uat            ends failed, status 8, kind NotPassed, workstream -, waits for [], message "broken"
    "#);
}

#[test]
fn a_failure_with_a_status_of_its_own_keeps_it() {
    let config = |_| StageOutcome::Failed { status: WfExit::Config, message: "line 3".to_owned() };
    insta::assert_snapshot!(table(config), @r#"
    lock           ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    load           ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    select         ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    clarification  ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    implement      ends failed, status 2, kind NotPassed, workstream implement, waits for [], message "line 3"
    test           ends failed, status 2, kind NotPassed, workstream blocked:test, waits for [], message "line 3"
    review         ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    qa_gate        ends failed, status 2, kind NotPassed, workstream implement, waits for [], message "line 3"
    docs           ends failed, status 2, kind NotPassed, workstream implement, waits for [], message "line 3"
    update_state   ends failed, status 2, kind NotPassed, workstream implement, waits for [], message "line 3"
    uat            ends failed, status 2, kind NotPassed, workstream -, waits for [], message "line 3"
    "#);
}

#[test]
fn a_blocked_stage_names_what_it_waits_for() {
    let by = || vec!["CLQ-001".to_owned(), "CLQ-002".to_owned()];
    insta::assert_snapshot!(table(|_| StageOutcome::Blocked { by: by() }), @r#"
    lock           ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    load           ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    select         ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    clarification  ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    implement      ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    test           ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    review         ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    qa_gate        ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    docs           ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    update_state   ends blocked, status 8, kind NotPassed, workstream blocked:clarification, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    uat            ends blocked, status 8, kind NotPassed, workstream uat:pending, waits for [CLQ-001 CLQ-002], message "blocked by CLQ-001, CLQ-002"
    "#);
}

#[test]
fn outcomes_that_only_one_stage_has() {
    let text = || "give a reason".to_owned();
    let rows = [
        (RunStage::Select, StageOutcome::AllDone),
        (RunStage::Select, StageOutcome::Nothing),
        (RunStage::ClarificationCheck, StageOutcome::Unapproved { message: text() }),
        (RunStage::Review, StageOutcome::ChangesRequested { message: text() }),
        (RunStage::UatGate, StageOutcome::NotAccepted { by: vec!["UAT-001".to_owned()] }),
    ];
    let row = |(stage, outcome): (RunStage, StageOutcome)| {
        let table = table(|_| outcome.clone());
        let line = table.lines().find(|line| line.starts_with(stage.key())).unwrap().to_owned();
        format!("{line}\n")
    };
    insta::assert_snapshot!(rows.into_iter().map(row).collect::<String>(), @r#"
    select         enters clarification
    select         ends passed, status 0, kind Nothing, workstream -, waits for [], message ""
    clarification  ends blocked, status 8, kind NotPassed, workstream -, waits for [approval], message "give a reason"
    review         ends failed, status 6, kind NotPassed, workstream blocked:review, waits for [], message "give a reason"
    uat            ends blocked, status 8, kind NotPassed, workstream uat:failed, waits for [UAT-001], message "blocked by UAT-001"
    "#);
}

#[test]
fn a_cancelled_run_fails_without_a_new_status() {
    let message = || "SIGTERM".to_owned();
    insta::assert_snapshot!(table(|_| StageOutcome::Stopped { message: message() }), @r#"
    lock           ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    load           ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    select         ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    clarification  ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    implement      ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    test           ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    review         ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    qa_gate        ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    docs           ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    update_state   ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    uat            ends failed, status 1, kind NotPassed, workstream -, waits for [], message "SIGTERM"
    "#);
}

#[test]
fn a_loop_continues_only_after_a_micro_commit_without_supervision() {
    let passed = |kind| Ending { kind, ..ending() };
    let mut rows = String::new();
    for mode in [RunMode::Once, RunMode::Loop] {
        for pause in [Pause::Gates, Pause::EveryCommit] {
            for kind in [
                EndingKind::MicroCommit,
                EndingKind::Accepted,
                EndingKind::Nothing,
                EndingKind::NotPassed,
            ] {
                let next = [9, 0].map(|left| next_cycle(mode, &passed(kind), pause, left));
                let [some, none]: [NextCycle; 2] = next;
                rows.push_str(&format!(
                    "{mode:?} {pause:?} {kind:?}: {some:?} with cycles left, {none:?} without\n"
                ));
            }
        }
    }
    insta::assert_snapshot!(rows, @"
    Once Gates MicroCommit: Stop with cycles left, Stop without
    Once Gates Accepted: Stop with cycles left, Stop without
    Once Gates Nothing: Stop with cycles left, Stop without
    Once Gates NotPassed: Stop with cycles left, Stop without
    Once EveryCommit MicroCommit: Stop with cycles left, Stop without
    Once EveryCommit Accepted: Stop with cycles left, Stop without
    Once EveryCommit Nothing: Stop with cycles left, Stop without
    Once EveryCommit NotPassed: Stop with cycles left, Stop without
    Loop Gates MicroCommit: Again with cycles left, Stop without
    Loop Gates Accepted: Stop with cycles left, Stop without
    Loop Gates Nothing: Stop with cycles left, Stop without
    Loop Gates NotPassed: Stop with cycles left, Stop without
    Loop EveryCommit MicroCommit: Pause with cycles left, Pause without
    Loop EveryCommit Accepted: Stop with cycles left, Stop without
    Loop EveryCommit Nothing: Stop with cycles left, Stop without
    Loop EveryCommit NotPassed: Stop with cycles left, Stop without
    ");
}

fn ending() -> Ending {
    match Cycle::start().next(StageOutcome::Nothing) {
        Transition::Finish(ending) => ending,
        Transition::Enter(_) => panic!("nothing to do is an ending"),
    }
}
