//! `bot-bottle dispatch`: work without an issue. The orchestrator of this home opens the issue, and the work ends in a pull
//! request like any other.

use std::time::{Duration, Instant};

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use orchestrator_db::{DeliveryInsert, Dispatch, DispatchRequest, DispatchState, Store};
use serde_json::{Value, json};
use shell::Ui;

use super::complete::{agent_names, bottle_names};
use super::read_prompt;
use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};
use crate::flow::fleet::open_store;
use crate::flow::home::Home;
use crate::rules::dispatch_text::{choose_title, is_dispatch_id};
use crate::serve::settings::split_repo;

/// Interval of the looks at what came of it.
const PAUSE: Duration = Duration::from_millis(200);

/// Give an agent work without an issue; `serve` opens the issue and the work ends in a pull request
///
/// The request is stored in the home and picked up by `bot-bottle serve`, also by one that is started later. serve opens an
/// issue with the prompt, labelled for the agent and assigned to the account of its token, so that people can follow, answer
/// and stop the work there.
#[derive(Debug, Args)]
pub(crate) struct DispatchArgs {
    /// The repository, as owner/name; serve has to serve it
    #[arg(value_name = "REPO")]
    repo: String,
    /// The agent's manifest
    #[arg(long, value_name = "AGENT", add = ArgValueCandidates::new(agent_names))]
    agent: String,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    prompt: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "BOTTLE", add = ArgValueCandidates::new(bottle_names))]
    bottles: Vec<String>,
    /// Title of the issue [default: the first line of the prompt]
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Account to assign, a member of the organisation [default: the token's account]
    #[arg(long, value_name = "LOGIN")]
    assignee: Option<String>,
    /// Name of the request: a second one with the same name does nothing
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Seconds to wait for the issue while serve runs
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

pub(crate) fn cmd_dispatch(ui: &Ui, args: &DispatchArgs) -> Outcome {
    let home = Home::from_env()?;
    let dispatch = read_dispatch(&home, args)?;
    let store = open_store(&home)?;
    let inserted = store.add_dispatch(&dispatch).or_general()?;
    if inserted == DeliveryInsert::Duplicate && !ui.is_json() {
        ui.note(&format!("there is a dispatch '{}' already; it is shown", dispatch.id));
    }
    let is_served = host::lock::is_held(&home.serve_lock).or_general()?;
    let limit = if is_served { Duration::from_secs(args.wait) } else { Duration::ZERO };
    let dispatch = wait_for_issue(&*store, &dispatch.id, limit)?;
    if ui.is_json() {
        ui.document(&describe(&dispatch, is_served));
    } else {
        show(ui, &dispatch, is_served);
    }
    match dispatch.state {
        DispatchState::Failed => Err(Failure::not_found(dispatch.problem)),
        DispatchState::Pending | DispatchState::Opening | DispatchState::Opened => Ok(SUCCESS),
    }
}

/// Checks what can be checked without the forge.
fn read_dispatch(home: &Home, args: &DispatchArgs) -> Result<Dispatch, Failure> {
    let wrong = || Failure::usage(format!("'{}' is not owner/name", args.repo));
    let (owner, repo) = split_repo(&args.repo).ok_or_else(wrong)?;
    home.load_agent(&args.agent)?;
    for bottle in &args.bottles {
        home.load_bottle(bottle)?;
    }
    let id = match &args.key {
        Some(key) if is_dispatch_id(key) => key.clone(),
        Some(key) => {
            let rule = "use letters, digits, _ . : @ and single hyphens between them, at most 128";
            return Err(Failure::usage(format!("'{key}' cannot name a dispatch: {rule}")));
        }
        None => model::digest::hex(&host::random::bytes::<16>().or_general()?),
    };
    let prompt = read_prompt(&args.prompt)?;
    let request = DispatchRequest {
        origin: "`bot-bottle dispatch`".to_owned(),
        schedule: None,
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        agent: args.agent.clone(),
        bottles: args.bottles.clone(),
        assignee: args.assignee.clone(),
        title: choose_title(args.title.as_deref(), &prompt),
        prompt,
    };
    Ok(Dispatch::new(id, request, host::clock::now()))
}

/// Waits until the issue is open or cannot be opened, or the time is over.
fn wait_for_issue(store: &dyn Store, id: &str, limit: Duration) -> Result<Dispatch, Failure> {
    let end = Instant::now() + limit;
    loop {
        let found = store.dispatch(id).or_general()?;
        let dispatch = found.ok_or_else(|| Failure::not_found("the dispatch is gone"))?;
        let is_open = matches!(dispatch.state, DispatchState::Pending | DispatchState::Opening);
        if !is_open || Instant::now() >= end {
            return Ok(dispatch);
        }
        std::thread::sleep(PAUSE);
    }
}

fn describe(dispatch: &Dispatch, is_served: bool) -> Value {
    json!({
        "id": dispatch.id, "state": dispatch.state.name(), "served": is_served,
        "repo": format!("{}/{}", dispatch.request.owner, dispatch.request.repo),
        "agent": dispatch.request.agent, "title": dispatch.request.title,
        "issue": dispatch.issue_number, "problem": dispatch.problem,
    })
}

fn show(ui: &Ui, dispatch: &Dispatch, is_served: bool) {
    match (dispatch.issue(), is_served) {
        (Some(key), _) if dispatch.state == DispatchState::Opened => {
            ui.result("dispatched", &key.to_string());
        }
        (_, true) if dispatch.state != DispatchState::Failed => {
            ui.result("queued", &dispatch.id);
            if !dispatch.problem.is_empty() {
                ui.note(&format!("not yet: {}", dispatch.problem));
            }
        }
        (_, false) if dispatch.state != DispatchState::Failed => {
            ui.result("queued", &dispatch.id);
            ui.note("no bot-bottle serve runs in this home; the next one takes it up");
        }
        _ => {}
    }
}
