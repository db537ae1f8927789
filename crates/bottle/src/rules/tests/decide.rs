//! Every combination of issue, pull request and work, and what is done about it.

use orchestrator_db::WorkState;

use super::super::decide::{Action, IssueState, PullState, WakeFacts, WorkFacts, decide};

/// Issues as the forge shows them.
const ISSUES: [(&str, bool, bool, bool); 4] = [
    ("for an agent", true, true, true),
    ("closed", false, true, true),
    ("without a label", true, false, true),
    ("without a member", true, true, false),
];

/// Pull requests as the forge shows them: whether it is open, and whether it is merged.
const PULLS: [(&str, Option<(bool, bool)>); 4] = [
    ("no pull request", None),
    ("open pull request", Some((true, false))),
    ("merged pull request", Some((false, true))),
    ("closed pull request", Some((false, false))),
];

fn show(action: &Action) -> String {
    match action {
        Action::Nothing => "nothing".to_owned(),
        Action::Start { agent, bottles } => format!("start {agent} in {}", bottles.join("+")),
        Action::Resume { reason } => format!("resume: {reason}"),
        Action::Wake { reason, .. } => format!("wake: {reason}"),
        Action::CallPerson { reason } => format!("call a person: {reason}"),
        Action::EndAgent { reason } => format!("end the agent: {reason}"),
        Action::ScheduleDestroy { reason } => format!("schedule its end: {reason}"),
        Action::CancelDestroy => "cancel its end".to_owned(),
        Action::Withdraw { reason } => format!("withdraw: {reason}"),
        Action::Forget => "forget".to_owned(),
    }
}

/// One line for each combination with this work.
fn check(work: Option<WorkFacts>) -> String {
    let mut lines = Vec::new();
    for (issue, is_open, has_label, has_member) in ISSUES {
        for (pull_words, pull) in PULLS {
            for new_comments in [0, 2] {
                let state = IssueState {
                    is_open,
                    agents: if has_label { vec!["ann".to_owned()] } else { Vec::new() },
                    bottles: vec!["rust".to_owned()],
                    has_member,
                    pull: pull.map(|(is_open, is_merged)| PullState {
                        number: 7,
                        is_open,
                        is_merged,
                    }),
                    new_comments,
                    work,
                    wake: WakeFacts::default(),
                };
                let found = show(&decide(&state));
                lines.push(format!("{issue}, {pull_words}, {new_comments} comments: {found}"));
            }
        }
    }
    lines.join("\n")
}

fn work(state: WorkState, has_bottle: bool, retires: bool) -> Option<WorkFacts> {
    Some(WorkFacts { state, has_bottle, retires })
}

#[test]
fn no_work_yet() {
    insta::assert_snapshot!(check(None), @"
    for an agent, no pull request, 0 comments: start ann in rust
    for an agent, no pull request, 2 comments: start ann in rust
    for an agent, open pull request, 0 comments: start ann in rust
    for an agent, open pull request, 2 comments: start ann in rust
    for an agent, merged pull request, 0 comments: start ann in rust
    for an agent, merged pull request, 2 comments: start ann in rust
    for an agent, closed pull request, 0 comments: start ann in rust
    for an agent, closed pull request, 2 comments: start ann in rust
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: nothing
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: nothing
    closed, merged pull request, 0 comments: nothing
    closed, merged pull request, 2 comments: nothing
    closed, closed pull request, 0 comments: nothing
    closed, closed pull request, 2 comments: nothing
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: nothing
    without a label, merged pull request, 2 comments: nothing
    without a label, closed pull request, 0 comments: nothing
    without a label, closed pull request, 2 comments: nothing
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: nothing
    without a member, merged pull request, 2 comments: nothing
    without a member, closed pull request, 0 comments: nothing
    without a member, closed pull request, 2 comments: nothing
    ");
}

#[test]
fn queued_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Queued, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: nothing
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: nothing
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}

