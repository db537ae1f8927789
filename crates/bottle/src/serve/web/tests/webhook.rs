//! Webhooks as forges send them: what is answered, and what is stored.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use orchestrator_db::{About, BottleState, ForgeState, IssueKey, Writer};
use testkit::fake_forge::hooks::{SECRET, samples};
use tower::ServiceExt;

use super::stage::Stage;
use crate::flow::fleet::LOCAL_HOST;
use crate::serve::webhook;

/// A stage whose repositories on Gitea and GitLab have the secret of the recorded deliveries.
fn stage() -> Stage {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), SECRET).expect("written");
    let forge = |kind: &str, repo: &str| {
        format!(
            "[[forge]]\nkind = \"{kind}\"\nurl = \"https://{kind}.example\"\nrepos = [\"{repo}\"]\ntoken_file = \"<dir>/token\"\nsecret_file = \"{}\"\n",
            secret.path().display()
        )
    };
    Stage::new(&format!("{}{}", forge("gitea", "alice/hooks"), forge("gitlab", "acme/tools/cli")))
}

/// Posts a delivery and returns the answer as one line.
async fn post(stage: &Stage, source: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let mut request = Request::builder().method("POST").uri(format!("/webhooks/{source}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_vec())).expect("a request");
    let router = webhook::router(Arc::clone(&stage.service));
    let response = router.oneshot(request).await.expect("an answer");
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), 1 << 16).await.expect("a body");
    format!("{status} {}", String::from_utf8_lossy(&bytes).trim_end())
}

