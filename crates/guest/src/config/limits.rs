//! Resource limits of the box: the requested ones in the configuration, the effective ones in the report.

use serde::{Deserialize, Serialize};

/// Limits that the init sets on itself, and so on every process in the box.
///
/// They are set inside the box because `nproc` counts per user namespace: set outside, all boxes of one user would
/// share it. A limit that is already lower stays as it is; the report has the value that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RlimitSpec {
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nproc: Option<u64>,
    /// Open files per process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nofile: Option<u64>,
    /// Bytes in one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsize: Option<u64>,
    /// Bytes in a core file; zero by default, since a core file is a copy of memory in the workspace.
    #[serde(default)]
    pub core: u64,
    /// Bytes of address space per process.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub address_space: Option<u64>,
    /// Bytes in POSIX message queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msgqueue: Option<u64>,
    /// Seconds of processor time per process.
    #[serde(default, rename = "cpu", skip_serializing_if = "Option::is_none")]
    pub cpu_secs: Option<u64>,
}

/// Limits that a container engine sets on the box by a control group. An engine may ignore them without an error, so the
/// init reads its own and refuses a box without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlGroupLimits {
    /// Bytes of memory; `None` where the host limits it by other means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads; `None` where the init limits them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_as_in_ulimit() {
        let spec = RlimitSpec {
            nproc: Some(256),
            address_space: Some(1 << 30),
            cpu_secs: Some(60),
            ..RlimitSpec::default()
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(text, r#"{"nproc":256,"core":0,"as":1073741824,"cpu":60}"#);
        assert_eq!(serde_json::from_str::<RlimitSpec>(&text).unwrap(), spec);
    }
}
