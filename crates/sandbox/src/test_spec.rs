//! One spec for the tests of this crate.

use std::collections::BTreeMap;

use model::id::{BoxName, RunId};

use crate::spec::{BoxLimits, BoxOutput, BoxSpec, BoxUser, MountAccess, Root};

pub(crate) fn spec() -> BoxSpec {
    BoxSpec {
        run: RunId::parse("fork_20260102_030405").expect("legal"),
        name: BoxName::parse("agent").expect("legal"),
        root: Root::HostUsr,
        workspace: "/runs/r/workspace".into(),
        workspace_access: MountAccess::ReadWrite,
        harness_state: "/runs/r/harness-state".into(),
        box_dir: "/runs/r/boxes/agent".into(),
        programs: vec![],
        argv: vec!["true".to_owned()],
        env: BTreeMap::new(),
        cwd: "/workspace".to_owned(),
        relays: vec![],
        probe_addresses: vec![],
        user: BoxUser::DEFAULT,
        limits: BoxLimits::default(),
        output: BoxOutput::Log { cap: 1 << 20 },
        deadline_secs: 480,
        silence_secs: None,
        terminal: None,
        grace_ms: 5000,
    }
}
