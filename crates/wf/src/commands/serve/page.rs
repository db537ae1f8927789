//! The page, for people: rendered on the server and readable without scripts. Text from plans and agents is escaped twice:
//! control and bidirectional characters here, HTML by the templates.

use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};
use model::escape::escape_line as line;
use shell::agent_facts::render_duration;
use web_base::asset::VERSION;
use web_base::auth::Principal;

use super::facts::{BoardFacts, PlanStep, WorkstreamFacts};
use super::{BoardServer, PageError};
use crate::rules::board_action::parse_button;
use crate::rules::status::WorkstreamStatus;

/// Most characters of an answer.
const TEXT_MAX_CHARS: usize = 20_000;

/// A page without its frame.
struct BoardSheet<'a> {
    title: &'a str,
    main: Markup,
    is_live: bool,
}

fn frame(board: &BoardServer, principal: Option<&Principal>, sheet: &BoardSheet<'_>) -> Response {
    let form_token = principal.and_then(|principal| board.auth.form_token(principal));
    let project = board.dirs.project.name.as_str();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (line(sheet.title)) " · " (line(project)) " · wf" }
                link rel="icon" type="image/svg+xml" href={ "/icon.svg?" (VERSION) };
                link rel="stylesheet" href={ "/style.css?" (VERSION) };
                script src={ "/live.js?" (VERSION) } defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.bar {
                    a.brand href="/" { "wf · " (line(project)) }
                    @if let Some(token) = form_token {
                        form method="post" action="/logout" {
                            input type="hidden" name="token" value=(token);
                            button.quiet { "Log out" }
                        }
                    }
                }
                main #main data-live=[sheet.is_live.then_some("/live")] { (sheet.main) }
                footer { "wf " (VERSION) " · " a href="/api/board" { "API" } }
            }
        }
    };
    Html(page.into_string()).into_response()
}

pub(super) fn problem(board: &BoardServer, error: &PageError) -> Response {
    let title = error.status.canonical_reason().unwrap_or("Problem");
    let main = html! {
        section.lone {
            p.code { (error.status.as_u16()) }
            h1 { (title) }
            p { (line(&error.message)) }
            @if let Some(remedy) = &error.remedy { p { (line(remedy)) } }
            p { a.button href="/" { "All workstreams" } }
        }
    };
    let mut response = frame(board, None, &BoardSheet { title, main, is_live: false });
    *response.status_mut() = error.status;
    response
}

pub(super) fn login(board: &BoardServer, next: &str, error: Option<&str>) -> Response {
    let main = html! {
        section.lone {
            h1 { "Log in" }
            @if let Some(error) = error { p.notice.bad role="alert" { (error) } }
            form.stack method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Token" }
                input #token type="password" name="token" required autofocus
                    autocomplete="current-password" spellcheck="false";
                button.primary { "Log in" }
                p.hint { "It is in " code { (line(&board.token_file.display().to_string())) } "." }
            }
        }
    };
    frame(board, None, &BoardSheet { title: "Log in", main, is_live: false })
}

/// Groups of the board, in the order in which a person cares about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoardGroup {
    NeedsYou,
    Running,
    Ready,
}

impl BoardGroup {
    const ALL: [Self; 3] = [Self::NeedsYou, Self::Running, Self::Ready];

    fn of(facts: &WorkstreamFacts) -> Self {
        let waits_for_person = !facts.questions.is_empty()
            || facts.awaits_approval
            || !facts.acceptance.is_empty()
            || matches!(
                facts.status,
                WorkstreamStatus::MergeReady
                    | WorkstreamStatus::BlockedTest
                    | WorkstreamStatus::BlockedReview
            );
        match (&facts.running, waits_for_person) {
            (_, true) if facts.running.is_none() || !facts.questions.is_empty() => Self::NeedsYou,
            (Some(_), _) => Self::Running,
            (None, _) => Self::Ready,
        }
    }

