//! The API's own document, route by route and schema by schema: what programs rely on.

use serde_json::Value;

use super::super::api::document;

/// The document as JSON.
fn described() -> Value {
    serde_json::to_value(document()).expect("a document")
}

/// Type of a schema in few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = schema[key].as_array() {
            return list.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(list) = schema["enum"].as_array() {
        return list.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    let one = |word: &Value| match word.as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some(word) => word.to_owned(),
        None => "anything".to_owned(),
    };
    match schema["type"].as_array() {
        Some(list) => list.iter().map(one).collect::<Vec<_>>().join(" or "),
        None => one(&schema["type"]),
    }
}

/// A route with its methods, parameters and answers.
fn route(path: &str) -> String {
    let document = described();
    let methods = document["paths"][path].as_object().expect("a route");
    let mut lines = Vec::new();
    for (method, operation) in methods {
        let summary = operation["summary"].as_str().unwrap_or("-");
        lines.push(format!("{} {path}: {summary}", method.to_uppercase()));
        for one in operation["parameters"].as_array().into_iter().flatten() {
            let text = one["description"].as_str().unwrap_or("-");
            let (place, name) = (&one["in"], &one["name"]);
            lines.push(format!("  {place} {name} {}: {text}", kind(&one["schema"])));
        }
        let answers = operation["responses"].as_object().expect("answers");
        for (status, answer) in answers {
            let text = answer["description"].as_str().unwrap_or("-");
            let content = answer["content"].as_object().and_then(|it| it.iter().next());
            let body = content.map(|(name, it)| format!(" ({name}: {})", kind(&it["schema"])));
            lines.push(format!("  {status} {text}{}", body.unwrap_or_default()));
        }
    }
    lines.join("\n")
}

