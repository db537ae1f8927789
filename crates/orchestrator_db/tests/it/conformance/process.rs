//! Promises that the processes of one database rely on: a chore has one holder at a time, and no text stops them.

use super::fence::at_once;
use super::work::{LEASE, add};
use super::{Engine, key};

pub(crate) fn a_chore_has_one_holder_at_a_time(engine: &dyn Engine) {
    let store = engine.open();
    assert!(store.hold_chore("serve", "a/1", LEASE).unwrap());
    assert!(!engine.open().hold_chore("serve", "b/1", LEASE).unwrap());
    assert!(store.hold_chore("serve", "a/1", LEASE).unwrap(), "its holder renews it");
    assert!(store.hold_chore("sweep", "b/1", LEASE).unwrap(), "each chore has a holder of its own");
}

pub(crate) fn a_chore_goes_to_another_one_when_its_lease_ends_or_it_is_given_up(
    engine: &dyn Engine,
) {
    let store = engine.open();
    assert!(store.hold_chore("serve", "a/1", LEASE).unwrap());
    engine.expire_leases();
    assert!(store.hold_chore("serve", "b/1", LEASE).unwrap());
    assert!(!store.hold_chore("serve", "a/1", LEASE).unwrap(), "the first one has lost it");
    store.release_chore("serve", "a/1").unwrap();
    assert!(!store.hold_chore("serve", "a/1", LEASE).unwrap(), "it was not a's to give up");
    store.release_chore("serve", "b/1").unwrap();
    assert!(store.hold_chore("serve", "a/1", LEASE).unwrap());
}

pub(crate) fn the_chores_of_a_host_are_given_up_by_its_next_process(engine: &dyn Engine) {
    let store = engine.open();
    assert!(store.hold_chore("serve", "a/1", LEASE).unwrap());
    assert!(store.hold_chore("sweep", "ab/1", LEASE).unwrap());
    store.release_host_chores("a/1").unwrap();
    assert!(!store.hold_chore("serve", "a/2", LEASE).unwrap(), "its own are kept");
    store.release_host_chores("a/2").unwrap();
    assert!(store.hold_chore("serve", "a/2", LEASE).unwrap());
    assert!(!store.hold_chore("sweep", "a/2", LEASE).unwrap(), "another host's are kept");
}

pub(crate) fn of_many_who_want_a_chore_at_once_one_gets_it(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    for round in 0..10 {
        let name = format!("chore {round}");
        let got = at_once(&stores, |number, store| {
            store.hold_chore(&name, &format!("host-{number}/1"), LEASE).unwrap()
        });
        assert_eq!(got.into_iter().filter(|it| *it).count(), 1);
    }
}

/// Everybody who may open an issue chooses its title.
pub(crate) fn a_text_with_any_character_is_stored(engine: &dyn Engine) {
    let store = engine.open();
    let queued = add(&*store, 3);
    let note = orchestrator_db::WorkNote::because("a\0b \u{1f37e} \u{202e}");
    let step = orchestrator_db::WorkStep::CallPerson;
    store.step_work(&queued.key, queued.fence, step, &note).unwrap();
    let known = store.work(&key("acme", "widget", 3)).unwrap().unwrap();
    // An engine may put another character in the place of NUL.
    assert_eq!(known.reason.replace('\0', "\u{fffd}"), "a\u{fffd}b \u{1f37e} \u{202e}");
}
