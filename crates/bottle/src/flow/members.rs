//! Members of organisations, remembered for a moment: one look at an issue asks about the same accounts several times, and
//! so do the looks at other issues.

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
        let is_member = forge.is_org_member(org, user).await.or_general()?;
        let answer = (is_member, host::clock::monotonic());
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, answer);
        Ok(is_member)
    }
}
