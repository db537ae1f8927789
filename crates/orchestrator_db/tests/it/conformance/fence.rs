//! Fences: of two owners of an issue the older one is refused, whatever it writes.

use std::sync::Arc;
use std::time::Duration;

use orchestrator_db::{
    BottleStep, DbError, Fence, ForgeState, RunReservation, StatusComment, Store, WorkClaim,
    WorkItem, WorkNote, WorkOrder, WorkState, WorkStep, Writer,
};

use super::issue::state;
use super::work::{LEASE, add, claim, step};
use super::{Engine, key};

/// The shortest lease.
const SHORT: Duration = Duration::from_secs(1);

/// An issue that host `a` has claimed and host `b` has taken over since; both claims.
fn taken_over(engine: &dyn Engine) -> (Arc<dyn Store>, WorkItem, WorkItem) {
    let store = engine.open();
    add(&*store, 3);
    let older = claim(&*store, "a/1").unwrap();
    engine.expire_leases();
    let newer = store.take_over_expired("b/1", LEASE).unwrap().remove(0);
    assert!(newer.fence.number > older.fence.number);
    (store, older, newer)
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(written: Result<T, DbError>, older: &WorkItem) {
    let error = written.unwrap_err();
    assert!(matches!(&error, DbError::Fenced { came, .. } if *came == older.fence), "{error}");
}

fn of_claim(host: &'static str, work: &WorkItem) -> Writer<'static> {
    Writer { host, claim: Some(work.fence) }
}

pub(crate) fn an_older_owner_takes_no_step(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    for wanted in [WorkStep::Begin, WorkStep::Freeze, WorkStep::Wait, WorkStep::CallPerson] {
        check_refused(step(&*store, &older, wanted), &older);
    }
    assert_eq!(store.work(&older.key).unwrap(), Some(newer));
}

pub(crate) fn an_older_owner_sets_no_order(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    let order = WorkOrder { priority_mins: 5, after: vec![1] };
    check_refused(store.set_order(&older.key, older.fence, &order), &older);
    store.set_order(&newer.key, newer.fence, &order).unwrap();
    assert_eq!(store.work(&newer.key).unwrap().unwrap().order, order);
}

pub(crate) fn an_older_owner_schedules_no_destruction(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    let at: Option<jiff::Timestamp> = Some("2026-11-15T08:00:00Z".parse().unwrap());
    check_refused(store.set_destroy_at(&older.key, older.fence, at), &older);
    store.set_destroy_at(&newer.key, newer.fence, at).unwrap();
    assert_eq!(store.work(&newer.key).unwrap().unwrap().destroy_at, at);
}

pub(crate) fn an_older_owner_forgets_no_work(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    step(&*store, &newer, WorkStep::Freeze).unwrap();
    step(&*store, &newer, WorkStep::Destroy).unwrap();
    check_refused(store.forget_work(&older.key, older.fence), &older);
    store.forget_work(&newer.key, newer.fence).unwrap();
    assert_eq!(store.work(&newer.key).unwrap(), None);
}

pub(crate) fn an_older_owner_saves_no_status_comment(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    let comment = StatusComment { comment: Some(7), digest: "d".to_owned() };
    check_refused(store.save_status_comment(&older.key, older.fence, &comment), &older);
    store.save_status_comment(&newer.key, newer.fence, &comment).unwrap();
    assert_eq!(store.status_comment(&newer.key).unwrap(), Some(comment));
}

pub(crate) fn an_older_owner_adds_no_bottle(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    let of_a = ForgeState { host: Some("a".to_owned()), ..state(older.key.clone()) };
    check_refused(store.add_forge_state(&of_a, of_claim("a", &older)), &older);
    let of_b = ForgeState { host: Some("b".to_owned()), ..of_a };
    store.add_forge_state(&of_b, of_claim("b", &newer)).unwrap();
    assert_eq!(store.forge_state(&newer.key).unwrap(), Some(of_b));
}

pub(crate) fn an_older_owner_writes_no_bottle(engine: &dyn Engine) {
    let store = engine.open();
    add(&*store, 3);
    let older = claim(&*store, "a/1").unwrap();
    let bottle = ForgeState { host: Some("a".to_owned()), ..state(older.key.clone()) };
    store.add_forge_state(&bottle, of_claim("a", &older)).unwrap();
    engine.expire_leases();
    let newer = store.take_over_expired("a/2", LEASE).unwrap().remove(0);
    let (key, slug) = (&bottle.key, bottle.slug.as_str());
    let old = of_claim("a", &older);
    check_refused(store.step_bottle(key, slug, BottleStep::Freeze, old), &older);
    check_refused(store.check_in(key, slug, Some(9), old), &older);
    check_refused(store.delete_forge_state(key, slug, old), &older);
    assert_eq!(store.forge_state(key).unwrap().as_ref(), Some(&bottle));
    store.step_bottle(key, slug, BottleStep::Freeze, of_claim("a", &newer)).unwrap();
}

pub(crate) fn an_older_owner_reserves_no_run(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    let request = RunReservation::default();
    let key = &older.key;
    check_refused(store.reserve_run(key, "a-run", &request, of_claim("a", &older)), &older);
    assert!(store.spending_of(key).unwrap().is_empty());
    store.reserve_run(key, "b-run", &request, of_claim("b", &newer)).unwrap();
    let rows = store.spending_of(key).unwrap();
    assert_eq!(rows[0].host.as_deref(), Some("b"), "a run is counted on the host that has it");
}

pub(crate) fn an_older_owner_renews_and_reclaims_nothing(engine: &dyn Engine) {
    let (store, older, newer) = taken_over(engine);
    assert!(store.renew_leases("a/1", LEASE).unwrap().is_empty());
    assert_eq!(store.reclaim_work(&older.key, older.fence, "a/1", LEASE).unwrap(), None);
    assert_eq!(store.reclaim_work(&older.key, newer.fence, "a/1", LEASE).unwrap(), None);
    assert_eq!(store.work(&newer.key).unwrap(), Some(newer));
}

pub(crate) fn a_lease_that_has_expired_is_not_renewed_but_claimed_once_more(engine: &dyn Engine) {
    let store = engine.open();
    add(&*store, 3);
    let work = claim(&*store, "a/1").unwrap();
    let held = store.renew_leases("a/1", LEASE).unwrap();
    assert_eq!((held.len(), held[0].fence), (1, work.fence));
    engine.expire_leases();
    assert!(store.renew_leases("a/1", LEASE).unwrap().is_empty());
    let again = store.reclaim_work(&work.key, work.fence, "a/1", LEASE).unwrap().unwrap();
    assert_eq!((again.fence.number, again.claims), (work.fence.number + 1, work.claims));
    check_refused(step(&*store, &work, WorkStep::Begin), &work);
    step(&*store, &again, WorkStep::Begin).unwrap();
}

pub(crate) fn a_lease_that_runs_is_taken_from_no_other_host(engine: &dyn Engine) {
    let store = engine.open();
    add(&*store, 3);
    let work = claim(&*store, "a/1").unwrap();
    assert!(store.take_over_expired("b/1", LEASE).unwrap().is_empty());
    assert!(store.take_over_host("b/1", LEASE).unwrap().is_empty());
    let taken = store.take_over_host("a/2", LEASE).unwrap();
    assert_eq!((taken.len(), taken[0].key.clone()), (1, work.key), "its own host has restarted");
}

/// By the clock of the database, and without any help of the test.
pub(crate) fn a_lease_ends_by_itself(engine: &dyn Engine) {
    let store = engine.open();
    let work = add(&*store, 3);
    store.claim_work(&work, "a/1", SHORT, None).unwrap();
    let mut taken = Vec::new();
    testkit::wait::wait_until("the lease expires", || {
        taken = store.take_over_expired("b/1", LEASE).unwrap();
        !taken.is_empty()
    });
    assert_eq!(taken[0].holder.as_deref(), Some("b/1"));
}

pub(crate) fn a_fence_is_never_given_out_twice(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let first = claim(store, "a/1").unwrap();
    step(store, &first, WorkStep::Freeze).unwrap();
    step(store, &first, WorkStep::Destroy).unwrap();
    store.forget_work(&first.key, first.fence).unwrap();
    add(store, 3);
    let second = claim(store, "b/1").unwrap();
    assert!(second.fence.number > first.fence.number, "{} {}", second.fence, first.fence);
    check_refused(step(store, &first, WorkStep::Freeze), &first);
}

/// As after a fail-over to a standby that lacked the last commits.
pub(crate) fn of_two_claims_with_one_number_the_other_one_is_refused(engine: &dyn Engine) {
    let store = engine.open();
    add(&*store, 3);
    let work = claim(&*store, "a/1").unwrap();
    let twin = Fence { claim: work.fence.claim ^ 1, ..work.fence };
    let note = WorkNote::because("so");
    let error = store.step_work(&work.key, twin, WorkStep::Begin, &note).unwrap_err();
    assert!(matches!(error, DbError::Fenced { .. }), "{error}");
    step(&*store, &work, WorkStep::Begin).unwrap();
}

pub(crate) fn of_many_who_claim_an_issue_at_once_one_gets_it(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    let work = add(&*stores[0], 3);
    let claims = at_once(&stores, |number, store| {
        store.claim_work(&work, &format!("host-{number}/1"), LEASE, None).unwrap()
    });
    let claimed = claims.iter().filter(|it| matches!(it, WorkClaim::Claimed(_))).count();
    assert_eq!(claimed, 1, "{claims:?}");
    assert_eq!(claims.iter().filter(|it| **it == WorkClaim::Gone).count(), 3);
}

pub(crate) fn of_many_who_take_over_an_issue_at_once_one_gets_it(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    for number in 1..=8 {
        let work = add(&*stores[0], number);
        stores[0].claim_work(&work, "gone/1", LEASE, None).unwrap();
    }
    engine.expire_leases();
    let taken = at_once(&stores, |number, store| {
        store.take_over_expired(&format!("host-{number}/1"), LEASE).unwrap()
    });
    let mut numbers: Vec<u64> = taken.iter().flatten().map(|work| work.key.issue_number).collect();
    numbers.sort_unstable();
    // Whoever meets rows that another one is taking may pass them over; they are taken the next time.
    let rest = stores[0].take_over_expired("host-9/1", LEASE).unwrap();
    numbers.extend(rest.iter().map(|work| work.key.issue_number));
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8], "each once");
}

