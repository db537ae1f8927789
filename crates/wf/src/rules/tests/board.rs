//! The screen of `wf watch`, whole.

use jiff::Timestamp;
use model::id::{ClarificationId, WorkstreamId};

use crate::rules::status::WorkstreamStatus as S;
use crate::rules::watch::sample::{asking, board, view, working};
use crate::rules::watch::{Board, Tone, TypedLine, WorkstreamView, new_needs, render_page};

/// The screen with the style of each line in front: `>` selected, `!` needs a person, `.` faint.
fn screen(board: &Board, columns: usize, rows: usize) -> String {
    let now = Timestamp::from_second(4000).unwrap();
    let line = |line: &crate::rules::watch::BoardLine| {
        let style = match line.tone {
            Tone::Plain => ' ',
            Tone::Chosen => '>',
            Tone::Pressing => '!',
            Tone::Faint => '.',
        };
        format!("{style}|{}\n", line.text.trim_end())
    };
    render_page(board, now, columns, rows).lines.iter().map(line).collect()
}

#[test]
fn an_empty_board() {
    insta::assert_snapshot!(screen(&board(Vec::new()), 80, 24), @"
    .|wf watch app: 0 need you, 0 at work, 0 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
     |No active workstreams. Start one: wf new
     |
     |
     |
     |
     |
     |
     |
     |
     |
     |
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |
     |
     |
     |
     |
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn a_question_with_options_is_shown_below_the_list() {
    let rows = vec![asking("login", &["Tokens", "Cookies", "Neither"]), working("search")];
    insta::assert_snapshot!(screen(&board(rows), 80, 24), @"
    .|wf watch app: 1 need you, 1 at work, 2 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            blocked:clarification     1/3 answer CLQ-001
     |  search           blocked:test              1/3 test 1h06m
     |
     |
     |
     |
     |
     |
     |
     |
     |
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: About login
    !|CLQ-001 Which?
     |  1) Tokens
     |  2) Cookies
     |  3) Neither
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn every_status_has_its_row() {
    let rows = S::ALL.into_iter().enumerate();
    let rows = rows.map(|(at, status)| view(&format!("ws{at}"), status)).collect();
    insta::assert_snapshot!(screen(&board(rows), 80, 24), @"
    .|wf watch app: 6 need you, 0 at work, 10 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> ws2              blocked:clarification     1/3 answer: wf clarify list
    !|  ws3              blocked:review            1/3 look at the last run: wf show
    !|  ws4              blocked:test              1/3 look at the last run: wf show
    !|  ws6              uat:pending               1/3 accept: wf uat list
    !|  ws7              uat:failed                1/3 run the fix in the plan: wf run
    !|  ws8              merge-ready               1/3 merge: wf merge
    !|  ws0              planning                  1/3 write the plan, then: wf run
     |  ws1              implement                 1/3
     |  ws5              docs                      1/3
     |  ws9              done                      1/3
     |
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |ws2: About ws2
    !|Next: answer: wf clarify list
     |
     |
     |
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn an_active_run_shows_its_stage_and_its_duration() {
    let mut long = working("long");
    long.status = S::Implement;
    let both = WorkstreamView { active_stage: working("a").active_stage, ..asking("both", &[]) };
    insta::assert_snapshot!(screen(&board(vec![long, both]), 80, 16), @"
    .|wf watch app: 1 need you, 2 at work, 2 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> both             blocked:clarification     1/3 answer CLQ-001 (test 1h06m)
     |  long             implement                 1/3 test 1h06m
     |
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |both: About both
    !|CLQ-001 Which?
     |
     |
     |
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn a_plan_that_cannot_be_read_has_no_numbers() {
    let broken = WorkstreamView { progress: None, ..view("login", S::Planning) };
    insta::assert_snapshot!(screen(&board(vec![broken]), 80, 14), @"
    .|wf watch app: 0 need you, 0 at work, 1 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            planning                    ? write the plan, then: wf run
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: About login
    !|Next: write the plan, then: wf run login
     |
     |
     |
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn an_answer_is_typed_in_the_last_line() {
    let mut board = board(vec![asking("login", &["Tokens"])]);
    board.typed = Some(TypedLine {
        workstream: WorkstreamId::parse("login").unwrap(),
        question: Some(ClarificationId::numbered(1)),
        text: "use tok".to_owned(),
    });
    insta::assert_snapshot!(screen(&board, 80, 14), @"
    .|wf watch app: 1 need you, 0 at work, 1 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            blocked:clarification     1/3 answer CLQ-001
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: About login
    !|CLQ-001 Which?
     |  1) Tokens
     |
     |
     |
     |
     |Answer to CLQ-001 (Enter, Esc): use tok_
    ");
}

#[test]
fn a_rejection_is_typed_in_the_last_line() {
    let supervised = WorkstreamView { awaits_approval: true, ..view("login", S::Implement) };
    let mut board = board(vec![supervised]);
    board.typed = Some(TypedLine {
        workstream: WorkstreamId::parse("login").unwrap(),
        question: None,
        text: "wrong folder".to_owned(),
    });
    insta::assert_snapshot!(screen(&board, 80, 14), @"
    .|wf watch app: 1 need you, 0 at work, 1 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            implement                 1/3 approve or reject
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: About login
    !|Next: approve or reject
     |
     |
     |
     |
     |
     |Why is login rejected (Enter, Esc)? wrong folder_
    ");
}

#[test]
fn a_message_replaces_the_keys() {
    let mut board = board(vec![view("login", S::MergeReady)]);
    board.message = "login asks nothing".to_owned();
    insta::assert_snapshot!(screen(&board, 80, 14), @"
    .|wf watch app: 1 need you, 0 at work, 1 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            merge-ready               1/3 merge: wf merge
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: About login
    !|Next: merge: wf merge login
     |
     |
     |
     |
     |
     |login asks nothing
    ");
}

#[test]
fn a_small_screen_drops_the_details_and_keeps_the_selection() {
    let mut board = board((0..20).map(|n| view(&format!("w{n:02}"), S::Implement)).collect());
    board.selected = 15;
    insta::assert_snapshot!(screen(&board, 50, 8), @"
    .|wf watch app: 0 need you, 0 at work, 20 in all
    .|  WORKSTREAM       STATUS                   PLAN N
     |  w12              implement                 1/3
     |  w13              implement                 1/3
     |  w14              implement                 1/3
    >|> w15              implement                 1/3
    .|──────────────────────────────────────────────────
    .|a answer  y approve  n reject  d diff  l log  j/k
    ");
}

#[test]
fn escapes_from_outside_are_shown_and_not_sent() {
    let mut row = asking("login", &["\x1b[2J", "a\nb"]);
    row.title = "Log\x07in".to_owned();
    row.questions[0].text = "Which\x1b]0;title\x07?".to_owned();
    insta::assert_snapshot!(screen(&board(vec![row]), 80, 14), @r"
    .|wf watch app: 1 need you, 0 at work, 1 in all
    .|  WORKSTREAM       STATUS                   PLAN NEEDS YOU, OR AT WORK
    >|> login            blocked:clarification     1/3 answer CLQ-001
     |
     |
    .|────────────────────────────────────────────────────────────────────────────────
     |login: Log\x07in
    !|CLQ-001 Which\x1b]0;title\x07?
     |  1) \x1b[2J
     |  2) a\nb
     |
     |
     |
    .|a answer  y approve  n reject  d diff  l log  j/k move  q quit
    ");
}

#[test]
fn notifications_name_new_needs_only() {
    let before = [view("a", S::Implement), view("b", S::BlockedTest), asking("c", &[])];
    let now = [
        asking("a", &[]),
        view("b", S::BlockedTest),
        view("c", S::UatPending),
        view("d", S::MergeReady),
        view("e", S::Planning),
        working("f"),
    ];
    insta::assert_snapshot!(new_needs(&before, &now).join("\n"), @"
    a needs you: answer CLQ-001
    c needs you: accept: wf uat list
    d needs you: merge: wf merge
    ");
}
