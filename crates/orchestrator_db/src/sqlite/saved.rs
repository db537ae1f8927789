//! Bottles that travel. A database in a file has one host, but its rows keep the same promises.

use rusqlite::params;

use super::{OF_ISSUE, SqliteStore};
use crate::error::DbError;
use crate::fence::{Fence, Writer};
use crate::forge_state::IssueKey;
use crate::store::SavedBottleStore;

impl SavedBottleStore for SqliteStore {
    fn note_saved(
        &self,
        key: &IssueKey,
        slug: &str,
        name: &str,
        writer: Writer<'_>,
    ) -> Result<(), DbError> {
        self.change("store a saved state", |transaction| {
            if self.writable_bottle(transaction, key, slug, writer)?.is_none() {
                return Ok(());
            }
            let sql =
                format!("UPDATE forge_state SET saved = ?4, saved_at = ?5, host = ?6 {OF_ISSUE}");
            let IssueKey { owner, repo, issue_number } = key;
            let now = host::clock::now().to_string();
            let values = params![owner, repo, issue_number, name, now, writer.host];
            transaction.execute(&sql, values).map_err(self.failed("store a saved state")).map(drop)
        })
    }

    fn move_bottle(&self, key: &IssueKey, slug: &str, writer: Writer<'_>) -> Result<(), DbError> {
        self.change("move a bottle", |transaction| {
            if let Some(claim) = writer.claim {
                self.check_fence(transaction, key, claim)?;
            }
            let known = self.known_state(transaction, key)?.filter(|known| known.slug == slug);
            let Some(known) = known else { return Ok(()) };
            if writer.claim.is_none() || known.saved.is_none() {
                known.check_host(writer.host)?;
            }
            let sql = format!("UPDATE forge_state SET host = ?4 {OF_ISSUE}");
            let IssueKey { owner, repo, issue_number } = key;
            let values = params![owner, repo, issue_number, writer.host];
            transaction.execute(&sql, values).map_err(self.failed("move a bottle")).map(drop)
        })
    }

    fn tell_work(&self, key: &IssueKey, fence: Fence, reason: &str) -> Result<(), DbError> {
        self.change("store work", |transaction| {
            self.check_fence(transaction, key, fence)?;
            let state = self.known_work(transaction, key)?.state;
            let sql = format!("UPDATE work SET reason = ?4 {OF_ISSUE}");
            let IssueKey { owner, repo, issue_number } = key;
            let values = params![owner, repo, issue_number, reason];
            transaction.execute(&sql, values).map_err(self.failed("store work"))?;
            self.record_event(transaction, key, state, reason)
        })
    }
}
