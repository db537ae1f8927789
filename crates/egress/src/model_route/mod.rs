//! The model route: `/-/model/…` inside the box leads to the model's server outside, with the real key
//! inserted on the way.
//!
//! The client's key is a dummy that is worthless elsewhere. The route forwards only the calls that the wire
//! APIs of the agents need, reserves the most of each call under the caps, counts its usage from the response as it passes,
//! and masks the real key in all that comes back.

mod auth;
mod bound;
pub(crate) mod dialect;
mod key;
mod path;
mod price;
mod quota;
mod reservation;
pub(crate) mod route;
mod spec;
mod tap;
mod usage;

pub use dialect::Dialect;
pub use key::{KeyError, KeySource, KeyStore};
pub use model::wire::{Price, WireApi};
pub use path::{ALLOWED_PATHS, AllowedPath};
pub use price::Prices;
pub use spec::{AuthStyle, Caps, ModelRouteSpec, SpecError, Upstream};
pub use usage::{ModelUsage, Spend, TokenCount};

/// Path prefix of the route inside the box.
pub const MODEL_PREFIX: &str = "/-/model";