#[test]
fn claimed_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Claimed, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: end the agent: pull request #7 was merged
    for an agent, merged pull request, 2 comments: end the agent: pull request #7 was merged
    for an agent, closed pull request, 0 comments: end the agent: pull request #7 was closed
    for an agent, closed pull request, 2 comments: end the agent: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: nothing
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: nothing
    closed, merged pull request, 0 comments: end the agent: pull request #7 was merged
    closed, merged pull request, 2 comments: end the agent: pull request #7 was merged
    closed, closed pull request, 0 comments: end the agent: pull request #7 was closed
    closed, closed pull request, 2 comments: end the agent: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: end the agent: pull request #7 was merged
    without a label, merged pull request, 2 comments: end the agent: pull request #7 was merged
    without a label, closed pull request, 0 comments: end the agent: pull request #7 was closed
    without a label, closed pull request, 2 comments: end the agent: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: end the agent: pull request #7 was merged
    without a member, merged pull request, 2 comments: end the agent: pull request #7 was merged
    without a member, closed pull request, 0 comments: end the agent: pull request #7 was closed
    without a member, closed pull request, 2 comments: end the agent: pull request #7 was closed
    ");
}

#[test]
fn running_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Running, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: end the agent: pull request #7 was merged
    for an agent, merged pull request, 2 comments: end the agent: pull request #7 was merged
    for an agent, closed pull request, 0 comments: end the agent: pull request #7 was closed
    for an agent, closed pull request, 2 comments: end the agent: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: nothing
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: nothing
    closed, merged pull request, 0 comments: end the agent: pull request #7 was merged
    closed, merged pull request, 2 comments: end the agent: pull request #7 was merged
    closed, closed pull request, 0 comments: end the agent: pull request #7 was closed
    closed, closed pull request, 2 comments: end the agent: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: end the agent: pull request #7 was merged
    without a label, merged pull request, 2 comments: end the agent: pull request #7 was merged
    without a label, closed pull request, 0 comments: end the agent: pull request #7 was closed
    without a label, closed pull request, 2 comments: end the agent: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: end the agent: pull request #7 was merged
    without a member, merged pull request, 2 comments: end the agent: pull request #7 was merged
    without a member, closed pull request, 0 comments: end the agent: pull request #7 was closed
    without a member, closed pull request, 2 comments: end the agent: pull request #7 was closed
    ");
}

#[test]
fn frozen_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Frozen, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: resume: 2 new comments
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: resume: 2 new comments
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: resume: 2 new comments
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: resume: 2 new comments
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}

#[test]
fn needs_attention_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::NeedsAttention, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: resume: 2 new comments
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: resume: 2 new comments
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: resume: 2 new comments
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: resume: 2 new comments
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}

#[test]
fn waiting_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Waiting, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: nothing
    closed, no pull request, 2 comments: nothing
    closed, open pull request, 0 comments: nothing
    closed, open pull request, 2 comments: nothing
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: nothing
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: nothing
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: nothing
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: nothing
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}

#[test]
fn destroyed_with_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Destroyed, true, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: nothing
    for an agent, merged pull request, 2 comments: nothing
    for an agent, closed pull request, 0 comments: nothing
    for an agent, closed pull request, 2 comments: nothing
    closed, no pull request, 0 comments: forget
    closed, no pull request, 2 comments: forget
    closed, open pull request, 0 comments: forget
    closed, open pull request, 2 comments: forget
    closed, merged pull request, 0 comments: forget
    closed, merged pull request, 2 comments: forget
    closed, closed pull request, 0 comments: forget
    closed, closed pull request, 2 comments: forget
    without a label, no pull request, 0 comments: forget
    without a label, no pull request, 2 comments: forget
    without a label, open pull request, 0 comments: forget
    without a label, open pull request, 2 comments: forget
    without a label, merged pull request, 0 comments: forget
    without a label, merged pull request, 2 comments: forget
    without a label, closed pull request, 0 comments: forget
    without a label, closed pull request, 2 comments: forget
    without a member, no pull request, 0 comments: forget
    without a member, no pull request, 2 comments: forget
    without a member, open pull request, 0 comments: forget
    without a member, open pull request, 2 comments: forget
    without a member, merged pull request, 0 comments: forget
    without a member, merged pull request, 2 comments: forget
    without a member, closed pull request, 0 comments: forget
    without a member, closed pull request, 2 comments: forget
    ");
}

