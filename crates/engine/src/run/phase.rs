//! The phases of a run, each done once.

use host::file::mask_tree;
use host::git::SealedRepo;
use model::error_chain;
use model::id::Sha;
use model::redact::SecretMask;
use run_store::operation_log::{Operation, OperationOutcome};
use serde_json::json;

use super::{PLAN_FILE, Phase, Product, RunError, save};
use crate::agent_result::agent_result;
use crate::evidence::{self, Bounds};
use crate::export::{ExportRequest, Exported, export};
use crate::launch::{BoxStatus, box_status};
use crate::report::report_egress;
use crate::sweep::sweep_orphans;
use crate::terminal::AttachedTerminal;
use crate::workspace::AGENT_IDENTITY;

/// Runs all phases that are left, to the end. Orphaned containers are removed first: one of them may still work in the
/// workspace of this run.
pub async fn advance<P: Product>(mut product: P) -> Result<P::Status, P::Failure> {
    sweep_orphans(product.run().boxes.backend, product.reporter()).await.or_fail::<P>()?;
    loop {
        let next = match product.run().record.phase {
            Phase::Pinned => product.prepare().await?,
            Phase::Prepared => set_up(&mut product).await?,
            Phase::SetUp => launch(&mut product).await?,
            Phase::Launched => wait(&mut product).await?,
            Phase::Ended => import(&mut product).await?,
            Phase::Imported => {
                product.reporter().phase("judge", "verifying against the pinned commits");
                let verdict = product.judge().await?;
                product.run_mut().record.verdict = Some(verdict);
                Phase::Judged
            }
            Phase::Judged => {
                product.check().await?;
                Phase::Checked
            }
            Phase::Checked => {
                product.publish().await?;
                Phase::Published
            }
            Phase::Published | Phase::Closed => return close(product).await,
        };
        let run = product.run_mut();
        run.record.phase = next;
        save::<P>(&run.dir, &run.redactor, &run.record).or_fail::<P>()?;
        host::failpoint::hit(&format!("{next:?}").to_lowercase());
    }
}

/// Runs the repository's own set-up in the workspace, before the agent.
async fn set_up<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    if let Some(command) = product.setup_command() {
        product.reporter().phase("setup", "running the set-up in a box");
        let run = product.run();
        let layout = run.layout("setup", command.timeout_secs).or_fail::<P>()?;
        let summary = run.run_line(layout, &command.line).await.or_fail::<P>()?;
        let event = json!({"name": "setup", "ended": summary.ended});
        product.reporter().event("box_command", &event);
        let failed = (!summary.passed()).then(|| product.setup_failed(&summary));
        let record = &mut product.run_mut().record;
        record.setup = Some(summary);
        if let Some(verdict) = failed {
            record.verdict = Some(verdict);
            return Ok(Phase::Checked);
        }
    }
    product.after_setup().await?;
    Ok(Phase::SetUp)
}

/// Starts the agent's box, unless it was started before.
async fn launch<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let run = product.run();
    let agent_run = run.agent_run().or_fail::<P>()?;
    if box_status(&agent_run.box_dir()).or_fail::<P>()? != BoxStatus::NeverStarted {
        return Ok(Phase::Launched);
    }
    let (provider, backend, secs) = (&run.plan.provider, run.boxes.backend, run.boxes.agent_secs);
    let message = format!("starting {provider} in a sealed {backend} box, {secs} s");
    product.reporter().phase("launch", &message);
    let spec = agent_run.spec();
    let sealed = json!({
        "backend": backend, "argv": spec.argv, "limits": spec.limits, "relays": spec.relays,
        "terminal": spec.terminal,
    });
    let intent = Operation::new("launch", "agent", OperationOutcome::Intended).with_detail(sealed);
    if !product.launch_is_logged()? {
        run.operations().and_then(|log| log.append(&intent)).or_fail::<P>()?;
    }
    product.before_launch().await?;
    host::failpoint::hit("served");
    let run = product.run();
    let agent_run = run.agent_run().or_fail::<P>()?;
    // A process that continues after a killed one may have no terminal; the box then notices that the other end is gone.
    let terminal = match &run.plan.terminal {
        Some(_) if host::terminal::is_present() => {
            product.reporter().release_terminal();
            let opened = AttachedTerminal::open(&agent_run.box_dir());
            Some(opened.map_err(RunError::Terminal).or_fail::<P>()?)
        }
        Some(_) | None => None,
    };
    agent_run.start(&run.launcher().or_fail::<P>()?).or_fail::<P>()?;
    let run = product.run_mut();
    run.terminal = terminal;
    run.snapshot.begin();
    Ok(Phase::Launched)
}