/// Stored deliveries, one line each.
fn stored(stage: &Stage) -> String {
    let list = stage.service.store.deliveries_since(0, 100).expect("deliveries");
    let line = |it: &orchestrator_db::Delivery| {
        let about = match it.about {
            About::Issue(number) => format!("issue {number}"),
            About::Pull(number) => format!("pull request {number}"),
        };
        format!("{} {}: {}/{} {about}", it.source, it.event, it.owner, it.repo)
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn recorded_deliveries_of_gitea() {
    let stage = stage();
    let mut lines = Vec::new();
    for sample in samples() {
        let answer = post(&stage, "gitea", &sample.headers, sample.body).await;
        lines.push(format!("{}: {answer}", sample.name));
    }
    insta::assert_snapshot!(format!("{}\n\n{}", lines.join("\n"), stored(&stage)), @"
    issue_opened_labeled_assigned-opened: 202 stored
    issue_opened_labeled_assigned-label_updated: 202 stored
    issue_opened_labeled_assigned-assigned: 202 stored
    issue_comment_created: 202 stored
    pull_request_comment_created: 202 stored
    pull_request_review_comment: 202 stored
    pull_request_review_rejected: 202 stored
    pull_request_merged-closed: 202 stored
    pull_request_merged-push: 202 nothing to do

    gitea issues: alice/hooks issue 2
    gitea issue_label: alice/hooks issue 2
    gitea issue_assign: alice/hooks issue 2
    gitea issue_comment: alice/hooks issue 1
    gitea pull_request_comment: alice/hooks pull request 3
    gitea pull_request_review_comment: alice/hooks pull request 3
    gitea pull_request_review_rejected: alice/hooks pull request 3
    gitea pull_request: alice/hooks pull request 3
    ");
}

#[tokio::test]
async fn a_delivery_that_comes_twice_is_stored_once() {
    let stage = stage();
    let sample = samples().remove(0);
    let mut lines = Vec::new();
    for _ in 0..2 {
        lines.push(post(&stage, "gitea", &sample.headers, sample.body).await);
    }
    insta::assert_snapshot!(format!("{}\n\n{}", lines.join("\n"), stored(&stage)), @"
    202 stored
    200 duplicate

    gitea issues: alice/hooks issue 2
    ");
}

#[tokio::test]
async fn deliveries_that_are_refused() {
    let stage = stage();
    let sample = samples().remove(0);
    let unsigned: Vec<(&str, &str)> = sample
        .headers
        .iter()
        .filter(|(name, _)| !name.to_lowercase().contains("signature"))
        .copied()
        .collect();
    let changed = [sample.body, b" "].concat();
    let lines = [
        format!("not signed: {}", post(&stage, "gitea", &unsigned, sample.body).await),
        format!("changed: {}", post(&stage, "gitea", &sample.headers, &changed).await),
        format!("another forge: {}", post(&stage, "gitlab", &sample.headers, sample.body).await),
        format!(
            "no repository there: {}",
            post(&stage, "github", &sample.headers, sample.body).await
        ),
        format!("no forge: {}", post(&stage, "svn", &sample.headers, sample.body).await),
        format!("a folder: {}", post(&stage, "folder", &sample.headers, sample.body).await),
    ];
    assert_eq!(stored(&stage), "");
    insta::assert_snapshot!(lines.join("\n"), @"
    not signed: 401 the signature is wrong
    changed: 401 the signature is wrong
    another forge: 401 the signature is wrong
    no repository there: 401 the signature is wrong
    no forge: 404 unknown forge
    a folder: 404 unknown forge
    ");
}

#[tokio::test]
async fn deliveries_of_gitlab() {
    let stage = stage();
    let named = [
        ("x-gitlab-token", SECRET),
        ("x-gitlab-event", "Note Hook"),
        ("content-type", "application/json"),
    ];
    let project = r#""project":{"path_with_namespace":"acme/tools/cli"}"#;
    let bodies = [
        format!(r#"{{"object_kind":"issue",{project},"object_attributes":{{"iid":3}}}}"#),
        format!(r#"{{"object_kind":"merge_request",{project},"object_attributes":{{"iid":4}}}}"#),
        format!(r#"{{"object_kind":"note",{project},"issue":{{"iid":5}}}}"#),
        format!(r#"{{"object_kind":"note",{project},"merge_request":{{"iid":6}}}}"#),
        format!(r#"{{"object_kind":"push",{project}}}"#),
        r#"{"object_kind":"issue","object_attributes":{"iid":3}}"#.to_owned(),
        r#"{"object_kind":"issue","project":{"path_with_namespace":"acme/other"},"object_attributes":{"iid":3}}"#
            .to_owned(),
        "no json".to_owned(),
    ];
    let mut lines = Vec::new();
    for body in &bodies {
        lines.push(format!("{body}\n  {}", post(&stage, "gitlab", &named, body.as_bytes()).await));
    }
    insta::assert_snapshot!(format!("{}\n\n{}", lines.join("\n"), stored(&stage)), @r#"
    {"object_kind":"issue","project":{"path_with_namespace":"acme/tools/cli"},"object_attributes":{"iid":3}}
      202 stored
    {"object_kind":"merge_request","project":{"path_with_namespace":"acme/tools/cli"},"object_attributes":{"iid":4}}
      202 stored
    {"object_kind":"note","project":{"path_with_namespace":"acme/tools/cli"},"issue":{"iid":5}}
      202 stored
    {"object_kind":"note","project":{"path_with_namespace":"acme/tools/cli"},"merge_request":{"iid":6}}
      202 stored
    {"object_kind":"push","project":{"path_with_namespace":"acme/tools/cli"}}
      202 nothing to do
    {"object_kind":"issue","object_attributes":{"iid":3}}
      400 the body is not the JSON that this event has
    {"object_kind":"issue","project":{"path_with_namespace":"acme/other"},"object_attributes":{"iid":3}}
      403 this secret does not belong to that repository
    no json
      400 the body is not the JSON that this event has

    gitlab Note Hook: acme/tools/cli issue 3
    gitlab Note Hook: acme/tools/cli pull request 4
    gitlab Note Hook: acme/tools/cli issue 5
    gitlab Note Hook: acme/tools/cli pull request 6
    "#);
}

/// Row of a bottle with a pull request.
fn row_of(issue_number: u64, host: &str) -> ForgeState {
    ForgeState {
        key: IssueKey { owner: "acme/tools".to_owned(), repo: "cli".to_owned(), issue_number },
        slug: format!("worker-issue-{issue_number}"),
        agent_name: "worker".to_owned(),
        bottle_names: Vec::new(),
        backend_name: "bwrap".to_owned(),
        host: Some(host.to_owned()),
        saved: None,
        agent_git_user: String::new(),
        pr_number: Some(issue_number + 1),
        status: BottleState::Frozen,
        last_checkin_at: host::clock::now(),
    }
}

/// The record that names the issue is on the disk of the host that has the bottle.
#[tokio::test]
async fn checks_of_a_bottle_on_another_host_are_stored_for_it() {
    let stage = stage();
    let row = row_of(7, "there");
    let writer = Writer { host: "there", claim: None };
    stage.service.store.add_forge_state(&row, writer).expect("stored");
    let headers = [("x-gitlab-token", SECRET), ("x-gitlab-event", "Pipeline Hook")];
    for (branch, answer) in [
        ("bot-bottle/worker-issue-7", "202 stored"),
        ("bot-bottle/worker-issue-9", "202 nothing to do"),
    ] {
        let body = format!(
            r#"{{"object_kind":"pipeline","object_attributes":{{"sha":"abc","ref":"{branch}"}},"project":{{"path_with_namespace":"acme/tools/cli"}}}}"#
        );
        assert_eq!(post(&stage, "gitlab", &headers, body.as_bytes()).await, answer, "{branch}");
    }
    assert_eq!(stored(&stage), "gitlab Pipeline Hook: acme/tools/cli issue 7");
}

/// A forge that sends the commit alone: only the host of a bottle knows what it published.
#[tokio::test]
async fn checks_without_a_branch_are_stored_for_each_bottle_that_may_be_meant() {
    let stage = stage();
    for (issue, pull, host) in [
        (7, Some(8), "there"),
        (9, Some(10), "elsewhere"),
        (11, None, "there"),
        (13, Some(14), LOCAL_HOST),
    ] {
        let row = ForgeState { pr_number: pull, ..row_of(issue, host) };
        let writer = Writer { host, claim: None };
        stage.service.store.add_forge_state(&row, writer).expect("stored");
    }
    let headers = [("x-gitlab-token", SECRET), ("x-gitlab-event", "Pipeline Hook")];
    let body = |attributes: &str| {
        format!(
            r#"{{"object_kind":"pipeline","object_attributes":{{"sha":"abc"{attributes}}},"project":{{"path_with_namespace":"acme/tools/cli"}}}}"#
        )
    };
    let main = body(r#","ref":"main""#);
    assert_eq!(post(&stage, "gitlab", &headers, main.as_bytes()).await, "202 nothing to do");
    assert_eq!(post(&stage, "gitlab", &headers, body("").as_bytes()).await, "202 stored");
    assert_eq!(
        stored(&stage),
        "gitlab Pipeline Hook: acme/tools/cli issue 7\ngitlab Pipeline Hook: acme/tools/cli issue 9"
    );
}

#[tokio::test]
async fn headers_that_are_missing_or_wrong() {
    let stage = stage();
    let body = br#"{"object_kind":"push"}"#;
    let sets: [&[(&str, &str)]; 5] = [
        &[],
        &[("x-gitlab-token", "")],
        &[("x-gitlab-token", "wrong"), ("x-gitlab-event", "Push Hook")],
        &[("x-gitlab-token", SECRET)],
        &[("x-gitlab-token", SECRET), ("x-gitlab-event", "Push Hook"), ("idempotency-key", "a b")],
    ];
    let mut lines = Vec::new();
    for set in sets {
        let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
        lines.push(format!("{names:?}: {}", post(&stage, "gitlab", set, body).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    []: 401 the signature is wrong
    ["x-gitlab-token"]: 401 the signature is wrong
    ["x-gitlab-token", "x-gitlab-event"]: 401 the signature is wrong
    ["x-gitlab-token"]: 400 the header that names the event is missing or odd
    ["x-gitlab-token", "x-gitlab-event", "idempotency-key"]: 400 the header that names the delivery is missing or odd
    "#);
}
