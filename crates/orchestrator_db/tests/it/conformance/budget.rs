//! Budgets: what runs reserve and spend is counted once, in one day, whoever dies in between.

use jiff::civil::{Date, date};
use orchestrator_db::{
    Amount, BudgetLimit, BudgetRefusal, BudgetScope, BudgetUnit, IssueKey, RunReservation, Store,
    WorkClaim, WorkNote, WorkStep,
};

use super::issue::HERE;
use super::work::{LEASE, add};
use super::{Engine, key};

const TODAY: Date = date(2026, 11, 18);
const TOMORROW: Date = date(2026, 11, 19);

fn tokens(tokens: u64) -> Amount {
    Amount { tokens: Some(tokens), micro_usd: None }
}

fn request(most: u64, scope: BudgetScope, limit: u64) -> RunReservation {
    let limits = vec![BudgetLimit { scope, most: tokens(limit) }];
    RunReservation { agent: "worker".to_owned(), most: tokens(most), limits, day: TODAY }
}

fn issue(number: u64) -> IssueKey {
    key("acme", "widget", number)
}

/// Reserves for a run, and settles it if an amount is given.
#[track_caller]
fn run(store: &dyn Store, key: &IssueKey, name: &str, spent: Option<Amount>) {
    let none = RunReservation { most: tokens(50), day: TODAY, ..RunReservation::default() };
    assert_eq!(store.reserve_run(key, name, &none, HERE).unwrap(), None);
    if let Some(spent) = spent {
        let row = store.unsettled_spending().unwrap().pop().unwrap();
        assert_eq!(row.run.as_deref(), Some(name));
        store.settle_spending(row.seq, &spent).unwrap();
    }
}

fn refusal(store: &dyn Store, request: &RunReservation) -> Option<BudgetRefusal> {
    let probe = IssueKey { issue_number: 3, ..issue(3) };
    store.reserve_run(&probe, "probe", request, HERE).unwrap()
}

