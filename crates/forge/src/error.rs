//! Errors of forges, each in one sentence that says what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use host::tls::TlsError;
use jiff::Timestamp;
use thiserror::Error;

use crate::forge::ALLOW_HTTP_VARIABLE;

pub type ForgeResult<T> = Result<T, ForgeError>;

/// Failed operation on a forge. Text from the forge is shown escaped, cut short, and without the token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ForgeError {
    /// 401: the token is wrong, expired or missing.
    #[error("{host} does not accept the token{message}; make a new one and store it in its place")]
    Unauthorized { host: String, message: ServerMessage },
    /// 403: the token or its account may not do this.
    #[error(
        "{host} does not let the token {action}{message}; give the token the missing scope, or its account write access"
    )]
    Forbidden { host: String, action: String, message: ServerMessage },
    /// 404: it does not exist, or the token cannot see it.
    #[error(
        "{host} could not {action}, because it finds no such thing{message}; check the names of repository and branch, and that the token can see them"
    )]
    NotFound { host: String, action: String, message: ServerMessage },
    /// 409 and similar: an existing object conflicts.
    #[error(
        "{host} could not {action}, because what is there stands in the way{message}; look at it on the forge, then try again"
    )]
    Conflict { host: String, action: String, message: ServerMessage },
    /// 422 and similar: the forge rejects these values.
    #[error(
        "{host} refused the values it was given to {action}{message}; change what it names and try again"
    )]
    Invalid { host: String, action: String, message: ServerMessage },
    /// 429: the rate limit is reached, and the wait would be too long.
    #[error("{host} wants fewer requests; try again {}", render_until(.until.as_ref()))]
    RateLimited {
        host: String,
        /// End of the wait, if the forge names it.
        until: Option<Timestamp>,
    },
    /// 5xx: the forge failed on every attempt.
    #[error(
        "{host} failed to {action} with status {status}{message}; try again later, or ask whoever runs it"
    )]
    Server { host: String, action: String, status: u16, message: ServerMessage },
    #[error(
        "{host} could not be reached to {action}: it {reason}; check the network and the address"
    )]
    Unreachable {
        host: String,
        action: String,
        /// Cause, as the end of a sentence.
        reason: &'static str,
    },
    /// A write was sent without a response, and its effect is unknown.
    #[error("{host} did not say whether it could {action}; look there before you try again")]
    Lost { host: String, action: String },
    #[error("{host} says that the repository has moved{}; point the remote at its new address", render_to(.to.as_deref()))]
    Moved {
        host: String,
        /// New address, if the forge names it.
        to: Option<String>,
    },
    #[error(
        "{host} gave a response that its kind of forge does not give when asked to {action} ({reason}); check its address"
    )]
    Unreadable { host: String, action: String, reason: String },
    /// The forge shows the members of an organisation only to its members.
    #[error(
        "{host} does not say who is a member of {org}, because the token's account is not in it; make it a member"
    )]
    MembersHidden { host: String, org: String },
    #[error("{host} does not say which kind of forge it is; name the kind in the configuration")]
    UnknownForge { host: String },
    /// 401 or 403 to a request that needs no login: the kind of forge is shown to accounts only, and no token is sent
    /// to a server of unknown kind.
    #[error(
        "{host} answers only to those who are logged in (status {status}), so that it cannot be asked which kind of forge it is; name the kind in the configuration"
    )]
    LoginWanted { host: String, status: u16 },
    #[error(
        "the token for {host} has characters that no token has; store it again without blanks and line ends"
    )]
    BadToken { host: String },
    #[error(
        "the token for {host} would travel unencrypted; use https, or set {ALLOW_HTTP_VARIABLE}=1 to allow plain http"
    )]
    PlainHttp { host: String },
    #[error("could not prepare TLS; check the certificates of this machine")]
    Tls(#[from] TlsError),
    #[error("the folder {} delivers no webhooks; bot-bottle serve looks at it regularly without one", .path.display())]
    NoWebhooks { path: PathBuf },
    #[error("could not {action} in the folder {}; check that it is there and that you may write to it", .path.display())]
    Folder { path: PathBuf, action: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl ForgeError {
    /// Builds the error for a number of a pull request where an issue's is required.
    pub(crate) fn not_an_issue(host: &str, action: String) -> Self {
        let message = ServerMessage("it is a pull request".to_owned());
        Self::NotFound { host: host.to_owned(), action, message }
    }

    /// Wraps the cause of a failed action in a folder.
    pub(crate) fn folder<E>(path: &Path, action: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = path.to_path_buf();
        move |source| Self::Folder { path, action: action.to_owned(), source: source.into() }
    }

    pub(crate) fn members_hidden(host: &str, org: &str) -> Self {
        Self::MembersHidden { host: host.to_owned(), org: org.to_owned() }
    }
}

/// Text of a forge within a sentence: empty, or in parentheses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerMessage(pub(crate) String);

impl ServerMessage {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

fn render_until(until: Option<&Timestamp>) -> String {
    until.map_or_else(|| "later".to_owned(), |time| format!("after {time:.0}"))
}

fn render_to(to: Option<&str>) -> String {
    to.map_or_else(String::new, |to| format!(" to {to}"))
}
