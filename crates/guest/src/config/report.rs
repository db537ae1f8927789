//! The line that the init writes before any code of the agent has run, which is why the host may trust it.

use serde::{Deserialize, Serialize};

use super::RlimitSpec;

/// The version of the report; the host refuses any other.
const VERSION: u32 = 1;

/// Findings and effective limits of the init. The first line on the box's stdout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// Marker of the line, and its version.
    pub bottle: u32,
    /// True if the command is started after this line.
    pub ready: bool,
    pub preflight: Vec<PreflightItem>,
    pub limits: RlimitSpec,
    pub uid: u32,
    /// Failure of the guest itself, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightItem {
    pub name: PreflightCheck,
    /// True if the attempt failed, as it must.
    pub blocked: bool,
    /// True if the command requires this to be blocked.
    pub demanded: bool,
    /// Observation, for display.
    pub detail: String,
}

/// Checks of the box. Each is named after the thing that must be absent, so that `blocked` is always the good result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreflightCheck {
    /// Processes of others in the pid namespace. Always demanded: the init signals every process it can see.
    SharedPids,
    /// Always demanded.
    Root,
    /// Gaining privileges through setuid programs.
    NewPrivileges,
    Capabilities,
    UnfilteredSyscalls,
    /// A network interface beside loopback that is up, or a route over one.
    Interface,
    Metadata,
    /// One of the configured gateway and LAN addresses.
    Address,
    /// A socket to the hypervisor, which a network namespace does not restrict.
    Vsock,
    /// A new user namespace, the usual first step of an escape.
    UserNamespace,
    /// Memory without the limit that the host ordered from a container engine.
    UnlimitedMemory,
    /// Processes without such a limit.
    UnlimitedProcesses,
    /// A folder of the box that its user cannot write to.
    UnwritableFolder,
}

impl GuestReport {
    /// Builds a report; `ready` follows from the rest.
    pub fn new(
        preflight: Vec<PreflightItem>,
        limits: RlimitSpec,
        uid: u32,
        problem: Option<String>,
    ) -> Self {
        let ready = problem.is_none() && !preflight.iter().any(PreflightItem::failed);
        Self { bottle: VERSION, ready, preflight, limits, uid, problem }
    }

    pub fn parse_line(line: &str) -> Result<Self, ReportError> {
        let report: Self = serde_json::from_str(line.trim_end()).map_err(ReportError::Json)?;
        if report.bottle != VERSION {
            return Err(ReportError::Version { found: report.bottle });
        }
        Ok(report)
    }

    /// Renders the line, without its line break.
    pub fn render_line(&self) -> Result<String, ReportError> {
        serde_json::to_string(self).map_err(ReportError::Json)
    }

    /// Returns the reasons against starting the command, for display; empty when ready.
    pub fn reasons(&self) -> Vec<String> {
        let failed = self.preflight.iter().filter(|item| item.failed());
        let items = failed.map(|item| format!("{}: {}", item.name.as_str(), item.detail));
        items.chain(self.problem.clone()).collect()
    }
}

impl PreflightItem {
    pub fn failed(&self) -> bool {
        self.demanded && !self.blocked
    }
}

impl PreflightCheck {
    /// Every check, in the order of the report.
    pub const ALL: [Self; 13] = [
        Self::SharedPids,
        Self::Root,
        Self::NewPrivileges,
        Self::Capabilities,
        Self::UnfilteredSyscalls,
        Self::Interface,
        Self::Metadata,
        Self::Address,
        Self::Vsock,
        Self::UserNamespace,
        Self::UnlimitedMemory,
        Self::UnlimitedProcesses,
        Self::UnwritableFolder,
    ];

    /// Returns the name used in the configuration and the report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SharedPids => "shared-pids",
            Self::Root => "root",
            Self::NewPrivileges => "new-privileges",
            Self::Capabilities => "capabilities",
            Self::UnfilteredSyscalls => "unfiltered-syscalls",
            Self::Interface => "interface",
            Self::Metadata => "metadata",
            Self::Address => "address",
            Self::Vsock => "vsock",
            Self::UserNamespace => "user-namespace",
            Self::UnlimitedMemory => "unlimited-memory",
            Self::UnlimitedProcesses => "unlimited-processes",
            Self::UnwritableFolder => "unwritable-folder",
        }
    }

    /// Returns whether no configuration can waive the check.
    pub fn is_always_demanded(self) -> bool {
        matches!(self, Self::SharedPids | Self::Root)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("this is not a report of the guest: {0}")]
    Json(serde_json::Error),
    #[error("the guest reports in version {found}, not {VERSION}")]
    Version { found: u32 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_line() {
        let report = report(vec![item(PreflightCheck::Vsock, true, true)], None);
        let line = report.render_line().unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(GuestReport::parse_line(&format!("{line}\n")).unwrap(), report);
        assert!(
            line.starts_with(r#"{"bottle":1,"ready":true,"preflight":[{"name":"vsock","#),
            "{line}"
        );
    }

    #[test]
    fn one_demanded_thing_that_works_is_enough_to_refuse() {
        let report = report(
            vec![item(PreflightCheck::Root, true, true), item(PreflightCheck::Vsock, false, true)],
            None,
        );
        assert!(!report.ready);
        assert_eq!(report.reasons(), ["vsock: seen"]);
    }

    #[test]
    fn what_is_not_demanded_is_told_but_does_not_decide() {
        let report = report(vec![item(PreflightCheck::Vsock, false, false)], None);
        assert!(report.ready);
        assert!(report.reasons().is_empty());
    }

    #[test]
    fn a_problem_of_our_own_refuses_too() {
        let report = report(Vec::new(), Some("no loopback".to_owned()));
        assert!(!report.ready);
        assert_eq!(report.reasons(), ["no loopback"]);
    }

    #[test]
    fn another_version_is_not_guessed_at() {
        let line = report(Vec::new(), None).render_line().unwrap().replace(":1,", ":2,");
        let error = GuestReport::parse_line(&line).unwrap_err();
        assert_eq!(error.to_string(), "the guest reports in version 2, not 1");
    }

    #[test]
    fn what_an_agent_prints_is_not_a_report() {
        assert!(GuestReport::parse_line("hello").is_err());
        assert!(GuestReport::parse_line(r#"{"type":"result","status":0}"#).is_err());
    }

    #[test]
    fn every_check_has_one_name() {
        for check in PreflightCheck::ALL {
            let json = serde_json::to_string(&check).unwrap();
            assert_eq!(json, format!("\"{}\"", check.as_str()));
        }
    }

    fn report(preflight: Vec<PreflightItem>, problem: Option<String>) -> GuestReport {
        GuestReport::new(preflight, RlimitSpec::default(), 1000, problem)
    }

    fn item(name: PreflightCheck, blocked: bool, demanded: bool) -> PreflightItem {
        PreflightItem { name, blocked, demanded, detail: "seen".to_owned() }
    }
}
