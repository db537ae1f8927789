//! Upkeep of the store of bottles and of the folders beside it: freezes that a store kept waiting are saved, what no head
//! needs is removed there, and what rested longest is removed here.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bottle_store::{BottleId, BottleStore, CollectOptions, Collected, FolderMark};
use host::lock::{FileLock, LockKind};
use host::signal::Cancel;
use orchestrator_db::{BottleState, ForgeState, IssueKey, Store};
use shell::Ui;

use super::bottle::{Bottle, Record};
use super::context::{RunContext, TransientFailure};
use super::fleet::fleet_of;
use super::home::Home;
use super::issue_row::{IssueRows, issue_key};
use super::travel::{OLD_PREFIX, failure_of, id_of, open_bottle_store, save_by_hand, saved_mark};
use crate::commands::block_on;
use crate::exit::{Failure, OrGeneral, if_found};
use crate::rules::bottle_place::SavedName;
use crate::rules::prune::OldFolder;

/// Name of the chore in the database.
const CHORE: &str = "collect-bottles";
/// Lease of the chore, which is renewed with every removal.
const CHORE_LEASE: Duration = Duration::from_secs(600);
/// Time between two collections, and between two looks at the room on this disk.
const COLLECT_EVERY: Duration = Duration::from_secs(6 * 3600);
const TRIM_EVERY: Duration = Duration::from_secs(600);
const KEEP_DAYS: u64 = 7;
/// Time for which the store remembers that a bottle was destroyed: longer than any freeze hangs.
const TOMBSTONES: Duration = Duration::from_secs(30 * 86_400);
const DAY: Duration = Duration::from_secs(86_400);
const GB: u64 = 1_000_000_000;
/// Entries of a bottle that are counted at most; one with more counts as that many.
const ENTRIES_MAX: u64 = 10_000_000;

/// Does what is due, on a thread of its own; nothing while an earlier one is at work.
pub(crate) fn spawn_upkeep(
    home: &Home,
    store: std::sync::Arc<dyn Store>,
    host: &str,
    holder: &str,
) {
    static IS_BUSY: AtomicBool = AtomicBool::new(false);
    if !home.is_configured || IS_BUSY.swap(true, Ordering::SeqCst) {
        return;
    }
    let (home, host, holder) = (home.clone(), host.to_owned(), holder.to_owned());
    let spawned = std::thread::Builder::new().name("store-upkeep".to_owned()).spawn(move || {
        if let Err(failure) = upkeep(&home, &*store, &host, &holder) {
            tracing::warn!(%failure, "the store of bottles is looked after later");
        }
        IS_BUSY.store(false, Ordering::SeqCst);
    });
    if spawned.is_err() {
        IS_BUSY.store(false, Ordering::SeqCst);
    }
}

fn upkeep(home: &Home, store: &dyn Store, host: &str, holder: &str) -> Result<(), Failure> {
    let Some(bottles) = open_bottle_store(home)? else { return Ok(()) };
    save_rest(home, store, host)?;
    if is_due(&LAST_TRIM, TRIM_EVERY) {
        trim(home, store, &bottles)?;
    }
    if is_due(&LAST_COLLECTION, COLLECT_EVERY)
        && store.hold_chore(CHORE, holder, CHORE_LEASE).or_general()?
    {
        let collected = collect(home, store, &bottles, holder);
        store.release_chore(CHORE, holder).or_general()?;
        let Collected { bottles, manifests_removed, chunks_kept, chunks_removed, bytes_removed } =
            collected?;
        tracing::info!(
            bottles,
            manifests_removed,
            chunks_kept,
            chunks_removed,
            bytes_removed,
            "collected what no bottle needs"
        );
    }
    Ok(())
}

static LAST_TRIM: Mutex<Option<Duration>> = Mutex::new(None);
static LAST_COLLECTION: Mutex<Option<Duration>> = Mutex::new(None);

