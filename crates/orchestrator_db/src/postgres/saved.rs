//! Bottles that travel.

use super::{OF_ISSUE, PostgresStore, of_key};
use crate::error::DbError;
use crate::fence::{Fence, Writer};
use crate::forge_state::IssueKey;
use crate::store::SavedBottleStore;

impl SavedBottleStore for PostgresStore {
    fn note_saved(
        &self,
        key: &IssueKey,
        slug: &str,
        name: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a saved state", |tx| {
            if tx.writable_bottle(key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql = format!(
                "UPDATE forge_state SET saved = $4, saved_at = clock_timestamp(), host = $5 {OF_ISSUE}"
            );
            let values = of_key(key, [name.into(), writer.host.into()]);
            tx.execute("store a saved state", &sql, &values).map(drop)
        })
    }

    fn move_bottle(&self, key: &IssueKey, slug: &str, writer: Writer<'_>) -> Result<(), DbError> {
        self.change("move a bottle", |tx| {
            tx.check_writer(key, writer)?;
            let known = tx.locked_state(key)?.filter(|known| known.slug == slug);
            let Some(known) = known else { return Ok(()) };
            if writer.claim.is_none() || known.saved.is_none() {
                known.check_host(writer.host)?;
            }
            let sql = format!("UPDATE forge_state SET host = $4 {OF_ISSUE}");
            tx.execute("move a bottle", &sql, &of_key(key, [writer.host.into()])).map(drop)
        })
    }

    fn tell_work(&self, key: &IssueKey, fence: Fence, reason: &str) -> Result<(), DbError> {
        self.change("store work", |tx| {
            tx.check_fence(key, fence)?;
            let state = tx.known_work(key)?.state;
            let sql = format!("UPDATE work SET reason = $4 {OF_ISSUE}");
            tx.execute("store work", &sql, &of_key(key, [reason.into()]))?;
            tx.record_event(key, state, reason)
        })
    }
}