/// A schema with its fields.
fn schema(name: &str) -> String {
    let document = described();
    let found = &document["components"]["schemas"][name];
    assert!(found.is_object(), "{name} is not described");
    let required: Vec<&str> =
        found["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut lines = vec![format!("{name}: {}", kind(found))];
    for (field, of) in found["properties"].as_object().into_iter().flatten() {
        let need = if required.contains(&field.as_str()) { "" } else { ", optional" };
        let text = of["description"].as_str().unwrap_or("-");
        lines.push(format!("  {field} ({}{need}): {text}", kind(of)));
    }
    lines.join("\n")
}

#[test]
fn all_routes_and_schemas_are_here() {
    let document = described();
    let names = |value: &Value| {
        value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join("\n")
    };
    let text =
        format!("{}\n\n{}", names(&document["paths"]), names(&document["components"]["schemas"]));
    insta::assert_snapshot!(text, @"
    /api/v1/bottles
    /api/v1/bottles/{slug}
    /api/v1/bottles/{slug}/{action}
    /api/v1/deliveries
    /api/v1/dispatches
    /api/v1/events
    /api/v1/issues
    /api/v1/issues/{owner}/{repo}/{number}
    /api/v1/runs
    /api/v1/runs/{slug}/{run}
    /api/v1/runs/{slug}/{run}/log
    /api/v1/runs/{slug}/{run}/operations
    /api/v1/runs/{slug}/{run}/provenance
    /api/v1/runs/{slug}/{run}/statements
    /api/v1/runs/{slug}/{run}/verification
    /api/v1/spending

    Accepted
    ActionBody
    BottleDetail
    BottleList
    BottleName
    BudgetUse
    Case
    CaseStatus
    CheckSummary
    CommitSummary
    CostSource
    DeliveryList
    DeliverySummary
    DispatchList
    DispatchSummary
    EventList
    EventSummary
    IssueDetail
    IssueList
    IssueSummary
    IssueUse
    LogPiece
    Moment
    NewDispatch
    Operations
    Problem
    PullLink
    RunDetail
    RunList
    RunProgress
    RunSummary
    SpendingReport
    SpendingUnit
    VerdictSummary
    Verification
    ");
}

#[test]
fn route_of_runs() {
    insta::assert_snapshot!(route("/api/v1/runs"), @r#"
    GET /api/v1/runs: List runs, newest first
      "query" "limit" integer: How many to list
      "query" "after" string: List what comes after this: the `next` of the page before
      200 Some runs (application/json: RunList)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_runs_slug_run() {
    insta::assert_snapshot!(route("/api/v1/runs/{slug}/{run}"), @r#"
    GET /api/v1/runs/{slug}/{run}: Show a run
      "path" "slug" string: The bottle
      "path" "run" string: The run
      200 The run (application/json: RunDetail)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_runs_slug_run_log() {
    insta::assert_snapshot!(route("/api/v1/runs/{slug}/{run}/log"), @r#"
    GET /api/v1/runs/{slug}/{run}/log: Read the log of a run's box
      "path" "slug" string: The bottle
      "path" "run" string: The run
      "query" "limit" integer: How many bytes
      "query" "after" integer: From which byte on
      200 A piece of it (application/json: LogPiece)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_runs_slug_run_provenance() {
    insta::assert_snapshot!(route("/api/v1/runs/{slug}/{run}/provenance"), @r#"
    GET /api/v1/runs/{slug}/{run}/provenance: Show the provenance of a run
      "path" "slug" string: The bottle
      "path" "run" string: The run
      200 The document (application/json: object)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_runs_slug_run_operations() {
    insta::assert_snapshot!(route("/api/v1/runs/{slug}/{run}/operations"), @r#"
    GET /api/v1/runs/{slug}/{run}/operations: Show the operation log of a run
      "path" "slug" string: The bottle
      "path" "run" string: The run
      200 Its lines (application/json: Operations)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_bottles() {
    insta::assert_snapshot!(route("/api/v1/bottles"), @r#"
    GET /api/v1/bottles: List bottles, by name
      "query" "limit" integer: How many to list
      "query" "after" string: List what comes after this: the `next` of the page before
      200 Some bottles (application/json: BottleList)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_bottles_slug() {
    insta::assert_snapshot!(route("/api/v1/bottles/{slug}"), @r#"
    GET /api/v1/bottles/{slug}: Show a bottle
      "path" "slug" string: The bottle
      200 The bottle (application/json: BottleDetail)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_bottles_slug_action() {
    insta::assert_snapshot!(route("/api/v1/bottles/{slug}/{action}"), @r#"
    POST /api/v1/bottles/{slug}/{action}: Freeze, resume or destroy a bottle
      "path" "slug" string: The bottle
      "path" "action" string: The action
      202 The action is on disk (application/json: Accepted)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      409 The bottle's status does not allow it (application/problem+json: object)
      413 The body is too long (application/problem+json: object)
      415 The body is not JSON (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
      503 The inbox is full; send it again later (application/problem+json: object)
    "#);
}

#[test]
fn route_of_issues() {
    insta::assert_snapshot!(route("/api/v1/issues"), @r#"
    GET /api/v1/issues: List issues with a work item
      "query" "limit" integer: How many to list
      "query" "after" string: List what comes after this: the `next` of the page before
      200 Some issues (application/json: IssueList)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_issues_owner_repo_number() {
    insta::assert_snapshot!(route("/api/v1/issues/{owner}/{repo}/{number}"), @r#"
    GET /api/v1/issues/{owner}/{repo}/{number}: Show the work on an issue
      "path" "owner" string: The repository's owner
      "path" "repo" string: The repository
      "path" "number" integer: Its number
      200 The work on it (application/json: IssueDetail)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_events() {
    insta::assert_snapshot!(route("/api/v1/events"), @r#"
    GET /api/v1/events: List the steps of all work items
      "query" "limit" integer: How many to list
      "query" "after" integer: List what comes after this number
      200 Some of it (application/json: EventList)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn route_of_deliveries() {
    insta::assert_snapshot!(route("/api/v1/deliveries"), @r#"
    GET /api/v1/deliveries: List webhooks and user actions
      "query" "limit" integer: How many to list
      "query" "after" integer: List what comes after this number
      200 Some of them (application/json: DeliveryList)
      400 The request has an unknown or wrong parameter (application/problem+json: object)
      401 The token is missing or wrong (application/problem+json: object)
      403 The request comes from another page, or the page is read-only (application/problem+json: object)
      404 There is no such thing (application/problem+json: object)
      421 The request was meant for another host (application/problem+json: object)
      500 The server could not do its own work (application/problem+json: object)
    "#);
}

#[test]
fn schema_of_accepted() {
    insta::assert_snapshot!(schema("Accepted"), @"
    Accepted: object
      event (string): The action.
      id (string): Its id in the list of deliveries.
    ");
}

#[test]
fn schema_of_action_body() {
    insta::assert_snapshot!(schema("ActionBody"), @"
    ActionBody: object
      prompt (string, optional): What the agent is to do; resuming needs it.
    ");
}

#[test]
fn schema_of_bottle_detail() {
    insta::assert_snapshot!(schema("BottleDetail"), @"BottleDetail: Case or object");
}

#[test]
fn schema_of_bottle_list() {
    insta::assert_snapshot!(schema("BottleList"), @"
    BottleList: object
      bottles (list of Case): -
      next (string or null, optional): The `after` of the next page; absent on the last one.
    ");
}

#[test]
fn schema_of_case() {
    insta::assert_snapshot!(schema("Case"), @"
    Case: object
      agent (string): The agent.
      backend (string or null, optional): The sandbox, once there is a bottle.
      cost_usd (number or null, optional): Known cost of all its runs, in dollars.
      created_at (string): When it began.
      destroy_at (string or null, optional): When its bottle is destroyed.
      host (string or null, optional): The host that has its bottle, if that is another one.
      issue (IssueSummary or null, optional): -
      not_before (string or null, optional): When it continues, while it waits.
      orchestrated (boolean): Whether the orchestrator manages it; a bottle that was started by hand is ended by hand.
      progress (RunProgress or null, optional): -
      pull (PullLink or null, optional): -
      question (string or null, optional): The question of the agent, while it waits for a person.
      reason (string): Reason for the status, for people.
      runs (list of string): Its runs, oldest first.
      saved_at (string or null, optional): When its newest state came into the store of bottles, where there is one. What was done since is on its host alone.
      slug (string or null, optional): Its bottle, once there is one.
      status (CaseStatus): Its status.
      updated_at (string): Time of its last change.
      verdict (string or null, optional): Verdict of its last run that has one.
    ");
}

#[test]
fn schema_of_case_status() {
    insta::assert_snapshot!(schema("CaseStatus"), @r#"CaseStatus: "needs-attention" | "waiting" | "running" | "queued" | "frozen" | "destroyed""#);
}

#[test]
fn schema_of_commit_summary() {
    insta::assert_snapshot!(schema("CommitSummary"), @"
    CommitSummary: object
      sha (string): -
      subject (string): -
    ");
}

#[test]
fn schema_of_cost_source() {
    insta::assert_snapshot!(schema("CostSource"), @r#"CostSource: "measured" | "claimed""#);
}

#[test]
fn schema_of_delivery_list() {
    insta::assert_snapshot!(schema("DeliveryList"), @"
    DeliveryList: object
      deliveries (list of DeliverySummary): -
      next (integer): The `after` of the next page.
    ");
}

#[test]
fn schema_of_delivery_summary() {
    insta::assert_snapshot!(schema("DeliverySummary"), @"
    DeliverySummary: object
      event (string): -
      handled_at (string or null, optional): When it was handled.
      id (string): -
      issue (integer or null, optional): The issue that it names.
      owner (string): -
      pull (integer or null, optional): The pull request that it names.
      received_at (string): -
      repo (string): -
      seq (integer): -
      source (string): The kind of forge, or `page`.
    ");
}

#[test]
fn schema_of_event_list() {
    insta::assert_snapshot!(schema("EventList"), @"
    EventList: object
      events (list of EventSummary): -
      next (integer): The `after` of the next page.
    ");
}

#[test]
fn schema_of_event_summary() {
    insta::assert_snapshot!(schema("EventSummary"), @"
    EventSummary: object
      at (string): -
      issue (integer): -
      owner (string): -
      reason (string): -
      repo (string): -
      seq (integer): -
      state (string): The work item's state after it.
      status (CaseStatus): The case's status after it.
    ");
}

#[test]
fn schema_of_issue_detail() {
    insta::assert_snapshot!(schema("IssueDetail"), @"IssueDetail: Case or object");
}

#[test]
fn schema_of_issue_list() {
    insta::assert_snapshot!(schema("IssueList"), @"
    IssueList: object
      issues (list of Case): -
      next (string or null, optional): The `after` of the next page; absent on the last one.
    ");
}

#[test]
fn schema_of_issue_summary() {
    insta::assert_snapshot!(schema("IssueSummary"), @"
    IssueSummary: object
      number (integer): Its number.
      owner (string): The repository's owner.
      repo (string): The repository.
      title (string): Its title, if it is known.
      url (string or null, optional): Its page.
    ");
}

#[test]
fn schema_of_log_piece() {
    insta::assert_snapshot!(schema("LogPiece"), @"
    LogPiece: object
      from (integer): Offset of its first byte.
      next (integer): The `after` of the next slice; equal to `from` while there is nothing new.
      text (string): The text, as the box printed it.
    ");
}

#[test]
fn schema_of_moment() {
    insta::assert_snapshot!(schema("Moment"), @"
    Moment: object
      at (string): When.
      more (string): Details.
      status (CaseStatus or null, optional): -
      what (string): The event, in a few words.
    ");
}

#[test]
fn schema_of_operations() {
    insta::assert_snapshot!(schema("Operations"), @"
    Operations: object
      operations (list of object): Its lines, in order.
    ");
}

#[test]
fn schema_of_problem() {
    insta::assert_snapshot!(schema("Problem"), @"
    Problem: object
      detail (string): The error, and what to do about it.
      status (integer): The status.
      title (string): The name of the status.
      type (string): Which kind of problem: none has a page of its own.
    ");
}

#[test]
fn schema_of_pull_link() {
    insta::assert_snapshot!(schema("PullLink"), @"
    PullLink: object
      number (integer): Its number.
      url (string or null, optional): Its page.
    ");
}

#[test]
fn schema_of_run_detail() {
    insta::assert_snapshot!(schema("RunDetail"), @"RunDetail: RunSummary or object");
}

#[test]
fn schema_of_run_list() {
    insta::assert_snapshot!(schema("RunList"), @"
    RunList: object
      next (string or null, optional): The `after` of the next page; absent on the last one.
      runs (list of RunSummary): -
    ");
}

#[test]
fn schema_of_run_summary() {
    insta::assert_snapshot!(schema("RunSummary"), @"
    RunSummary: object
      agent (string): The agent.
      backend (string): The sandbox.
      commits (integer): Number of its new commits.
      cost_source (CostSource or null, optional): -
      cost_usd (number or null, optional): Its cost so far in dollars, if known.
      doing (string): The current activity.
      exit_status (integer or null, optional): Exit status of a headless run.
      finished_at (string or null, optional): When its record was closed.
      model (string or null, optional): Its model, where the manifest names one.
      parent (string or null, optional): The run that it resumes.
      phase (string): The last phase that it completed.
      provider (string): Its kind.
      pull_number (integer or null, optional): Its pull request.
      pull_url (string or null, optional): Address of the pull request.
      question (string or null, optional): The agent's question, if it waits for a person.
      run (string): The run.
      slug (string): The bottle.
      started_at (string): When it began.
      tokens (integer or null, optional): Tokens so far that the proxy counted; null where nobody counts them.
      verdict (VerdictSummary or null, optional): -
      watchdog_fired (boolean): Whether it ended without a report of its agent.
    ");
}

#[test]
fn schema_of_verdict_summary() {
    insta::assert_snapshot!(schema("VerdictSummary"), @"
    VerdictSummary: object
      kind (string): One word.
      message (string): A sentence for people.
    ");
}
