//! Webhooks of a repository, by which a forge reports changes to its issues and pull requests.
//!
//! - `delivery` deliveries, verified and parsed
//! - `text` texts of issues in deliveries

mod delivery;
mod text;

use model::secret::Secret;

pub use delivery::{DeliveryError, DeliverySubject, DeliveryTarget, WebhookDelivery};
pub use text::DeliveredText;

/// Webhook to be made.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// Address that the forge posts to.
    pub url: String,
    /// Secret that it signs with (GitLab: that it sends along). No forge shows it again.
    pub secret: Secret,
}

/// Webhook as the forge shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: u64,
    /// Address that the forge posts to.
    pub url: String,
    /// True if the forge delivers.
    pub active: bool,
    /// Names of the events that it reports, as the forge spells them.
    pub events: Vec<String>,
}