#[test]
fn queued_with_a_bottle_that_is_to_go() {
    insta::assert_snapshot!(check(work(WorkState::Queued, true, true)), @"
    for an agent, no pull request, 0 comments: cancel its end
    for an agent, no pull request, 2 comments: cancel its end
    for an agent, open pull request, 0 comments: cancel its end
    for an agent, open pull request, 2 comments: cancel its end
    for an agent, merged pull request, 0 comments: nothing
    for an agent, merged pull request, 2 comments: nothing
    for an agent, closed pull request, 0 comments: nothing
    for an agent, closed pull request, 2 comments: nothing
    closed, no pull request, 0 comments: cancel its end
    closed, no pull request, 2 comments: cancel its end
    closed, open pull request, 0 comments: cancel its end
    closed, open pull request, 2 comments: cancel its end
    closed, merged pull request, 0 comments: nothing
    closed, merged pull request, 2 comments: nothing
    closed, closed pull request, 0 comments: nothing
    closed, closed pull request, 2 comments: nothing
    without a label, no pull request, 0 comments: cancel its end
    without a label, no pull request, 2 comments: cancel its end
    without a label, open pull request, 0 comments: cancel its end
    without a label, open pull request, 2 comments: cancel its end
    without a label, merged pull request, 0 comments: nothing
    without a label, merged pull request, 2 comments: nothing
    without a label, closed pull request, 0 comments: nothing
    without a label, closed pull request, 2 comments: nothing
    without a member, no pull request, 0 comments: cancel its end
    without a member, no pull request, 2 comments: cancel its end
    without a member, open pull request, 0 comments: cancel its end
    without a member, open pull request, 2 comments: cancel its end
    without a member, merged pull request, 0 comments: nothing
    without a member, merged pull request, 2 comments: nothing
    without a member, closed pull request, 0 comments: nothing
    without a member, closed pull request, 2 comments: nothing
    ");
}

#[test]
fn frozen_with_a_bottle_that_is_to_go() {
    insta::assert_snapshot!(check(work(WorkState::Frozen, true, true)), @"
    for an agent, no pull request, 0 comments: cancel its end
    for an agent, no pull request, 2 comments: resume: 2 new comments
    for an agent, open pull request, 0 comments: cancel its end
    for an agent, open pull request, 2 comments: resume: 2 new comments
    for an agent, merged pull request, 0 comments: nothing
    for an agent, merged pull request, 2 comments: nothing
    for an agent, closed pull request, 0 comments: nothing
    for an agent, closed pull request, 2 comments: nothing
    closed, no pull request, 0 comments: cancel its end
    closed, no pull request, 2 comments: resume: 2 new comments
    closed, open pull request, 0 comments: cancel its end
    closed, open pull request, 2 comments: resume: 2 new comments
    closed, merged pull request, 0 comments: nothing
    closed, merged pull request, 2 comments: nothing
    closed, closed pull request, 0 comments: nothing
    closed, closed pull request, 2 comments: nothing
    without a label, no pull request, 0 comments: cancel its end
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: cancel its end
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: nothing
    without a label, merged pull request, 2 comments: nothing
    without a label, closed pull request, 0 comments: nothing
    without a label, closed pull request, 2 comments: nothing
    without a member, no pull request, 0 comments: cancel its end
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: cancel its end
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: nothing
    without a member, merged pull request, 2 comments: nothing
    without a member, closed pull request, 0 comments: nothing
    without a member, closed pull request, 2 comments: nothing
    ");
}

#[test]
fn needs_attention_with_a_bottle_that_is_to_go() {
    insta::assert_snapshot!(check(work(WorkState::NeedsAttention, true, true)), @"
    for an agent, no pull request, 0 comments: cancel its end
    for an agent, no pull request, 2 comments: resume: 2 new comments
    for an agent, open pull request, 0 comments: cancel its end
    for an agent, open pull request, 2 comments: resume: 2 new comments
    for an agent, merged pull request, 0 comments: nothing
    for an agent, merged pull request, 2 comments: nothing
    for an agent, closed pull request, 0 comments: nothing
    for an agent, closed pull request, 2 comments: nothing
    closed, no pull request, 0 comments: cancel its end
    closed, no pull request, 2 comments: resume: 2 new comments
    closed, open pull request, 0 comments: cancel its end
    closed, open pull request, 2 comments: resume: 2 new comments
    closed, merged pull request, 0 comments: nothing
    closed, merged pull request, 2 comments: nothing
    closed, closed pull request, 0 comments: nothing
    closed, closed pull request, 2 comments: nothing
    without a label, no pull request, 0 comments: cancel its end
    without a label, no pull request, 2 comments: nothing
    without a label, open pull request, 0 comments: cancel its end
    without a label, open pull request, 2 comments: nothing
    without a label, merged pull request, 0 comments: nothing
    without a label, merged pull request, 2 comments: nothing
    without a label, closed pull request, 0 comments: nothing
    without a label, closed pull request, 2 comments: nothing
    without a member, no pull request, 0 comments: cancel its end
    without a member, no pull request, 2 comments: nothing
    without a member, open pull request, 0 comments: cancel its end
    without a member, open pull request, 2 comments: nothing
    without a member, merged pull request, 0 comments: nothing
    without a member, merged pull request, 2 comments: nothing
    without a member, closed pull request, 0 comments: nothing
    without a member, closed pull request, 2 comments: nothing
    ");
}

#[test]
fn waiting_with_a_bottle_that_is_to_go() {
    insta::assert_snapshot!(check(work(WorkState::Waiting, true, true)), @"
    for an agent, no pull request, 0 comments: cancel its end
    for an agent, no pull request, 2 comments: cancel its end
    for an agent, open pull request, 0 comments: cancel its end
    for an agent, open pull request, 2 comments: cancel its end
    for an agent, merged pull request, 0 comments: nothing
    for an agent, merged pull request, 2 comments: nothing
    for an agent, closed pull request, 0 comments: nothing
    for an agent, closed pull request, 2 comments: nothing
    closed, no pull request, 0 comments: cancel its end
    closed, no pull request, 2 comments: cancel its end
    closed, open pull request, 0 comments: cancel its end
    closed, open pull request, 2 comments: cancel its end
    closed, merged pull request, 0 comments: nothing
    closed, merged pull request, 2 comments: nothing
    closed, closed pull request, 0 comments: nothing
    closed, closed pull request, 2 comments: nothing
    without a label, no pull request, 0 comments: cancel its end
    without a label, no pull request, 2 comments: cancel its end
    without a label, open pull request, 0 comments: cancel its end
    without a label, open pull request, 2 comments: cancel its end
    without a label, merged pull request, 0 comments: nothing
    without a label, merged pull request, 2 comments: nothing
    without a label, closed pull request, 0 comments: nothing
    without a label, closed pull request, 2 comments: nothing
    without a member, no pull request, 0 comments: cancel its end
    without a member, no pull request, 2 comments: cancel its end
    without a member, open pull request, 0 comments: cancel its end
    without a member, open pull request, 2 comments: cancel its end
    without a member, merged pull request, 0 comments: nothing
    without a member, merged pull request, 2 comments: nothing
    without a member, closed pull request, 0 comments: nothing
    without a member, closed pull request, 2 comments: nothing
    ");
}

#[test]
fn queued_without_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Queued, false, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}

#[test]
fn waiting_without_a_bottle() {
    insta::assert_snapshot!(check(work(WorkState::Waiting, false, false)), @"
    for an agent, no pull request, 0 comments: nothing
    for an agent, no pull request, 2 comments: nothing
    for an agent, open pull request, 0 comments: nothing
    for an agent, open pull request, 2 comments: nothing
    for an agent, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    for an agent, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    for an agent, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    for an agent, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    closed, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    closed, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    closed, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    closed, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    closed, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a label, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a label, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a label, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a label, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a label, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    without a member, no pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, no pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, open pull request, 0 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, open pull request, 2 comments: withdraw: it is closed, or no longer assigned and labelled
    without a member, merged pull request, 0 comments: schedule its end: pull request #7 was merged
    without a member, merged pull request, 2 comments: schedule its end: pull request #7 was merged
    without a member, closed pull request, 0 comments: schedule its end: pull request #7 was closed
    without a member, closed pull request, 2 comments: schedule its end: pull request #7 was closed
    ");
}
