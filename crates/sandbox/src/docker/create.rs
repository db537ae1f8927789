//! The container of a box, as a pure function from the spec to the engine's request.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};

use crate::boxdir::guest_command;
use crate::spec::{BindMount, BoxSpec, MountAccess};

/// Label with the run's id: every container of ours has it.
pub(super) const LABEL_RUN: &str = "bottle.run";
/// Label with the path of the lock that the shim holds while it supervises the box.
pub(super) const LABEL_LOCK: &str = "bottle.lock";
/// Label with the boot-clock second at which the box must be gone.
pub(super) const LABEL_DEADLINE: &str = "bottle.deadline";
/// Label with the boot id that the deadline's clock belongs to.
pub(super) const LABEL_BOOT: &str = "bottle.boot";

/// Time for the shim to end the box itself after its deadline and grace.
const SWEEP_SLACK_SECS: u64 = 5;

/// Differences between the engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineSettings {
    /// The filter inline, or the path of a file that holds it.
    pub(crate) seccomp: String,
    /// The limit on processes that must be named, if any.
    pub(crate) nproc: Option<u64>,
}

/// Name of the container, by which a person finds the box of a run in the engine's lists.
pub(super) fn container_name(spec: &BoxSpec) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let name = format!("bottleworks-{}-{}", spec.run, spec.name);
    name.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect()
}

/// Renders the request that creates the container of `spec` from `image`.
pub(crate) fn create_body(
    spec: &BoxSpec,
    image: &str,
    labels: HashMap<String, String>,
    settings: &EngineSettings,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some("bottle".to_owned()),
        user: Some(format!("{}:{}", spec.user.uid, spec.user.gid)),
        entrypoint: Some(guest_command()),
        cmd: Some(Vec::new()),
        working_dir: Some("/".to_owned()),
        // The image's own variables stay out of the agent's reach: the guest starts it with exactly the spec's.
        env: Some(Vec::new()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        open_stdin: Some(false),
        network_disabled: Some(true),
        labels: Some(labels),
        host_config: Some(host_config(spec, settings)),
        ..Default::default()
    }
}

/// Labels for the sweeper of a container that starts at this second of the boot clock.
pub(super) fn labels(
    spec: &BoxSpec,
    now_boot_secs: u64,
    boot_id: String,
) -> HashMap<String, String> {
    let lock = spec.box_dir.join(crate::LOCK_FILE);
    let deadline = now_boot_secs + spec.deadline_secs + spec.grace_ms / 1000 + SWEEP_SLACK_SECS;
    HashMap::from([
        (LABEL_RUN.to_owned(), spec.run.to_string()),
        (LABEL_LOCK.to_owned(), lock.to_string_lossy().into_owned()),
        (LABEL_DEADLINE.to_owned(), deadline.to_string()),
        (LABEL_BOOT.to_owned(), boot_id),
    ])
}

fn host_config(spec: &BoxSpec, settings: &EngineSettings) -> HostConfig {
    let limits = &spec.limits;
    HostConfig {
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        tmpfs: Some(HashMap::from([(
            "/tmp".to_owned(),
            format!("rw,exec,nosuid,nodev,mode=1777,size={}", limits.tmp_bytes),
        )])),
        shm_size: Some(signed(limits.tmp_bytes)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec![
            "no-new-privileges".to_owned(),
            format!("seccomp={}", settings.seccomp),
        ]),
        pids_limit: Some(signed(limits.pids)),
        memory: Some(signed(limits.memory_bytes)),
        memory_swap: Some(signed(limits.memory_bytes)),
        nano_cpus: Some(i64::from(limits.cpu_percent) * 10_000_000),
        ulimits: Some(ulimits(spec, settings)),
        ipc_mode: Some("private".to_owned()),
        privileged: Some(false),
        auto_remove: Some(false),
        // The shim is attached and keeps the log. The engine's own would hold unredacted text, and costs the box a
        // hundredfold of the time for each line.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        mounts: Some(spec.binds().into_iter().map(mount).collect()),
        ..Default::default()
    }
}

/// Processes are counted by the control group. The limit of the same name counts per user of the whole host, so it
/// is set only where an engine insists, and then high.
fn ulimits(spec: &BoxSpec, settings: &EngineSettings) -> Vec<ResourcesUlimits> {
    let mut ulimits = vec![
        ulimit("core", 0),
        ulimit("nofile", spec.limits.open_files),
        ulimit("fsize", spec.limits.file_bytes),
    ];
    ulimits.extend(settings.nproc.map(|limit| ulimit("nproc", limit)));
    ulimits
}

/// A mount rather than one of `Binds`, where a colon in a path has a meaning.
fn mount(bind: BindMount) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(bind.source.to_string_lossy().into_owned()),
        target: Some(bind.inside),
        read_only: Some(bind.access == MountAccess::ReadOnly),
        ..Default::default()
    }
}

