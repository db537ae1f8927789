//! A rig: the folders of one run, one backend and a launcher. Tests say what to run in a box and look at what came of
//! it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use engine::box_dir::BoxDir;
use engine::launch::{self, Launcher, attach};
use engine::lease_file::LeaseFile;
use engine::record::ExitRecord;
use engine::workspace::{give, make_harness_state};
use host::process::{Signal, send_signal};
use model::id::{BoxName, RunId};
use model::secret::Secret;
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, BoxOutput, BoxSpec, BoxUser, MIB, MountAccess, Root};
use tempfile::TempDir;

use super::{eventually, part, token};

/// Bytes of standard output that are kept unless a test says otherwise.
const LOG_CAP: u64 = MIB;

/// The folders of one run and the means to start boxes on them.
pub(crate) struct Rig {
    dir: Arc<TempDir>,
    root: Root,
    run: RunId,
    boxes: Arc<AtomicU32>,
    launched: Mutex<Vec<BoxDir>>,
    /// How boxes are started.
    pub(crate) launcher: Launcher,
}

impl Rig {
    /// A rig on this backend; `None`, after saying so, if the machine lacks it.
    pub(crate) fn on(kind: BackendKind) -> Option<Self> {
        let root = part::root_of(kind)?;
        let rig = Self {
            dir: Arc::new(tempfile::tempdir().expect("a temporary folder")),
            root,
            run: RunId::parse(&token()).expect("a run id"),
            boxes: Arc::default(),
            launched: Mutex::default(),
            launcher: Self::launcher_of(kind),
        };
        // Runs lie where nobody else may go, and so do all of these.
        fs::set_permissions(rig.dir(), fs::Permissions::from_mode(0o700)).expect("our own folder");
        fs::create_dir(rig.workspace()).expect("the workspace");
        give(&rig.workspace(), rig.user()).expect("an owner of the workspace");
        make_harness_state(&rig.harness_state(), rig.user()).expect("the harness state");
        Some(rig)
    }

    /// The same folders with the other backend, if the machine has it.
    pub(crate) fn on_the_other_backend(&self) -> Option<Self> {
        let kind = match self.kind() {
            BackendKind::Bwrap => BackendKind::Docker,
            BackendKind::Docker => BackendKind::Bwrap,
        };
        let root = part::root_of(kind)?;
        Some(Self {
            dir: Arc::clone(&self.dir),
            root,
            run: self.run.clone(),
            boxes: Arc::clone(&self.boxes),
            launched: Mutex::default(),
            launcher: Launcher { backend: kind, ..self.launcher.clone() },
        })
    }

    /// Starts boxes on this backend by the shim that was built with these tests.
    pub(crate) fn launcher_of(kind: BackendKind) -> Launcher {
        Launcher {
            program: env!("CARGO_BIN_EXE_bottle-shim").into(),
            words: Vec::new(),
            backend: kind,
            secrets: Vec::new(),
            lease: None,
        }
    }

    pub(crate) fn kind(&self) -> BackendKind {
        self.launcher.backend
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir().join("workspace")
    }

    pub(crate) fn harness_state(&self) -> PathBuf {
        self.dir().join("harness-state")
    }

    /// Who the boxes run as on this host.
    pub(crate) fn user(&self) -> BoxUser {
        BoxUser::of_caller()
    }

    /// Who they run as inside. Bubblewrap maps the user, an engine does not.
    pub(crate) fn uid_inside(&self) -> u32 {
        match self.kind() {
            BackendKind::Bwrap => 1000,
            BackendKind::Docker => self.user().uid,
        }
    }

    /// A box that runs a shell script in the workspace.
    pub(crate) fn sh(&self, script: &str) -> Sh<'_> {
        self.argv(&["sh", "-c", script])
    }

    /// A box that runs a command in the workspace.
    pub(crate) fn argv(&self, argv: &[&str]) -> Sh<'_> {
        let number = self.boxes.fetch_add(1, Ordering::Relaxed);
        let name = BoxName::parse(&format!("box-{number}")).expect("a box name");
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/harness-state/home")];
        let spec = BoxSpec {
            run: self.run.clone(),
            box_dir: self.dir().join("boxes").join(name.as_str()),
            name,
            root: self.root.clone(),
            workspace: self.workspace(),
            workspace_access: MountAccess::ReadWrite,
            harness_state: self.harness_state(),
            programs: Vec::new(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            cwd: guest::WORKSPACE.to_owned(),
            relays: Vec::new(),
            probe_addresses: Vec::new(),
            user: self.user(),
            limits: BoxLimits { free_floor_bytes: 64 * MIB, ..BoxLimits::default() },
            output: BoxOutput::Log { cap: LOG_CAP },
            deadline_secs: 600,
            silence_secs: None,
            terminal: None,
            grace_ms: 1000,
        };
        Sh { rig: self, spec, launcher: self.launcher.clone() }
    }
}

