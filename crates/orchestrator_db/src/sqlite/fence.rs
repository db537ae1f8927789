//! Fences: compared with the row of the issue in the transaction that writes.

use rusqlite::{OptionalExtension, Transaction};

use super::{OF_ISSUE, SqliteStore, key_values};
use crate::error::DbError;
use crate::fence::Fence;
use crate::forge_state::IssueKey;

impl SqliteStore {
    /// Refuses a writer whose claim is not the newest one.
    pub(super) fn check_fence(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
        came: Fence,
    ) -> Result<(), DbError> {
        let held = self.current_fence(transaction, key)?;
        match held == came {
            true => Ok(()),
            false => Err(DbError::Fenced { key: key.clone(), held, came }),
        }
    }

    /// The newest claim on an issue; that of a deleted work item is remembered.
    pub(super) fn current_fence(
        &self,
        transaction: &Transaction<'_>,
        key: &IssueKey,
    ) -> Result<Fence, DbError> {
        for table in ["work", "past_fence"] {
            let sql = format!("SELECT fence, claim_id FROM {table} {OF_ISSUE}");
            let found = transaction
                .query_row(&sql, key_values(key), |row| {
                    Ok(Fence { number: row.get(0)?, claim: row.get(1)? })
                })
                .optional()
                .map_err(self.failed("read a fence"))?;
            if let Some(fence) = found {
                return Ok(fence);
            }
        }
        Ok(Fence::default())
    }
}
