//! What the orchestrator relies on: deliveries count once and are never lost, and work has one holder at a time.

use std::time::Duration;

use orchestrator_db::{
    About, DbError, Delivery, DeliveryInsert, Store, WorkClaim, WorkHold, WorkItem, WorkNote,
    WorkOrder, WorkRequest, WorkState, WorkStep,
};

use super::{Engine, key};

pub(crate) const LEASE: Duration = Duration::from_secs(60);

fn delivery(id: &str) -> Delivery {
    Delivery {
        seq: 0,
        source: "gitea".to_owned(),
        id: id.to_owned(),
        event: "issue_label".to_owned(),
        owner: "acme".to_owned(),
        repo: "widget".to_owned(),
        about: About::Issue(3),
        body: b"{\"action\": \"label_updated\"}".to_vec(),
        received_at: host::clock::now(),
        handled_at: None,
    }
}

fn start() -> WorkRequest {
    WorkRequest::start("implementer", vec!["rust".to_owned()], None)
}

pub(crate) fn add(store: &dyn Store, number: u64) -> WorkItem {
    let note = WorkNote { trigger: Some("d-1".to_owned()), ..WorkNote::because("labelled") };
    store.add_work(&key("acme", "widget", number), "Mend it", &start(), &note).unwrap()
}

/// Claims the first item in the queue.
pub(crate) fn claim(store: &dyn Store, holder: &str) -> Option<WorkItem> {
    claim_for(store, holder, LEASE)
}

