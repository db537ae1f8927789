//! Reservations: the part of the caps that running calls hold until their usage is known.
//!
//! A call reserves the most that it can use before it starts and settles when it has ended, so that calls in parallel
//! cannot pass a cap together. A call whose most does not fit, or is not known, waits until no other call runs and then
//! runs alone. Its prompt must fit; its answer is all that can exceed a cap.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Turn, Notify};

use super::bound::CallBound;
use super::price::Prices;
use super::spec::Caps;
use super::usage::{ModelUsage, Spend, TokenCount};
use crate::policy::DenyReason;
use crate::state::EgressState;

/// Tokens of an answer without a stated limit, of which the client did not wait for the end. Few answers are longer.
const UNSTATED_ANSWER: u64 = 8192;

#[derive(Debug)]
pub(crate) struct Reservations {
    caps: Caps,
    prices: Prices,
    state: Arc<EgressState>,
    /// Calls are admitted in the order in which they came: small ones must not overtake a large one for ever.
    turn: Turn<()>,
    released: Notify,
    ledger: Mutex<Ledger>,
}

/// Tokens and dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    tokens: u64,
    usd: f64,
}

#[derive(Clone, Debug, Default)]
struct Ledger {
    running: u64,
    reserved: Amount,
    settled: Settled,
}

/// Knowledge from the calls that have ended, for better bounds of the next ones.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    calls: u64,
    body_bytes: u64,
    prompts: Amount,
    /// The largest multiple of its bound that a call has used. A server may add to a prompt.
    overrun: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Admission {
    Reserve(Amount),
    /// Others must settle first.
    Wait,
}

/// Rest of the caps; `None` is no cap.
#[derive(Clone, Copy, Debug)]
struct Left {
    tokens: Option<u64>,
    usd: Option<f64>,
}

/// Reservation of one call. It is released when the call settles, and also when the call is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    reservations: Arc<Reservations>,
    bound: CallBound,
    amount: Amount,
}

impl Reservations {
    pub(super) fn new(caps: Caps, prices: Prices, state: Arc<EgressState>) -> Arc<Self> {
        let (turn, released, ledger) = (Turn::default(), Notify::default(), Mutex::default());
        Arc::new(Self { caps, prices, state, turn, released, ledger })
    }

    /// Returns whether calls have to state their most before they start.
    pub(super) fn has_cap(&self) -> bool {
        self.caps.max_tokens.is_some() || self.caps.max_usd.is_some()
    }

    /// Counts a call that makes the model generate nothing.
    pub(super) fn count(&self) -> Result<(), DenyReason> {
        let mut usage = self.state.usage_mut();
        match usage.reached(&self.caps) {
            Some(what) => Err(refuse(&mut usage, what)),
            None => {
                usage.requests += 1;
                Ok(())
            }
        }
    }

