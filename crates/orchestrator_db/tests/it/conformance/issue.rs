//! The bottle of each issue, and the host that has it.

use orchestrator_db::{
    BottleState, BottleStep, DbError, ForgeState, IssueKey, WorkState, WorkStep, Writer,
};

use super::work::{add, claim, step};
use super::{Engine, key};

/// A person at the host of [`state`].
pub(crate) const HERE: Writer<'static> = Writer { host: "here", claim: None };
const THERE: Writer<'static> = Writer { host: "there", claim: None };

pub(crate) fn state(key: IssueKey) -> ForgeState {
    ForgeState {
        key,
        slug: "fix-the-hooks".to_owned(),
        agent_name: "implementer".to_owned(),
        bottle_names: vec!["base".to_owned(), "a \"quoted\" one".to_owned()],
        backend_name: "bwrap".to_owned(),
        host: Some("here".to_owned()),
        saved: None,
        agent_git_user: "bot1".to_owned(),
        pr_number: None,
        status: BottleState::Running,
        last_checkin_at: "2026-11-15T08:00:00.123456Z".parse().unwrap(),
    }
}

pub(crate) fn a_bottle_is_read_back_as_it_was_stored(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    assert_eq!(store.forge_state(&kept.key).unwrap().as_ref(), Some(&kept));
    assert_eq!(store.forge_states().unwrap(), [kept]);
}

pub(crate) fn an_issue_without_a_bottle_has_none(engine: &dyn Engine) {
    let store = engine.open();
    store.add_forge_state(&state(key("alice", "hooks", 317)), HERE).unwrap();
    for other in [key("alice", "hooks", 318), key("bob", "hooks", 317), key("alice", "h", 317)] {
        assert_eq!(store.forge_state(&other).unwrap(), None);
        let stepped = store.step_bottle(&other, "fix-the-hooks", BottleStep::Freeze, HERE).unwrap();
        assert_eq!(stepped, None);
    }
}

pub(crate) fn an_issue_gets_a_second_bottle_only_after_the_first_is_destroyed(engine: &dyn Engine) {
    let store = engine.open();
    let first = ForgeState { pr_number: Some(318), ..state(key("alice", "hooks", 317)) };
    let second = ForgeState { slug: "again".to_owned(), ..state(first.key.clone()) };
    store.add_forge_state(&first, HERE).unwrap();
    let error = store.add_forge_state(&second, HERE).unwrap_err();
    assert!(matches!(&error, DbError::HasBottle { slug, .. } if *slug == first.slug), "{error}");
    store.step_bottle(&first.key, &first.slug, BottleStep::Destroy, HERE).unwrap();
    store.add_forge_state(&second, HERE).unwrap();
    assert_eq!(store.forge_states().unwrap(), [second]);
}

pub(crate) fn a_bottle_that_was_never_made_is_deleted_once(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    store.delete_forge_state(&kept.key, "another", HERE).unwrap();
    assert!(store.forge_state(&kept.key).unwrap().is_some(), "the row of another bottle stays");
    store.delete_forge_state(&kept.key, &kept.slug, HERE).unwrap();
    store.delete_forge_state(&kept.key, &kept.slug, HERE).unwrap();
    assert_eq!(store.forge_state(&kept.key).unwrap(), None);
}

pub(crate) fn all_bottles_are_listed_in_order(engine: &dyn Engine) {
    let store = engine.open();
    let keys =
        [key("alice", "a", 9), key("alice", "a", 10), key("alice", "b", 1), key("bob", "a", 2)];
    for key in keys.iter().rev() {
        store.add_forge_state(&state(key.clone()), HERE).unwrap();
    }
    let listed: Vec<IssueKey> =
        store.forge_states().unwrap().into_iter().map(|state| state.key).collect();
    assert_eq!(listed, keys);
}

pub(crate) fn what_one_connection_stores_another_one_reads(engine: &dyn Engine) {
    let kept = state(key("alice", "hooks", 317));
    engine.open().add_forge_state(&kept, HERE).unwrap();
    let (one, other) = (engine.open(), engine.open());
    one.step_bottle(&kept.key, &kept.slug, BottleStep::Freeze, HERE).unwrap();
    assert_eq!(other.forge_state(&kept.key).unwrap().unwrap().status, BottleState::Frozen);
}

pub(crate) fn a_step_is_taken_if_the_status_allows_it(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    let step = |step| store.step_bottle(&kept.key, &kept.slug, step, HERE);
    assert_eq!(step(BottleStep::Freeze).unwrap(), Some(BottleState::Frozen));
    let error = step(BottleStep::Start).unwrap_err();
    assert!(matches!(error, DbError::BottleStep(_)), "{error}");
    assert_eq!(step(BottleStep::Rehydrate).unwrap(), Some(BottleState::Running));
    assert_eq!(step(BottleStep::Destroy).unwrap(), Some(BottleState::Destroyed));
    let other = store.step_bottle(&kept.key, "another", BottleStep::Start, HERE).unwrap();
    assert_eq!(other, None, "it is another bottle's row");
    let expected = ForgeState { status: BottleState::Destroyed, ..kept };
    assert_eq!(store.forge_state(&expected.key).unwrap(), Some(expected));
}

