//! Proof that a store does what heads stand on: of several writers at once one wins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::BottleStoreError;
use crate::object::ConditionalPut;
use crate::store::BottleStore;

const ROUNDS: usize = 5;
const WRITERS: usize = 8;

/// Result of a check of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// Races in which more than one writer was told that it had won, or none.
    pub lost_races: u64,
    pub races: u64,
    /// True if an object was replaced by somebody who had not seen it as it was.
    pub replaces_unseen: bool,
}

impl StoreHealth {
    /// True if heads are safe in it.
    pub fn is_safe(&self) -> bool {
        self.lost_races == 0 && !self.replaces_unseen
    }
}

impl BottleStore {
    /// Checks the key, and has writers race for an object of its own.
    pub fn check(&self) -> Result<StoreHealth, BottleStoreError> {
        self.prove_key()?;
        let mut health = StoreHealth::default();
        for _ in 0..ROUNDS {
            let object = format!("check/{}", model::digest::hex(&host::random::bytes::<8>()?));
            let raced = self.race(&object, &mut health);
            let removed = self.backend.delete(&object);
            raced?;
            removed?;
        }
        Ok(health)
    }

    fn race(&self, object: &str, health: &mut StoreHealth) -> Result<(), BottleStoreError> {
        let backend = &*self.backend;
        let winners = count_winners(|writer| {
            backend.put_if_absent(object, format!("new {writer}").into_bytes())
        })?;
        health.races += 1;
        health.lost_races += u64::from(winners != 1);
        let first = backend.get(object)?.ok_or_else(|| self.missing(object))?.1;
        let winners = count_winners(|writer| {
            backend.put_if_unchanged(object, format!("next {writer}").into_bytes(), &first)
        })?;
        health.races += 1;
        health.lost_races += u64::from(winners != 1);
        let late = backend.put_if_unchanged(object, b"late".to_vec(), &first)?;
        health.replaces_unseen |= late == ConditionalPut::Written;
        Ok(())
    }
}

/// Has several threads write at once, and counts those that were told that they had.
fn count_winners(
    write: impl Fn(usize) -> Result<ConditionalPut, BottleStoreError> + Sync,
) -> Result<usize, BottleStoreError> {
    let begun = AtomicUsize::new(0);
    let answers = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (begun, write) = (&begun, &write);
                scope.spawn(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    while begun.load(Ordering::SeqCst) < WRITERS {
                        thread::yield_now();
                    }
                    write(writer)
                })
            })
            .collect();
        writers.into_iter().map(|it| it.join().unwrap_or(Ok(ConditionalPut::Refused))).collect()
    });
    let answers: Result<Vec<ConditionalPut>, BottleStoreError> = answers;
    Ok(answers?.into_iter().filter(|answer| *answer == ConditionalPut::Written).count())
}
