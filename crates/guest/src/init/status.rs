//! `/proc/self/status`: identity and privileges of this process.

use std::str::FromStr;

use crate::GuestError;

const STATUS_FILE: &str = "/proc/self/status";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Real, effective, saved and file system user.
    pub(crate) uids: [u32; 4],
    /// True if no setuid program can raise privileges.
    pub(crate) no_new_privs: bool,
    /// Capabilities that are effective or permitted.
    pub(crate) capabilities: u64,
    /// 0 none, 1 strict, 2 a filter.
    pub(crate) seccomp_mode: u32,
}

pub(crate) fn load_own_status() -> Result<Status, GuestError> {
    parse_status(&std::fs::read_to_string(STATUS_FILE).map_err(GuestError::new)?)
}

fn parse_status(text: &str) -> Result<Status, GuestError> {
    let uids: Vec<u32> =
        field(text, "Uid")?.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    let uids = uids.try_into().or(Err(unreadable("Uid")))?;
    Ok(Status {
        uids,
        no_new_privs: number::<u32>(text, "NoNewPrivs")? == 1,
        capabilities: hex(text, "CapEff")? | hex(text, "CapPrm")?,
        seccomp_mode: number(text, "Seccomp")?,
    })
}

impl Status {
    pub(crate) fn effective_uid(&self) -> u32 {
        self.uids[1]
    }
}

fn field<'a>(text: &'a str, name: &str) -> Result<&'a str, GuestError> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter_map(|(key, value)| (key == name).then_some(value.trim()));
    found.next().ok_or_else(|| unreadable(name))
}

fn number<N: FromStr>(text: &str, name: &str) -> Result<N, GuestError> {
    field(text, name)?.parse().or(Err(unreadable(name)))
}

fn hex(text: &str, name: &str) -> Result<u64, GuestError> {
    u64::from_str_radix(field(text, name)?, 16).or(Err(unreadable(name)))
}

fn unreadable(name: &str) -> GuestError {
    GuestError(format!("there is no readable line {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: &str = "Name:\tbottle-guest\nUmask:\t0022\nState:\tR (running)\nPid:\t1\n\
        Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nCapInh:\t0000000000000000\n\
        CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n\
        NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn a_sealed_process_is_recognised() {
        let status = parse_status(SEALED).unwrap();
        let expected =
            Status { uids: [1000; 4], no_new_privs: true, capabilities: 0, seccomp_mode: 2 };
        assert_eq!(status, expected);
    }

    #[test]
    fn a_capability_in_waiting_counts() {
        let text = SEALED.replace("CapPrm:\t0000000000000000", "CapPrm:\t0000000000200000");
        assert_eq!(parse_status(&text).unwrap().capabilities, 0x0020_0000);
    }

    #[test]
    fn a_missing_line_is_an_error_and_not_a_default() {
        let text = SEALED.replace("NoNewPrivs", "Other");
        let error = parse_status(&text).unwrap_err();
        assert_eq!(error.to_string(), "there is no readable line NoNewPrivs");
        assert!(parse_status("").is_err());
    }

    #[test]
    fn this_process_has_a_status() {
        load_own_status().unwrap();
    }
}
