//! The provenance of a run, as others get it: chosen from the run's metadata and its operation log, nothing made up.

use serde_json::{Value, json};

use crate::flow::run_record::BottleRunRecord;

/// State of the operation log's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperationChain {
    /// It is whole, and its head is the recorded one.
    Whole,
    /// The run is not closed, so its head is unknown.
    Open,
    /// It was changed.
    Broken(String),
}

pub(crate) fn render_provenance(
    meta: &BottleRunRecord,
    operations: &[Value],
    chain: &OperationChain,
) -> Value {
    let ended = meta.agent_box.as_ref().map(|record| &record.ended);
    let egress = meta.agent_box.as_ref().and_then(|record| record.egress.as_ref());
    let gitleaks = meta.scans.iter().find(|scan| scan.engine == "gitleaks");
    let gitleaks = gitleaks.map_or_else(
        || json!({ "engine": "gitleaks", "version": null, "status": "not_run", "reason": "there was nothing to scan" }),
        |scan| json!(scan),
    );
    let evidence = meta.evidence.as_ref();
    json!({
        "version": 1,
        "run": meta.run,
        "slug": meta.slug,
        "agent": meta.agent,
        "provider": meta.manifest.provider,
        "bottles": meta.bottles,
        "backend": meta.backend,
        "parent": meta.parent,
        "resumes_session": meta.resumes_session,
        "prompt_sha256": meta.prompt_sha256,
        "forge": meta.forge.as_ref().map(|env| json!({
            "kind": env.kind, "url": env.web, "owner": env.owner, "repo": env.repo, "issue": env.issue, "pull": env.pull,
        })),
        "timing": {
            "started_at": meta.started_at, "finished_at": meta.finished_at,
            "wall_ms": meta.agent_box.as_ref().map(|record| record.wall_ms),
        },
        "exit": {
            "code": meta.exit_status, "class": ended.map(model::verdict::Ended::class), "ended": ended,
        },
        "isolation": meta.agent_box.as_ref().map(|record| json!({
            "preflight": record.report, "limits": meta.manifest.limits,
            "egress_profile": meta.manifest.egress.profile, "peak_memory_bytes": record.peak_memory_bytes,
        })),
        "verdict": meta.verdict,
        "done": meta.done,
        "watchdog_fired": meta.watchdog.is_some(),
        "watchdog_reason": meta.watchdog,
        "sidecar": meta.sidecar,
        "gitleaks": gitleaks,
        "scans": meta.scans,
        "egress_summary": egress.map(|report| &report.summary),
        "model_usage": egress.map(|report| &report.usage),
        "agent_says": meta.agent_result.as_ref().map(|result| json!({
            "claim": result.claim, "tool_calls": result.tool_calls, "input_tokens": result.input_tokens,
            "output_tokens": result.output_tokens, "cost_usd": result.cost_usd, "session": result.session,
        })),
        "commits": {
            "start": meta.pins.start, "base": meta.pins.base, "tip": evidence.and_then(|it| it.tip.as_ref()),
            "new": evidence.map(|it| &it.new_commits),
        },
        "publication": meta.publication,
        "operations": operations,
        "operations_chain": match chain {
            OperationChain::Whole => json!({ "status": "whole", "head": meta.operations_head }),
            OperationChain::Open => json!({ "status": "open" }),
            OperationChain::Broken(why) => json!({ "status": "broken", "reason": why }),
        },
        "complete": meta.finished_at.is_some() && meta.watchdog.is_none() && *chain == OperationChain::Whole,
    })
}
