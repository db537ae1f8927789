//! Tables of admissions.

use model::wire::Price;

use super::*;

const CAPS: Caps = Caps { max_usd: None, max_tokens: Some(1000), max_requests: None };

fn bound(body_bytes: u64, answer: impl Into<Option<u64>>) -> CallBound {
    CallBound { body_bytes, answer: answer.into() }
}

fn used(tokens: u64) -> ModelUsage {
    ModelUsage { input: tokens, ..ModelUsage::default() }
}

/// A ledger with calls that hold `reserved` tokens, after one that used a quarter of a token for each byte.
fn ledger(running: u64, reserved: u64) -> Ledger {
    Ledger {
        running,
        reserved: Amount { tokens: reserved, usd: 0.0 },
        settled: Settled {
            calls: 1,
            body_bytes: 400,
            prompts: Amount { tokens: 100, usd: 0.0 },
            overrun: 0.5,
        },
    }
}

fn tokens(tokens: u64) -> Result<Admission, String> {
    Ok(Admission::Reserve(Amount { tokens, usd: 0.0 }))
}

fn check(ledger: &Ledger, used_tokens: u64, call: CallBound, expected: Result<Admission, String>) {
    let got = admit(&CAPS, &Prices::default(), &used(used_tokens), ledger, &call);
    assert_eq!(got, expected, "{ledger:?} {call:?}");
}

#[test]
fn a_call_reserves_its_prompt_and_its_longest_answer() {
    check(&ledger(0, 0), 0, bound(100, 200), tokens(300));
    check(&ledger(2, 700), 0, bound(100, 200), tokens(300));
    check(&ledger(2, 700), 1, bound(100, 200), Ok(Admission::Wait));
    check(&ledger(2, 701), 0, bound(100, 200), Ok(Admission::Wait));
}

#[test]
fn a_call_without_a_limit_or_beyond_the_rest_runs_alone() {
    check(&ledger(1, 10), 0, bound(100, None), Ok(Admission::Wait));
    check(&ledger(0, 0), 0, bound(100, None), tokens(1000));
    check(&ledger(0, 0), 400, bound(100, 5000), tokens(600));
    check(&ledger(1, 600), 400, bound(0, 1), Ok(Admission::Wait));
}

#[test]
fn the_first_call_runs_alone() {
    check(&Ledger::default(), 0, bound(100, 200), tokens(1000));
    let first = Ledger { running: 1, ..Ledger::default() };
    check(&first, 0, bound(100, 200), Ok(Admission::Wait));
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_with_what_is_left() {
    let words = "100 tokens are left, and the prompt of this call takes about 125";
    check(&ledger(0, 0), 900, bound(500, 10), Err(words.to_owned()));
    check(&ledger(0, 0), 900, bound(400, 10), tokens(100));
    check(&ledger(0, 0), 1000, bound(0, 1), Err("1000 of 1000 tokens are used".to_owned()));
    let words = "1000 tokens are left, and the prompt of this call takes about 2000";
    check(&Ledger::default(), 0, bound(8000, 10), Err(words.to_owned()));
}

#[test]
fn a_server_that_adds_to_its_calls_makes_the_next_ones_reserve_more() {
    let mut ledger = ledger(0, 0);
    let tokens_used = TokenCount { input: 350, output: 100, ..TokenCount::default() };
    let spend = Spend { tokens: tokens_used, usd: 0.0, estimated: false };
    let prompt = Amount { tokens: 350, usd: 0.0 };
    ledger.settled.absorb(&Prices::default(), &bound(50, 100), &spend, prompt);
    check(&ledger, 0, bound(50, 100), tokens(450));
    check(&ledger, 0, bound(500, 100), tokens(1000));
}

#[test]
fn dollars_are_reserved_at_the_dearest_price() {
    let price = |input, output| Price { input, output, cache_read: 0.0, cache_write: 4.0 };
    let prices = [("a", price(2.0, 10.0)), ("b", price(1.0, 5.0))];
    let prices = Prices(prices.map(|(name, price)| (name.to_owned(), price)).into());
    let caps = Caps { max_usd: Some(1.0), ..Caps::default() };
    let usage = |usd| ModelUsage { usd, ..ModelUsage::default() };
    let mut ledger = ledger(1, 0);
    // 100,000 tokens at 4 dollars and 10,000 at 10 dollars for a million.
    let call = bound(100_000, 10_000);
    let Ok(Admission::Reserve(amount)) = admit(&caps, &prices, &usage(0.0), &ledger, &call) else {
        panic!("it fits")
    };
    assert!((amount.usd - 0.5).abs() < 1e-9, "{amount:?}");
    assert_eq!(admit(&caps, &prices, &usage(0.6), &ledger, &call), Ok(Admission::Wait));
    ledger.running = 0;
    ledger.settled.prompts.usd = 0.002;
    let refused = admit(&caps, &prices, &usage(0.6), &ledger, &call).unwrap_err();
    assert_eq!(refused, "0.4000 dollars are left, and the prompt of this call costs about 0.5000");
    assert!(admit(&caps, &prices, &usage(0.4), &ledger, &call).is_ok());
}

#[test]
fn without_a_cap_on_usage_nothing_waits() {
    let caps = Caps { max_requests: Some(9), ..Caps::default() };
    let got = admit(&caps, &Prices::default(), &used(5), &ledger(3, 0), &bound(10, None));
    assert_eq!(got, tokens(0));
}

#[tokio::test]
async fn a_dropped_call_gives_back_what_it_reserved_and_the_next_one_goes_on() {
    let state = Arc::new(EgressState::new());
    let reservations = Reservations::new(CAPS, Prices::default(), Arc::clone(&state));
    let first = reservations.reserve(bound(10, 10)).await.unwrap();
    let waiting = tokio::spawn({
        let reservations = Arc::clone(&reservations);
        async move { reservations.reserve(bound(10, 10)).await.map(|second| second.amount.tokens) }
    });
    // A call that is no longer wanted leaves the queue to those behind it.
    let given_up = tokio::spawn({
        let reservations = Arc::clone(&reservations);
        async move { reservations.reserve(bound(10, None)).await.map(drop) }
    });
    tokio::task::yield_now().await;
    given_up.abort();
    assert!(!waiting.is_finished());
    drop(first);
    assert_eq!(waiting.await.unwrap().unwrap(), 1000);
    let ledger = reservations.ledger();
    assert_eq!((ledger.running, ledger.reserved), (0, Amount::default()));
    assert_eq!(state.usage().requests, 2);
}
