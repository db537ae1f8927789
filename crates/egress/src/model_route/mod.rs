//! The model route: `/-/model/…` inside the box leads to the model's server outside, with the real
//! key put in on the way.
//!
//! What the client sends as a key is a dummy that is worth nothing elsewhere. The route passes on
//! only the calls that the wire APIs of the agents need, counts what they use up by watching the
//! answers go by, and stops at the caps.

mod auth;
mod key;
mod path;
mod price;
mod quota;
pub(crate) mod route;
mod spec;
mod tap;
mod usage;

pub use key::{KeyError, KeySource, KeyStore};
pub use model::wire::{Price, WireApi};
pub use path::{ALLOWED_PATHS, AllowedPath};
pub use price::Prices;
pub use spec::{AuthStyle, Caps, ModelRouteSpec, SpecError, Upstream};
pub use usage::{ModelUsage, Spend, TokenCount};

/// Where the route begins, inside the box.
pub const MODEL_PREFIX: &str = "/-/model";
