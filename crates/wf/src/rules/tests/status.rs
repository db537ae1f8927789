//! Every status of a workstream: what a person does about it, and what follows.

use crate::rules::approval::awaits_approval;
use crate::rules::profile::Pause;
use crate::rules::status::{GateFacts, WorkstreamStatus, next_after_person};

use super::{meta, sha};

#[test]
fn every_status_has_a_word_and_a_next_step() {
    let row = |status: WorkstreamStatus| {
        let close = if status.is_complete() { "closes" } else { "needs --force to close" };
        format!("{:<21} {close:<22} {}\n", status.word(), status.needs().unwrap_or("-"))
    };
    let rows: String = WorkstreamStatus::ALL.into_iter().map(row).collect();
    insta::assert_snapshot!(rows, @"
    planning              needs --force to close write the plan, then: wf run
    implement             needs --force to close -
    blocked:clarification needs --force to close answer: wf clarify list
    blocked:review        needs --force to close look at the last run: wf show
    blocked:test          needs --force to close look at the last run: wf show
    docs                  needs --force to close -
    uat:pending           needs --force to close accept: wf uat list
    uat:failed            needs --force to close run the fix in the plan: wf run
    merge-ready           closes                 merge: wf merge
    done                  closes                 -
    ");
}

#[test]
fn words_of_other_programs_are_not_statuses() {
    let words = ["blocked:clarify", "Planning", "blocked", "uat", "merged", "", "done "];
    let row = |word: &&str| match WorkstreamStatus::parse(word) {
        Ok(status) => format!("{word:?} is {status}\n"),
        Err(error) => format!("{word:?}: {error}\n"),
    };
    insta::assert_snapshot!(words.iter().map(row).collect::<String>(), @r#"
    "blocked:clarify" is blocked:clarification
    "Planning": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "blocked": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "uat": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "merged": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "done ": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "#);
}

/// Pending, passed and failed acceptance tests.
const UATS: [[usize; 3]; 5] = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0]];

fn after_person(all_done: bool, has_blocking_question: bool) -> String {
    let mut rows = format!(
        "{:<22}{}\n",
        "pending/passed/failed",
        UATS.map(|uat| format!("{uat:?}")).join(" ")
    );
    for status in WorkstreamStatus::ALL {
        let next = UATS.map(|[uat_pending, uat_passed, uat_failed]| {
            let gate =
                GateFacts { all_done, has_blocking_question, uat_pending, uat_passed, uat_failed };
            next_after_person(status, gate).to_string()
        });
        rows.push_str(&format!("{:<22}{}\n", status.word(), next.join(" ")));
    }
    rows
}

#[test]
fn a_person_acts_while_the_plan_is_unfinished() {
    insta::assert_snapshot!(after_person(false, false), @"
    pending/passed/failed [0, 0, 0] [1, 0, 0] [0, 1, 0] [0, 1, 1] [1, 1, 0]
    planning              planning planning planning uat:failed planning
    implement             implement implement implement uat:failed implement
    blocked:clarification implement implement implement uat:failed implement
    blocked:review        blocked:review blocked:review blocked:review uat:failed blocked:review
    blocked:test          blocked:test blocked:test blocked:test uat:failed blocked:test
    docs                  docs docs docs uat:failed docs
    uat:pending           implement implement implement uat:failed implement
    uat:failed            implement implement implement uat:failed implement
    merge-ready           implement implement implement uat:failed implement
    done                  done done done done done
    ");
}

#[test]
fn a_person_acts_while_the_plan_is_unfinished_and_a_question_blocks() {
    insta::assert_snapshot!(after_person(false, true), @"
    pending/passed/failed [0, 0, 0] [1, 0, 0] [0, 1, 0] [0, 1, 1] [1, 1, 0]
    planning              blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    implement             blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:review        blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:test          blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    docs                  blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    uat:pending           blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    uat:failed            blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    merge-ready           blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    done                  done done done done done
    ");
}

#[test]
fn a_person_acts_on_a_finished_plan() {
    insta::assert_snapshot!(after_person(true, false), @"
    pending/passed/failed [0, 0, 0] [1, 0, 0] [0, 1, 0] [0, 1, 1] [1, 1, 0]
    planning              planning uat:pending merge-ready uat:failed uat:pending
    implement             implement uat:pending merge-ready uat:failed uat:pending
    blocked:clarification implement uat:pending merge-ready uat:failed uat:pending
    blocked:review        blocked:review uat:pending merge-ready uat:failed uat:pending
    blocked:test          blocked:test uat:pending merge-ready uat:failed uat:pending
    docs                  docs uat:pending merge-ready uat:failed uat:pending
    uat:pending           implement uat:pending merge-ready uat:failed uat:pending
    uat:failed            implement uat:pending merge-ready uat:failed uat:pending
    merge-ready           implement uat:pending merge-ready uat:failed uat:pending
    done                  done done done done done
    ");
}

#[test]
fn a_person_acts_on_a_finished_plan_while_a_question_blocks() {
    insta::assert_snapshot!(after_person(true, true), @"
    pending/passed/failed [0, 0, 0] [1, 0, 0] [0, 1, 0] [0, 1, 1] [1, 1, 0]
    planning              blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    implement             blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:review        blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    blocked:test          blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    docs                  blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    uat:pending           blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    uat:failed            blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    merge-ready           blocked:clarification blocked:clarification blocked:clarification blocked:clarification blocked:clarification
    done                  done done done done done
    ");
}

#[test]
fn supervision_asks_for_an_approval_between_micro_commits() {
    let mut rows = format!("{:<21} no word  approved  approved before  rejected\n", "");
    for status in WorkstreamStatus::ALL {
        let mut meta = meta();
        meta.status = status;
        let last = meta.last_commit_sha.clone();
        let awaits = |approved, rejected: Option<&str>| {
            let mut meta = meta.clone();
            meta.approved_sha = approved;
            let waits = awaits_approval(Pause::EveryCommit, &meta, rejected);
            assert!(!awaits_approval(Pause::Gates, &meta, rejected));
            if waits { "waits" } else { "-" }
        };
        let rejected = last.as_ref().map(model::id::Sha::as_str);
        rows.push_str(&format!(
            "{:<21} {:<8} {:<9} {:<16} {}\n",
            status.word(),
            awaits(None, None),
            awaits(last.clone(), None),
            awaits(Some(sha('b')), None),
            awaits(None, rejected)
        ));
    }
    insta::assert_snapshot!(rows, @"
                          no word  approved  approved before  rejected
    planning              -        -         -                -
    implement             waits    -         waits            -
    blocked:clarification waits    -         waits            -
    blocked:review        waits    -         waits            -
    blocked:test          waits    -         waits            -
    docs                  -        -         -                -
    uat:pending           -        -         -                -
    uat:failed            -        -         -                -
    merge-ready           -        -         -                -
    done                  -        -         -                -
    ");
}
