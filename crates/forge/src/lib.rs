//! Forges: the places where a repository has pull requests.
//!
//! - [`address`] what a remote's URL names, without asking anybody
//! - [`detect`] which kind of forge answers there
//! - [`forge`] the one way to a forge for everybody who reads or publishes
//! - [`gitea`] (and Forgejo), [`github`], [`gitlab`], [`local`] (a bare repository with files beside it)
//! - [`scoped`] a forge for one run: it reads anything and writes to what it was assigned
//! - [`pull`], [`thread`] pull requests, issues and comments, the same for every forge
//! - [`webhook`] how a forge tells somebody what happened
//! - [`error`] what went wrong, and what to do about it
//! - `provider` what each kind must be able to do, `once` writes that are done once, `rules` what is decided
//!
//! A token is held as a secret, travels in one header and is found in no error. Nothing is called that a forge names in
//! an answer: every request goes to the address that the person configured.

pub mod address;
pub mod detect;
pub mod error;
pub mod forge;
pub mod gitea;
pub mod github;
pub mod gitlab;
mod http;
pub mod local;
mod once;
mod provider;
pub mod pull;
mod rules;
pub mod scoped;
pub mod thread;
pub mod webhook;

pub use address::{ForgeAddress, Remote, Scheme, WebBase};
pub use detect::ForgeKind;
pub use error::ForgeError;
pub use forge::{Forge, ForgeSetting};
pub use http::Patience;
pub use local::{Local, write_pull_text};
pub use pull::{NewPull, PullRequest};
pub use rules::neutral::neutralise;
pub use rules::scope::{BODY_MAX_BYTES, Refusal, RefusalReason, Scope, ThreadKind};
pub use scoped::{Ruling, ScopedForge};
pub use thread::{
    Account, Comment, CommentKind, Issue, IssueFilter, Numbering, Thread, ThreadState,
};
pub use webhook::{NewWebhook, Webhook};
