//! Bottles that travel: what a host does with the store of bottles. A frozen bottle is saved before its row says so; a host
//! that has not got it, or only an older state, fetches it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bottle_store::{
    BottleClaim, BottleId, BottleKey, BottleStore, BottleStoreError, FleetKey, FolderMark, Owners,
    PullOptions, SaveRequest, SavedBottle, StoreOptions, Transfer,
};
use host::lock::{FileLock, LockError, LockKind};
use model::exit::BottleExit;
use orchestrator_db::{BottleStep, Fence, ForgeState};
use sandbox::spec::BoxUser;
use shell::config::FleetEntry;
use shell::doctor::Finding;

use super::bottle::{Bottle, BottleState, Record};
use super::context::RunContext;
use super::fleet::fleet_of;
use super::home::Home;
use super::issue_row::{IssueRows, issue_key};
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::bottle_place::{BottlePlace, SavedMark, SavedName};

/// Pauses between the tries of a store that is down.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time for another process that has the bottle's lock.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

/// True if the configuration names a store of bottles.
pub(crate) fn has_store(home: &Home) -> Result<bool, Failure> {
    Ok(fleet_of(home)?.is_some_and(|fleet| fleet.bottles.is_some()))
}

/// The store of bottles that the configuration names. One for the life of the process: it asks for its secrets once.
pub(crate) fn open_bottle_store(home: &Home) -> Result<Option<BottleStore>, Failure> {
    static OPENED: OnceLock<Mutex<Option<(FleetEntry, BottleStore)>>> = OnceLock::new();
    let Some(fleet) = fleet_of(home)?.filter(|fleet| fleet.bottles.is_some()) else {
        return Ok(None);
    };
    let opened = OPENED.get_or_init(Mutex::default);
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, store)) = opened.as_ref().filter(|(known, _)| *known == fleet) {
        return Ok(Some(store.clone()));
    }
    let store = BottleStore::open(&options_of(&fleet)?).or_exit(BottleExit::Usage)?;
    *opened = Some((fleet, store.clone()));
    Ok(Some(store))
}

fn options_of(fleet: &FleetEntry) -> Result<StoreOptions, Failure> {
    let missing = || {
        let text = "fleet.bottles needs the key that seals bottles: set fleet.bottles_key_file";
        Failure::usage(text).with_remedy("make one with: openssl rand -hex 32")
    };
    let key = fleet.bottles_key().or_exit(BottleExit::Usage)?.ok_or_else(missing)?;
    Ok(StoreOptions {
        address: fleet.bottles.clone().unwrap_or_default(),
        endpoint: fleet.bottles_endpoint.clone(),
        region: fleet.bottles_region.clone(),
        account: fleet.bottles_account.clone(),
        secret: fleet.bottles_secret().or_exit(BottleExit::Usage)?,
        ca_file: fleet.ca_file(),
        key: FleetKey::parse(&key).or_exit(BottleExit::Usage)?,
    })
}

/// State in the store that a folder is of.
pub(crate) fn saved_mark(folder: &Path) -> Result<Option<SavedMark>, Failure> {
    let mark = FolderMark::load(folder).map_err(failure_of)?;
    Ok(mark.map(|mark| {
        let FolderMark { manifest, generation, is_changed, is_trimmed, .. } = mark;
        SavedMark { manifest, generation, is_changed, is_trimmed }
    }))
}

/// Notes that something is done in a bottle's folder now.
pub(crate) fn note_change(folder: &Path) -> Result<(), Failure> {
    FolderMark::note_change(folder).map_err(failure_of)
}

/// Names of the fleet's bottles, each of which may come to this host.
pub(crate) fn names_elsewhere(
    home: &Home,
    rows: IssueRows<'_>,
) -> Result<BTreeSet<String>, Failure> {
    if !has_store(home)? {
        return Ok(BTreeSet::new());
    }
    let states = rows.store()?.forge_states().or_general()?;
    let alive =
        states.into_iter().filter(|it| it.status != orchestrator_db::BottleState::Destroyed);
    Ok(alive.map(|state| state.slug).collect())
}

