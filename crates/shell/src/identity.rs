//! The user under whose name commits are published: from the configuration, or else from git's.

use engine::attribution::Attribution;
use host::git::{GitError, UserRepo};

use crate::config::Config;

/// Finds the user; `None` if neither the configuration nor git knows a name and an address. Commits then keep the identity of
/// the box.
pub async fn find_attribution(
    repo: &UserRepo,
    config: &Config,
    sign_off: bool,
) -> Result<Option<Attribution>, GitError> {
    let entry = &config.identity;
    let name = match &entry.name {
        Some(name) => Some(name.clone()),
        None => repo.config_get("user.name").await?,
    };
    let email = match &entry.email {
        Some(email) => Some(email.clone()),
        None => repo.config_get("user.email").await?,
    };
    Ok(name.zip(email).map(|(name, email)| Attribution {
        name,
        email,
        sign_off: sign_off || entry.sign_off.unwrap_or(false),
        agent_trailer: entry.agent_trailer.unwrap_or(true),
    }))
}
