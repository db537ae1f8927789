//! Why something was refused: a word for the log, a sentence for whoever was refused.
//!
//! The sentence goes into the box, so it never tells what a name resolved to.

use std::fmt;
use std::net::SocketAddr;

use super::profile::EgressProfile;

/// A reason for which a request, a tunnel or a call to the model goes no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenyReason {
    /// The target cannot be read.
    BadTarget,
    /// A scheme other than http in an absolute address.
    Scheme,
    /// The profile lets nothing out.
    ProfileNone,
    /// A rule of the deny-list covers it.
    DenyRule {
        /// The rule.
        rule: String,
    },
    /// Nothing allows it.
    NotAllowed {
        /// The profile in force.
        profile: EgressProfile,
    },
    /// A port that is not for asking.
    Port,
    /// An address in the place of a name.
    IpLiteral,
    /// The name has no address.
    NoAddress,
    /// An address of the name is not public.
    NotPublic {
        /// The address, for the log alone.
        address: SocketAddr,
    },
    /// What came first in the tunnel is not TLS.
    NotTls,
    /// The TLS greeting names no host.
    NoSni,
    /// The TLS greeting names another host than the tunnel was asked for.
    SniMismatch,
    /// A request inside a tunnel names another host than the tunnel was asked for.
    HostMismatch,
    /// The run has sent all it may.
    UploadCap {
        /// How many bytes that is.
        limit: u64,
    },
    /// The run has received all it may.
    DownloadCap {
        /// How many bytes that is.
        limit: u64,
    },
    /// The run has asked as often as it may.
    RequestCap {
        /// How often that is.
        limit: u64,
    },
    /// There is no model route in this run.
    NoModel,
    /// The model route does not have this method and path.
    ModelPath,
    /// The key of the run is missing from a call to the model.
    ModelKey,
    /// A cap on the use of the model is reached; the text says which.
    ModelCap {
        /// Which cap, and how far.
        what: String,
    },
    /// A call to the model is larger than any sensible one.
    ModelBody {
        /// The most it may have, in bytes.
        limit: u64,
    },
    /// Nothing of ours is at this path.
    NoSuchPage,
}

impl DenyReason {
    /// The word for it in logs and summaries.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadTarget => "bad_target",
            Self::Scheme => "scheme",
            Self::ProfileNone => "profile_none",
            Self::DenyRule { .. } => "deny_rule",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Port => "port",
            Self::IpLiteral => "ip_literal",
            Self::NoAddress => "no_address",
            Self::NotPublic { .. } => "not_public",
            Self::NotTls => "not_tls",
            Self::NoSni => "no_sni",
            Self::SniMismatch => "sni_mismatch",
            Self::HostMismatch => "host_mismatch",
            Self::UploadCap { .. } => "upload_cap",
            Self::DownloadCap { .. } => "download_cap",
            Self::RequestCap { .. } => "request_cap",
            Self::NoModel => "no_model",
            Self::ModelPath => "model_path",
            Self::ModelKey => "model_key",
            Self::ModelCap { .. } => "model_cap",
            Self::ModelBody { .. } => "model_body",
            Self::NoSuchPage => "no_such_page",
        }
    }

    /// The sentence for whoever asked for `host` at `port`.
    #[must_use]
    pub fn explain(&self, host: &str, port: u16) -> String {
        match self.remedy(host) {
            Some(remedy) => format!("blocked: {host}:{port} {self}; {remedy}"),
            None => format!("blocked: {host}:{port} {self}"),
        }
    }

    fn remedy(&self, host: &str) -> Option<String> {
        let person = "the person running this can";
        match self {
            Self::NotAllowed { .. } => Some(format!("{person} allow it with --allow {host}")),
            Self::ProfileNone => Some(format!("{person} choose another profile")),
            Self::DenyRule { .. } => Some(format!("{person} take the rule away")),
            Self::IpLiteral => Some("ask for a host by its name".to_owned()),
            Self::Scheme => Some("open a tunnel with CONNECT instead".to_owned()),
            Self::NotPublic { .. } => {
                Some(format!("{person} name its exact address in permit_private"))
            }
            Self::UploadCap { .. }
            | Self::DownloadCap { .. }
            | Self::RequestCap { .. }
            | Self::ModelCap { .. } => Some(format!("{person} raise the limit")),
            Self::NoModel => Some(format!("{person} configure one")),
            Self::BadTarget
            | Self::Port
            | Self::NoAddress
            | Self::NotTls
            | Self::NoSni
            | Self::SniMismatch
            | Self::HostMismatch
            | Self::ModelPath
            | Self::ModelKey
            | Self::ModelBody { .. }
            | Self::NoSuchPage => None,
        }
    }
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadTarget => f.write_str("is not a host and a port"),
            Self::Scheme => f.write_str("was asked for by a scheme other than http"),
            Self::ProfileNone => {
                f.write_str("is out of reach, since profile none lets nothing out")
            }
            Self::DenyRule { rule } => write!(f, "is on the deny-list (rule {rule})"),
            Self::NotAllowed { profile } => {
                write!(f, "is not on the allow-list of profile {profile}")
            }
            Self::Port => f.write_str("uses a port other than 80 and 443"),
            Self::IpLiteral => f.write_str("is an address, and addresses are refused"),
            Self::NoAddress => f.write_str("has no address"),
            Self::NotPublic { .. } => f.write_str("does not lead to a public address"),
            Self::NotTls => f.write_str("was sent something other than TLS on port 443"),
            Self::NoSni => f.write_str("was greeted by TLS without a server name (SNI)"),
            Self::SniMismatch => {
                f.write_str("was greeted by TLS with the name of another host (SNI)")
            }
            Self::HostMismatch => f.write_str("was sent a request for another host"),
            Self::UploadCap { limit } => {
                write!(f, "cannot be sent more: this run may send {limit} bytes in all")
            }
            Self::DownloadCap { limit } => {
                write!(f, "cannot send more: this run may receive {limit} bytes in all")
            }
            Self::RequestCap { limit } => {
                write!(f, "cannot be asked: this run may make {limit} requests in all")
            }
            Self::NoModel => f.write_str("is not there: this run has no model route"),
            Self::ModelPath => {
                f.write_str("was asked for a method and path that the model route does not have")
            }
            Self::ModelKey => f.write_str("was called without the key that this run was given"),
            Self::ModelCap { what } => write!(f, "may not be called any more: {what}"),
            Self::ModelBody { limit } => {
                write!(f, "was sent a call of more than {limit} bytes")
            }
            Self::NoSuchPage => f.write_str("is the proxy itself, and it has no such page"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_why_and_who_can_change_it() {
        let refusal = DenyReason::NotAllowed { profile: EgressProfile::Packages };
        assert_eq!(
            refusal.explain("example.org", 443),
            "blocked: example.org:443 is not on the allow-list of profile packages; \
             the person running this can allow it with --allow example.org"
        );
    }

    #[test]
    fn a_private_address_is_not_told_to_the_box() {
        let refusal = DenyReason::NotPublic { address: "10.9.8.7:443".parse().unwrap() };
        assert!(!refusal.explain("intra.example.org", 443).contains("10.9"));
    }
}