fn claim_for(store: &dyn Store, holder: &str, lease: Duration) -> Option<WorkItem> {
    let first = store.claimable_works("here", 100).unwrap().into_iter().next()?;
    match store.claim_work(&first, holder, lease, None).unwrap() {
        WorkClaim::Claimed(work) => Some(*work),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn step(
    store: &dyn Store,
    work: &WorkItem,
    step: WorkStep,
) -> Result<WorkState, DbError> {
    store.step_work(&work.key, work.fence, step, &WorkNote::because("so"))
}

pub(crate) fn a_delivery_that_comes_twice_counts_once(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let kept = store.insert_deliveries(&[delivery("a"), delivery("b"), delivery("a")]).unwrap();
    assert_eq!(kept, [DeliveryInsert::New, DeliveryInsert::New, DeliveryInsert::Duplicate]);
    assert_eq!(store.insert_deliveries(&[delivery("b")]).unwrap(), [DeliveryInsert::Duplicate]);
    let mut elsewhere = delivery("b");
    elsewhere.source = "github".to_owned();
    assert_eq!(store.insert_deliveries(&[elsewhere]).unwrap(), [DeliveryInsert::New]);
}

pub(crate) fn deliveries_wait_in_their_order_until_they_are_handled_and_outlive_the_store(
    engine: &dyn Engine,
) {
    let store = engine.open();
    let store = &*store;
    store.insert_deliveries(&[delivery("a"), delivery("b")]).unwrap();
    store.insert_deliveries(&[delivery("c")]).unwrap();
    let first = store.unhandled_deliveries(1).unwrap().remove(0);
    assert_eq!((first.id.as_str(), first.about), ("a", About::Issue(3)));
    store.mark_handled(&[first.seq]).unwrap();
    let store = engine.open();
    let ids: Vec<String> =
        store.unhandled_deliveries(9).unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!(ids, ["b", "c"]);
    assert_eq!(store.delivery_body(first.seq).unwrap(), delivery("a").body);
    let all = store.deliveries_since(0, 9).unwrap();
    assert_eq!(all.last().map(|it| it.id.as_str()), Some("c"));
    assert!(all[0].handled_at.is_some());
}

pub(crate) fn only_what_was_handled_is_forgotten(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    store.insert_deliveries(&[delivery("a"), delivery("b")]).unwrap();
    let first = store.unhandled_deliveries(1).unwrap().remove(0);
    store.mark_handled(&[first.seq]).unwrap();
    let tomorrow = host::clock::now() + Duration::from_secs(86_400);
    assert_eq!(store.forget_deliveries(tomorrow).unwrap(), 1);
    assert_eq!(store.unhandled_deliveries(9).unwrap().len(), 1);
}

pub(crate) fn work_is_claimed_in_the_order_in_which_it_was_queued(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 9);
    add(store, 2);
    let first = claim(store, "me").unwrap();
    assert_eq!((first.key.issue_number, first.state), (9, WorkState::Claimed));
    assert_eq!((first.fence.number, first.holder.as_deref()), (2, Some("me")));
    assert!(first.lease_until.unwrap() > host::clock::now());
    assert_eq!((first.request, first.trigger.as_deref()), (start(), Some("d-1")));
    assert_eq!(claim(store, "me").unwrap().key.issue_number, 2);
    assert_eq!(claim(store, "me"), None);
}

pub(crate) fn an_issue_has_one_piece_of_work_at_a_time(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let claimed = claim(store, "me").unwrap();
    assert_eq!(add(store, 3), claimed, "it goes on as it was");
    step(store, &claimed, WorkStep::Freeze).unwrap();
    assert_eq!(add(store, 3).state, WorkState::Frozen);
    step(store, &claimed, WorkStep::Destroy).unwrap();
    store.forget_work(&claimed.key, claimed.fence).unwrap();
    assert_eq!(store.work(&key("acme", "widget", 3)).unwrap(), None);
    let again = add(store, 3);
    store.forget_work(&again.key, again.fence).unwrap();
    let queued = store.work(&key("acme", "widget", 3)).unwrap().unwrap();
    assert_eq!(queued.state, WorkState::Queued, "what goes on is not forgotten");
}

pub(crate) fn an_issue_whose_bottle_is_gone_can_be_queued_again(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let claimed = claim(store, "me").unwrap();
    step(store, &claimed, WorkStep::Freeze).unwrap();
    step(store, &claimed, WorkStep::Destroy).unwrap();
    let again = add(store, 3);
    assert_eq!((again.state, again.slug), (WorkState::Queued, None));
    assert!(again.fence.number > claimed.fence.number);
}

pub(crate) fn who_lost_its_claim_is_fenced_off(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let mine = claim(store, "first").unwrap();
    step(store, &mine, WorkStep::Begin).unwrap();
    let theirs = store.take_over_host("second", LEASE).unwrap().remove(0);
    assert_eq!((theirs.state, theirs.holder.as_deref()), (WorkState::Running, Some("second")));
    assert_eq!((mine.claims, theirs.claims), (1, 1), "it is the same claim");
    let error = step(store, &mine, WorkStep::Freeze).unwrap_err();
    assert!(
        matches!(error, DbError::Fenced { held, came, .. } if (held.number, came.number) == (3, 2)),
        "{error}"
    );
    assert!(error.to_string().contains("acme/widget#3 was taken over"), "{error}");
    assert_eq!(step(store, &theirs, WorkStep::Freeze).unwrap(), WorkState::Frozen);
    assert!(store.take_over_host("third", LEASE).unwrap().is_empty(), "nobody holds it now");
}

pub(crate) fn work_that_waits_is_claimed_when_it_is_due_and_not_before(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let work = claim(store, "me").unwrap();
    let later = host::clock::now() + Duration::from_secs(3600);
    let note = WorkNote { not_before: Some(later), ..WorkNote::because("the quota is used up") };
    store.step_work(&work.key, work.fence, WorkStep::Wait, &note).unwrap();
    assert_eq!(claim(store, "me"), None);
    let waiting = store.work(&work.key).unwrap().unwrap();
    assert_eq!((waiting.holder, waiting.reason.as_str()), (None, "the quota is used up"));
    let past = host::clock::now() - Duration::from_secs(1);
    let note = WorkNote { not_before: Some(past), ..WorkNote::because("sooner") };
    store.step_work(&work.key, work.fence, WorkStep::Wait, &note).unwrap();
    assert_eq!(claim(store, "me").unwrap().not_before, None);
}

pub(crate) fn leases_are_renewed_by_their_holder_alone(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    add(store, 3);
    let work = claim_for(store, "me", Duration::from_secs(1)).unwrap();
    assert!(store.renew_leases("somebody", LEASE).unwrap().is_empty());
    assert_eq!(store.renew_leases("me", LEASE).unwrap().len(), 1);
    let renewed = store.work(&work.key).unwrap().unwrap();
    assert!(renewed.lease_until > work.lease_until);
    assert_eq!(renewed.fence, work.fence);
}

pub(crate) fn every_step_is_an_event_with_its_reason(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 3);
    let claimed = claim(store, "me").unwrap();
    let note = WorkNote { slug: Some("fix-3".to_owned()), ..WorkNote::because("it is there") };
    store.step_work(&work.key, claimed.fence, WorkStep::Begin, &note).unwrap();
    let events = store.work_events(&work.key).unwrap();
    let told: Vec<(WorkState, &str)> =
        events.iter().map(|event| (event.state, event.reason.as_str())).collect();
    assert_eq!(
        told,
        [
            (WorkState::Queued, "labelled"),
            (WorkState::Claimed, "a slot is free"),
            (WorkState::Running, "it is there"),
        ]
    );
    assert_eq!(store.events_since(events[1].seq, 9).unwrap(), events[2..]);
    assert_eq!(store.work(&work.key).unwrap().unwrap().slug.as_deref(), Some("fix-3"));
}

