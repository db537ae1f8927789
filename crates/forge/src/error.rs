//! What went wrong with a forge, in one sentence that says what to do.

use std::fmt;
use std::path::PathBuf;

use host::tls::TlsError;
use jiff::Timestamp;
use thiserror::Error;

/// Why a forge did not do what it was asked. What a forge says is shown escaped, cut short, and without the token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ForgeError {
    /// 401: the token is wrong, expired or missing.
    #[error("{host} does not accept the token{said}; make a new one and store it in its place")]
    Unauthorized {
        /// The forge.
        host: String,
        /// What the forge said.
        said: Said,
    },
    /// 403: the token or its account may not do this.
    #[error(
        "{host} does not let the token {action}{said}; give the token the missing scope, or its account write access"
    )]
    Forbidden {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What the forge said.
        said: Said,
    },
    /// 404: it is not there, or the token cannot see it.
    #[error(
        "{host} could not {action}, because it finds no such thing{said}; check the names of repository and branch, and that the token can see them"
    )]
    NotFound {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What the forge said.
        said: Said,
    },
    /// 409 and its like: what is there already stands in the way.
    #[error(
        "{host} could not {action}, because what is there stands in the way{said}; look at it on the forge, then try again"
    )]
    Conflict {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What the forge said.
        said: Said,
    },
    /// 422 and its like: the forge does not take these values.
    #[error(
        "{host} refused the values it was given to {action}{said}; change what it names and try again"
    )]
    Invalid {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What the forge said.
        said: Said,
    },
    /// 429: too much was asked, and waiting for it would take too long.
    #[error("{host} wants fewer requests; try again {}", render_until(.until.as_ref()))]
    RateLimited {
        /// The forge.
        host: String,
        /// When it will listen again, if it said so.
        until: Option<Timestamp>,
    },
    /// 5xx: the forge failed, however often it was asked.
    #[error(
        "{host} failed to {action} with status {status}{said}; try again later, or ask whoever runs it"
    )]
    Server {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// The status.
        status: u16,
        /// What the forge said.
        said: Said,
    },
    /// Nobody answered.
    #[error(
        "{host} could not be reached to {action}: it {reason}; check the network and the address"
    )]
    Unreachable {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What happened on the way, as the end of a sentence.
        reason: &'static str,
    },
    /// A write left, no answer came, and nothing shows whether it was done.
    #[error("{host} did not say whether it could {action}; look there before you try again")]
    Lost {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
    },
    /// The repository has another name now.
    #[error("{host} says that the repository has moved{}; point the remote at its new address", render_to(.to.as_deref()))]
    Moved {
        /// The forge.
        host: String,
        /// Where to, if it said so.
        to: Option<String>,
    },
    /// An answer that no forge of this kind gives.
    #[error(
        "{host} gave an answer that is none of its kind of forge when asked to {action} ({reason}); check its address"
    )]
    Unreadable {
        /// The forge.
        host: String,
        /// What was being done.
        action: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A label that the repository does not have.
    #[error("{host} has no label {name:?} in this repository; make it there, or leave it out")]
    NoSuchLabel {
        /// The forge.
        host: String,
        /// The label.
        name: String,
    },
    /// An account that the forge does not have.
    #[error("{host} has no account {login:?}; check the spelling")]
    NoSuchAccount {
        /// The forge.
        host: String,
        /// The account.
        login: String,
    },
    /// The forge shows the members of an organisation only to its members.
    #[error(
        "{host} does not say who is a member of {org}, because the token's account is not in it; make it a member"
    )]
    MembersHidden {
        /// The forge.
        host: String,
        /// The organisation.
        org: String,
    },
    /// Nothing says which kind of forge it is.
    #[error("{host} does not say which kind of forge it is; name the kind in the configuration")]
    UnknownForge {
        /// The server.
        host: String,
    },
    /// A token that no header can carry.
    #[error(
        "the token for {host} has characters that no token has; store it again without blanks and line ends"
    )]
    BadToken {
        /// The forge.
        host: String,
    },
    /// TLS cannot be used at all.
    #[error("could not prepare TLS; check the certificates of this machine")]
    Tls(#[from] TlsError),
    /// A folder tells nobody anything.
    #[error("the local forge {} has no webhooks; name a repository on a server", .path.display())]
    NoWebhooks {
        /// Where.
        path: PathBuf,
    },
    /// The files of a local forge, or its repository, cannot be used.
    #[error("could not {action} in the local forge {}; check that the folder is yours", .path.display())]
    Shelf {
        /// Where.
        path: PathBuf,
        /// What was being done.
        action: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ForgeError {
    /// For a number that is a pull request's where an issue's was wanted.
    pub(crate) fn not_an_issue(host: String, action: String) -> Self {
        Self::NotFound { host, action, said: Said("it is a pull request".to_owned()) }
    }
}

/// What a forge said, ready to stand in a sentence: empty, or in parentheses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said(pub(crate) String);

impl Said {
    /// The words alone; empty if there were none.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Said {
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