    /// Heading, meaning and class.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::NeedsYou => (
                "Needs you",
                "a question, an acceptance test, a verdict or a merge",
                "needs-attention",
            ),
            Self::Running => ("Running", "an agent or a test is at work", "running"),
            Self::Ready => ("Ready", "to be planned or run", "queued"),
        }
    }
}

pub(super) fn board(board: &BoardServer, principal: &Principal, facts: &BoardFacts) -> Response {
    let of = |group: BoardGroup| -> Vec<&WorkstreamFacts> {
        facts.workstreams.iter().filter(|it| BoardGroup::of(it) == group).collect()
    };
    let calls = of(BoardGroup::NeedsYou).len();
    let view = FormView::of(board, principal);
    let main = html! {
        h1 {
            @match calls {
                0 if facts.workstreams.is_empty() => "No workstreams yet",
                0 => "Nothing needs you",
                1 => "One workstream needs you",
                _ => { (calls) " workstreams need you" }
            }
        }
        p.summary { (facts.workstreams.len()) " active in " (line(&facts.project)) }
        @for fault in &facts.faults { p.notice.bad role="alert" { (line(fault)) } }
        @if facts.workstreams.is_empty() {
            p { "Start one: " code { "wf new <id> \"<title>\"" } }
        }
        @for group in BoardGroup::ALL {
            @let list = of(group);
            @let (heading, meaning, class) = group.words();
            @if !list.is_empty() {
                section class={ "group " (class) } {
                    h2 { (heading) " " span.count { (list.len()) } " " small { (meaning) } }
                    ul.cases { @for facts in list { li { (card(facts, class, &view)) } } }
                }
            }
        }
    };
    frame(board, Some(principal), &BoardSheet { title: "Board", main, is_live: true })
}

/// What every form needs.
struct FormView {
    now: Timestamp,
    token: Option<String>,
}

impl FormView {
    fn of(board: &BoardServer, principal: &Principal) -> Self {
        Self { now: host::clock::now(), token: board.auth.form_token(principal) }
    }
}

fn card(facts: &WorkstreamFacts, class: &str, view: &FormView) -> Markup {
    html! {
        article class={ "case " (class) } {
            div.head {
                h3 { a href={ "/workstreams/" (facts.id) } { (facts.id) ": " bdi { (line(&facts.title)) } } }
                span class={ "badge " (class) } { (facts.status) }
            }
            (running(facts, view.now))
            (requests(facts, view))
            ul.facts {
                li { (facts.done()) " of " (facts.wanted()) " done" }
                li { (line(&facts.branch)) }
                @if let Some(needs) = &facts.needs { li { (line(needs)) } }
            }
        }
    }
}

fn running(facts: &WorkstreamFacts, now: Timestamp) -> Markup {
    html! {
        @if let Some(running) = &facts.running {
            @let millis = now.as_millisecond().saturating_sub(running.since.as_millisecond());
            p.reason {
                strong { (line(&running.stage)) } " for "
                time datetime=(running.since) { (render_duration(u64::try_from(millis).unwrap_or(0))) }
                @if let Some(step) = &running.step { ": " (line(step)) }
            }
        }
    }
}

/// Forms for everything that waits for a person.
fn requests(facts: &WorkstreamFacts, view: &FormView) -> Markup {
    let Some(token) = &view.token else { return html! {} };
    let action = |name: &str| format!("/workstreams/{}/{name}", facts.id);
    html! {
        @for question in &facts.questions {
            @let field = format!("answer-{}", question.id);
            blockquote.question {
                p { strong { (question.id) } }
                @for text in question.text.lines().filter(|text| !text.trim().is_empty()) { p { (line(text)) } }
                @for (number, option) in question.options.iter().enumerate() { p { (number + 1) ". " (line(option)) } }
            }
            form.stack.answer method="post" action=(action("answer")) {
                input type="hidden" name="token" value=(token);
                input type="hidden" name="subject" value=(question.id);
                label for=(field) { "Answer to " (question.id) }
                textarea id=(field) name="text" rows="2" required maxlength=(TEXT_MAX_CHARS) {}
                button.primary { "Answer" }
            }
        }
        @for test in &facts.acceptance {
            @let field = format!("refuse-{}", test.id);
            details.question {
                summary { strong { (test.id) } ": accept the work (" (test.scenarios.len()) " scenarios)" }
                ol.plain { @for scenario in &test.scenarios { li { (line(&scenario.name)) ": " (line(&scenario.expected)) } } }
            }
            div.row.answer {
                form method="post" action=(action("accept")) {
                    input type="hidden" name="token" value=(token);
                    input type="hidden" name="subject" value=(test.id);
                    button.primary { "Accept " (test.id) }
                }
                details.sure {
                    summary { span.button { "Do not accept…" } }
                    form method="post" action=(action("refuse")) {
                        input type="hidden" name="token" value=(token);
                        input type="hidden" name="subject" value=(test.id);
                        label for=(field) { "What is wrong, one thing in a line" }
                        textarea id=(field) name="text" rows="3" required maxlength=(TEXT_MAX_CHARS) {}
                        button.danger { "Do not accept " (test.id) }
                    }
                }
            }
        }
        @if facts.awaits_approval { (verdict(facts, token)) }
    }
}

