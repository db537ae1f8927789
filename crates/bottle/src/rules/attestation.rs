//! Signed content about a run: two in-toto statements made from its closed records. Unknown values are `null`, and texts
//! are digests.

use attest::bottle_run::{
    BottleRun, CommitIdentity, EventLog, Exit, ExitClass, ForgeOp, HostPlace, Isolation, Scan,
    ScanStatus, SignalDone,
};
use attest::slsa::{BuildDefinition, Builder, Invocation, Provenance, RunDetails};
use attest::statement::{Resource, Statement};
use engine::workspace::AGENT_IDENTITY;
use model::digest::sha256;
use model::verdict::Ended;
use serde_json::{Map, Value, json};
use sidecar::DoneStatus;

use super::judge::Verdict;
use super::leak::{ScanOutcome, ScanReport};
use crate::flow::run_record::{BottleRunRecord, SidecarEnd, WatchdogReason};

/// Meaning of the parameters, which `docs/provenance.md` explains.
const BUILD_TYPE: &str = "https://bottleworks.dev/bottle/v1";

/// Prefix of a host's id.
const BUILDER: &str = "https://bottleworks.dev/bot-bottle/host/";

/// The records of a run.
pub(crate) struct Witness<'a> {
    pub(crate) meta: &'a BottleRunRecord,
    pub(crate) operations: &'a [Value],
    pub(crate) events: EventLog,
    pub(crate) place: HostPlace,
    pub(crate) byproducts: Vec<Resource>,
    pub(crate) bundle: Option<Resource>,
}

pub(crate) fn render_statements(
    witness: &Witness<'_>,
) -> (Statement<Provenance>, Statement<BottleRun>) {
    let subject = subject(witness);
    let provenance = Statement::new(subject.clone(), provenance(witness));
    (provenance, Statement::new(subject, bottle_run(witness)))
}

/// The result's commit and the bundle that held it. The subject of a run without either is its operation log.
fn subject(witness: &Witness<'_>) -> Vec<Resource> {
    let meta = witness.meta;
    let result = meta.evidence.as_ref().and_then(|evidence| evidence.tip.as_ref());
    let sent = meta.publication.as_ref().filter(|sent| sent.pushed);
    let published = sent.is_some();
    // Signed commits have other ids than those that came out of the box.
    let tip = result.map(|tip| sent.map_or(tip, |sent| &sent.commit));
    let signed_from = tip.zip(result).filter(|(tip, result)| tip != result).map(|(_, it)| it);
    let with_source = |commit: Resource| match signed_from {
        Some(source) => commit.with("signedFrom", json!(source)),
        None => commit,
    };
    let commit = tip.map(|tip| Resource {
        uri: meta
            .forge
            .as_ref()
            .map(|env| format!("git+{}@refs/heads/{}", env.remote_url(), meta.pins.branch)),
        ..Resource::new("commit", "gitCommit", tip.as_str()).with("published", json!(published))
    });
    let commit = commit.map(with_source);
    let found: Vec<Resource> = commit.into_iter().chain(witness.bundle.clone()).collect();
    match found.is_empty() {
        true => vec![Resource::new(&witness.events.file, "sha256", &log_digest(witness))],
        false => found,
    }
}

/// Digest of the operation log, which is always among the byproducts; the head of its chain if it could not be read.
fn log_digest(witness: &Witness<'_>) -> String {
    let is_log = |it: &&Resource| it.name.as_deref() == Some(witness.events.file.as_str());
    let log = witness.byproducts.iter().find(is_log).and_then(Resource::sha256);
    log.unwrap_or(&witness.events.head).to_owned()
}

fn provenance(witness: &Witness<'_>) -> Provenance {
    let meta = witness.meta;
    let seal = meta.seal.as_ref();
    let forge = meta.forge.as_ref();
    let external = json!({
        "forge": forge.map(|env| &env.web),
        "owner": forge.map(|env| &env.owner),
        "repo": forge.map(|env| &env.repo),
        "issue": forge.map(|env| env.issue),
        "pull": meta.publication.as_ref().and_then(|sent| sent.pull.as_ref()).map(|pull| pull.number)
            .or_else(|| forge.and_then(|env| env.pull)),
        "agent": meta.agent,
        "bottles": meta.bottles,
        "prompt_sha256": meta.prompt_sha256,
        "delivery": meta.delivery,
        "policy": meta.manifest.policy().ok().flatten().map(|policy| policy.profile),
    });
    let internal = json!({
        "backend": meta.backend,
        "provider": meta.manifest.provider,
        "model": meta.manifest.model,
        "profile_sha256": seal.map(|seal| &seal.profile_sha256),
        "seccomp_sha256": seal.and_then(|seal| seal.seccomp_sha256.as_ref()),
        "egress_policy_sha256": seal.and_then(|seal| seal.egress_policy_sha256.as_ref()),
        "limits": meta.manifest.limits,
        "orchestrator": seal.map(|seal| &seal.orchestrator),
    });
    Provenance {
        build_definition: BuildDefinition {
            build_type: BUILD_TYPE.to_owned(),
            external_parameters: object(external),
            internal_parameters: object(internal),
            resolved_dependencies: dependencies(meta),
        },
        run_details: RunDetails {
            builder: Builder {
                id: format!("{BUILDER}{}", witness.place.host),
                version: object(json!({ "bot-bottle": seal.map(|seal| &seal.orchestrator) })),
            },
            metadata: Invocation {
                invocation_id: meta.run.to_string(),
                started_on: meta.started_at,
                finished_on: meta.finished_at,
            },
            byproducts: witness.byproducts.clone(),
        },
    }
}

