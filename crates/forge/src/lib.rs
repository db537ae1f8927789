//! Forges: servers and folders where a repository has issues and pull requests.
//!
//! - [`address`] the repository that a remote's URL names
//! - [`attachment`] files that a text names
//! - [`kind`] the kinds of forges and their data; **start here to add a kind**
//! - [`detect`] the kind of a server
//! - [`forge`] the one type through which everything is read and published
//! - [`github_like`] (GitHub, Gitea, Forgejo), [`gitlab`], [`folder`] (a bare repository with files beside
//!   it)
//! - [`scoped`] a forge for one run: it reads anything and writes only to the run's assigned threads
//! - [`pull`], [`thread`] pull requests, issues and comments, the same for every forge
//! - [`pull_text`] a pull request as text, where there is no forge
//! - [`webhook`] webhooks and their deliveries
//! - [`error`] errors, with their remedies
//! - `provider` the operations of each kind, `once` writes that are done once, `http` the client, `rules`
//!   decisions
//!
//! A token is held as a secret, travels in one header and appears in no error. Addresses in a forge's
//! responses are never requested: every request goes to the server that the user configured.

pub mod address;
pub mod attachment;
pub mod check_report;
pub mod detect;
pub mod error;
pub mod folder;
pub mod forge;
pub mod fuzz_api;
mod gh_login;
pub mod github_like;
pub mod gitlab;
mod http;
pub mod kind;
mod once;
pub mod organisation;
mod provider;
pub mod pull;
pub mod pull_text;
mod rules;
pub mod scoped;
pub mod thread;
pub mod webhook;

pub use address::{ForgeAddress, Remote, Scheme, WebBase};
pub use attachment::{
    ATTACHMENT_MAX_BYTES, Attachment, AttachmentPlace, AttachmentScope, media_type,
};
pub use check_report::{CheckReport, CheckState, FailedCheck};
pub use error::ForgeError;
pub use folder::FolderForge;
pub use forge::{ALLOW_HTTP_VARIABLE, Forge, ForgeOptions, PlainHttp};
pub use http::{CallResult, HookError, HttpPool, RetryPolicy, call_counts};
pub use kind::ForgeKind;
pub use organisation::{FoundRepository, NewIssue, list_repositories};
pub use pull::{NewPull, PullRequest};
pub use pull_text::write_pull_text;
pub use rules::link::{closes_issue, find_foreign_actions};
pub use rules::scope::{BODY_MAX_BYTES, RefusalReason, Scope, ThreadKind, WriteRefusal};
pub use scoped::{RemarkAnswer, ScopedForge, WriteOutcome};
pub use thread::{
    Account, Blocker, Comment, CommentKind, Issue, IssueChange, IssueEvent, Numbering,
    RemarkThread, ReviewVerdict, Thread, ThreadState, text_digest,
};
pub use webhook::{
    DeliveredText, DeliveryError, DeliverySubject, DeliveryTarget, NewWebhook, Webhook,
    WebhookDelivery,
};
