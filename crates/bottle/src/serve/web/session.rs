//! Login sessions, in memory and limited in number and age, and a rate limit of login attempts.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::random::RandomError;
use subtle::ConstantTimeEq;

/// The oldest makes room for a new one.
const SESSIONS_MAX: usize = 32;
/// Longest age of a session: a working day.
const AGE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Attempts in a time span, of all clients together.
const TRIES_MAX: usize = 10;
const TRIES_SPAN: Duration = Duration::from_secs(60);

/// A SHA-256, compared in constant time.
pub(crate) type Fingerprint = [u8; 32];

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    list: Mutex<VecDeque<LoginSession>>,
}

/// A session is known by the fingerprint of its id, and ends when the token that opened it is replaced.
#[derive(Debug)]
struct LoginSession {
    id: Fingerprint,
    token: Fingerprint,
    opened: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Tries {
    list: Mutex<VecDeque<Instant>>,
}

impl Sessions {
    /// Opens a session and returns its id, which is stored nowhere else.
    pub(crate) fn open(&self, token: Fingerprint, now: Instant) -> Result<String, RandomError> {
        let id = fresh_id()?;
        let mut list = lock(&self.list);
        list.retain(|session| now.duration_since(session.opened) < AGE_MAX);
        while list.len() >= SESSIONS_MAX {
            list.pop_front();
        }
        list.push_back(LoginSession { id: fingerprint(&id), token, opened: now });
        Ok(id)
    }

    /// True if a session with this id was opened with this token.
    pub(crate) fn knows(&self, id: &str, token: &Fingerprint, now: Instant) -> bool {
        let id = fingerprint(id);
        lock(&self.list).iter().any(|session| {
            same(&session.id, &id)
                && same(&session.token, token)
                && now.duration_since(session.opened) < AGE_MAX
        })
    }

    pub(crate) fn close(&self, id: &str) {
        let id = fingerprint(id);
        lock(&self.list).retain(|session| !same(&session.id, &id));
    }
}

impl Tries {
    /// Counts an attempt; `Err` is the time until the next one is allowed.
    pub(crate) fn count(&self, now: Instant) -> Result<(), Duration> {
        let mut list = lock(&self.list);
        list.retain(|at| now.duration_since(*at) < TRIES_SPAN);
        match list.front() {
            Some(first) if list.len() >= TRIES_MAX => {
                Err(TRIES_SPAN.saturating_sub(now.duration_since(*first)))
            }
            _ => {
                list.push_back(now);
                Ok(())
            }
        }
    }
}

/// 32 random bytes as text.
pub(crate) fn fresh_id() -> Result<String, RandomError> {
    Ok(model::digest::hex(&host::random::bytes::<32>()?))
}

pub(crate) fn fingerprint(text: &str) -> Fingerprint {
    model::digest::sha256_bytes(text.as_bytes())
}

pub(crate) fn same(one: &Fingerprint, other: &Fingerprint) -> bool {
    one.ct_eq(other).into()
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_with_its_age_and_with_its_token() {
        let (sessions, now) = (Sessions::default(), host::clock::monotonic());
        let (token, other) = (fingerprint("one"), fingerprint("two"));
        let id = sessions.open(token, now).unwrap();
        assert!(sessions.knows(&id, &token, now));
        assert!(!sessions.knows(&id, &other, now), "the token was replaced");
        assert!(!sessions.knows(&id, &token, now + AGE_MAX), "it is too old");
        assert!(!sessions.knows("", &token, now) && !sessions.knows("0", &token, now));
        sessions.close(&id);
        assert!(!sessions.knows(&id, &token, now));
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let (sessions, now) = (Sessions::default(), host::clock::monotonic());
        let token = fingerprint("one");
        let first = sessions.open(token, now).unwrap();
        let rest: Vec<String> =
            (0..SESSIONS_MAX).map(|_| sessions.open(token, now).unwrap()).collect();
        assert!(!sessions.knows(&first, &token, now));
        assert!(rest.iter().all(|id| sessions.knows(id, &token, now)));
    }

    #[test]
    fn tries_are_limited_and_come_back() {
        let (tries, now) = (Tries::default(), host::clock::monotonic());
        assert!((0..TRIES_MAX).all(|_| tries.count(now).is_ok()));
        assert_eq!(tries.count(now + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        assert_eq!(tries.count(now + TRIES_SPAN), Ok(()));
    }
}
