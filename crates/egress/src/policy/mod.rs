//! Policy: the hosts that may be reached, decided from data alone.
//!
//! The order is fixed: the deny-list, the allow-list of the profile, the port, and once the name has been
//! resolved, every one of its addresses. The proxy resolves, connects and inspects the first bytes of TLS.

mod address;
mod host;
mod profile;
mod refusal;
mod registry;
mod rule;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use address::is_public;
pub(crate) use host::port_of;
pub use host::{HostFault, HostName};
pub use profile::{EgressProfile, UnknownProfile};
pub use refusal::DenyReason;
pub use registry::{REGISTRIES, Registry};
pub use rule::{AllowRule, RuleError};

/// The ports that are allowed at any address.
const PORTS: [u16; 2] = [80, 443];

/// Hosts and amounts that a run may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressPolicy {
    /// The base that the rules extend or restrict.
    pub profile: EgressProfile,
    /// Hosts that the user allows on top of the profile; without effect in [`EgressProfile::None`].
    #[serde(default)]
    pub allow: Vec<AllowRule>,
    /// Hosts that stay denied whatever else allows them.
    #[serde(default)]
    pub deny: Vec<AllowRule>,
    /// Registries of this host's own npm, pip or cargo configuration; they apply in [`EgressProfile::Packages`] only.
    #[serde(default)]
    pub extra_package_hosts: Vec<AllowRule>,
    /// Exact addresses that count as public although they are not: a package mirror or a model server on this
    /// host or its network. The port of such an address is allowed as well. Only the user outside the box
    /// sets this; a rule must still allow the name.
    #[serde(default)]
    pub permit_private: Vec<SocketAddr>,
    #[serde(default)]
    pub limits: EgressLimits,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressLimits {
    /// Connections open at the same time.
    pub connections: usize,
    /// Requests and tunnels in the whole run, refused ones included.
    pub requests: u64,
    /// Bytes of the head of one request.
    pub header_bytes: usize,
    /// Seconds until the head of a request, or the first bytes in a tunnel, must have arrived.
    pub header_secs: u64,
    /// Seconds to connect to the server.
    pub connect_secs: u64,
    /// Seconds without traffic in either direction after which a connection closes.
    pub idle_secs: u64,
    /// Seconds that one connection may last.
    pub total_secs: u64,
    /// Bytes that may go out in the whole run, the model route excluded.
    pub bytes_up: u64,
    /// Bytes that may come in during the whole run, the model route excluded.
    pub bytes_down: u64,
    /// Seconds for which resolved addresses are cached.
    pub dns_cache_secs: u64,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            requests: 100_000,
            header_bytes: 64 << 10,
            header_secs: 30,
            connect_secs: 15,
            idle_secs: 600,
            total_secs: 6 * 60 * 60,
            bytes_up: 64 << 20,
            bytes_down: 32 << 30,
            dns_cache_secs: 30,
        }
    }
}

impl EgressPolicy {
    /// Creates the policy of a profile without rules.
    #[must_use]
    pub fn new(profile: EgressProfile) -> Self {
        Self {
            profile,
            allow: Vec::new(),
            deny: Vec::new(),
            extra_package_hosts: Vec::new(),
            permit_private: Vec::new(),
            limits: EgressLimits::default(),
        }
    }

    /// Decides about a name and a port, before the name is resolved.
    pub fn judge_name(&self, host: &HostName, port: u16) -> Result<(), DenyReason> {
        if self.profile == EgressProfile::None {
            return Err(DenyReason::ProfileNone);
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.covers(host, port)) {
            return Err(DenyReason::DenyRule { rule: rule.to_string() });
        }
        if !self.allows(host, port) {
            return Err(DenyReason::NotAllowed { profile: self.profile });
        }
        let may_be_permitted = self.permit_private.iter().any(|address| address.port() == port);
        if PORTS.contains(&port) || may_be_permitted { Ok(()) } else { Err(DenyReason::Port) }
    }

    /// Decides about all the addresses of a name that was allowed at a port.
    pub fn judge_addresses(&self, port: u16, addresses: &[SocketAddr]) -> Result<(), DenyReason> {
        self.judge_public(addresses)?;
        let is_permitted = |address| self.permit_private.contains(address);
        if PORTS.contains(&port) || addresses.iter().all(is_permitted) {
            Ok(())
        } else {
            Err(DenyReason::Port)
        }
    }

    /// Decides about addresses alone. One that is not public disqualifies the others, since a name with both
    /// kinds is a sign of DNS rebinding.
    pub fn judge_public(&self, addresses: &[SocketAddr]) -> Result<(), DenyReason> {
        if addresses.is_empty() {
            return Err(DenyReason::NoAddress);
        }
        let is_closed = |address: &&SocketAddr| {
            !self.permit_private.contains(address) && !is_public(address.ip())
        };
        match addresses.iter().find(is_closed) {
            Some(address) => Err(DenyReason::NotPublic { address: *address }),
            None => Ok(()),
        }
    }

    /// Returns whether a rule or the profile names the host. The profile `open` names none.
    pub(crate) fn lists(&self, host: &HostName, port: u16) -> bool {
        let covers = |rules: &[AllowRule]| rules.iter().any(|rule| rule.covers(host, port));
        match self.profile {
            EgressProfile::None => false,
            EgressProfile::ModelOnly | EgressProfile::Open => covers(&self.allow),
            EgressProfile::Packages => {
                covers(&self.allow)
                    || covers(&self.extra_package_hosts)
                    || registry::is_registry(host)
            }
        }
    }

    fn allows(&self, host: &HostName, port: u16) -> bool {
        self.profile == EgressProfile::Open || self.lists(host, port)
    }
}

#[cfg(test)]
mod tests;