/// The older owner writes while the newer one takes over: the write comes before the takeover, or is refused.
pub(crate) fn a_write_that_races_a_takeover_comes_first_or_is_refused(engine: &dyn Engine) {
    let stores: Vec<_> = (0..2).map(|_| engine.open()).collect();
    for number in 1..=20 {
        add(&*stores[0], number);
        let older = claim(&*stores[0], "a/1").unwrap();
        let outcomes = at_once(&stores, |racer, store| match racer {
            0 => step(store, &older, WorkStep::Freeze).is_ok(),
            _ => store.reclaim_work(&older.key, older.fence, "a/1", LEASE).unwrap().is_some(),
        });
        let now = stores[0].work(&older.key).unwrap().unwrap();
        match (outcomes[0], outcomes[1]) {
            (true, false) => assert_eq!((now.state, now.fence), (WorkState::Frozen, older.fence)),
            (false, true) => {
                assert_eq!(
                    (now.state, now.fence.number),
                    (WorkState::Claimed, older.fence.number + 1)
                );
            }
            both => panic!("{both:?}: {now:?}"),
        }
    }
}

pub(crate) fn two_owners_share_out_a_queue_without_loss_and_nothing_twice(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    for number in 1..=40 {
        add(&*stores[0], number);
    }
    let claimed = at_once(&stores, |number, store| {
        let (holder, mut mine) = (format!("host-{number}/1"), Vec::new());
        loop {
            let works = store.claimable_works(&format!("host-{number}"), 100).unwrap();
            let Some(first) = works.first() else { return mine };
            if let WorkClaim::Claimed(work) = store.claim_work(first, &holder, LEASE, None).unwrap()
            {
                step(store, &work, WorkStep::Freeze).unwrap();
                mine.push(work.key.issue_number);
            }
        }
    });
    let mut all: Vec<u64> = claimed.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (1..=40).collect::<Vec<u64>>());
}