fn is_due(last: &Mutex<Option<Duration>>, every: Duration) -> bool {
    let now = host::clock::boottime();
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let due = last.is_none_or(|last| now.saturating_sub(last) >= every);
    if due {
        *last = Some(now);
    }
    due
}

fn collect(
    home: &Home,
    store: &dyn Store,
    bottles: &BottleStore,
    holder: &str,
) -> Result<Collected, Failure> {
    let days = fleet_of(home)?.and_then(|fleet| fleet.bottles_keep_days).unwrap_or(KEEP_DAYS);
    let retention = DAY * u32::try_from(days).unwrap_or(u32::MAX);
    let options = CollectOptions { retention, tombstones: TOMBSTONES };
    let renewed = Mutex::new(host::clock::boottime());
    let may_go_on = || {
        let now = host::clock::boottime();
        let mut renewed = renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(*renewed) < CHORE_LEASE / 3 {
            return true;
        }
        *renewed = now;
        store.hold_chore(CHORE, holder, CHORE_LEASE).unwrap_or(false)
    };
    bottles.collect(options, &may_go_on).map_err(failure_of)
}

/// Saves bottles of this host that a person froze while the store was down.
fn save_rest(home: &Home, store: &dyn Store, host: &str) -> Result<(), Failure> {
    let held = store.works().or_general()?.into_iter().filter(|work| work.state.is_held());
    let held: BTreeSet<IssueKey> = held.map(|work| work.key).collect();
    for row in store.forge_states().or_general()? {
        let is_ours = row.host.as_deref().is_none_or(|other| other == host);
        if !is_ours || held.contains(&row.key) || row.status == BottleState::Destroyed {
            continue;
        }
        let Some((_, mark)) = frozen_here(home, &row)? else { continue };
        if !mark.is_trimmed && (mark.is_changed || mark.manifest.is_none()) {
            let (ui, cancel) = (Ui::log(&row.slug), Cancel::new());
            let (rows, transient) = (IssueRows::by_hand(home), TransientFailure::Close);
            let public_url = None;
            let context =
                RunContext { ui: &ui, home, rows, cancel: &cancel, transient, public_url };
            if let Err(failure) = block_on(save_by_hand(context, &row.slug)) {
                tracing::warn!(slug = row.slug, %failure, "a bottle was not saved");
            }
        }
    }
    Ok(())
}

/// A frozen bottle with the mark of its folder; `None` if it is not here, or not frozen.
fn frozen_here(home: &Home, row: &ForgeState) -> Result<Option<(Bottle, FolderMark)>, Failure> {
    let Ok((bottle, record)) = Bottle::open(home, &row.slug) else { return Ok(None) };
    let is_same = record.forge.as_ref().is_some_and(|env| issue_key(env) == row.key);
    if !is_same || record.state != BottleState::Frozen {
        return Ok(None);
    }
    let mark = FolderMark::load(bottle.path()).map_err(failure_of)?;
    Ok(Some((bottle, mark.unwrap_or_default())))
}

/// A frozen bottle whose files may go from this disk.
struct Resting {
    bottle: Bottle,
    used_at: std::time::SystemTime,
    bytes: u64,
}

