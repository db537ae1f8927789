//! A real container engine, and a promise that the three programs keep alike on it: no agent is started while a container
//! of a killed run still works.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::hermetic::{Hermetic, Output};
use crate::part::{Part, require, require_setting};
use crate::wait::{wait_for, wait_until};

/// An engine that holds the image of the suites.
#[derive(Debug)]
pub struct ContainerEngine {
    /// Value of `DOCKER_HOST`.
    pub host: String,
    /// Image of the boxes.
    pub image: String,
}

impl ContainerEngine {
    /// Finds the engine; `None` when it or its image is missing, which is then reported by name.
    pub fn find() -> Option<Self> {
        let socket = require(Part::Docker)?;
        let remedy = "run scripts/test-engine start";
        let image = require_setting("image", "BOTTLEWORKS_TEST_IMAGE", remedy)?;
        Some(Self { host: format!("unix://{}", socket.display()), image })
    }

    /// Containers, running or not, that mount a folder of this test.
    pub fn containers(&self, hermetic: &Hermetic) -> Vec<String> {
        self.listed(hermetic, &["--all"])
    }

    fn listed(&self, hermetic: &Hermetic, flags: &[&str]) -> Vec<String> {
        let mut command = hermetic.command("docker");
        let format = "{{.ID}} {{.Mounts}}";
        let label = "label=bottle.run";
        let args = ["ps", "--no-trunc", "--filter", label, "--format", format];
        let listed = hermetic.run_ok(command.args(["-H", &self.host]).args(args).args(flags));
        let root = hermetic.root().to_string_lossy().into_owned();
        let mine = |line: &&str| line.contains(&root);
        listed.stdout.lines().filter(mine).map(str::to_owned).collect()
    }

    /// Starts `first`, whose agent sleeps; kills it and the shim of its box when the container runs, so that the container
    /// is an orphan; then runs `next`, which must remove it. Returns how `next` ended.
    ///
    /// # Panics
    /// When the container of the first run is still there after `next`.
    pub fn removes_the_orphan(
        &self,
        hermetic: &Hermetic,
        first: &mut Command,
        shim: impl Fn() -> Option<std::path::PathBuf>,
        next: impl FnOnce() -> Command,
    ) -> Output {
        let mut child = self.start(first);
        // Before the box of the run there is one that tries the engine; it removes itself.
        let shim = wait_for("the shim's record", || shim().and_then(|path| shim_pid(&path)));
        let orphans = wait_for("the container of the first run", || {
            let found = self.listed(hermetic, &[]);
            (!found.is_empty()).then_some(found)
        });
        child.kill().expect("the first run is killed");
        child.wait().expect("the first run has ended");
        hermetic.run_ok(hermetic.command("kill").args(["-KILL", &shim]));
        wait_until("the shim to be gone", || !Path::new("/proc").join(&shim).exists());
        assert_eq!(self.containers(hermetic).len(), orphans.len(), "the orphan is there");
        let output = hermetic.run(next().env("DOCKER_HOST", &self.host));
        let left = self.containers(hermetic);
        assert!(left.iter().all(|it| !orphans.contains(it)), "{left:?}: {}", output.snapshot());
        output
    }

    fn start(&self, command: &mut Command) -> Child {
        command.env("DOCKER_HOST", &self.host);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the first run starts")
    }
}

/// Process id in a shim's record; `None` until the record is complete.
fn shim_pid(path: &Path) -> Option<String> {
    let record: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    record["process"]["pid"].as_u64().map(|pid| pid.to_string())
}
