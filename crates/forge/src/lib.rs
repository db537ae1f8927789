//! Forges: the places where a repository has pull requests.
//!
//! - [`address`] what a remote's URL names, without asking anybody
//! - [`detect`] which kind of forge answers there
//! - [`forge`] the one way to a forge for everybody who publishes
//! - [`gitea`] Gitea and Forgejo
//! - [`local`] no forge: the text of the pull request as a file
//! - [`pull`] pull requests and comments, the same for every forge
//! - [`error`] what went wrong, and what to do about it
//!
//! A token is held as a secret, travels in one header and is found in no error. Nothing is called that a forge names in
//! an answer: every request goes to the address that the person configured.

pub mod address;
pub mod detect;
pub mod error;
pub mod forge;
pub mod gitea;
mod http;
pub mod local;
pub mod pull;

pub use address::{ForgeAddress, Remote, Scheme, WebBase};
pub use detect::ForgeKind;
pub use error::ForgeError;
pub use forge::{Forge, ForgeSetting};
pub use gitea::Gitea;
pub use http::{Patience, TlsError};
pub use local::write_pull_text;
pub use pull::{Account, Comment, NewPull, PullRequest, PullState};
