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
    let (name, email) = repo.user_identity().await?;
    let (name, email) = (entry.name.clone().or(name), entry.email.clone().or(email));
    Ok(name.zip(email).map(|(name, email)| Attribution {
        name,
        email,
        sign_off: sign_off || entry.sign_off.unwrap_or(false),
        agent_trailer: entry.agent_trailer.unwrap_or(true),
    }))
}
