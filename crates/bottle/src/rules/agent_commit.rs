//! A run in the vocabulary for commits of agents: SLSA provenance with the build type "agent commit", version 0.3
//! (<https://refs.arewm.com/agent-commit/v0.3>). What is not known is left out.

use std::collections::BTreeMap;

use attest::slsa::{BuildDefinition, Builder, Invocation, Provenance, RunDetails};
use attest::statement::{Resource, Statement};
use egress::EgressProfile;
use egress::record::{EgressEntry, EgressVerdict};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sidecar::ForgeMethod;

use super::attestation::{dependencies, object};
use super::forge_env::ForgeEnv;
use crate::flow::run_record::BottleRunRecord;

const BUILD_TYPE: &str = "https://refs.arewm.com/agent-commit/v0.3";
const OBSERVATIONS: &str = "application/vnd.runtime-observations+json";

/// Sources of the statement.
pub(crate) struct AgentCommitFacts<'a> {
    pub(crate) meta: &'a BottleRunRecord,
    /// The verified statement of the run.
    pub(crate) provenance: &'a Statement<Provenance>,
    /// Lines of the egress log.
    pub(crate) egress: &'a [EgressEntry],
    /// The file of the run's statements.
    pub(crate) bundle: Resource,
}

pub(crate) fn render_agent_commit(facts: &AgentCommitFacts<'_>) -> Statement<Provenance> {
    let AgentCommitFacts { meta, provenance, .. } = facts;
    let details = &provenance.predicate.run_details;
    let predicate = Provenance {
        build_definition: BuildDefinition {
            build_type: BUILD_TYPE.to_owned(),
            external_parameters: external(meta),
            internal_parameters: internal(meta),
            resolved_dependencies: sources(meta),
        },
        run_details: RunDetails {
            builder: Builder {
                id: details.builder.id.clone(),
                version: details.builder.version.clone(),
            },
            metadata: Invocation { ..details.metadata.clone() },
            byproducts: byproducts(facts),
        },
    };
    Statement::new(provenance.subject.clone(), predicate)
}

fn external(meta: &BottleRunRecord) -> Map<String, Value> {
    let forge = meta.forge.as_ref();
    let run_uri = format!("urn:bottleworks:run:{}", meta.run);
    object(json!({
        "task": {
            "uri": forge.map_or(run_uri, ForgeEnv::issue_url),
            // The prompt has the issue's text and the conversation, as they were when the run began.
            "content": Resource::new("prompt", "sha256", &meta.prompt_sha256),
        },
        "target": {
            "repository": repository(meta),
            "baseRef": meta.pins.base_branch.full_ref(),
            "baseCommit": meta.pins.start,
        },
    }))
}

fn repository(meta: &BottleRunRecord) -> Option<String> {
    meta.forge.as_ref().map(|env| format!("git+{}", env.remote_url()))
}

fn internal(meta: &BottleRunRecord) -> Map<String, Value> {
    let seal = meta.seal.as_ref();
    let program = seal.and_then(|seal| seal.program.as_ref());
    let mut runtime = json!({ "name": meta.manifest.provider });
    if let Some(program) = program {
        runtime["version"] = json!(program.version);
        runtime["package"] = json!(program.package);
        if let Some(lock) = &program.lock_sha256 {
            runtime["digest"] = json!({ "sha256": lock });
        }
    }
    let mut agent = json!({ "runtime": runtime, "model": model(meta) });
    if meta.forge.is_some() {
        agent["tools"] = json!([{
            "name": "forge",
            "uri": "https://bottleworks.dev/bot-bottle/sidecar",
            "capabilities": ForgeMethod::ALL.map(ForgeMethod::name),
        }]);
    }
    object(json!({ "agent": agent, "sandboxPolicy": sandbox_policy(meta) }))
}

/// The model that the manifest names. Of a model that the agent chose by itself nothing is known.
fn model(meta: &BottleRunRecord) -> Value {
    match &meta.manifest.model {
        Some(id) => json!({ "provider": meta.manifest.provider, "modelId": id }),
        None => json!({ "provider": meta.manifest.provider }),
    }
}

fn sandbox_policy(meta: &BottleRunRecord) -> Value {
    let seal = meta.seal.as_ref();
    let policy = meta.manifest.policy().ok().flatten();
    let network = match &policy {
        None => json!({ "mode": "none" }),
        Some(policy) if policy.profile == EgressProfile::None => json!({ "mode": "none" }),
        Some(policy) => {
            let allowed: Vec<String> = policy.allow.iter().map(ToString::to_string).collect();
            json!({ "mode": policy.profile, "allowedEgress": allowed })
        }
    };
    let digest = |value: Option<&String>| value.map(|it| json!({ "sha256": it }));
    json!({
        "network": network,
        "networkPolicy": digest(seal.and_then(|seal| seal.egress_policy_sha256.as_ref())),
        "credentials": "proxy-injected",
        "filesystem": "sealed-clone",
        "backend": meta.backend,
        "box": digest(seal.map(|seal| &seal.profile_sha256)),
        "systemCalls": digest(seal.and_then(|seal| seal.seccomp_sha256.as_ref())),
    })
}

/// The known inputs, with the repository that the agent started from first.
fn sources(meta: &BottleRunRecord) -> Vec<Resource> {
    let source = Resource::new("source", "gitCommit", meta.pins.start.as_str());
    let source = Resource { uri: repository(meta), ..source };
    let others = dependencies(meta).into_iter().filter(|it| it.name.as_deref() != Some("start"));
    std::iter::once(source).chain(others).collect()
}

fn byproducts(facts: &AgentCommitFacts<'_>) -> Vec<Resource> {
    let AgentCommitFacts { meta, egress, bundle, .. } = facts;
    let observed = json!([{
        "invocationId": meta.run, "role": "agent", "connections": connections(egress),
    }]);
    let network = Resource {
        name: Some("observed-network".to_owned()),
        media_type: Some(OBSERVATIONS.to_owned()),
        ..Resource::default()
    };
    vec![network.with("observations", observed), bundle.clone()]
}

/// Connections by remote and verdict. The proxy outside the box saw each of them.
fn connections(egress: &[EgressEntry]) -> Vec<Value> {
    struct ConnectionTally {
        count: u64,
        bytes: (u64, u64),
        span: (Timestamp, Timestamp),
    }
    let mut found: BTreeMap<(String, &str), ConnectionTally> = BTreeMap::new();
    for entry in egress {
        let verdict = match entry.verdict {
            EgressVerdict::Allowed => "allowed",
            EgressVerdict::Denied => "denied",
            EgressVerdict::Failed => "failed",
        };
        let took = SignedDuration::from_millis(i64::try_from(entry.ms).unwrap_or_default());
        let begun = entry.ts.checked_sub(took).unwrap_or(entry.ts);
        let remote = format!("{}:{}", entry.host, entry.port);
        let seen = found.entry((remote, verdict)).or_insert(ConnectionTally {
            count: 0,
            bytes: (0, 0),
            span: (begun, entry.ts),
        });
        seen.count += 1;
        seen.bytes.0 += entry.bytes_up;
        seen.bytes.1 += entry.bytes_down;
        seen.span = (seen.span.0.min(begun), seen.span.1.max(entry.ts));
    }
    let render = |((remote, verdict), seen): ((String, &str), ConnectionTally)| {
        json!({
            "remote": remote, "verdict": verdict, "direction": "egress", "count": seen.count,
            "bytesOut": seen.bytes.0, "bytesIn": seen.bytes.1,
            "start": seen.span.0, "end": seen.span.1,
        })
    };
    found.into_iter().map(render).collect()
}
