//! What supervising a run costs in memory: shim and proxy, which are one process, of ten boxes that sleep side by side,
//! beside ten plain `bwrap` that do the same. Shared pages count with their share.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use egress::model_route::{AuthStyle, Upstream};
use egress::{EgressConfig, EgressPolicy, EgressProfile, KeySource, ModelRouteSpec};
use engine::box_dir::BoxDir;
use engine::launch::{BoxEgress, Launcher, attach, stop};
use engine::shim::EGRESS_SOCKET;
use engine::workspace::{give, make_harness_state};
use host::proc::{descendants, observe_memory};
use model::id::{BoxName, RunId};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, BoxOutput, BoxRelay, BoxSpec, BoxUser, MIB, MountAccess, Root};
use testkit::measure::row;

const RUNS: usize = 10;
const RELAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
const OUTPUT: BoxOutput = BoxOutput::Log { cap: MIB };
/// Says that it is there, then does nothing.
const SLEEP: [&str; 3] = ["/bin/sh", "-c", "echo up; exec sleep 60"];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut places = Vec::new();
    for run in 0..RUNS {
        let box_dir = launch(&dir.path().join(run.to_string()));
        wait_until_up(&box_dir).await;
        places.push(box_dir);
    }
    let mut plain: Vec<Child> = (0..RUNS).map(|_| start_plain_bwrap()).collect();

    let shims: Vec<i32> = places.iter().map(pid_of_shim).collect();
    let bwraps: Vec<i32> = plain.iter().map(|child| child.id().cast_signed()).collect();
    let alone = |pid| vec![pid];
    print("memory, shim and proxy", &shims, "bwrap sleep, the outer process", &bwraps, alone);
    print("memory, with all of the box", &shims, "bwrap sleep, all of it", &bwraps, descendants);

    for child in &mut plain {
        child.kill().expect("ended");
        child.wait().expect("gone");
    }
    for box_dir in &places {
        assert!(stop(box_dir).expect("told"), "the shim is gone");
        assert_eq!(attach(box_dir).await.expect("a record").ended, Ended::Stopped);
    }
}

fn print(name: &str, ours: &[i32], yardstick: &str, theirs: &[i32], of: fn(i32) -> Vec<i32>) {
    let median = |pids: &[i32]| {
        let mut sizes: Vec<u64> = pids.iter().map(|pid| observe_memory(&of(*pid)).bytes).collect();
        sizes.sort_unstable();
        sizes[sizes.len() / 2] as f64 / MIB as f64
    };
    let (ours, theirs) = (median(ours), median(theirs));
    row(&format!("{name:<44} {ours:>9.2} MiB  {yardstick:<36} {theirs:>9.2} MiB"));
}

fn launch(dir: &Path) -> BoxDir {
    let user = BoxUser::of_caller();
    let spec = spec(dir, user);
    std::fs::create_dir_all(&spec.workspace).expect("made");
    give(&spec.workspace, user).expect("given");
    make_harness_state(&spec.harness_state, user).expect("made");
    let launcher = Launcher {
        program: env!("CARGO_BIN_EXE_bottle-shim").into(),
        words: Vec::new(),
        backend: BackendKind::Bwrap,
        secrets: Vec::new(),
        lease: None,
    };
    let box_dir = BoxDir::new(&spec.box_dir);
    // A model that is never called, though all is loaded that a call would need.
    let upstream = Upstream::parse("https://model.example").expect("an address");
    let model =
        ModelRouteSpec::new(upstream, AuthStyle::Bearer, KeySource::None, "key-of-this-run");
    let config = EgressConfig {
        run: spec.run.to_string(),
        policy: EgressPolicy::new(EgressProfile::ModelOnly),
        model: Some(model),
        log_path: box_dir.egress_log(),
    };
    launcher.launch(&spec, Some(&BoxEgress { config, keys: Vec::new() })).expect("launched")
}

fn spec(dir: &Path, user: BoxUser) -> BoxSpec {
    BoxSpec {
        run: RunId::parse("bench").expect("legal"),
        name: BoxName::parse("agent").expect("legal"),
        root: Root::HostUsr,
        workspace: dir.join("workspace"),
        workspace_access: MountAccess::ReadWrite,
        harness_state: dir.join("harness-state"),
        box_dir: dir.join("boxes/agent"),
        programs: Vec::new(),
        argv: SLEEP.map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        cwd: "/workspace".to_owned(),
        relays: vec![BoxRelay { listen: RELAY, socket: EGRESS_SOCKET.to_owned() }],
        probe_addresses: Vec::new(),
        user,
        limits: BoxLimits::default(),
        output: OUTPUT,
        deadline_secs: 60,
        silence_secs: None,
        terminal: None,
        grace_ms: 1000,
    }
}

async fn wait_until_up(box_dir: &BoxDir) {
    for _ in 0..1000 {
        if std::fs::read_to_string(box_dir.stdout(OUTPUT)).is_ok_and(|text| text.contains("up")) {
            return;
        }
        let ended = box_dir.load_exit().expect("a folder that can be read");
        assert!(ended.is_none(), "it ended at once: {ended:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the box in {} did not come up", box_dir.path().display());
}

fn pid_of_shim(box_dir: &BoxDir) -> i32 {
    box_dir.load_shim().expect("a record").expect("a shim").process.pid
}

#[expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]
fn start_plain_bwrap() -> Child {
    let mut child = Command::new("bwrap")
        .args(["--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"])
        .args(["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"])
        .args(["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"])
        .args(["--tmpfs", "/tmp"])
        .args(SLEEP)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = child.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("a word");
    assert_eq!(line, "up\n");
    child
}
