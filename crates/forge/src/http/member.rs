//! Membership of an organisation, as Gitea and GitHub tell it: in the status alone.

use hyper::StatusCode;

use super::{Ask, Client};
use crate::error::ForgeError;

impl Client {
    /// Whether the answer says "member". A redirect leads to the list of those who show themselves, on which real members
    /// are missing: it means that this account is not told, and is never followed.
    pub(crate) async fn is_member(&self, ask: &Ask, org: &str) -> Result<bool, ForgeError> {
        let reply = self.send(ask).await?;
        match reply.status {
            StatusCode::NO_CONTENT => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            StatusCode::FOUND | StatusCode::SEE_OTHER => Err(ForgeError::MembersHidden {
                host: self.base().host().to_owned(),
                org: self.show(org),
            }),
            _ => Err(match self.read_status(ask, &reply) {
                Some(error) => error,
                None => self.unreadable(ask, &format!("status {}", reply.status.as_u16())),
            }),
        }
    }
}