fn ulimit(name: &str, value: u64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(signed(value)),
        hard: Some(signed(value)),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgramMount;
    use crate::spec::tests::spec;

    fn settings() -> EngineSettings {
        EngineSettings { seccomp: "{}".to_owned(), nproc: None }
    }

    fn json(spec: &BoxSpec, settings: &EngineSettings) -> serde_json::Value {
        let labels = labels(spec, 1234 - 480 - 5 - SWEEP_SLACK_SECS, "b".to_owned());
        let body = create_body(spec, "image:tag", labels, settings);
        let mut value = serde_json::to_value(&body).expect("JSON");
        value.sort_all_objects();
        value
    }

    /// The request for the container of a plain box, with its keys sorted.
    const PLAIN: &str = r#"{
  "AttachStderr": true,
  "AttachStdout": true,
  "Cmd": [],
  "Entrypoint": [
    "/harness-state/run/bottle-guest",
    "init",
    "/harness-state/run/config.json"
  ],
  "Env": [],
  "HostConfig": {
    "AutoRemove": false,
    "CapDrop": [
      "ALL"
    ],
    "IpcMode": "private",
    "LogConfig": {
      "Type": "none"
    },
    "Memory": 4294967296,
    "MemorySwap": 4294967296,
    "Mounts": [
      {
        "ReadOnly": false,
        "Source": "/runs/r/workspace",
        "Target": "/workspace",
        "Type": "bind"
      },
      {
        "ReadOnly": false,
        "Source": "/runs/r/harness-state",
        "Target": "/harness-state",
        "Type": "bind"
      },
      {
        "ReadOnly": true,
        "Source": "/runs/r/boxes/agent/guest",
        "Target": "/harness-state/run",
        "Type": "bind"
      }
    ],
    "NanoCpus": 2000000000,
    "NetworkMode": "none",
    "PidsLimit": 512,
    "Privileged": false,
    "ReadonlyRootfs": true,
    "SecurityOpt": [
      "no-new-privileges",
      "seccomp={}"
    ],
    "ShmSize": 268435456,
    "Tmpfs": {
      "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=268435456"
    },
    "Ulimits": [
      {
        "Hard": 0,
        "Name": "core",
        "Soft": 0
      },
      {
        "Hard": 4096,
        "Name": "nofile",
        "Soft": 4096
      },
      {
        "Hard": 1073741824,
        "Name": "fsize",
        "Soft": 1073741824
      }
    ]
  },
  "Hostname": "bottle",
  "Image": "image:tag",
  "Labels": {
    "bottle.boot": "b",
    "bottle.deadline": "1234",
    "bottle.lock": "/runs/r/boxes/agent/lock",
    "bottle.run": "fork_20260102_030405"
  },
  "NetworkDisabled": true,
  "OpenStdin": false,
  "Tty": false,
  "User": "1000:1000",
  "WorkingDir": "/"
}"#;

    #[test]
    fn the_profile_is_the_measured_one() {
        let value = json(&spec(), &settings());
        assert_eq!(serde_json::to_string_pretty(&value).expect("text"), PLAIN);
    }

    #[test]
    fn a_container_is_named_after_its_run_and_box() {
        assert_eq!(container_name(&spec()), "bottleworks-fork_20260102_030405-agent");
    }

    #[test]
    fn podman_gets_the_filter_as_a_file_and_a_limit_on_processes() {
        let settings = EngineSettings { seccomp: "/x/seccomp.json".to_owned(), nproc: Some(99) };
        let host = &json(&spec(), &settings)["HostConfig"];
        assert_eq!(
            host["SecurityOpt"],
            serde_json::json!(["no-new-privileges", "seccomp=/x/seccomp.json"])
        );
        assert_eq!(
            host["Ulimits"][3],
            serde_json::json!({ "Name": "nproc", "Soft": 99, "Hard": 99 })
        );
    }

    #[test]
    fn limits_become_the_engines_numbers() {
        let mut spec = spec();
        spec.limits.pids = 7;
        spec.limits.memory_bytes = 1 << 30;
        spec.limits.cpu_percent = 150;
        spec.limits.tmp_bytes = u64::MAX;
        let host = &json(&spec, &settings())["HostConfig"];
        assert_eq!(host["PidsLimit"], 7);
        // Memory and swap together are what memory alone may be: no swap.
        assert_eq!((&host["Memory"], &host["MemorySwap"]), (&(1 << 30).into(), &(1 << 30).into()));
        assert_eq!(host["NanoCpus"], 1_500_000_000);
        assert_eq!(host["ShmSize"], i64::MAX);
    }

    #[test]
    fn programs_and_an_exported_workspace_are_read_only() {
        let mut spec = spec();
        spec.workspace_access = MountAccess::ReadOnly;
        spec.programs =
            vec![ProgramMount { host: "/opt/a:b".into(), inside: "/opt/agent".to_owned() }];
        let mounts: Vec<Mount> = spec.binds().into_iter().map(mount).collect();
        assert_eq!(mounts[0].read_only, Some(true));
        let program = mounts.last().expect("a mount");
        assert_eq!(program.source.as_deref(), Some("/opt/a:b"), "a colon has no meaning");
        assert_eq!(
            (program.target.as_deref(), program.read_only),
            (Some("/opt/agent"), Some(true))
        );
    }

    #[test]
    fn command_and_environment_of_the_agent_are_not_in_the_request() {
        let mut spec = spec();
        spec.argv = vec!["agent".to_owned(), "--key=hunter2".to_owned()];
        spec.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
        assert_eq!(json(&spec, &settings()), json(&self::spec(), &settings()));
    }

    #[test]
    fn there_are_three_binds_and_the_guest_folder_is_read_only() {
        let mounts: Vec<Mount> = spec().binds().into_iter().map(mount).collect();
        let seen: Vec<_> =
            mounts.iter().map(|mount| (mount.target.as_deref(), mount.read_only)).collect();
        assert_eq!(
            seen,
            [
                (Some("/workspace"), Some(false)),
                (Some("/harness-state"), Some(false)),
                (Some("/harness-state/run"), Some(true)),
            ]
        );
    }
}
