//! Login sessions, limited in number and age, and a rate limit of login attempts. The sessions are in a file too, so that a
//! restart of the server logs no user out; the file has digests alone, which log nobody in.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::random::RandomError;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// The oldest makes room for a new one.
const SESSIONS_MAX: usize = 32;
/// Longest age of a session: a working day.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(12);
const PRIVATE: u32 = 0o600;
/// Attempts in a time span, of all clients together.
const TRIES_MAX: usize = 10;
const TRIES_SPAN: Duration = Duration::from_secs(60);

/// A SHA-256, compared in constant time.
pub type Fingerprint = [u8; 32];

#[derive(Debug, Default)]
pub struct Sessions {
    list: Mutex<VecDeque<LoginSession>>,
    file: Option<PathBuf>,
}

/// A session is known by the fingerprint of its id, and ends when the token that opened it is replaced.
#[derive(Debug, Serialize, Deserialize)]
struct LoginSession {
    id: Fingerprint,
    token: Fingerprint,
    opened: Timestamp,
}

impl LoginSession {
    fn is_young(&self, now: Timestamp) -> bool {
        now.duration_since(self.opened) < AGE_MAX
    }
}

#[derive(Debug, Default)]
pub struct Tries {
    list: Mutex<VecDeque<Instant>>,
}

impl Sessions {
    /// Loads the sessions of an earlier process. Without a readable file there are none.
    pub fn load(file: &Path) -> Self {
        let bytes = host::file::read_private(file).unwrap_or_default();
        let list = serde_json::from_slice(&bytes).unwrap_or_default();
        Self { list: Mutex::new(list), file: Some(file.to_path_buf()) }
    }

    /// Saves the sessions. A failure costs a login after the next restart, and nothing else.
    fn save(&self, list: &VecDeque<LoginSession>) {
        let Some(file) = &self.file else { return };
        let bytes = serde_json::to_vec(list).unwrap_or_default();
        if let Err(error) = host::file::write_atomic(file, &bytes, PRIVATE) {
            let error = model::error_chain(&error);
            tracing::warn!(error, "a restart will ask users to log in again");
        }
    }

    /// Opens a session and returns its id, which is stored nowhere else.
    pub fn open(&self, token: Fingerprint, now: Timestamp) -> Result<String, RandomError> {
        let id = fresh_id()?;
        let mut list = lock(&self.list);
        list.retain(|session| session.is_young(now));
        while list.len() >= SESSIONS_MAX {
            list.pop_front();
        }
        list.push_back(LoginSession { id: fingerprint(&id), token, opened: now });
        self.save(&list);
        Ok(id)
    }

    /// True if a session with this id was opened with this token.
    pub fn knows(&self, id: &str, token: &Fingerprint, now: Timestamp) -> bool {
        let id = fingerprint(id);
        lock(&self.list).iter().any(|session| {
            same(&session.id, &id) && same(&session.token, token) && session.is_young(now)
        })
    }

    pub fn close(&self, id: &str) {
        let id = fingerprint(id);
        let mut list = lock(&self.list);
        list.retain(|session| !same(&session.id, &id));
        self.save(&list);
    }
}

impl Tries {
    /// Counts an attempt; `Err` is the time until the next one is allowed.
    pub fn count(&self, now: Instant) -> Result<(), Duration> {
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
pub fn fresh_id() -> Result<String, RandomError> {
    Ok(model::digest::hex(&host::random::bytes::<32>()?))
}

pub fn fingerprint(text: &str) -> Fingerprint {
    model::digest::sha256_bytes(text.as_bytes())
}

pub fn same(one: &Fingerprint, other: &Fingerprint) -> bool {
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
        let (sessions, now) = (Sessions::default(), host::clock::now());
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
    fn a_restart_logs_no_user_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sessions.json");
        let (token, now) = (fingerprint("one"), host::clock::now());
        let (kept, closed) = {
            let sessions = Sessions::load(&file);
            let ids = (sessions.open(token, now).unwrap(), sessions.open(token, now).unwrap());
            sessions.close(&ids.1);
            ids
        };
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&kept), "the file logs nobody in");
        let sessions = Sessions::load(&file);
        assert!(sessions.knows(&kept, &token, now));
        assert!(!sessions.knows(&closed, &token, now));
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let (sessions, now) = (Sessions::default(), host::clock::now());
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
