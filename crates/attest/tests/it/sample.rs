//! The statements of a run that never was.

use attest::bottle_run::{
    BottleRun, CommitIdentity, EventLog, Exit, ExitClass, ForgeOp, HostPlace, Isolation, Scan,
    ScanStatus, SignalDone,
};
use attest::bundle::Bundle;
use attest::slsa::{BuildDefinition, Builder, Invocation, Provenance, RunDetails};
use attest::statement::{Resource, Statement};
use serde_json::{Map, json};

pub(crate) const RUN: &str = "worker_20250115_120000";

pub(crate) fn subject() -> Vec<Resource> {
    vec![Resource::new("commit", "gitCommit", &"ab".repeat(20))]
}

pub(crate) fn provenance() -> Statement<Provenance> {
    let predicate = Provenance {
        build_definition: BuildDefinition {
            build_type: "https://bottleworks.dev/bottle/v1".to_owned(),
            external_parameters: Map::new(),
            internal_parameters: Map::new(),
            resolved_dependencies: Vec::new(),
        },
        run_details: RunDetails {
            builder: Builder {
                id: "https://bottleworks.dev/host/1".to_owned(),
                version: Map::new(),
            },
            metadata: Invocation {
                invocation_id: RUN.to_owned(),
                started_on: "2025-01-15T12:00:00Z".parse().expect("a time"),
                finished_on: Some("2025-01-15T12:20:00Z".parse().expect("a time")),
            },
            byproducts: Vec::new(),
        },
    };
    Statement::new(subject(), predicate)
}

pub(crate) fn bottle_run() -> Statement<BottleRun> {
    let scan = Scan {
        engine: "gitleaks".to_owned(),
        version: Some("8.30.0".to_owned()),
        rules_sha256: None,
        program_sha256: Some("11".repeat(32)),
        status: ScanStatus::Clean,
        count: Some(0),
    };
    let predicate = BottleRun {
        run: RUN.to_owned(),
        bottle: "worker".to_owned(),
        exit: Exit { class: ExitClass::Done, code: Some(0), signal: None },
        verdict: Some("publish".to_owned()),
        watchdog_fired: false,
        watchdog_reason: None,
        signal_done: Some(SignalDone {
            status: "success".to_owned(),
            summary_sha256: "22".repeat(32),
            at: "2025-01-15T12:10:00Z".parse().expect("a time"),
        }),
        egress_summary: Some(json!({ "complete": true })),
        model_usage: None,
        gitleaks: scan.clone(),
        scans: vec![scan],
        forge_ops: vec![ForgeOp {
            seq: 2,
            op: "post_comment".to_owned(),
            target: "#2".to_owned(),
            allowed: false,
            reason: "out of scope".to_owned(),
            ts: "2025-01-15T12:05:00Z".parse().expect("a time"),
        }],
        isolation: Isolation {
            backend: "bwrap".to_owned(),
            preflight: Some(json!([])),
            rlimits: Some(json!({ "nofile": 1024 })),
            landlock_abi: None,
            memory: "watchdog".to_owned(),
        },
        commit_identity: Some(CommitIdentity {
            expected: "agent <agent@box>".to_owned(),
            held: true,
            foreign: Vec::new(),
        }),
        lineage: vec!["worker_20250114_120000".to_owned()],
        resumes_session: true,
        events: EventLog { file: "operations.jsonl".to_owned(), head: "33".repeat(32), count: 9 },
        host_chain: HostPlace { host: "44".repeat(16), seq: 1, prev: "55".repeat(32) },
        complete: true,
        reasons: Vec::new(),
    };
    Statement::new(subject(), predicate)
}

pub(crate) fn pending() -> Bundle {
    Bundle::new(&provenance(), &bottle_run(), "the key is away").expect("a bundle")
}
