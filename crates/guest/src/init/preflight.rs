//! Attempts that must fail in a box, and their results.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use guest::config::{ControlGroupLimits, GuestConfig, PreflightCheck, PreflightItem};
use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::control_group::{self, Controller};
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

/// A check, whether the attempt failed as it must, and the observation.
type Finding = (PreflightCheck, bool, String);

/// Checks the identity of the process, without any attempt.
pub(crate) fn identity(status: &Status, pid: u32, demand: &[PreflightCheck]) -> Vec<PreflightItem> {
    let Status { uids, no_new_privs, capabilities, seccomp_mode } = status;
    let is_filtered = *seccomp_mode == SECCOMP_FILTER;
    let findings = [
        (PreflightCheck::SharedPids, pid == 1, format!("pid {pid}")),
        (PreflightCheck::Root, !uids.contains(&0), format!("uid {}", render_uids(uids))),
        (PreflightCheck::NewPrivileges, *no_new_privs, format!("no_new_privs {no_new_privs}")),
        (PreflightCheck::Capabilities, *capabilities == 0, format!("{capabilities:#x}")),
        (PreflightCheck::UnfilteredSyscalls, is_filtered, format!("seccomp mode {seccomp_mode}")),
    ];
    items(demand, findings)
}

/// Attempts to use the network, the hypervisor and the kernel.
pub(crate) fn attempts(config: &GuestConfig) -> Vec<PreflightItem> {
    // Started first, so that it runs during the other checks.
    let userns = userns::start();
    let mut findings = vec![try_interface()];
    findings.extend(try_addresses(&config.probe_addresses));
    findings.push(try_vsock());
    let (blocked, detail) = userns.finish();
    findings.push((PreflightCheck::UserNamespace, blocked, detail));
    findings.extend(observe_limits(&config.control_group));
    findings.extend(config.writable.iter().map(|folder| try_folder(folder)));
    items(&config.demand, findings)
}

fn try_interface() -> Finding {
    let (blocked, detail) = match network::observe_ways_out() {
        Ok(ways) => (ways.is_none(), ways.render()),
        Err(error) => (false, format!("could not be seen: {error}")),
    };
    (PreflightCheck::Interface, blocked, detail)
}

fn try_addresses(configured: &[SocketAddr]) -> impl Iterator<Item = Finding> {
    let addresses = [&METADATA, configured].concat();
    let reached = reach::observe_reach(&addresses, CONNECT_LIMIT);
    let checks = [PreflightCheck::Metadata; METADATA.len()].into_iter();
    let checks = checks.chain(std::iter::repeat(PreflightCheck::Address));
    checks.zip(addresses).zip(reached).map(|((check, address), reach)| {
        (check, reach.is_blocked(), format!("{address}: {}", reach.render()))
    })
}

fn try_vsock() -> Finding {
    let family = AddressFamily::from_raw(AF_VSOCK);
    let (blocked, detail) =
        match socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None) {
            Ok(_socket) => (false, "a socket opened".to_owned()),
            Err(errno) => (true, errno.to_string()),
        };
    (PreflightCheck::Vsock, blocked, detail)
}

/// Reads the limits of the box's control group. One that was not ordered is not missed.
fn observe_limits(ordered: &ControlGroupLimits) -> [Finding; 2] {
    let judge = |ordered: Option<u64>, controller: &Controller| match ordered {
        None => (true, "limited from outside the box".to_owned()),
        Some(ordered) => control_group::observe(controller).judge(ordered),
    };
    let (memory, memory_detail) = judge(ordered.memory_bytes, &control_group::MEMORY);
    let (pids, pids_detail) = judge(ordered.pids, &control_group::PIDS);
    [
        (PreflightCheck::UnlimitedMemory, memory, memory_detail),
        (PreflightCheck::UnlimitedProcesses, pids, pids_detail),
    ]
}

/// Writes to a folder by a file without a name, which leaves nothing behind. Where the file system has no such files, the
/// kernel's answer about the permission has to do.
fn try_folder(folder: &Path) -> Finding {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let tried = match open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            access(folder, Access::WRITE_OK | Access::EXEC_OK)
        }
        other => other.map(drop),
    };
    let writable = tried.is_ok();
    let detail = match tried {
        Ok(()) => format!("{}: can be written to", folder.display()),
        Err(errno) => format!("{}: {errno}", folder.display()),
    };
    (PreflightCheck::UnwritableFolder, writable, detail)
}

fn items(
    demand: &[PreflightCheck],
    findings: impl IntoIterator<Item = Finding>,
) -> Vec<PreflightItem> {
    let item = |(name, blocked, detail): Finding| {
        let demanded = name.is_always_demanded() || demand.contains(&name);
        PreflightItem { name, blocked, demanded, detail }
    };
    findings.into_iter().map(item).collect()
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

    #[test]
    fn a_folder_that_cannot_be_written_to_is_found_and_nothing_is_left_in_one_that_can() {
        let dir = tempfile::tempdir().unwrap();
        let (check, writable, _) = try_folder(dir.path());
        assert_eq!((check, writable), (PreflightCheck::UnwritableFolder, true));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let (_, writable, detail) = try_folder(&dir.path().join("gone"));
        assert!(!writable && detail.contains("gone: "), "{detail}");
    }

    #[test]
    fn limits_that_were_not_ordered_are_not_missed() {
        let found = observe_limits(&ControlGroupLimits::default());
        assert!(found.iter().all(|(_, limited, _)| *limited), "{found:?}");
    }

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
