//! Webhooks of a repository: how a forge tells somebody that something happened to an issue or a pull request.

use model::secret::Secret;

/// A webhook that is to be there.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// Where the forge posts to.
    pub url: String,
    /// What it signs with (GitLab: what it sends along). No forge shows it again.
    pub secret: Secret,
}

/// A webhook as the forge shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The forge's number of it.
    pub id: u64,
    /// Where the forge posts to.
    pub url: String,
    /// Whether it does.
    pub active: bool,
    /// What it tells of, in the forge's own words.
    pub events: Vec<String>,
}