/// A failed test leaves nothing running.
impl Drop for Rig {
    fn drop(&mut self) {
        for box_dir in self.launched.get_mut().expect("not poisoned").iter() {
            // Most have ended long ago. One that a test made hang has to wake up to hear of it.
            if let Ok(Some(shim)) = box_dir.load_shim() {
                drop(send_signal(&shim.process, Signal::CONT));
            }
            drop(launch::stop(box_dir));
        }
    }
}

/// A box that is still to be started.
pub(crate) struct Sh<'a> {
    rig: &'a Rig,
    pub(crate) spec: BoxSpec,
    launcher: Launcher,
}

impl<'a> Sh<'a> {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut BoxSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(crate) fn limits(self, change: impl FnOnce(&mut BoxLimits)) -> Self {
        self.with(|spec| change(&mut spec.limits))
    }

    pub(crate) fn deadline_secs(self, secs: u64) -> Self {
        self.with(|spec| spec.deadline_secs = secs)
    }

    pub(crate) fn grace_ms(self, ms: u64) -> Self {
        self.with(|spec| spec.grace_ms = ms)
    }

    pub(crate) fn output(self, output: BoxOutput) -> Self {
        self.with(|spec| spec.output = output)
    }

    pub(crate) fn env(self, name: &str, value: impl Into<String>) -> Self {
        self.with(|spec| drop(spec.env.insert(name.to_owned(), value.into())))
    }

    pub(crate) fn envs(self, more: BTreeMap<String, String>) -> Self {
        self.with(|spec| spec.env.extend(more))
    }

    /// Tells the launcher a secret that must not be written anywhere.
    pub(crate) fn secret(mut self, value: &str) -> Self {
        self.launcher.secrets.push(Secret::new(value));
        self
    }

    /// The box ends with this lease.
    pub(crate) fn lease(mut self, lease: &LeaseFile) -> Self {
        self.launcher.lease = Some(lease.clone());
        self
    }

    pub(crate) fn launch(self) -> Running<'a> {
        let box_dir = self.launcher.launch(&self.spec, None).expect("a launch");
        self.rig.launched.lock().expect("not poisoned").push(box_dir.clone());
        Running { rig: self.rig, spec: self.spec, box_dir }
    }

    /// Runs the box to its end.
    pub(crate) async fn run(self) -> Ran {
        self.launch().end().await
    }

    /// Runs the box to its end, which has to be a good one.
    pub(crate) async fn run_ok(self) -> Ran {
        let ran = self.run().await;
        assert_eq!(ran.record.ended, Ended::Exited { code: 0 }, "{ran:#?}");
        ran
    }
}

/// A box that was started.
pub(crate) struct Running<'a> {
    rig: &'a Rig,
    pub(crate) spec: BoxSpec,
    pub(crate) box_dir: BoxDir,
}

impl Running<'_> {
    /// Waits until the box has made a file in its workspace.
    pub(crate) async fn made(&self, name: &str) {
        let file = self.rig.workspace().join(name);
        let what = format!("{name} in the workspace of {}", self.box_dir.path().display());
        eventually(&what, || file.exists()).await;
    }

    /// Waits until there is a shim to be spoken to.
    pub(crate) async fn watched(&self) -> host::process::ProcessHandle {
        let shim = || self.box_dir.load_shim().expect("a readable record");
        eventually("a shim", || shim().is_some()).await;
        shim().expect("a shim").process
    }

    pub(crate) async fn end(self) -> Ran {
        let record = attach(&self.box_dir).await.expect("a record");
        let read = |path: PathBuf| fs::read(path).unwrap_or_default();
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let bytes = read(self.box_dir.stdout(self.spec.output));
        Ran {
            record,
            stdout: shown(&bytes),
            stderr: shown(&read(self.box_dir.stderr())),
            shim_log: shown(&read(self.box_dir.shim_log())),
            bytes,
            spec: self.spec,
            box_dir: self.box_dir,
        }
    }
}

/// A box that has ended.
pub(crate) struct Ran {
    pub(crate) record: ExitRecord,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) shim_log: String,
    /// Standard output as it is in the file.
    pub(crate) bytes: Vec<u8>,
    pub(crate) spec: BoxSpec,
    pub(crate) box_dir: BoxDir,
}

/// What a person wants to see of a box that did not do what it should.
impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = |text: &str| text.chars().take(2000).collect::<String>();
        f.debug_struct("Ran")
            .field("record", &self.record)
            .field("stdout", &start(&self.stdout))
            .field("stderr", &start(&self.stderr))
            .field("shim_log", &start(&self.shim_log))
            .finish_non_exhaustive()
    }
}
