//! x
use std::collections::BTreeMap;
use engine::launch::{Launcher, attach};
use model::id::{BoxName, RunId};
use sandbox::backend::BackendKind;
use sandbox::spec::*;

#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    for d in ["workspace","harness-state","boxes"] { std::fs::create_dir(dir.path().join(d)).unwrap(); }
    let user = BoxUser::for_caller(host::env::uid(), host::env::gid());
    engine::workspace::give(&dir.path().join("workspace"), user).unwrap();
    engine::workspace::make_harness_state(&dir.path().join("harness-state"), user).unwrap();
    let docker = std::env::var("BOTTLEWORKS_TEST_IMAGE").ok();
    let spec = BoxSpec {
        run: RunId::parse("smoke_1").unwrap(), name: BoxName::parse("agent").unwrap(),
        root: docker.clone().map_or(Root::HostUsr, Root::Image),
        workspace: dir.path().join("workspace"), workspace_access: Access::ReadWrite,
        harness_state: dir.path().join("harness-state"), place: dir.path().join("boxes/agent"),
        programs: vec![], argv: ["sh","-c","id; ls -la /; ls -la /workspace; cat /proc/self/status | grep -i -E 'seccomp|cap|nonew'; touch /workspace/x /harness-state/y; echo oops >&2; exit 3"].map(str::to_owned).to_vec(),
        env: BTreeMap::from([("PATH".to_owned(),"/usr/bin:/bin".to_owned())]), cwd: "/workspace".into(), relays: vec![], probe_addresses: vec![], user,
        limits: Limits::default(), output: Output::Log{cap: 1<<20}, deadline_secs: 20, grace_ms: 1000,
    };
    let launcher = Launcher { program: env!("CARGO_BIN_EXE_bottle-shim").into(), words: vec![], backend: if docker.is_some() {BackendKind::Docker} else {BackendKind::Bwrap}, secrets: vec![] };
    let place = launcher.launch(&spec).unwrap();
    let record = attach(&place).await.unwrap();
    println!("{record:#?}");
    println!("{}", std::fs::read_to_string(place.stdout(spec.output)).unwrap());
    println!("{}", std::fs::read_to_string(place.stderr()).unwrap());
    println!("{}", std::fs::read_to_string(place.shim_log()).unwrap());
}
