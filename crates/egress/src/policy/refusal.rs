//! Reasons of refusals: a code for the log and a sentence for the client.
//!
//! The sentence goes into the box, so it never contains resolved addresses.

use std::net::SocketAddr;

use thiserror::Error;

use super::profile::EgressProfile;

/// The reason why a request, a tunnel or a call to the model was denied. The text follows the name of the target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DenyReason {
    #[error("is not a host and a port")]
    BadTarget,
    #[error("was asked for by a scheme other than http")]
    Scheme,
    #[error("is out of reach, since profile none lets nothing out")]
    ProfileNone,
    #[error("is on the deny-list (rule {rule})")]
    DenyRule { rule: String },
    #[error("is not on the allow-list of profile {profile}")]
    NotAllowed { profile: EgressProfile },
    #[error("uses a port other than 80 and 443")]
    Port,
    #[error("is an address, and addresses are refused")]
    IpLiteral,
    #[error("has no address")]
    NoAddress,
    /// The address is for the log alone.
    #[error("does not lead to a public address")]
    NotPublic { address: SocketAddr },
    #[error("was sent something other than TLS on port 443")]
    NotTls,
    #[error("was greeted by TLS without a server name (SNI)")]
    NoSni,
    #[error("was greeted by TLS with the name of another host (SNI)")]
    SniMismatch,
    #[error("was sent a request for another host")]
    HostMismatch,
    #[error("cannot be sent more: this run may send {limit} bytes in all")]
    UploadCap { limit: u64 },
    #[error("cannot send more: this run may receive {limit} bytes in all")]
    DownloadCap { limit: u64 },
    #[error("cannot be asked: this run may make {limit} requests in all")]
    RequestCap { limit: u64 },
    #[error("is not there: this run has no model route")]
    NoModel,
    #[error("was asked for a method and path that the model route does not have")]
    ModelPath,
    #[error("was called without the key that this run was given")]
    ModelKey,
    #[error("may not be called any more: {what}")]
    ModelCap { what: String },
    #[error("was sent a call of more than {limit} bytes")]
    ModelBody { limit: u64 },
    #[error("is the proxy itself, and it has no such page")]
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