/// Known inputs: the commits, the guest program, the image and the agent's own program.
pub(super) fn dependencies(meta: &BottleRunRecord) -> Vec<Resource> {
    let mut list = vec![
        Resource::new("start", "gitCommit", meta.pins.start.as_str()),
        Resource::new("base", "gitCommit", meta.pins.base.as_str()),
    ];
    let Some(seal) = &meta.seal else { return list };
    list.push(Resource::new("guest", "sha256", &seal.guest_sha256));
    if let Some(image) = &seal.image {
        let id = image.id.as_deref().and_then(|id| id.strip_prefix("sha256:"));
        list.push(resource("image", id).with("name", json!(image.name)));
    }
    if let Some(program) = &seal.program {
        let known = resource("agent", program.lock_sha256.as_deref());
        let uri =
            Some(format!("pkg:npm/{}@{}", program.package.replace('@', "%40"), program.version));
        list.push(Resource { uri, ..known }.with("version", json!(program.version)));
    }
    list
}

/// A resource whose digest may be unknown.
fn resource(name: &str, sha256: Option<&str>) -> Resource {
    let unknown = || Resource { name: Some(name.to_owned()), ..Resource::default() };
    sha256.map_or_else(unknown, |digest| Resource::new(name, "sha256", digest))
}

fn bottle_run(witness: &Witness<'_>) -> BottleRun {
    let meta = witness.meta;
    let record = meta.agent_box.as_ref();
    let egress = record.and_then(|record| record.egress.as_ref());
    let report = record.and_then(|record| record.report.as_ref());
    let reasons = gaps(meta);
    BottleRun {
        run: meta.run.to_string(),
        bottle: meta.slug.to_string(),
        exit: exit(meta),
        verdict: meta.verdict.as_ref().map(Verdict::kind),
        watchdog_fired: meta.watchdog.is_some(),
        watchdog_reason: meta.watchdog.and_then(|reason| word(&json!(reason))),
        signal_done: meta.done.as_ref().map(|event| SignalDone {
            status: event.status.name().to_owned(),
            summary_sha256: sha256(event.summary.as_bytes()),
            at: event.at,
        }),
        egress_summary: egress.map(|report| json!(report.summary)),
        model_usage: egress.map(|report| json!(report.usage)),
        gitleaks: gitleaks(&meta.scans),
        scans: meta.scans.iter().map(scan).collect(),
        forge_ops: witness.operations.iter().filter_map(forge_op).collect(),
        isolation: Isolation {
            backend: meta.backend.to_string(),
            preflight: report.map(|report| json!(report.preflight)),
            rlimits: report.map(|report| json!(report.limits)),
            landlock_abi: None,
            memory: meta.backend.memory_guard().to_owned(),
        },
        commit_identity: meta.evidence.as_ref().map(|evidence| CommitIdentity {
            expected: format!("{} <{}>", AGENT_IDENTITY.0, AGENT_IDENTITY.1),
            held: evidence.foreign_identities.is_empty(),
            foreign: evidence.foreign_identities.clone(),
        }),
        lineage: meta.lineage.iter().map(ToString::to_string).collect(),
        resumes_session: meta.resumes_session,
        events: witness.events.clone(),
        host_chain: witness.place.clone(),
        complete: reasons.is_empty(),
        reasons,
    }
}

fn exit(meta: &BottleRunRecord) -> Exit {
    let Some(record) = &meta.agent_box else {
        return Exit { class: ExitClass::None, code: None, signal: None };
    };
    let (code, signal) = match &record.ended {
        Ended::Exited { code } => (Some(*code), None),
        Ended::Signalled { signal } => (None, Some(*signal)),
        _ => (None, None),
    };
    let silent = meta.watchdog == Some(WatchdogReason::TimedOut) || record.fell_silent;
    let report = meta.done.as_ref().map(|event| event.status);
    Exit { class: exit_class(&record.ended, report, silent), code, signal }
}

/// The machine outranks the clock, and the clock outranks the agent.
fn exit_class(ended: &Ended, report: Option<DoneStatus>, fell_silent: bool) -> ExitClass {
    match (ended, report) {
        (Ended::Infra { .. }, _) => ExitClass::Infra,
        (Ended::OutOfMemory | Ended::OutOfSpace, _) => ExitClass::Oom,
        _ if fell_silent => ExitClass::Watchdog,
        (Ended::OutOfTime, _) => ExitClass::Timeout,
        (Ended::Signalled { .. } | Ended::Stopped, _) | (Ended::Frozen, None) => ExitClass::Killed,
        (_, Some(DoneStatus::Failure | DoneStatus::Blocked)) => ExitClass::Stuck,
        (Ended::Exited { .. } | Ended::Frozen, _) => ExitClass::Done,
    }
}

