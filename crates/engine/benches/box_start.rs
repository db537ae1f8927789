//! What a sealed box costs: from the order to the moment in which the agent starts, beside plain `bwrap true` and
//! `docker run --network none true`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use engine::launch::{Launcher, attach};
use engine::workspace::{give, make_harness_state};
use model::id::{BoxName, RunId};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, BoxOutput, BoxSpec, BoxUser, MIB, MountAccess, Root};
use testkit::measure::{compare, row, time};

const ROUNDS: usize = 15;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let comparison = compare(
        ROUNDS,
        || runtime.block_on(sealed(BackendKind::Bwrap, Root::HostUsr)),
        || time(plain_bwrap),
    );
    comparison.print("sealed box, bwrap", "bwrap true", 1.3, Duration::from_millis(30));
    match (host::env::var("DOCKER_HOST"), host::env::var("BOTTLEWORKS_TEST_IMAGE")) {
        (Some(_), Some(image)) => {
            let root = Root::Image(image.clone());
            let ours = || runtime.block_on(sealed(BackendKind::Docker, root.clone()));
            let comparison = compare(ROUNDS, ours, || time(|| plain_docker(&image)));
            comparison.print(
                "sealed box, docker",
                "docker run --network none true",
                1.2,
                Duration::ZERO,
            );
        }
        _ => row(
            "sealed box, docker: missing part: docker (set DOCKER_HOST and BOTTLEWORKS_TEST_IMAGE)",
        ),
    }
}

/// From the launch to the guest's word that it starts the agent.
async fn sealed(backend: BackendKind, root: Root) -> Duration {
    let dir = tempfile::tempdir().expect("a folder");
    let user = BoxUser::of_caller();
    let spec = spec(dir.path(), root, user);
    std::fs::create_dir(&spec.workspace).expect("made");
    give(&spec.workspace, user).expect("given");
    make_harness_state(&spec.harness_state, user).expect("made");
    let program = env!("CARGO_BIN_EXE_bottle-shim").into();
    let launcher =
        Launcher { program, words: Vec::new(), backend, secrets: Vec::new(), lease: None };
    let ordered = host::clock::now();
    let box_dir = launcher.launch(&spec, None).expect("launched");
    let record = attach(&box_dir).await.expect("a record");
    assert_eq!(record.ended, Ended::Exited { code: 0 }, "{record:?}");
    let until_shim = record.started_at.duration_since(ordered).unsigned_abs();
    until_shim + Duration::from_millis(record.ready_ms.expect("it was ready"))
}

fn spec(dir: &Path, root: Root, user: BoxUser) -> BoxSpec {
    BoxSpec {
        run: RunId::parse("bench").expect("legal"),
        name: BoxName::parse("agent").expect("legal"),
        root,
        workspace: dir.join("workspace"),
        workspace_access: MountAccess::ReadWrite,
        harness_state: dir.join("harness-state"),
        box_dir: dir.join("boxes/agent"),
        programs: Vec::new(),
        argv: vec!["/bin/true".to_owned()],
        env: BTreeMap::new(),
        cwd: "/workspace".to_owned(),
        relays: Vec::new(),
        probe_addresses: Vec::new(),
        user,
        limits: BoxLimits::default(),
        output: BoxOutput::Log { cap: MIB },
        deadline_secs: 60,
        silence_secs: None,
        terminal: None,
        grace_ms: 1000,
    }
}

fn plain_bwrap() {
    run(
        "bwrap",
        &[
            "--unshare-all",
            "--die-with-parent",
            "--ro-bind",
            "/usr",
            "/usr",
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "true",
        ],
    );
}

fn plain_docker(image: &str) {
    run("docker", &["run", "--rm", "--network", "none", image, "true"]);
}

#[expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]
fn run(program: &str, args: &[&str]) {
    let status =
        Command::new(program).args(args).stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{program} {args:?}: {status}");
}
