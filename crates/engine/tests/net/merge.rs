//! A merge by a real agent in a container, from the fork to the evidence.

use agent::{Provider, SessionRequest};
use testkit::Fork;
use testkit::model_server::{ModelScript, ModelServer, Turn};

use crate::support::{Project, Rig, on_backend};
use crate::worker::{SCRIPT, Worker};

on_backend!(docker, Docker, codex, claude, opencode);

async fn codex(rig: &Rig) {
    merges(rig, Provider::Codex).await;
}

async fn claude(rig: &Rig) {
    merges(rig, Provider::Claude).await;
}

async fn opencode(rig: &Rig) {
    merges(rig, Provider::OpenCode).await;
}

async fn merges(rig: &Rig, provider: Provider) {
    let Some(worker) = Worker::find(rig, provider).await else { return };
    let project = Project::new(|hermetic| Fork::new(hermetic).conflicting_merge()).await;
    project.fill(rig).await;
    let script = ModelScript::new([
        Turn::shell("git merge --no-edit upstream/main || true"),
        Turn::shell("printf 'both sides\\n' >shared.txt && git add -A && git commit --no-edit"),
        Turn::text("One conflict, in shared.txt; I kept both sides."),
    ]);
    let server = ModelServer::start([(SCRIPT, script)]);
    let session = SessionRequest::Fresh { id: None };
    let worked = worker.work(&server, "Merge upstream/main into main", session, None).await;
    assert_eq!(worked.report.tool_calls.len(), 2, "{:#?}", worked.report);
    assert_eq!(worked.back.usage().requests, 3, "{:?}", worked.back.usage());
    assert_eq!(worked.back.summary().denials, [], "nobody else was asked for");

    let imported = project.import(rig).await;
    let evidence = imported.evidence();
    assert!(evidence.upstream_reachable && evidence.base_reachable, "{evidence:#?}");
    assert_eq!(evidence.new_commits.len(), 1, "{evidence:#?}");
    assert_eq!(evidence.new_commits[0].parents, 2);
    assert_eq!(evidence.files_made, ["shared.txt"]);
    assert!(evidence.markers_left.is_empty() && evidence.foreign_identities.is_empty());
}
