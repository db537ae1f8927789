//! Bottles that travel: who may say where their newest states are, and which host has them.

use orchestrator_db::{BottleState, BottleStep, DbError, ForgeState, WorkItem, WorkState, Writer};

use super::Engine;
use super::issue::{HERE, state};
use super::work::{LEASE, add, claim};

fn of_claim<'a>(host: &'a str, work: &WorkItem) -> Writer<'a> {
    Writer { host, claim: Some(work.fence) }
}

pub(crate) fn a_saved_state_is_read_back_and_goes_with_its_bottle(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(super::key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    store.note_saved(&kept.key, "another-bottle", "a/1", HERE).unwrap();
    assert_eq!(store.forge_state(&kept.key).unwrap(), Some(kept.clone()));
    for name in ["id/00000001-a", "id/00000002-b"] {
        store.note_saved(&kept.key, &kept.slug, name, HERE).unwrap();
        let saved = store.forge_state(&kept.key).unwrap().unwrap().saved.unwrap();
        assert_eq!(saved.name, name);
    }
    assert!(store.forge_states().unwrap()[0].saved.is_some());
    store.step_bottle(&kept.key, &kept.slug, BottleStep::Destroy, HERE).unwrap();
    store.add_forge_state(&kept, HERE).unwrap();
    assert_eq!(store.forge_state(&kept.key).unwrap(), Some(kept), "a new bottle is not saved");
}

pub(crate) fn a_bottle_that_is_saved_moves_to_the_host_that_claims_it(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 3);
    let kept = ForgeState { status: BottleState::Frozen, ..state(work.key.clone()) };
    store.add_forge_state(&kept, HERE).unwrap();
    let (key, slug) = (&kept.key, kept.slug.as_str());
    store.note_saved(key, slug, "id/00000001-a", HERE).unwrap();
    let claimed = match store.claim_work(&work, "there/1", LEASE, None).unwrap() {
        orchestrator_db::WorkClaim::Claimed(work) => *work,
        other => panic!("{other:?}"),
    };
    let there = of_claim("there", &claimed);
    let early = store.step_bottle(key, slug, BottleStep::Rehydrate, there).unwrap_err();
    assert!(matches!(early, DbError::OtherHost { .. }), "{early}");
    let by_hand = Writer { host: "there", claim: None };
    let refused = store.move_bottle(key, slug, by_hand).unwrap_err();
    assert!(matches!(refused, DbError::OtherHost { .. }), "{refused}");
    store.move_bottle(key, "another-bottle", there).unwrap();
    assert_eq!(store.forge_state(key).unwrap().unwrap().host.as_deref(), Some("here"));
    store.move_bottle(key, slug, there).unwrap();
    assert_eq!(store.forge_state(key).unwrap().unwrap().host.as_deref(), Some("there"));
    store.step_bottle(key, slug, BottleStep::Rehydrate, there).unwrap();
    let late = store.note_saved(key, slug, "id/00000002-late", HERE).unwrap_err();
    assert!(matches!(late, DbError::OtherHost { .. }), "{late}");
}

pub(crate) fn an_older_owner_saves_and_moves_nothing(engine: &dyn Engine) {
    let store = engine.open();
    let work = add(&*store, 3);
    let older = claim(&*store, "here/1").unwrap();
    let kept = state(work.key.clone());
    store.add_forge_state(&kept, of_claim("here", &older)).unwrap();
    let (key, slug) = (&kept.key, kept.slug.as_str());
    let unsaved = store.move_bottle(key, slug, of_claim("there", &older)).unwrap_err();
    assert!(matches!(unsaved, DbError::OtherHost { .. }), "{unsaved}");
    store.note_saved(key, slug, "id/00000001-a", of_claim("here", &older)).unwrap();
    engine.expire_leases();
    let newer = store.take_over_expired("there/1", LEASE).unwrap().remove(0);
    let late = of_claim("here", &older);
    for refused in [
        store.note_saved(key, slug, "id/00000002-late", late).unwrap_err(),
        store.move_bottle(key, slug, late).unwrap_err(),
        store.tell_work(key, older.fence, "late").unwrap_err(),
    ] {
        assert!(matches!(refused, DbError::Fenced { .. }), "{refused}");
    }
    store.move_bottle(key, slug, of_claim("there", &newer)).unwrap();
    let row = store.forge_state(key).unwrap().unwrap();
    assert_eq!(row.saved.unwrap().name, "id/00000001-a");
}

pub(crate) fn what_a_holder_waits_for_is_told_and_changes_no_state(engine: &dyn Engine) {
    let store = engine.open();
    add(&*store, 3);
    let claimed = claim(&*store, "here/1").unwrap();
    store.tell_work(&claimed.key, claimed.fence, "uploading").unwrap();
    let now = store.work(&claimed.key).unwrap().unwrap();
    assert_eq!((now.state, now.reason.as_str()), (WorkState::Claimed, "uploading"));
    assert_eq!(now.holder, claimed.holder);
    let last = store.work_events(&claimed.key).unwrap().pop().unwrap();
    assert_eq!((last.state, last.reason.as_str()), (WorkState::Claimed, "uploading"));
}
