//! Attempts that must fail in a box, and their results.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use guest::config::{GuestConfig, PreflightCheck, PreflightItem};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::status::Status;
use super::{network, reach, userns};

/// Time limit of all connects together. Only a leaking box takes that long.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);

/// Addresses at which clouds serve credentials without authentication.
const METADATA: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), 80),
];

/// Missing from some libcs; the number is part of the kernel's interface.
const AF_VSOCK: u16 = 40;

/// A filter, as opposed to none or the strict mode that allows four calls.
const SECCOMP_FILTER: u32 = 2;

/// Checks the identity of the process, without any attempt.
pub(crate) fn identity(status: &Status, pid: u32, demand: &[PreflightCheck]) -> Vec<PreflightItem> {
    let findings = [
        (PreflightCheck::SharedPids, pid == 1, format!("pid {pid}")),
        (
            PreflightCheck::Root,
            !status.uids.contains(&0),
            format!("uid {}", render_uids(&status.uids)),
        ),
        (
            PreflightCheck::NewPrivileges,
            status.no_new_privs,
            format!("no_new_privs {}", status.no_new_privs),
        ),
        (
            PreflightCheck::Capabilities,
            status.capabilities == 0,
            format!("{:#x}", status.capabilities),
        ),
        (
            PreflightCheck::UnfilteredSyscalls,
            status.seccomp_mode == SECCOMP_FILTER,
            format!("seccomp mode {}", status.seccomp_mode),
        ),
    ];
    findings
        .into_iter()
        .map(|(name, blocked, detail)| item(demand, name, blocked, detail))
        .collect()
}

/// Attempts to use the network, the hypervisor and the kernel.
pub(crate) fn attempts(config: &GuestConfig) -> Vec<PreflightItem> {
    // Started first, so that it runs during the other checks.
    let userns = userns::start();
    let demand = &config.demand;
    let mut items = vec![try_interface(demand)];
    items.extend(try_addresses(config));
    items.push(try_vsock(demand));
    let (blocked, detail) = userns.finish();
    items.push(item(demand, PreflightCheck::UserNamespace, blocked, detail));
    items
}

fn try_interface(demand: &[PreflightCheck]) -> PreflightItem {
    match network::observe_ways_out() {
        Ok(ways) => item(demand, PreflightCheck::Interface, ways.is_none(), ways.render()),
        Err(error) => {
            item(demand, PreflightCheck::Interface, false, format!("could not be seen: {error}"))
        }
    }
}

fn try_addresses(config: &GuestConfig) -> Vec<PreflightItem> {
    let named: Vec<(PreflightCheck, SocketAddr)> = METADATA
        .iter()
        .map(|address| (PreflightCheck::Metadata, *address))
        .chain(config.probe_addresses.iter().map(|address| (PreflightCheck::Address, *address)))
        .collect();
    let addresses: Vec<SocketAddr> = named.iter().map(|(_, address)| *address).collect();
    let reached = reach::observe_reach(&addresses, CONNECT_LIMIT);
    named
        .into_iter()
        .zip(reached)
        .map(|((name, address), reach)| {
            item(&config.demand, name, reach.is_blocked(), format!("{address}: {}", reach.render()))
        })
        .collect()
}

fn try_vsock(demand: &[PreflightCheck]) -> PreflightItem {
    let family = AddressFamily::from_raw(AF_VSOCK);
    match socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None) {
        Ok(_socket) => item(demand, PreflightCheck::Vsock, false, "a socket opened".to_owned()),
        Err(errno) => item(demand, PreflightCheck::Vsock, true, errno.to_string()),
    }
}

fn item(
    demand: &[PreflightCheck],
    name: PreflightCheck,
    blocked: bool,
    detail: String,
) -> PreflightItem {
    let demanded = name.is_always_demanded() || demand.contains(&name);
    PreflightItem { name, blocked, demanded, detail }
}

fn render_uids(uids: &[u32; 4]) -> String {
    let [real, effective, saved, _fs] = uids;
    if real == effective && real == saved {
        return real.to_string();
    }
    format!("{real} (effective {effective}, saved {saved})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: Status =
        Status { uids: [1000; 4], no_new_privs: true, capabilities: 0, seccomp_mode: 2 };

    #[test]
    fn a_sealed_box_passes() {
        check(&SEALED, 1, &PreflightCheck::ALL, &[]);
    }

    #[test]
    fn each_missing_seal_is_found() {
        check(&SEALED, 7, &PreflightCheck::ALL, &[PreflightCheck::SharedPids]);
        check(&Status { uids: [0; 4], ..SEALED }, 1, &PreflightCheck::ALL, &[PreflightCheck::Root]);
        check(
            &Status { no_new_privs: false, ..SEALED },
            1,
            &PreflightCheck::ALL,
            &[PreflightCheck::NewPrivileges],
        );
        check(
            &Status { capabilities: 1, ..SEALED },
            1,
            &PreflightCheck::ALL,
            &[PreflightCheck::Capabilities],
        );
        check(
            &Status { seccomp_mode: 0, ..SEALED },
            1,
            &PreflightCheck::ALL,
            &[PreflightCheck::UnfilteredSyscalls],
        );
    }

    #[test]
    fn a_saved_root_is_root() {
        check(
            &Status { uids: [1000, 1000, 0, 1000], ..SEALED },
            1,
            &PreflightCheck::ALL,
            &[PreflightCheck::Root],
        );
    }

    #[test]
    fn a_filter_may_be_waived_but_root_may_not() {
        let open = Status { uids: [0; 4], seccomp_mode: 0, ..SEALED };
        check(&open, 2, &[], &[PreflightCheck::SharedPids, PreflightCheck::Root]);
    }

    fn check(status: &Status, pid: u32, demand: &[PreflightCheck], failed: &[PreflightCheck]) {
        let items = identity(status, pid, demand);
        let found: Vec<PreflightCheck> =
            items.iter().filter(|item| item.failed()).map(|item| item.name).collect();
        assert_eq!(found, failed);
        assert_eq!(items.len(), 5);
    }
}