pub(crate) fn what_came_in_is_read_in_order_and_counted(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    store.insert_deliveries(&["a", "b", "c"].map(delivery)).unwrap();
    let ids = |seq| -> Vec<String> {
        store.deliveries_since(seq, 2).unwrap().into_iter().map(|one| one.id).collect()
    };
    assert_eq!(ids(0), ["a", "b"]);
    let second = store.deliveries_since(0, 2).unwrap()[1].seq;
    assert_eq!(ids(second), ["c"]);
    assert_eq!(store.count_unhandled().unwrap(), 3);
    store.mark_handled(&[second]).unwrap();
    assert_eq!(store.count_unhandled().unwrap(), 2);
}

pub(crate) fn the_last_event_is_known_by_its_number(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    assert_eq!(store.last_event().unwrap(), 0);
    add(store, 3);
    let events = store.events_since(0, 10).unwrap();
    assert_eq!(Some(store.last_event().unwrap()), events.last().map(|event| event.seq));
}

pub(crate) fn a_priority_moves_an_item_by_minutes_and_overtakes_nobody_for_ever(
    engine: &dyn Engine,
) {
    let store = engine.open();
    let store = &*store;
    for number in [1, 2, 3] {
        add(store, number);
    }
    let order = || -> Vec<u64> {
        store
            .claimable_works("here", 100)
            .unwrap()
            .iter()
            .map(|work| work.key.issue_number)
            .collect()
    };
    assert_eq!(order(), [1, 2, 3]);
    let set = |number, priority_mins, after: &[u64]| {
        let order = WorkOrder { priority_mins, after: after.to_vec() };
        let work = store.work(&key("acme", "widget", number)).unwrap().unwrap();
        store.set_order(&work.key, work.fence, &order).unwrap();
    };
    set(3, 60, &[]);
    set(1, -60, &[12]);
    assert_eq!(order(), [3, 2, 1]);
    assert_eq!(store.work(&key("acme", "widget", 1)).unwrap().unwrap().order.after, [12]);
    // Whoever has waited for longer than the priority is worth comes first.
    let past = (host::clock::now() - Duration::from_secs(2 * 3600)).to_string();
    engine.execute(&format!("UPDATE work SET queued_at = '{past}' WHERE issue_number = 2"));
    assert_eq!(order(), [2, 3, 1]);
}

pub(crate) fn what_waits_for_a_condition_keeps_its_place(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let first = add(store, 1);
    add(store, 2);
    let hold = |waits_for| WorkNote { waits_for, ..WorkNote::because("so") };
    let wait = |waits_for| {
        store.step_work(&first.key, first.fence, WorkStep::Wait, &hold(waits_for)).unwrap();
        store.claimable_works("here", 100).unwrap()
    };
    let open = wait(Some(WorkHold::Budget));
    assert_eq!((open[0].key.issue_number, open[0].waits_for), (1, Some(WorkHold::Budget)));
    assert_eq!(open[0].queued_at, first.queued_at);
    let open = wait(Some(WorkHold::Issues));
    assert_eq!(open.len(), 1, "another issue is not judged by a claim");
    let open = wait(None);
    assert_eq!(open.len(), 1, "it waits for its time");
    store.step_work(&first.key, first.fence, WorkStep::Queue, &WorkNote::because("on")).unwrap();
    let open = store.claimable_works("here", 100).unwrap();
    assert_eq!((open[1].key.issue_number, open[1].waits_for), (1, None));
}