/// Each connection acts on a thread of its own, all at the same time.
pub(super) fn at_once<T: Send>(
    stores: &[Arc<dyn Store>],
    act: impl Fn(usize, &dyn Store) -> T + Sync,
) -> Vec<T> {
    let gate = std::sync::Barrier::new(stores.len());
    std::thread::scope(|scope| {
        let all: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(number, store)| {
                let (gate, act) = (&gate, &act);
                scope.spawn(move || {
                    gate.wait();
                    act(number, &**store)
                })
            })
            .collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

pub(crate) fn an_event_that_is_read_later_has_a_greater_number(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    let seen = at_once(&stores, |racer, store| {
        let mut seen = Vec::new();
        let mut cursor = 0;
        for number in 0..30 {
            if racer > 0 {
                add(store, 100 * racer as u64 + number);
            }
            for event in store.events_since(cursor, 500).unwrap() {
                assert!(event.seq > cursor);
                cursor = event.seq;
                seen.push(event.key);
            }
        }
        (cursor, seen)
    });
    for (cursor, mut keys) in seen {
        keys.extend(stores[0].events_since(cursor, 500).unwrap().into_iter().map(|it| it.key));
        keys.sort();
        let before = keys.len();
        keys.dedup();
        assert_eq!((before, keys.len()), (90, 90), "each event once, and none is passed over");
        assert!(keys.contains(&key("acme", "widget", 329)));
    }
}

pub(crate) fn a_claim_is_raised_above_what_a_forge_has_seen_and_an_older_one_is_not(
    engine: &dyn Engine,
) {
    let store = engine.open();
    let store = &*store;
    add(store, 1);
    let claimed = claim(store, "a/1").unwrap();
    let raised = store.raise_claim(&claimed.key, claimed.fence, 40).unwrap().unwrap();
    assert_eq!((raised.number, raised.claim), (41, claimed.fence.claim));
    let refused = step(store, &claimed, WorkStep::Freeze).unwrap_err();
    assert!(matches!(refused, DbError::Fenced { .. }), "the lower number is over: {refused}");
    assert_eq!(store.raise_claim(&claimed.key, claimed.fence, 90).unwrap(), None);
    let raised = WorkItem { fence: raised, ..claimed };
    assert_eq!(store.renew_leases("a/1", LEASE).unwrap()[0].fence, raised.fence);
    step(store, &raised, WorkStep::Freeze).unwrap();
    step(store, &raised, WorkStep::Queue).unwrap();
    let next = claim(store, "b/1").unwrap();
    assert_eq!(next.fence.number, 42, "it goes on from there");
    assert_eq!(store.raise_claim(&raised.key, raised.fence, 90).unwrap(), None);
}
