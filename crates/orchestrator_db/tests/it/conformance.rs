//! What every engine promises. An engine is an [`Engine`]; its promises are run by `conformance!`.

use orchestrator_db::{BottleState, BottleStep, DbError, ForgeState, ForgeStateStore, IssueKey};

/// An engine with a place of its own to keep things in.
pub(crate) trait Engine {
    type Store: ForgeStateStore;

    fn new() -> Self;

    /// Opens the same place, again and again.
    fn open(&self) -> Self::Store;
}

/// Runs every promise over one engine.
macro_rules! conformance {
    ($engine:ty) => {
        $crate::conformance::conformance!(@ $engine:
            what_was_kept_is_read_back
            what_is_not_there_is_nothing
            a_second_one_for_the_same_issue_takes_its_place
            forgetting_twice_is_forgetting_once
            all_are_listed_in_order
            what_was_kept_outlives_the_store
            a_step_is_taken_if_the_status_allows_it
            a_step_with_an_unknown_bottle_says_so
            of_many_who_step_at_once_each_sees_the_others
        );
    };
    (@ $engine:ty: $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                $crate::conformance::$promise(&<$engine as $crate::conformance::Engine>::new());
            }
        )*
    };
}
pub(crate) use conformance;

pub(crate) fn key(owner: &str, repo: &str, issue_number: u64) -> IssueKey {
    IssueKey { owner: owner.to_owned(), repo: repo.to_owned(), issue_number }
}

pub(crate) fn state(key: IssueKey) -> ForgeState {
    ForgeState {
        key,
        slug: "fix-the-hooks".to_owned(),
        agent_name: "implementer".to_owned(),
        bottle_names: vec!["base".to_owned(), "a \"quoted\" one".to_owned()],
        backend_name: "bwrap".to_owned(),
        agent_git_user: "bot1".to_owned(),
        pr_number: None,
        status: BottleState::Running,
        last_checkin_at: "2026-11-15T08:00:00.123456Z".parse().unwrap(),
    }
}

pub(crate) fn what_was_kept_is_read_back(engine: &impl Engine) {
    let store = engine.open();
    let mut kept = state(key("alice", "hooks", 317));
    store.upsert(&kept).unwrap();
    assert_eq!(store.get(&kept.key).unwrap().as_ref(), Some(&kept));
    kept.pr_number = Some(318);
    kept.bottle_names.clear();
    kept.status = BottleState::Frozen;
    store.upsert(&kept).unwrap();
    assert_eq!(store.get(&kept.key).unwrap(), Some(kept));
}

pub(crate) fn what_is_not_there_is_nothing(engine: &impl Engine) {
    let store = engine.open();
    store.upsert(&state(key("alice", "hooks", 317))).unwrap();
    for other in [key("alice", "hooks", 318), key("bob", "hooks", 317), key("alice", "h", 317)] {
        assert_eq!(store.get(&other).unwrap(), None);
    }
}

pub(crate) fn a_second_one_for_the_same_issue_takes_its_place(engine: &impl Engine) {
    let store = engine.open();
    let first = state(key("alice", "hooks", 317));
    store.upsert(&ForgeState { pr_number: Some(318), ..first.clone() }).unwrap();
    let second = ForgeState { slug: "again".to_owned(), ..first };
    store.upsert(&second).unwrap();
    assert_eq!(store.all().unwrap(), [second]);
}

pub(crate) fn forgetting_twice_is_forgetting_once(engine: &impl Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.upsert(&kept).unwrap();
    store.delete(&kept.key).unwrap();
    store.delete(&kept.key).unwrap();
    assert_eq!(store.get(&kept.key).unwrap(), None);
}

pub(crate) fn all_are_listed_in_order(engine: &impl Engine) {
    let store = engine.open();
    let keys =
        [key("alice", "a", 9), key("alice", "a", 10), key("alice", "b", 1), key("bob", "a", 2)];
    for key in keys.iter().rev() {
        store.upsert(&state(key.clone())).unwrap();
    }
    let listed: Vec<IssueKey> = store.all().unwrap().into_iter().map(|state| state.key).collect();
    assert_eq!(listed, keys);
}

pub(crate) fn what_was_kept_outlives_the_store(engine: &impl Engine) {
    let kept = state(key("alice", "hooks", 317));
    engine.open().upsert(&kept).unwrap();
    let (one, other) = (engine.open(), engine.open());
    assert_eq!(one.get(&kept.key).unwrap().as_ref(), Some(&kept));
    one.step(&kept.key, BottleStep::Freeze).unwrap();
    assert_eq!(other.get(&kept.key).unwrap().unwrap().status, BottleState::Frozen);
}

pub(crate) fn a_step_is_taken_if_the_status_allows_it(engine: &impl Engine) {
    let store = engine.open();
    let kept = state(key("alice", "hooks", 317));
    store.upsert(&kept).unwrap();
    assert_eq!(store.step(&kept.key, BottleStep::Freeze).unwrap(), BottleState::Frozen);
    let error = store.step(&kept.key, BottleStep::Start).unwrap_err();
    assert!(matches!(error, DbError::BottleStep(_)), "{error}");
    assert_eq!(store.step(&kept.key, BottleStep::Rehydrate).unwrap(), BottleState::Running);
    assert_eq!(store.step(&kept.key, BottleStep::Destroy).unwrap(), BottleState::Destroyed);
    let expected = ForgeState { status: BottleState::Destroyed, ..kept };
    assert_eq!(store.get(&expected.key).unwrap(), Some(expected));
}

pub(crate) fn a_step_with_an_unknown_bottle_says_so(engine: &impl Engine) {
    let error = engine.open().step(&key("alice", "hooks", 1), BottleStep::Freeze).unwrap_err();
    assert_eq!(error.to_string(), "no bottle works on alice/hooks#1; start one first");
}

pub(crate) fn of_many_who_step_at_once_each_sees_the_others(engine: &impl Engine) {
    let kept = ForgeState { status: BottleState::Frozen, ..state(key("alice", "hooks", 1)) };
    engine.open().upsert(&kept).unwrap();
    let stores: Vec<_> = (0..4).map(|_| engine.open()).collect();
    let started: usize = std::thread::scope(|scope| {
        let steps: Vec<_> = stores
            .iter()
            .map(|store| scope.spawn(|| store.step(&kept.key, BottleStep::Rehydrate).is_ok()))
            .collect();
        steps.into_iter().map(|step| usize::from(step.join().unwrap())).sum()
    });
    assert_eq!(started, 1, "a frozen bottle is rehydrated by one alone");
}
