//! A workspace, a harness state and canaries, and two ways to run an attempt on them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::abuse::{Attempt, Canaries, Outcome, variable};
use testkit::part::{Part, require};
use testkit::{Fork, Hermetic};

/// The size of `/tmp`, and of `/dev/shm`, in the box.
pub(crate) const TMP_KIB: u64 = 4 << 10;

/// Everything that an attempt may touch, owned by an ordinary user.
pub(crate) struct Scene {
    pub(crate) hermetic: Hermetic,
    pub(crate) workspace: PathBuf,
    pub(crate) guest: PathBuf,
    pub(crate) canaries: Canaries,
    state: PathBuf,
    caller: u32,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let hermetic = Hermetic::new();
        let fork = Fork::named(&hermetic, "workspace").clean_merge();
        fork.checkout.git(&["fetch", "--quiet", "upstream"]);
        let workspace = fork.checkout.dir().to_owned();
        let folder = |name: &str| {
            let folder = hermetic.root().join(name);
            fs::create_dir(&folder).expect("a folder");
            folder
        };
        let (state, guest, host, markers) =
            (folder("state"), folder("guest"), folder("host"), folder("markers"));
        fs::create_dir(state.join("home")).expect("a home");
        fs::create_dir(state.join("run")).expect("a mount point");
        fs::write(guest.join("config.json"), "{}\n").expect("a configuration");
        let canaries = Canaries::start(&host);
        let caller = fs::metadata(hermetic.root()).expect("the folder is there").uid();
        // The ordinary user behind the box has to get to its folders.
        fs::set_permissions(hermetic.root(), fs::Permissions::from_mode(0o755))
            .expect("our own folder");
        let scene = Self { hermetic, workspace, guest, canaries, state, caller };
        for path in [&scene.workspace, &scene.state, &scene.guest, &markers] {
            give(path, scene.user());
        }
        scene
    }

    /// Folder in which the agent's code leaves its marks if the host runs it.
    pub(crate) fn markers(&self) -> PathBuf {
        self.hermetic.root().join("markers")
    }

    /// Runs an attempt as whoever runs the tests, in no box.
    pub(crate) fn outside(&self, attempt: &Attempt, extra: &[(&str, String)]) -> Option<Outcome> {
        let mut command = self.hermetic.command("sh");
        command.args(["-c", attempt.script]).current_dir(&self.workspace).envs(self.env(extra));
        Outcome::parse(&self.hermetic.run(&mut command).stdout)
    }

    /// Runs an attempt as an ordinary user in a plain box, after a line of the caller's.
    pub(crate) fn boxed(
        &self,
        bwrap: &Path,
        attempt: &Attempt,
        before: &str,
        extra: &[(&str, String)],
    ) -> String {
        let mut command = self.command_as_user(bwrap);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/harness-state/home");
        command.envs(self.env(extra));
        command.args(["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]);
        command.args(["--new-session", "--cap-drop", "ALL", "--hostname", "bottle"]);
        command.args(["--uid", "1000", "--gid", "1000", "--ro-bind", "/usr", "/usr"]);
        for folder in ["bin", "lib", "lib64"] {
            command.args(["--symlink", &format!("usr/{folder}"), &format!("/{folder}")]);
        }
        command.args(["--proc", "/proc", "--dev", "/dev"]);
        for folder in ["/tmp", "/dev/shm"] {
            command.args(["--size", &(TMP_KIB << 10).to_string(), "--tmpfs", folder]);
        }
        command.arg("--bind").arg(&self.workspace).arg("/workspace");
        command.arg("--bind").arg(&self.state).arg("/harness-state");
        command.arg("--ro-bind").arg(&self.guest).arg("/harness-state/run");
        command.args(["--remount-ro", "/", "--chdir", "/workspace"]);
        command.args(["sh", "-c", &format!("{before}\n{}", attempt.script)]);
        self.hermetic.run(&mut command).stdout
    }

    fn user(&self) -> u32 {
        if self.caller == 0 { 1000 } else { self.caller }
    }

    fn command_as_user(&self, program: &Path) -> Command {
        if self.caller != 0 {
            return self.hermetic.command(program);
        }
        let setpriv =
            require(Part::Setpriv).expect("root needs setpriv to become an ordinary user");
        let user = self.user().to_string();
        let mut command = self.hermetic.command(setpriv);
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
        command
    }

    fn env(&self, extra: &[(&str, String)]) -> BTreeMap<String, String> {
        let mut env = self.canaries.env();
        env.insert(variable::MARKER_DIR.to_owned(), self.markers().display().to_string());
        env.extend(extra.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        env
    }
}

/// Makes everything below a path belong to a user: links themselves, never what they lead to.
fn give(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).expect("a new owner");
    if fs::symlink_metadata(path).expect("the path is there").is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            give(&entry.expect("an entry").path(), user);
        }
    }
}