/// Removes the files of the bottles that rested longest, until those that are left fit. Each is in the store whole.
fn trim(home: &Home, store: &dyn Store, bottles: &BottleStore) -> Result<(), Failure> {
    let Some(limit) = fleet_of(home)?.and_then(|fleet| fleet.bottles_max_gb) else { return Ok(()) };
    let mut resting = Vec::new();
    for row in store.forge_states().or_general()? {
        let whole = frozen_here(home, &row)?.filter(|(_, mark)| !mark.is_trimmed);
        let Some((bottle, mark)) = whole else { continue };
        let trees = [bottle.workspace(), bottle.harness_state()];
        let sizes = trees.iter().filter(|tree| tree.exists());
        let sizes = sizes.map(|tree| host::file::tree_size(tree, ENTRIES_MAX).map(|it| it.bytes));
        let bytes = sizes.sum::<Result<u64, _>>().or_general()?;
        let record = fs::metadata(bottle.path().join("record.json")).or_general()?;
        let saved = row.saved.as_ref().and_then(|saved| SavedName::parse(&saved.name));
        let is_saved = saved.is_some_and(|it| mark.manifest.as_deref() == Some(it.manifest));
        let may_go = is_saved && !mark.is_changed;
        resting.push((
            may_go,
            row,
            Resting { bottle, used_at: record.modified().or_general()?, bytes },
        ));
    }
    let mut taken: u64 = resting.iter().map(|(_, _, it)| it.bytes).sum();
    resting.retain(|(may_go, ..)| *may_go);
    resting.sort_by_key(|(.., it)| it.used_at);
    for (_, row, Resting { bottle, bytes, .. }) in resting {
        if taken <= limit.saturating_mul(GB) {
            break;
        }
        if remove_trees(bottles, &row, &bottle)? {
            tracing::info!(
                slug = row.slug,
                bytes,
                "its files went from this disk; the store has them"
            );
            taken = taken.saturating_sub(bytes);
        }
    }
    Ok(())
}

/// Removes the trees of a bottle, if the store says that it has them and nobody uses them.
fn remove_trees(bottles: &BottleStore, row: &ForgeState, bottle: &Bottle) -> Result<bool, Failure> {
    let kind = LockKind::Exclusive { note: "bot-bottle" };
    let Ok(lock) = FileLock::try_acquire(&bottle.path().join("lock"), kind) else {
        return Ok(false);
    };
    let saved = row.saved.as_ref().and_then(|saved| SavedName::parse(&saved.name));
    let Some(id) = saved.and_then(|saved| BottleId::parse(saved.bottle)) else { return Ok(false) };
    let head = bottles.head(&id).map_err(failure_of)?;
    let mark = FolderMark::load(bottle.path()).map_err(failure_of)?.unwrap_or_default();
    let has_all = head.is_some_and(|head| {
        !head.is_destroyed && mark.manifest.as_deref() == Some(head.manifest.as_str())
    });
    if !has_all || mark.is_changed {
        return Ok(false);
    }
    mark.note_trim(bottle.path()).map_err(failure_of)?;
    for tree in [bottle.workspace(), bottle.harness_state()] {
        host::file::remove_tree_safely(&tree).or_general()?;
    }
    drop(lock);
    Ok(true)
}

/// Finds the older folders, and asks the store about each.
pub(crate) fn find_old_folders(home: &Home) -> Result<Vec<OldFolder>, Failure> {
    let bottles = open_bottle_store(home)?;
    let mut found = Vec::new();
    for entry in if_found(fs::read_dir(&home.bottles))?.into_iter().flatten() {
        let entry = entry.or_general()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(OLD_PREFIX) {
            continue;
        }
        let path = entry.path();
        let kept_because = match &bottles {
            None => Some("no store of bottles is configured that could be asked".to_owned()),
            Some(bottles) => judge_old_folder(bottles, &path)?,
        };
        found.push(OldFolder { name, path, kept_because });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn judge_old_folder(
    bottles: &BottleStore,
    path: &std::path::Path,
) -> Result<Option<String>, Failure> {
    let record = fs::read(path.join("record.json")).ok();
    let record: Option<Record> = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(record) = record else {
        return Ok(Some("its record cannot be read".to_owned()));
    };
    let mark = saved_mark(path)?.unwrap_or_default();
    if mark.is_changed || mark.manifest.is_none() {
        return Ok(Some(
            "something was done in it that was never saved (--unpublished)".to_owned(),
        ));
    }
    let head = bottles.head(&id_of(bottles, &record)?).map_err(failure_of)?;
    Ok(match head {
        None => Some("the store does not have the bottle".to_owned()),
        Some(head) if head.is_destroyed || head.generation >= mark.generation => None,
        Some(_) => Some("the store has an older state only".to_owned()),
    })
}
