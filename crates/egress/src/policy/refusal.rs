//! Reasons of refusals: a code for the log and a sentence for the client.
//!
//! The sentence goes into the box, so it never contains resolved addresses.

use std::fmt;
use std::net::SocketAddr;

use super::profile::EgressProfile;

/// The reason why a request, a tunnel or a call to the model was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenyReason {
    /// The target cannot be parsed.
    BadTarget,
    /// A scheme other than http in an absolute URL.
    Scheme,
    /// The profile denies everything.
    ProfileNone,
    /// A rule of the deny-list covers it.
    DenyRule { rule: String },
    /// No rule allows it.
    NotAllowed { profile: EgressProfile },
    /// The port is not allowed.
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
    /// The first bytes in the tunnel are not TLS.
    NotTls,
    /// The TLS ClientHello has no server name.
    NoSni,
    /// The TLS ClientHello names another host than the tunnel's.
    SniMismatch,
    /// A request inside a tunnel names another host than the tunnel's.
    HostMismatch,
    /// The run has reached its upload limit.
    UploadCap { limit: u64 },
    /// The run has reached its download limit.
    DownloadCap { limit: u64 },
    /// The run has reached its limit on requests.
    RequestCap { limit: u64 },
    /// The run has no model route.
    NoModel,
    /// The model route does not have this method and path.
    ModelPath,
    /// The key of the run is missing from a call to the model.
    ModelKey,
    /// A cap on the use of the model is reached.
    ModelCap {
        /// The cap and its value.
        what: String,
    },
    /// A request body to the model is too large.
    ModelBody { limit: u64 },
    /// The proxy has no page at this path.
    NoSuchPage,
}

impl DenyReason {
    /// Returns the code for logs and summaries.
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

    /// Returns the sentence for the client that requested `host` at `port`.
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