pub(crate) fn two_claims_at_once_do_not_pass_a_budget_together(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    for number in 1..=8 {
        add(store, number);
    }
    let works = store.claimable_works("here", 100).unwrap();
    let request = request(40, BudgetScope::Repository, 100);
    let claimed: usize = std::thread::scope(|scope| {
        let claim = |work| {
            let (store, request) = (engine.open(), &request);
            scope.spawn(move || {
                let claim = store.claim_work(work, "me", LEASE, Some(request)).unwrap();
                usize::from(matches!(claim, WorkClaim::Claimed(_)))
            })
        };
        let all: Vec<_> = works.iter().map(claim).collect();
        all.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(claimed, 2, "two of 40 fit into 100");
    let waiting = store.claimable_works("here", 100).unwrap();
    assert_eq!(waiting.len(), 6);
    let refused = store.claim_work(&waiting[0], "me", LEASE, Some(&request)).unwrap();
    let WorkClaim::Refused(refused) = refused else { panic!("{refused:?}") };
    assert_eq!((refused.spent, refused.reserved, refused.wanted, refused.limit), (0, 80, 40, 100));
}

pub(crate) fn a_reservation_is_bound_to_its_run_and_counts_once(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 1);
    let request = request(60, BudgetScope::Host, 100);
    store.claim_work(&work, "me", LEASE, Some(&request)).unwrap();
    assert_eq!(refusal(store, &request).map(|it| it.reserved), Some(60));
    assert!(store.unsettled_spending().unwrap().is_empty(), "no run has started");
    assert_eq!(store.reserve_run(&work.key, "run-1", &request, HERE).unwrap(), None);
    assert_eq!(refusal(store, &request).map(|it| it.reserved), Some(60), "not twice");
    let row = store.unsettled_spending().unwrap().remove(0);
    store.settle_spending(row.seq, &tokens(10)).unwrap();
    store.settle_spending(row.seq, &tokens(99)).unwrap();
    assert_eq!(store.spending_of(&work.key).unwrap()[0].spent, Some(tokens(10)), "once");
    assert_eq!(refusal(store, &request), None, "the rest is free again");
}

pub(crate) fn a_claim_that_starts_no_run_releases_its_reservation_with_its_end(
    engine: &dyn Engine,
) {
    let store = engine.open();
    let store = &*store;
    let work = add(store, 1);
    let request = request(60, BudgetScope::Host, 100);
    let claim = store.claim_work(&work, "me", LEASE, Some(&request)).unwrap();
    let WorkClaim::Claimed(work) = claim else { panic!("{claim:?}") };
    let taken = store.take_over_host("you", LEASE).unwrap().remove(0);
    assert!(refusal(store, &request).is_some(), "whoever takes over holds it");
    assert!(
        store.step_work(&work.key, work.fence, WorkStep::Freeze, &WorkNote::default()).is_err()
    );
    assert!(refusal(store, &request).is_some(), "a step that is refused releases nothing");
    let note = WorkNote::because("so");
    store.step_work(&taken.key, taken.fence, WorkStep::Begin, &note).unwrap();
    assert!(refusal(store, &request).is_some());
    store.step_work(&taken.key, taken.fence, WorkStep::Freeze, &note).unwrap();
    assert!(store.spending_of(&work.key).unwrap().is_empty());
}

pub(crate) fn what_nobody_counted_counts_as_its_reservation_and_without_one_as_the_most_of_a_run(
    engine: &dyn Engine,
) {
    let store = engine.open();
    let store = &*store;
    run(store, &issue(1), "run-1", Some(Amount::default()));
    let probe = request(60, BudgetScope::Host, 100);
    assert_eq!(refusal(store, &probe).map(|it| it.spent), Some(50));
    let none = RunReservation { day: TODAY, ..RunReservation::default() };
    assert_eq!(store.reserve_run(&issue(2), "run-2", &none, HERE).unwrap(), None);
    let refused = refusal(store, &probe).unwrap();
    assert_eq!((refused.spent, refused.reserved), (50, 60));
}

pub(crate) fn each_scope_counts_its_own_runs_and_each_run_in_one_day(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    for (run_key, name) in [
        (issue(3), "same-issue"),
        (issue(4), "same-repository"),
        (key("acme", "gadget", 3), "same-organisation"),
        (key("acme/tools", "lathe", 3), "group-below"),
        (key("acmes", "widget", 3), "another"),
    ] {
        run(store, &run_key, name, Some(tokens(10)));
    }
    let spent = |scope, day| {
        let request = RunReservation { day, ..request(1, scope, 0) };
        refusal(store, &request).unwrap().spent
    };
    assert_eq!(spent(BudgetScope::Issue, TODAY), 10);
    assert_eq!(spent(BudgetScope::Repository, TODAY), 20);
    assert_eq!(spent(BudgetScope::Organisation, TODAY), 40);
    assert_eq!(spent(BudgetScope::Host, TODAY), 50);
    assert_eq!(spent(BudgetScope::Host, TOMORROW), 0);
    assert_eq!(spent(BudgetScope::Issue, TOMORROW), 10, "an issue has one budget for all days");
    let sums = store.spending_on(TODAY).unwrap();
    assert_eq!((sums.len(), sums[0].key.repo.as_str(), sums[0].tokens), (5, "gadget", 10));
    assert!(store.spending_on(TOMORROW).unwrap().is_empty());
}

/// A run that ends tomorrow settles in the day in which it began.
pub(crate) fn a_run_that_crosses_midnight_spends_no_second_budget(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    run(store, &issue(1), "run-1", None);
    let tomorrow = RunReservation { day: TOMORROW, ..request(60, BudgetScope::Host, 100) };
    let row = store.unsettled_spending().unwrap().remove(0);
    store.settle_spending(row.seq, &tokens(90)).unwrap();
    assert_eq!(refusal(store, &tomorrow), None);
    assert_eq!(store.spending_on(TODAY).unwrap()[0].tokens, 90);
}

pub(crate) fn money_and_tokens_are_limited_each_by_itself(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let amount = |tokens, micro_usd| Amount { tokens: Some(tokens), micro_usd: Some(micro_usd) };
    let limits = vec![BudgetLimit { scope: BudgetScope::Host, most: amount(100, 1_000_000) }];
    let request = |most| RunReservation {
        most,
        limits: limits.clone(),
        day: TODAY,
        ..RunReservation::default()
    };
    assert_eq!(
        store.reserve_run(&issue(1), "run-1", &request(amount(10, 600_000)), HERE).unwrap(),
        None
    );
    let unit = |most| refusal(store, &request(most)).map(|it| it.unit);
    assert_eq!(unit(amount(91, 0)), Some(BudgetUnit::Tokens));
    assert_eq!(unit(amount(0, 400_001)), Some(BudgetUnit::MicroUsd));
    assert_eq!(unit(amount(90, 400_000)), None);
}
