//! `/service`: the host, its health, and what does not belong to one bottle: repositories, schedules, dispatches, notices,
//! and who asked for what.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use orchestrator_db::{
    BottleState, Dispatch, DispatchState, HostRow, IssueKey, NoticeDelivery, ScheduleMark,
    UserActionRecord,
};

use super::super::auth::Principal;
use super::super::problem::Problem;
use super::super::rules::format;
use super::super::rules::link::safe_href;
use super::super::{Web, WebState, health, query};
use super::{Sheet, ago, fact, frame, line, link};

/// Entries of each list.
const SHOWN_MAX: usize = 30;

struct ServicePage {
    memory: u64,
    disk_free: Option<u64>,
    unhandled: u64,
    marks: Vec<ScheduleMark>,
    dispatches: Vec<Dispatch>,
    notices: Vec<NoticeDelivery>,
    actions: Vec<UserActionRecord>,
    hosts: BTreeMap<String, HostFacts>,
}

/// A host that has bottles, or works on issues.
#[derive(Default)]
struct HostFacts {
    /// Its last report, where several hosts share a database.
    row: Option<HostRow>,
    running: usize,
    kept: usize,
    /// The last sign of life of one of its bottles.
    last_sign: Option<Timestamp>,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
) -> Response {
    match query(&web, load).await {
        Ok(loaded) => {
            let main = render(&web, &loaded, host::clock::now());
            frame(&web, Some(&principal), &Sheet::still("Service", main))
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn load(web: &Web) -> Result<ServicePage, Problem> {
    let store = &web.service.store;
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    Ok(ServicePage {
        memory: host::proc::observe_memory(&[own]).bytes,
        disk_free: health::free_bytes(web),
        unhandled: store.count_unhandled()?,
        marks: store.schedule_marks()?,
        dispatches: store.last_dispatches(SHOWN_MAX)?,
        notices: store.last_notices(SHOWN_MAX)?,
        actions: store.last_actions(SHOWN_MAX)?,
        hosts: load_hosts(web)?,
    })
}

/// This host, and every one that the database names.
fn load_hosts(web: &Web) -> Result<BTreeMap<String, HostFacts>, Problem> {
    let service = &web.service;
    let mut hosts = BTreeMap::from([(service.host.clone(), HostFacts::default())]);
    for row in service.store.hosts()? {
        let name = row.report.name.clone();
        hosts.entry(name).or_default().row = Some(row);
    }
    for state in service.store.forge_states()? {
        let name = state.host.unwrap_or_else(|| service.host.clone());
        let host = hosts.entry(name).or_default();
        match state.status {
            BottleState::Running => host.running += 1,
            BottleState::Frozen => host.kept += 1,
            BottleState::Destroyed => {}
        }
        host.last_sign = host.last_sign.max(Some(state.last_checkin_at));
    }
    Ok(hosts)
}

fn render(web: &Web, loaded: &ServicePage, now: Timestamp) -> Markup {
    html! {
        p.path { a href="/" { "Bottles" } " / Service" }
        h1 { "Service" }
        (health_facts(web, loaded))
        (hosts(web, loaded, now))
        (repositories(web))
        (schedules(web, loaded, now))
        (section("Dispatched without an issue", &loaded.dispatches, |it| dispatch(web, it, now)))
        (section("Notices", &loaded.notices, |it| notice(it, now)))
        (section("Who asked for what", &loaded.actions, |it| action(web, it, now)))
    }
}

/// A list under its heading; nothing if it is empty.
fn section<T>(heading: &str, list: &[T], show: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @if !list.is_empty() {
            section {
                h2 { (heading) " " span.count { (list.len()) } }
                ul.cases { @for one in list { li { article.case { (show(one)) } } } }
            }
        }
    }
}

fn health_facts(web: &Web, loaded: &ServicePage) -> Markup {
    let settings = web.service.settings();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let problems = web.service.vitals.problems().len();
    html! {
        dl.grid {
            (fact("version", &html! { (web_base::asset::VERSION) }))
            (fact("process", &html! { (std::process::id()) }))
            (fact("memory", &html! { (mib(loaded.memory)) }))
            (fact("free disk space", &html! { (loaded.disk_free.map_or_else(|| "unknown".to_owned(), mib)) }))
            (fact("inbox", &html! { (loaded.unhandled) " not handled" }))
            (fact("places for bottles", &html! { (settings.max_bottles) }))
            (fact("repositories", &html! {
                (web.service.repos().all().count())
                @if problems > 0 { ", " span.warn { (problems) " cannot be read" } }
            }))
            (fact("notices by", &html! {
                @let channels = settings.notify.channels();
                @if channels.is_empty() { "nothing" } @else { (channels.join(", ")) }
            }))
        }
    }
}

fn hosts(web: &Web, loaded: &ServicePage, now: Timestamp) -> Markup {
    html! {
        section {
            h2 { "Hosts " span.count { (loaded.hosts.len()) } }
            ul.cases {
                @for (name, host) in &loaded.hosts {
                    li { article.case {
                        strong { (line(name)) }
                        ul.facts {
                            @if *name == web.service.host { li { "this one" } }
                            @if let Some(row) = &host.row { (report_facts(row, now)) }
                            li { (format::plural(host.running, "bottle runs", "bottles run")) }
                            li { (format::plural(host.kept, "bottle is kept", "bottles are kept")) }
                            @if let Some(at) = host.last_sign { li { "last sign of life " (ago(at, now)) } }
                        }
                    } }
                }
            }
        }
    }
}

/// Last report of a host.
fn report_facts(HostRow { report, seen_at, is_live }: &HostRow, now: Timestamp) -> Markup {
    html! {
        @if *is_live {
            li { (report.role) ", version " (report.version) }
            li { (report.busy) " of " (report.slots) " slots busy" }
            @if let Some(free) = report.disk_free_bytes { li { (format::bytes(free)) " free" } }
        } @else {
            li.warn { "gone" }
        }
        li { "last report " (ago(*seen_at, now)) }
    }
}

fn repositories(web: &Web) -> Markup {
    let (repos, problems) = (web.service.repos(), web.service.vitals.problems());
    html! {
        section {
            h2 { "Repositories " span.count { (repos.all().count()) } }
            ul.cases {
                @for repo in repos.all() {
                    @let name = repo.full_name();
                    li { article.case {
                        strong { (line(&name)) }
                        ul.facts {
                            li { @if repo.is_found() { "found in its organisation" } @else { "named in the configuration" } }
                            li { @if repo.has_secret() { "webhooks" } @else { "no webhook secret: found by sweeps" } }
                            @if let Some(problem) = problems.get(&name) { li.warn { (line(problem)) } }
                        }
                    } }
                }
            }
        }
    }
}

fn schedules(web: &Web, loaded: &ServicePage, now: Timestamp) -> Markup {
    let settings = web.service.settings();
    section("Schedules", &settings.schedules, |schedule| {
        let mark = loaded.marks.iter().find(|mark| mark.name == schedule.name);
        let next = mark.and_then(|mark| schedule.recurrence().ok()?.next_due(mark.last_due, now));
        html! {
            strong { (line(&schedule.name)) }
            ul.facts {
                li { (line(&schedule.repo)) }
                li { (line(&schedule.agent)) }
                li { (line(&schedule.definition())) }
                @if let Some(next) = next { li { "next " (ago(next, now)) } }
            }
        }
    })
}

fn dispatch(web: &Web, dispatch: &Dispatch, now: Timestamp) -> Markup {
    let request = &dispatch.request;
    html! {
        strong { bdi { (line(&request.title)) } }
        ul.facts {
            li {
                @match dispatch.issue() {
                    Some(key) => (issue_link(web, &key)),
                    None => { (line(&format!("{}/{}", request.owner, request.repo))) },
                }
            }
            li { (line(&request.agent)) }
            li { (line(&request.origin)) }
            li { (ago(dispatch.created_at, now)) }
            @if dispatch.state != DispatchState::Opened {
                li.warn { (dispatch.state.name()) @if !dispatch.problem.is_empty() { ": " (line(&dispatch.problem)) } }
            }
        }
    }
}

fn notice(delivery: &NoticeDelivery, now: Timestamp) -> Markup {
    html! {
        strong { (line(&delivery.notice.kind)) }
        ul.facts {
            li { (line(&delivery.channel)) }
            li { (delivery.state.name()) }
            li { (ago(delivery.notice.created_at, now)) }
            @if delivery.attempts > 1 { li { (delivery.attempts) " attempts" } }
            @if !delivery.problem.is_empty() { li.warn { (line(&delivery.problem)) } }
        }
    }
}

fn action(web: &Web, record: &UserActionRecord, now: Timestamp) -> Markup {
    html! {
        strong { (line(&record.actor)) ": " (line(&record.action)) }
        ul.facts {
            li { (issue_link(web, &record.key)) }
            li { (ago(record.at, now)) }
        }
    }
}

/// An issue with a link to its page, if its repository is served.
fn issue_link(web: &Web, key: &IssueKey) -> Markup {
    let repos = web.service.repos();
    let repo = repos.find(&key.owner, &key.repo);
    let url = repo.map(|repo| repo.access(key.issue_number, None).env.issue_url());
    link(url.and_then(|url| safe_href(&url)).as_ref(), &line(&key.to_string()))
}
