//! Finishing what a killed keeper left, so that a bottle can always be gone on with.

use agent::Usage;
use engine::box_dir::BoxDir;
use engine::launch::{self, BoxStatus};
use model::exit::BottleExit;
use model::id::BoxName;
use orchestrator_db::BottleStep;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::load_metadata;

use super::access::ForgeAccess;
use super::attestation::settle_statements;
use super::bottle::{Bottle, BottleState, Record};
use super::home::Home;
use super::keeper::Keeper;
use super::metadata::Metadata;
use super::observe::Source;
use super::run::Run;
use super::sealed::load_plan;
use super::standing;
use crate::exit::{Failure, OrExit};

/// Finishes the last run of a bottle whose keeper was killed. The caller holds the bottle's lock.
pub(crate) async fn recover(
    keeper: Keeper<'_>,
    bottle: &Bottle,
    access: Option<ForgeAccess>,
) -> Result<(), Failure> {
    let Keeper { ui, home, .. } = keeper;
    settle_statements(ui, home);
    let (bottle, record) = Bottle::open(home, bottle.slug().as_str())?;
    let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) else { return Ok(()) };
    let access = match access {
        Some(access) => Some(access),
        None => ForgeAccess::of_record(home, record.forge.as_ref())?,
    };
    ui.note(&format!("finishing {}, whose bot-bottle was ended", dir.id()));
    let meta: Metadata = load_metadata(&dir).or_general()?;
    let plan = load_plan(&dir)?;
    let source = Source::find(&record.repo, access.as_ref()).await?;
    let mut secrets: Vec<_> = access.iter().map(|access| access.token.clone()).collect();
    secrets.extend(plan.key.variables().into_iter().flatten().map(|(_, key)| key));
    let used_before = used_by(&record, &meta.manifest.provider);
    let run = Run {
        keeper,
        bottle,
        record,
        dir,
        meta,
        source,
        plan,
        access,
        secrets,
        used_before,
        seat: None,
        snapshot: LaterSnapshot::default(),
    };
    run.advance().await.map(drop)
}

/// What the conversation of this agent had used before.
pub(super) fn used_by(record: &Record, provider: &str) -> Usage {
    let session = record.session.as_ref().filter(|session| session.provider == provider);
    session.and_then(|session| session.usage).unwrap_or_default()
}

/// A bottle in which nothing runs is frozen, whatever was written down before somebody failed or was killed. The caller
/// holds its lock.
pub(crate) fn settle(home: &Home, slug: &str) -> Result<(), Failure> {
    let (bottle, mut record) = Bottle::open(home, slug)?;
    if record.state == BottleState::Destroyed {
        return Ok(());
    }
    if let Some(dir) = bottle.last_run(&record)? {
        let agent = BoxName::parse("agent").or_exit(BottleExit::Internal)?;
        let seen = launch::box_status(&BoxDir::new(dir.box_dir(&agent))).or_general()?;
        if seen == BoxStatus::Running {
            return Ok(());
        }
    }
    standing::step(home, &record, BottleStep::Freeze)?;
    record.state = BottleState::Frozen;
    bottle.save(&record)
}