fn verdict(facts: &WorkstreamFacts, token: &str) -> Markup {
    let field = format!("reject-{}", facts.id);
    html! {
        div.row.answer {
            form method="post" action={ "/workstreams/" (facts.id) "/approve" } {
                input type="hidden" name="token" value=(token);
                button.primary { "Approve the last micro-commit" }
            }
            details.sure {
                summary { span.button { "Reject…" } }
                form method="post" action={ "/workstreams/" (facts.id) "/reject" } {
                    input type="hidden" name="token" value=(token);
                    label for=(field) { "What is wrong" }
                    textarea id=(field) name="text" rows="3" required maxlength=(TEXT_MAX_CHARS) {}
                    button.danger { "Reject" }
                }
            }
        }
    }
}

pub(super) fn workstream(
    board: &BoardServer,
    principal: &Principal,
    facts: &WorkstreamFacts,
    requested: Option<&str>,
) -> Response {
    let view = FormView::of(board, principal);
    let done = requested.and_then(parse_button).map(|button| button.done);
    let (_, _, class) = BoardGroup::of(facts).words();
    let main = html! {
        p.path { a href="/" { "All workstreams" } }
        div.head.big {
            h1 { (facts.id) ": " bdi { (line(&facts.title)) } }
            span class={ "badge " (class) } { (facts.status) }
        }
        @if let Some(done) = done { p.notice.good role="status" { (done) } }
        (running(facts, view.now))
        ul.facts {
            li { (line(&facts.branch)) " onto " (line(&facts.base_branch)) }
            @if let Some(run) = &facts.last_run { li { "last run " (line(run)) ": " (line(facts.last_result.as_deref().unwrap_or("active"))) } }
            @if let Some(needs) = &facts.needs { li { (line(needs)) } }
        }
        (requests(facts, &view))
        section {
            h2 { "Plan " span.count { (facts.done()) " of " (facts.wanted()) } }
            @if let Some(error) = &facts.plan_error { p.notice.bad role="alert" { (line(error)) } }
            ol.operations { @for step in &facts.plan { (plan_step(step)) } }
        }
        @if let (Some(token), None) = (&view.token, &facts.running) {
            section {
                form method="post" action={ "/workstreams/" (facts.id) "/run" } {
                    input type="hidden" name="token" value=(token);
                    button { "Run until something needs me" }
                }
            }
        }
    };
    let title = format!("{}: {}", facts.id, facts.title);
    frame(board, Some(principal), &BoardSheet { title: &title, main, is_live: true })
}

fn plan_step(step: &PlanStep) -> Markup {
    let (mark, class) = match (step.done, step.active, &step.superseded) {
        (true, _, _) => ("done", "done"),
        (false, true, _) => ("running", "running"),
        (false, false, Some(_)) => ("superseded", "open"),
        (false, false, None) => ("open", "open"),
    };
    html! {
        li class=(class) {
            span.outcome { (mark) }
            span { (step.id) ": " bdi { (line(&step.title)) } }
        }
    }
}