fn gitleaks(scans: &[ScanReport]) -> Scan {
    let found = scans.iter().find(|scan| scan.engine == "gitleaks").map(scan);
    found.unwrap_or_else(|| Scan {
        engine: "gitleaks".to_owned(),
        version: None,
        rules_sha256: None,
        program_sha256: None,
        status: ScanStatus::NotRun,
        count: None,
    })
}

fn scan(report: &ScanReport) -> Scan {
    let (status, count) = match &report.status {
        ScanOutcome::Clean => (ScanStatus::Clean, Some(0)),
        ScanOutcome::Findings { count, .. } => (ScanStatus::Findings, Some(*count as u64)),
        ScanOutcome::Error { .. } => (ScanStatus::Error, None),
        ScanOutcome::NotRun { .. } => (ScanStatus::NotRun, None),
    };
    Scan {
        engine: report.engine.clone(),
        version: report.version.clone(),
        rules_sha256: None,
        program_sha256: report.program_sha256.clone(),
        status,
        count,
    }
}

/// Parses a line of the operation log; `None` for lines that the sidecar did not write.
fn forge_op(line: &Value) -> Option<ForgeOp> {
    let outcome = word(&line["outcome"])?;
    let sentence = line.pointer("/detail/sentence").and_then(word);
    Some(ForgeOp {
        seq: line["seq"].as_u64()?,
        op: line["op"].as_str()?.strip_prefix("forge.")?.to_owned(),
        target: word(&line["target"])?,
        allowed: outcome != "refused",
        reason: sentence.unwrap_or(outcome),
        ts: line["ts"].as_str()?.parse().ok()?,
    })
}

/// Reasons why the record may be incomplete.
fn gaps(meta: &BottleRunRecord) -> Vec<String> {
    let mut list = Vec::new();
    let mut gap = |there: bool, reason: &str| list.extend(there.then(|| reason.to_owned()));
    let record = meta.agent_box.as_ref();
    gap(meta.finished_at.is_none(), "the run was not closed in order");
    gap(meta.watchdog.is_some(), "the agent did not report for itself");
    gap(matches!(meta.sidecar, Some(SidecarEnd::Died { .. })), "the forge sidecar died");
    gap(record.is_some_and(|it| matches!(it.ended, Ended::Infra { .. })), "the machine failed");
    gap(record.is_some_and(|it| it.dropped_bytes > 0), "the agent's log was cut");
    let egress = record.and_then(|record| record.egress.as_ref());
    gap(egress.is_some_and(|report| !report.summary.complete), "the egress log is incomplete");
    list
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_outranks_the_clock_and_the_clock_the_agent() {
        let done = Some(DoneStatus::Success);
        let check =
            |ended, said, silent, class| assert_eq!(exit_class(&ended, said, silent), class);
        check(Ended::Exited { code: 0 }, done, false, ExitClass::Done);
        check(Ended::Exited { code: 3 }, None, false, ExitClass::Done);
        check(Ended::Frozen, done, false, ExitClass::Done);
        check(Ended::Frozen, None, false, ExitClass::Killed);
        check(Ended::Frozen, None, true, ExitClass::Watchdog);
        check(Ended::Exited { code: 0 }, Some(DoneStatus::Blocked), false, ExitClass::Stuck);
        check(Ended::OutOfTime, None, false, ExitClass::Timeout);
        check(Ended::OutOfTime, None, true, ExitClass::Watchdog);
        check(Ended::OutOfMemory, done, true, ExitClass::Oom);
        check(Ended::OutOfSpace, None, false, ExitClass::Oom);
        check(Ended::Signalled { signal: 9 }, done, false, ExitClass::Killed);
        check(Ended::Infra { reason: String::new() }, done, true, ExitClass::Infra);
    }

    #[test]
    fn a_refused_call_is_a_forge_operation_and_the_hosts_own_lines_are_none() {
        let line = json!({
            "seq": 4, "ts": "2025-01-15T12:00:00Z", "op": "forge.post_comment", "target": "#2",
            "outcome": "refused", "detail": { "sentence": "refused comment to #2: out of scope" },
        });
        let op = forge_op(&line).expect("an operation");
        assert_eq!((op.seq, op.op.as_str(), op.allowed), (4, "post_comment", false));
        assert_eq!(op.reason, "refused comment to #2: out of scope");
        let own = json!({ "seq": 1, "ts": "2025-01-15T12:00:00Z", "op": "push", "target": "b", "outcome": "done" });
        assert_eq!(forge_op(&own), None);
    }

    #[test]
    fn nobody_looked_is_not_clean() {
        assert_eq!(gitleaks(&[]).status, ScanStatus::NotRun);
        let report = ScanReport {
            engine: "gitleaks".to_owned(),
            version: None,
            program_sha256: None,
            status: ScanOutcome::Error { reason: "no".to_owned() },
        };
        assert_eq!(gitleaks(&[report]).count, None);
    }
}