    /// Reserves the most of a call and counts it; waits for running calls where that does not fit beside them.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        bound: CallBound,
    ) -> Result<Reservation, DenyReason> {
        let _turn = self.turn.lock().await;
        loop {
            match self.try_reserve(bound)? {
                Some(reservation) => return Ok(reservation),
                // A release before this line is kept for it.
                None => self.released.notified().await,
            }
        }
    }

    fn try_reserve(self: &Arc<Self>, bound: CallBound) -> Result<Option<Reservation>, DenyReason> {
        let mut usage = self.state.usage_mut();
        let mut ledger = self.ledger();
        match admit(&self.caps, &self.prices, &usage, &ledger, &bound) {
            Err(what) => Err(refuse(&mut usage, what)),
            Ok(Admission::Wait) => Ok(None),
            Ok(Admission::Reserve(amount)) => {
                usage.requests += 1;
                ledger.running += 1;
                ledger.reserved = ledger.reserved.plus(&amount);
                Ok(Some(Reservation { reservations: Arc::clone(self), bound, amount }))
            }
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(usage: &mut ModelUsage, what: String) -> DenyReason {
    usage.cap_hit = Some(what.clone());
    DenyReason::ModelCap { what }
}

/// Decides about a call: what it reserves, that it waits, or the reason why it is refused.
fn admit(
    caps: &Caps,
    prices: &Prices,
    usage: &ModelUsage,
    ledger: &Ledger,
    bound: &CallBound,
) -> Result<Admission, String> {
    if let Some(what) = usage.reached(caps) {
        return Err(what);
    }
    let left = Left {
        tokens: caps.max_tokens.map(|max| max.saturating_sub(usage.tokens())),
        usd: caps.max_usd.map(|max| max - usage.usd),
    };
    // Until one call has settled, nothing is known about what this server adds to a call.
    let most = bound.answer.filter(|_| ledger.settled.calls > 0);
    let most = most.map(|answer| ledger.settled.most(prices, bound, answer));
    if let Some(most) = most.filter(|most| left.holds(&ledger.reserved.plus(most))) {
        return Ok(Admission::Reserve(most));
    }
    if ledger.running > 0 && left.is_capped() {
        return Ok(Admission::Wait);
    }
    let prompt = ledger.settled.usual_prompt(prices, bound);
    if left.holds(&prompt) {
        Ok(Admission::Reserve(left.all()))
    } else {
        Err(left.explain(&prompt))
    }
}

impl Settled {
    fn most(&self, prices: &Prices, bound: &CallBound, answer: u64) -> Amount {
        let prompt = bound.prompt_most();
        let most =
            Amount { tokens: prompt.saturating_add(answer), usd: prices.most(prompt, answer) };
        most.times(self.overrun.max(1.0))
    }

    /// The prompt as it will most likely be counted: like those before it, by their bytes.
    fn usual_prompt(&self, prices: &Prices, bound: &CallBound) -> Amount {
        if self.body_bytes == 0 {
            let tokens = bound.prompt_usual();
            return Amount { tokens, usd: prices.most(tokens, 0) };
        }
        self.prompts.times(ratio(bound.body_bytes, self.body_bytes))
    }

    fn absorb(&mut self, prices: &Prices, bound: &CallBound, spend: &Spend, prompt: Amount) {
        self.calls += 1;
        // An estimate is made of the same bytes and teaches nothing about them.
        if spend.estimated {
            return;
        }
        self.body_bytes = self.body_bytes.saturating_add(bound.body_bytes);
        self.prompts = self.prompts.plus(&prompt);
        if let Some(answer) = bound.answer {
            let plain = Self::default().most(prices, bound, answer);
            let tokens = ratio(spend.tokens.total(), plain.tokens.max(1));
            let usd = if plain.usd > 0.0 { spend.usd / plain.usd } else { 1.0 };
            self.overrun = self.overrun.max(tokens).max(usd);
        }
    }
}

impl Left {
    fn is_capped(&self) -> bool {
        self.tokens.is_some() || self.usd.is_some()
    }

    fn holds(&self, amount: &Amount) -> bool {
        self.tokens.is_none_or(|left| amount.tokens <= left)
            && self.usd.is_none_or(|left| amount.usd <= left)
    }

    fn all(&self) -> Amount {
        Amount { tokens: self.tokens.unwrap_or(0), usd: self.usd.unwrap_or(0.0) }
    }

    fn explain(&self, prompt: &Amount) -> String {
        match (self.tokens.filter(|left| prompt.tokens > *left), self.usd) {
            (Some(left), _) => {
                let needed = prompt.tokens;
                format!("{left} tokens are left, and the prompt of this call takes about {needed}")
            }
            (None, usd) => format!(
                "{:.4} dollars are left, and the prompt of this call costs about {:.4}",
                usd.unwrap_or(0.0),
                prompt.usd
            ),
        }
    }
}

impl Amount {
    fn plus(&self, other: &Self) -> Self {
        let tokens = self.tokens.saturating_add(other.tokens);
        Self { tokens, usd: self.usd + other.usd }
    }

    fn minus(&self, other: &Self) -> Self {
        let tokens = self.tokens.saturating_sub(other.tokens);
        Self { tokens, usd: (self.usd - other.usd).max(0.0) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a bound needs no last digit")]
    #[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
    #[expect(clippy::cast_sign_loss, reason = "neither factor is negative")]
    fn times(&self, factor: f64) -> Self {
        let tokens = (self.tokens as f64 * factor).ceil() as u64;
        Self { tokens, usd: self.usd * factor }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no last digit")]
fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}

impl Reservation {
    /// The answer that a call is charged if its client leaves: the limit that its body states, else an estimate. Without a cap
    /// nothing is reserved, and only what was seen counts.
    pub(super) fn answer(&self) -> u64 {
        let estimate = if self.reservations.has_cap() { UNSTATED_ANSWER } else { 0 };
        self.bound.answer.unwrap_or(estimate)
    }

    /// Charges the call and releases what it reserved, in this order: a waiting call must never see neither.
    pub(super) fn settle(self, model: &str, spend: &Spend) {
        let reservations = &self.reservations;
        reservations.state.usage_mut().add(spend);
        let prompt = TokenCount { output: 0, ..spend.tokens };
        let usd = reservations.prices.cost(model, &prompt);
        let prompt = Amount { tokens: prompt.total(), usd };
        let mut ledger = reservations.ledger();
        ledger.settled.absorb(&reservations.prices, &self.bound, spend, prompt);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut ledger = self.reservations.ledger();
        ledger.running -= 1;
        ledger.reserved = ledger.reserved.minus(&self.amount);
        if ledger.running == 0 {
            // Sums of dollars leave a rest.
            ledger.reserved = Amount::default();
        }
        drop(ledger);
        self.reservations.released.notify_one();
    }
}

#[cfg(test)]
mod tests;