pub(crate) fn a_sign_of_life_changes_no_state_and_keeps_the_pull_request(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    store.step_bottle(&kept.key, &kept.slug, BottleStep::Freeze, HERE).unwrap();
    store.check_in(&kept.key, &kept.slug, Some(318), HERE).unwrap();
    store.check_in(&kept.key, &kept.slug, None, HERE).unwrap();
    store.check_in(&kept.key, "another", Some(9), HERE).unwrap();
    let known = store.forge_state(&kept.key).unwrap().unwrap();
    assert_eq!((known.status, known.pr_number), (BottleState::Frozen, Some(318)));
    assert!(known.last_checkin_at > kept.last_checkin_at);
}

pub(crate) fn of_many_who_rehydrate_a_bottle_at_once_one_does(engine: &dyn Engine) {
    let kept = ForgeState { status: BottleState::Frozen, ..state(key("alice", "hooks", 1)) };
    engine.open().add_forge_state(&kept, HERE).unwrap();
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    let step = BottleStep::Rehydrate;
    let started: usize = std::thread::scope(|scope| {
        let steps: Vec<_> = stores
            .iter()
            .map(|it| scope.spawn(|| it.step_bottle(&kept.key, &kept.slug, step, HERE).is_ok()))
            .collect();
        steps.into_iter().map(|step| usize::from(step.join().unwrap())).sum()
    });
    assert_eq!(started, 1, "a frozen bottle is rehydrated by one alone");
}

pub(crate) fn of_many_who_make_a_bottle_for_an_issue_at_once_one_does(engine: &dyn Engine) {
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    let made: usize = std::thread::scope(|scope| {
        let make = |(number, store): (usize, &std::sync::Arc<dyn orchestrator_db::Store>)| {
            let store = std::sync::Arc::clone(store);
            let slug = format!("bottle-{number}");
            let bottle = ForgeState { slug, ..state(key("alice", "hooks", 1)) };
            scope.spawn(move || store.add_forge_state(&bottle, HERE).is_ok())
        };
        let all: Vec<_> = stores.iter().enumerate().map(make).collect();
        all.into_iter().map(|it| usize::from(it.join().unwrap())).sum()
    });
    assert_eq!(made, 1, "two bottles would overwrite each other's work");
}

pub(crate) fn a_bottle_is_written_by_its_host_alone(engine: &dyn Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.add_forge_state(&kept, HERE).unwrap();
    let refusals = [
        store.step_bottle(&kept.key, &kept.slug, BottleStep::Destroy, THERE).unwrap_err(),
        store.check_in(&kept.key, &kept.slug, Some(9), THERE).unwrap_err(),
        store.delete_forge_state(&kept.key, &kept.slug, THERE).unwrap_err(),
        store.add_forge_state(&kept, THERE).unwrap_err(),
    ];
    for error in refusals {
        assert!(matches!(&error, DbError::OtherHost { host, .. } if host == "here"), "{error}");
    }
    assert_eq!(store.forge_state(&kept.key).unwrap().as_ref(), Some(&kept));
    store.step_bottle(&kept.key, &kept.slug, BottleStep::Destroy, HERE).unwrap();
    let there = ForgeState { host: Some("there".to_owned()), ..kept };
    store.add_forge_state(&there, THERE).unwrap();
}

pub(crate) fn a_bottle_of_an_unnamed_host_becomes_that_of_its_first_writer(engine: &dyn Engine) {
    let store = engine.open();
    let old = ForgeState { host: None, ..state(key("alice", "hooks", 317)) };
    store.add_forge_state(&old, HERE).unwrap();
    store.check_in(&old.key, &old.slug, None, HERE).unwrap();
    store.check_in(&old.key, &old.slug, None, THERE).unwrap_err();
}

pub(crate) fn an_issue_is_claimed_by_the_host_that_has_its_bottle(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 3);
    let kept = ForgeState { status: BottleState::Frozen, ..state(work.key.clone()) };
    store.add_forge_state(&kept, HERE).unwrap();
    assert!(store.claimable_works("there", 100).unwrap().is_empty());
    let lease = super::work::LEASE;
    let error = store.claim_work(&work, "there/1", lease, None).unwrap_err();
    assert!(matches!(error, DbError::OtherHost { .. }), "{error}");
    assert_eq!(store.claimable_works("here", 100).unwrap().len(), 1);
    let claimed = claim(store, "here/1").unwrap();
    assert_eq!(step(store, &claimed, WorkStep::Freeze).unwrap(), WorkState::Frozen);
}

pub(crate) fn a_summary_is_written_by_the_host_of_its_bottle_and_goes_with_it(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let row = state(key("alice", "hooks", 1));
    store.add_forge_state(&row, HERE).unwrap();
    assert_eq!(store.bottle_summary(&row.key).unwrap(), None);
    store.save_summary(&row.key, &row.slug, "{}", HERE).unwrap();
    store.save_summary(&row.key, "another", "[]", HERE).unwrap();
    let there = Writer { host: "there", claim: None };
    store.save_summary(&row.key, &row.slug, "[]", there).unwrap_err();
    assert_eq!(engine.open().bottle_summary(&row.key).unwrap().as_deref(), Some("{}"));
    store.step_bottle(&row.key, &row.slug, BottleStep::Destroy, HERE).unwrap();
    store.add_forge_state(&ForgeState { slug: "second".to_owned(), ..row.clone() }, HERE).unwrap();
    assert_eq!(store.bottle_summary(&row.key).unwrap(), None, "it was of the bottle before");
}
