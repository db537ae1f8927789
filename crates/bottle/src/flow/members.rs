//! Members of organisations, remembered for a moment: one look at an issue asks about the same accounts several times, and
//! so do the looks at other issues. What a member causes is never decided by a remembered answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use forge::Forge;

use crate::exit::{Failure, OrGeneral};

/// Age at which an answer is asked for again.
const AGE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct MemberCache {
    known: Mutex<BTreeMap<(String, String), (bool, Instant)>>,
}

impl MemberCache {
    /// Returns whether an account is a member, as of the last half minute.
    pub(crate) async fn is_member(
        &self,
        forge: &Forge,
        org: &str,
        user: &str,
    ) -> Result<bool, Failure> {
        let key = (org.to_owned(), user.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some((is_member, at)) = known
            && at.elapsed() < AGE_MAX
        {
            return Ok(is_member);
        }
        self.ask(forge, key).await
    }

    /// Asks again about accounts that were remembered as members before `begun`, and returns whether one of them is a member
    /// no more. Whoever acts on the word of a member asks this first.
    pub(crate) async fn has_lost_any(
        &self,
        forge: &Forge,
        org: &str,
        users: &[&str],
        begun: Instant,
    ) -> Result<bool, Failure> {
        for user in users {
            let key = (org.to_owned(), (*user).to_owned());
            let known =
                self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
            let is_old_member = known.is_some_and(|(is_member, at)| is_member && at < begun);
            if is_old_member && !self.ask(forge, key).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn ask(&self, forge: &Forge, key: (String, String)) -> Result<bool, Failure> {
        let (org, user) = (&key.0, &key.1);
        let is_member = forge.is_org_member(org, user).await.or_general()?;
        let answer = (is_member, host::clock::monotonic());
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer);
        Ok(is_member)
    }
}