pub(crate) fn what_changed_since_it_was_read_is_not_claimed(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 3);
    claim(store, "me").unwrap();
    assert_eq!(store.claim_work(&work, "you", LEASE, None).unwrap(), WorkClaim::Gone);
}

pub(crate) fn an_issue_that_comes_after_another_waits_from_the_start(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let order = WorkOrder { priority_mins: 5, after: vec![2] };
    let note = WorkNote {
        waits_for: Some(WorkHold::Issues),
        order: Some(order.clone()),
        ..WorkNote::because("it comes after #2")
    };
    let work = store.add_work(&key("acme", "widget", 1), "Then", &start(), &note).unwrap();
    assert_eq!((work.state, work.waits_for), (WorkState::Waiting, Some(WorkHold::Issues)));
    assert_eq!(work.order, order);
    assert!(store.claimable_works("here", 100).unwrap().is_empty());
    let call = WorkNote { waits_for: Some(WorkHold::Issues), ..WorkNote::because("a circle") };
    store.step_work(&work.key, work.fence, WorkStep::CallPerson, &call).unwrap();
    let called = store.work(&work.key).unwrap().unwrap();
    assert_eq!(
        (called.state, called.waits_for),
        (WorkState::NeedsAttention, Some(WorkHold::Issues))
    );
    store.step_work(&work.key, work.fence, WorkStep::Queue, &WorkNote::because("free")).unwrap();
    assert_eq!(store.claimable_works("here", 100).unwrap()[0].waits_for, None);
}

pub(crate) fn a_page_of_the_queue_is_its_front_and_all_that_wait_for_a_budget(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    for number in 1..=5 {
        add(store, number);
    }
    let hold = WorkNote { waits_for: Some(WorkHold::Budget), ..WorkNote::because("so") };
    for number in [4, 5] {
        let work = store.work(&key("acme", "widget", number)).unwrap().unwrap();
        store.step_work(&work.key, work.fence, WorkStep::Wait, &hold).unwrap();
    }
    let page = |limit| -> Vec<u64> {
        let works = store.claimable_works("here", limit).unwrap();
        works.iter().map(|work| work.key.issue_number).collect()
    };
    assert_eq!(page(2), [1, 2, 4, 5]);
    assert_eq!(page(100), [1, 2, 3, 4, 5]);
}

pub(crate) fn what_is_to_be_maintained_is_found_without_the_queue(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let works: Vec<WorkItem> = (1..=4).map(|number| add(store, number)).collect();
    let held = claim(store, "a/1").unwrap();
    let past = host::clock::now() - Duration::from_secs(60);
    let later = host::clock::now() + Duration::from_secs(600);
    for (work, at) in [(&works[1], past), (&works[2], later)] {
        store.set_destroy_at(&work.key, work.fence, Some(at)).unwrap();
    }
    store.set_destroy_at(&held.key, held.fence, Some(past)).unwrap();
    let due = |holder| -> Vec<u64> {
        let works = store.works_to_maintain(holder).unwrap();
        works.iter().map(|work| work.key.issue_number).collect()
    };
    assert_eq!(due("a/1"), [1, 2]);
    assert_eq!(due("b/1"), [2], "what another one holds is not maintained");
}

pub(crate) fn actions_of_users_are_read_beside_webhooks(engine: &dyn Engine) {
    let store = engine.open();
    let of = |source: &str, id: &str| Delivery { source: source.to_owned(), ..delivery(id) };
    store
        .insert_deliveries(&[
            of("gitea", "1"),
            of("page", "2"),
            of("comment", "3"),
            of("page", "4"),
        ])
        .unwrap();
    let read = |limit| store.unhandled_from(&["page", "comment"], limit).unwrap();
    let mut ids: Vec<String> = read(10).into_iter().map(|it| it.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["2", "3", "4"]);
    assert_eq!(read(1).len(), 1);
    store.mark_handled(&[read(1)[0].seq]).unwrap();
    assert_eq!(read(10).len(), 2);
}