/// Waits for the agent's box and records its exit.
async fn wait<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let box_dir = product.run().agent_run().or_fail::<P>()?.box_dir();
    if box_status(&box_dir).or_fail::<P>()? == BoxStatus::NeverStarted {
        return Ok(Phase::SetUp);
    }
    let exit = product.attend().await?;
    let (record, report) = (exit.record, exit.report);
    report_egress(product.reporter(), &record);
    let ended = json!({"ended": record.ended, "wall_ms": record.wall_ms});
    let operation = Operation::new("box", "agent", OperationOutcome::Done).with_detail(ended);
    let run = product.run_mut();
    run.operations().and_then(|log| log.append(&operation)).or_fail::<P>()?;
    let waiting = record.egress.as_ref().and_then(|report| report.usage.waiting_until);
    run.record.agent_result = Some(agent_result(&report, waiting));
    let event = json!({"ended": record.ended, "ready_ms": record.ready_ms});
    run.record.agent_box = Some(record);
    product.reporter().event("box", &event);
    product.after_box().await?;
    Ok(Phase::Ended)
}

/// Imports the agent's commits through a box into a repository of the host, and gathers the evidence about them.
async fn import<P: Product>(product: &mut P) -> Result<Phase, P::Failure> {
    let ended = product.run().record.agent_box.as_ref().map(|record| &record.ended);
    if !ended.is_some_and(P::has_work) {
        return Ok(Phase::Imported);
    }
    product.reporter().phase("import", "importing the agent's commits from the box");
    let run = product.run();
    let source = product.import_source();
    let repo = run.make_import_repo(&source).await.or_fail::<P>()?;
    let request = ExportRequest {
        run: run.dir.id(),
        agent_box: &run.agent_run().or_fail::<P>()?.spec(),
        branch: &source.branch,
        known: &[source.pins.base.clone(), source.pins.upstream.clone()],
    };
    let launcher = run.launcher().or_fail::<P>()?;
    let exported = export(&launcher, &request, &repo, run.dir.next_box("export")).await;
    let refused = match exported.or_fail::<P>()? {
        Exported::Tip(tip) => {
            gather_evidence(product, &repo, &tip, AGENT_IDENTITY).await?;
            None
        }
        Exported::NothingNew => None,
        Exported::NoBranch => Some(format!("the branch '{}' is gone", source.branch)),
        Exported::Refused(reason) => Some(reason),
    };
    product.run_mut().record.import_refused = refused;
    Ok(Phase::Imported)
}

/// Gathers the evidence about a commit of the agent or of the host.
pub async fn gather_evidence<P: Product>(
    product: &mut P,
    repo: &SealedRepo,
    tip: &Sha,
    identity: (&str, &str),
) -> Result<(), P::Failure> {
    let pins = product.import_source().pins;
    let found = evidence::gather(repo, &pins, tip, &[identity], Bounds::default()).await;
    let found = found.or_fail::<P>()?;
    let too_large = found.too_large;
    product.run_mut().record.evidence = Some(found);
    // Git would take as long over such a result as the agent wants.
    if too_large { Ok(()) } else { product.inspect(repo, tip).await }
}

async fn close<P: Product>(mut product: P) -> Result<P::Status, P::Failure> {
    let (status, code) = product.before_close().await?;
    let run = product.run_mut();
    run.record.phase = Phase::Closed;
    run.record.finished_at = Some(host::clock::now());
    run.record.exit_status = Some(code);
    run.record.operations_head = Some(run.operations().or_fail::<P>()?.head().head);
    run.snapshot.save(&run.dir, &run.redactor).await.or_fail::<P>()?;
    run.remove_lock();
    mask_harness_state(&product).await;
    let run = product.run_mut();
    run.dir.close(&run.redactor, &run.record).or_fail::<P>()?;
    host::failpoint::hit("closed");
    product.after_close().await;
    Ok(status)
}

/// Masks secrets in the agent's own files once more: a shim that was killed has not done it.
async fn mask_harness_state<P: Product>(product: &P) {
    let run = product.run();
    let (state, plan) = (run.boxes.harness_state.clone(), run.dir.path().join(PLAN_FILE));
    let mask = SecretMask::new(&run.secrets);
    let masked = tokio::task::spawn_blocking(move || mask_tree(&state, &mask, &plan));
    if let Ok(Err(error)) = masked.await {
        product.reporter().note(&error_chain(&error));
    }
}

trait OrFail<T> {
    fn or_fail<P: Product>(self) -> Result<T, P::Failure>;
}

impl<T, E: Into<RunError>> OrFail<T> for Result<T, E> {
    fn or_fail<P: Product>(self) -> Result<T, P::Failure> {
        self.map_err(|error| P::failure(error.into()))
    }
}