/// Saves a bottle that a person has worked with. If the store is down, the bottle stays on this host, which is told.
pub(crate) async fn save_by_hand(context: RunContext<'_>, slug: &str) -> Result<(), Failure> {
    let Some(frozen) = FrozenBottle::find(context, slug)? else { return Ok(()) };
    let lock = frozen.bottle.take(LOCK_LIMIT).await?;
    let saved = frozen.save_once(context, None);
    drop(lock);
    match saved {
        Err(error) if error.is_transient() => {
            context.ui.warn(&format!(
                "the bottle '{slug}' is frozen on this host and not in the store yet: {}; save it with: bot-bottle freeze {slug}",
                model::error_chain(&error)
            ));
            Ok(())
        }
        saved => frozen.record_saved(context, &saved.map_err(failure_of)?),
    }
}

/// Saves the bottle of a claim, and waits for a store that is down as long as the lease can be held. The caller is on a
/// thread of its own.
pub(crate) fn save_claimed(context: RunContext<'_>, slug: &str) -> Result<(), Failure> {
    let Some(frozen) = FrozenBottle::find(context, slug)? else { return Ok(()) };
    let lock = crate::commands::block_on(frozen.bottle.take(LOCK_LIMIT))?;
    let mut pause = FIRST_PAUSE;
    let saved = loop {
        // A claim that is lost moves no head, and says so here.
        let claim = context.rows.claim()?;
        match frozen.save_once(context, claim) {
            Err(error) if error.is_transient() => {
                let chain = model::error_chain(&error);
                tracing::warn!(slug, error = chain, "the bottle is not in the store yet");
                if pause == FIRST_PAUSE {
                    let reason = format!("uploading its bottle: {chain}; it is tried again");
                    context.rows.tell(&issue_key_of(&frozen.record)?, &reason)?;
                }
                sleep_under_lease(context, pause)?;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            saved => break saved.map_err(failure_of)?,
        }
    };
    frozen.record_saved(context, &saved)?;
    drop(lock);
    Ok(())
}

/// Sleeps, and ends early once the lease is lost.
fn sleep_under_lease(context: RunContext<'_>, pause: Duration) -> Result<(), Failure> {
    let end = host::clock::boottime() + pause;
    while host::clock::boottime() < end {
        context.rows.check_lease()?;
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// A frozen bottle of this host that belongs to an issue.
struct FrozenBottle {
    store: BottleStore,
    bottle: Bottle,
    record: Record,
    id: BottleId,
}

impl FrozenBottle {
    /// The bottle, if it is one that travels and nothing runs in it.
    fn find(context: RunContext<'_>, slug: &str) -> Result<Option<Self>, Failure> {
        let Some(store) = open_bottle_store(context.home)? else { return Ok(None) };
        let (bottle, record) = Bottle::open(context.home, slug)?;
        if record.forge.is_none() || record.state != BottleState::Frozen {
            return Ok(None);
        }
        let key = issue_key_of(&record)?;
        let row = context.rows.store()?.forge_state(&key).or_general()?;
        let host = context.rows.host()?;
        let is_ours = row.is_some_and(|row| {
            row.slug == slug && row.host.as_deref().is_none_or(|other| *other == *host)
        });
        let id = id_of(&store, &record)?;
        Ok(is_ours.then_some(Self { store, bottle, record, id }))
    }

    fn save_once(
        &self,
        context: RunContext<'_>,
        claim: Option<Fence>,
    ) -> Result<SavedBottle, BottleStoreError> {
        let claim = claim.map(claim_of);
        let host = context.rows.host().unwrap_or_default();
        let request = SaveRequest {
            id: &self.id,
            slug: self.bottle.slug().as_str(),
            folder: self.bottle.path(),
            claim,
            host: &host,
            owners: owners(),
            now: host::clock::now(),
        };
        context.ui.phase("save", "bringing the bottle to the store");
        let saved = self.store.save(request, &|transfer| show(context, transfer))?;
        let SavedBottle { sent, sent_bytes, left_out, .. } = &saved;
        tracing::info!(slug = %self.bottle.slug(), chunks = sent, bytes = sent_bytes, "saved");
        if *left_out > 0 {
            let text =
                format!("{left_out} sockets, FIFOs or devices of the bottle stay on this host");
            context.ui.note(&text);
        }
        Ok(saved)
    }

    /// Says in the row where the bottle is, and that it is frozen.
    fn record_saved(&self, context: RunContext<'_>, saved: &SavedBottle) -> Result<(), Failure> {
        let (key, slug) = (issue_key_of(&self.record)?, self.bottle.slug().as_str());
        let name = format!("{}/{}", self.id.as_str(), saved.manifest);
        context.rows.note_saved(&key, slug, &name)?;
        host::failpoint::hit("saved");
        context.rows.step(&self.record, BottleStep::Freeze)
    }
}

fn show(context: RunContext<'_>, transfer: Transfer) {
    let Transfer { entries, chunks, chunks_in_all, .. } = transfer;
    let text = match chunks_in_all {
        Some(all) => format!("{chunks} of {all} chunks"),
        None => format!("{entries} files, {chunks} chunks sent"),
    };
    context.ui.progress("store", &text);
}

/// Marks a bottle as destroyed in the store, so that no host fetches it.
pub(crate) fn mark_destroyed(context: RunContext<'_>, record: &Record) -> Result<(), Failure> {
    let Some(store) = open_bottle_store(context.home)?.filter(|_| record.forge.is_some()) else {
        return Ok(());
    };
    let claim = context.rows.claim()?.map(claim_of);
    store.destroy(&id_of(&store, record)?, claim).map_err(failure_of)
}

/// Brings the bottle of a claim to this host, and says so in the row. `source` is the repository that bottles of its issue
/// are made from here. The caller is on a thread of its own.
pub(crate) fn bring_here(
    context: RunContext<'_>,
    row: &ForgeState,
    place: &BottlePlace,
    source: &Path,
) -> Result<(), Failure> {
    // A folder that is of the newest state is used, unless its old host saves another one in this moment.
    if *place == BottlePlace::Stored || !is_still_newest(context, row)? {
        let damage = fetch(context, row, source)?;
        host::failpoint::hit("fetched");
        context.rows.move_here(&row.key, &row.slug)?;
        let mark = saved_mark(&context.home.bottles.join(&row.slug))?.unwrap_or_default();
        let known = row.saved.as_ref().and_then(|saved| SavedName::parse(&saved.name));
        if let (Some(known), Some(manifest)) = (known, mark.manifest)
            && known.manifest != manifest
        {
            let name = format!("{}/{manifest}", known.bottle);
            context.rows.note_saved(&row.key, &row.slug, &name)?;
        }
        if let Some(damage) = damage {
            let reason = format!(
                "its newest state in the store is damaged ({damage}); it goes on from the one before"
            );
            tracing::error!(issue = %row.key, reason, "damage in the store");
            context.rows.tell(&row.key, &reason)?;
        }
        return Ok(());
    }
    context.rows.move_here(&row.key, &row.slug)
}

/// Raises the head of a bottle to the claim, so that its old host does not move it any more; true if it is of the folder here.
fn is_still_newest(context: RunContext<'_>, row: &ForgeState) -> Result<bool, Failure> {
    let saved = row.saved.as_ref().and_then(|saved| SavedName::parse(&saved.name));
    let id = saved.and_then(|saved| BottleId::parse(saved.bottle));
    let (Some(store), Some(id)) = (open_bottle_store(context.home)?, id) else { return Ok(false) };
    let claim = context.rows.claim()?.map(claim_of);
    let head = store.raise_head(&id, &row.slug, claim).map_err(failure_of)?;
    let mark = saved_mark(&context.home.bottles.join(&row.slug))?.unwrap_or_default();
    Ok(mark.manifest.as_deref() == Some(head.manifest.as_str()))
}

/// Fetches a bottle, and returns what was damaged.
fn fetch(
    context: RunContext<'_>,
    row: &ForgeState,
    source: &Path,
) -> Result<Option<String>, Failure> {
    let RunContext { home, ui, rows, .. } = context;
    let store = open_bottle_store(home)?;
    let saved = row.saved.as_ref().and_then(|saved| SavedName::parse(&saved.name));
    let id = saved.and_then(|saved| BottleId::parse(saved.bottle));
    let (Some(store), Some(id)) = (store, id) else {
        return Err(Failure::not_found(format!("the bottle '{}' is in no store", row.slug)));
    };
    host::file::create_dirs(&home.bottles).or_general()?;
    let folder = home.bottles.join(&row.slug);
    refuse_other_bottle(home, row)?;
    ui.phase("fetch", "bringing the bottle from the store");
    let request = PullOptions {
        id: &id,
        slug: &row.slug,
        claim: rows.claim()?.map(claim_of),
        folder: &folder,
        owners: owners(),
    };
    let pulled = store.pull(request, &|transfer| show(context, transfer), |draft| {
        settle_record(draft, source).and_then(|()| put_aside(home, &row.slug)).map_err(PullFailure)
    });
    match pulled {
        Ok(pulled) => {
            tracing::info!(slug = row.slug, manifest = pulled.manifest, "fetched");
            Ok(pulled.damage)
        }
        Err(PullFailure(failure)) => Err(failure),
    }
}

/// A failure in the middle of a pull.
struct PullFailure(Failure);

impl From<BottleStoreError> for PullFailure {
    fn from(error: BottleStoreError) -> Self {
        Self(failure_of(error))
    }
}

/// Refuses where a bottle of another issue has the name on this host.
fn refuse_other_bottle(home: &Home, row: &ForgeState) -> Result<(), Failure> {
    let Ok((_, record)) = Bottle::open(home, &row.slug) else { return Ok(()) };
    let is_same = record.forge.as_ref().is_some_and(|env| issue_key(env) == row.key);
    match is_same || record.state == BottleState::Destroyed {
        true => Ok(()),
        false => Err(Failure::not_found(format!(
            "another bottle on this host has the name '{}'; destroy it, or let the host go on that has the one of {}",
            row.slug, row.key
        ))),
    }
}

/// Makes the record that came that of this host.
fn settle_record(draft: &Path, source: &Path) -> Result<(), Failure> {
    let path = draft.join("record.json");
    let bytes = fs::read(&path).or_general()?;
    let mut record: Record = serde_json::from_slice(&bytes).or_general()?;
    record.repo = source.to_path_buf();
    let bytes = serde_json::to_vec_pretty(&record).or_exit(BottleExit::Internal)?;
    host::file::write_atomic(&path, &bytes, 0o600).or_general()
}

/// Moves an older folder of the bottle out of the way. Nobody uses it any more, and a person removes it.
fn put_aside(home: &Home, slug: &str) -> Result<(), Failure> {
    let folder = home.bottles.join(slug);
    if !folder.try_exists().or_general()? {
        return Ok(());
    }
    let kind = LockKind::Exclusive { note: "bot-bottle" };
    let taken = FileLock::try_acquire(&folder.join("lock"), kind);
    let lock = taken.map_err(|error| match error {
        LockError::Held { .. } => {
            Failure::held(format!("an older state of '{slug}' is in use here"))
        }
        other => Failure::of(BottleExit::General, other),
    })?;
    if saved_mark(&folder)?.is_some_and(|mark| mark.is_trimmed && !mark.is_changed) {
        // What was in it is what came.
        host::file::remove_tree_safely(&folder).or_general()?;
    } else {
        let stamp = host::clock::stamp_utc(host::clock::now());
        let aside = home.bottles.join(format!("{OLD_PREFIX}{slug}-{stamp}"));
        fs::rename(&folder, &aside).or_general()?;
        tracing::warn!(folder = %aside.display(), "an older state of the bottle was put aside");
    }
    drop(lock);
    Ok(())
}

/// Begin of the names of older folders.
pub(crate) const OLD_PREFIX: &str = ".old-";

/// Brings back what was removed from this disk to make room, for a person who goes on by hand.
pub(crate) fn restore_trimmed(context: RunContext<'_>, slug: &str) -> Result<(), Failure> {
    let folder = context.home.bottles.join(slug);
    if !saved_mark(&folder)?.is_some_and(|mark| mark.is_trimmed) {
        return Ok(());
    }
    let (_, record) = Bottle::open(context.home, slug)?;
    let row = context.rows.store()?.forge_state(&issue_key_of(&record)?).or_general()?;
    let row = row.filter(|row| row.slug == slug).ok_or_else(|| {
        Failure::not_found(format!("the files of '{slug}' are in the store, and no row names them"))
    })?;
    bring_here(context, &row, &BottlePlace::Stored, &record.repo)
}

/// A record that was read from the store, by the name of its state.
type KnownRecord = (String, Arc<serde_json::Value>);

/// The record of a bottle that is in the store; `None` if it cannot be read there.
pub(crate) fn stored_record(home: &Home, row: &ForgeState) -> Result<Option<Record>, Failure> {
    static KNOWN: OnceLock<Mutex<Vec<KnownRecord>>> = OnceLock::new();
    const KNOWN_MAX: usize = 200;
    let Some(saved) = &row.saved else { return Ok(None) };
    let known = KNOWN.get_or_init(Mutex::default);
    let list = || known.lock().unwrap_or_else(PoisonError::into_inner);
    // A manifest never changes, so what was read of it once is right.
    let found = list().iter().find(|(name, _)| *name == saved.name).map(|(_, it)| Arc::clone(it));
    let value = match found {
        Some(value) => value,
        None => {
            let Some(store) = open_bottle_store(home)? else { return Ok(None) };
            let Some(name) = SavedName::parse(&saved.name) else { return Ok(None) };
            let Some(id) = BottleId::parse(name.bottle) else { return Ok(None) };
            let read = store.record(&id, name.manifest).map_err(failure_of)?;
            let Some(value) = read.map(Arc::new) else { return Ok(None) };
            let mut list = list();
            if list.len() >= KNOWN_MAX {
                list.remove(0);
            }
            list.push((saved.name.clone(), Arc::clone(&value)));
            value
        }
    };
    Ok(serde_json::from_value((*value).clone()).ok())
}

pub(crate) fn id_of(store: &BottleStore, record: &Record) -> Result<BottleId, Failure> {
    let key = issue_key_of(record)?;
    Ok(store.id_of(BottleKey {
        owner: &key.owner,
        repo: &key.repo,
        issue: key.issue_number,
        slug: record.slug.as_str(),
        made_at: record.created_at,
    }))
}

fn issue_key_of(record: &Record) -> Result<orchestrator_db::IssueKey, Failure> {
    let none = || Failure::not_found(format!("the bottle '{}' has no issue", record.slug));
    record.forge.as_ref().map(issue_key).ok_or_else(none)
}

fn claim_of(fence: Fence) -> BottleClaim {
    BottleClaim { number: fence.number, id: fence.claim }
}

fn owners() -> Owners {
    let BoxUser { uid, gid } = BoxUser::of_caller();
    Owners { host: (host::env::uid(), host::env::gid()), agent: (uid, gid) }
}

/// A failure of the store. One that may pass is tried again.
pub(crate) fn failure_of(error: BottleStoreError) -> Failure {
    match error.is_transient() {
        true => Failure::transient(model::error_chain(&error)),
        false => Failure::of(BottleExit::General, error),
    }
}

/// Checks the store: whether heads are safe in it, and whether its key is ours.
pub(crate) fn check_store(home: &Home) -> Vec<Finding> {
    const NAME: &str = "store";
    let store = match open_bottle_store(home) {
        Ok(None) => return Vec::new(),
        Ok(Some(store)) => store,
        Err(failure) => return vec![Finding::bad(NAME, failure.to_string())],
    };
    let name = store.name().to_owned();
    let mut findings = vec![match store.check() {
        Ok(health) if health.is_safe() => Finding::good(
            NAME,
            format!(
                "{name}: the key fits; of several writers at once one won, in {} races",
                health.races
            ),
        ),
        Ok(health) => Finding::bad(
            NAME,
            format!(
                "{name}: writes with a condition are not safe there ({} of {} races had not one winner{}): two hosts could overwrite each other's bottles; use another store",
                health.lost_races,
                health.races,
                if health.replaces_unseen { ", and an object was replaced unseen" } else { "" }
            ),
        ),
        Err(error) => Finding::bad(NAME, model::error_chain(&error)),
    }];
    findings.extend(check_old_folders(home));
    findings
}

/// Older folders of bottles that went on elsewhere.
fn check_old_folders(home: &Home) -> Option<Finding> {
    let entries = fs::read_dir(&home.bottles).ok()?;
    let names = entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
    let mut old: Vec<String> = names.filter(|name| name.starts_with(OLD_PREFIX)).collect();
    old.sort();
    let folder = home.bottles.display();
    let words = format!(
        "{} older folders of bottles that went on elsewhere are in {folder}: {}; remove them with: bot-bottle prune --old-states",
        old.len(),
        old.join(", ")
    );
    (!old.is_empty()).then(|| Finding::odd("store", words))
}
