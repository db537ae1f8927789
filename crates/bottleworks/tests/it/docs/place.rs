//! Places in which the blocks of a page run: a home of their own, the three commands on the path, and no network needed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::hermetic::{Hermetic, Output};
use testkit::repo::{Fork, Repo};

use super::page::root;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bottleworks");

/// A home with what a page takes for granted.
pub(crate) struct Place {
    hermetic: Hermetic,
    /// Keeps the repositories that the place was made with.
    _fork: Option<Fork>,
}

impl Place {
    /// # Panics
    /// For a kind that is none.
    pub(crate) fn new(kind: &str) -> Self {
        let hermetic = Hermetic::new();
        let fork = match kind {
            "home" => None,
            "fork" => Some(Fork::named(&hermetic, "my-fork").clean_merge()),
            "forks" => {
                Fork::named(&hermetic, "harbour").clean_merge();
                Some(Fork::named(&hermetic, "greeter").clean_merge())
            }
            "checkout" => Some(Fork::named(&hermetic, "my-checkout")),
            "product" => {
                make_product(&hermetic.work().join("my-product"));
                None
            }
            "clone" => {
                make_clone(&hermetic.work().join("bottleworks"));
                None
            }
            "agent" | "bottle" => {
                make_product(&hermetic.work().join("app"));
                make_agent(&hermetic.work().join(".bot-bottle/agents"));
                None
            }
            other => panic!("there is no place {other:?}"),
        };
        let place = Self { hermetic, _fork: fork };
        place.furnish();
        match kind {
            "clone" => place
                .write_state("directory", &place.home().join("bottleworks").display().to_string()),
            "bottle" => place.fill_bottle(),
            _ => {}
        }
        place
    }

    /// The home, which is also where the first command starts.
    pub(crate) fn home(&self) -> PathBuf {
        self.hermetic.work()
    }

    /// Programs, git's identity, and the state that one command leaves to the next.
    fn furnish(&self) {
        let bin = self.hermetic.root().join("bin");
        fs::create_dir(&bin).expect("a folder");
        for name in ["forklift", "wf", "bot-bottle"] {
            symlink(PROGRAM, bin.join(name)).expect("a link");
        }
        let git =
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(self.home().join(".gitconfig"), git).expect("written");
        self.write_state("directory", &self.home().display().to_string());
        self.write_state("variables", "");
    }

    /// Has the scripted agent work in a bottle.
    fn fill_bottle(&self) {
        let start = "cd app && bot-bottle start implementer --headless --prompt 'Add a licence' --label login";
        let output = self.run(start);
        assert_eq!(output.status, Some(0), "{}", output.stdout);
    }

    fn state(&self, name: &str) -> PathBuf {
        self.hermetic.root().join(name)
    }

    fn write_state(&self, name: &str, text: &str) {
        fs::write(self.state(name), text).expect("written");
    }

    /// Runs a script in the folder and with the variables that the one before left, both streams in one.
    pub(crate) fn run(&self, script: &str) -> Output {
        let root = self.hermetic.root().display();
        let text = format!(
            "exec 2>&1 </dev/null\n. {root}/variables\ncd \"$(cat {root}/directory)\"\n\
             trap 'export -p > {root}/variables; pwd > {root}/directory' EXIT\nset -e\n{script}\n"
        );
        self.write_state("script", &text);
        let mut command = self.command("sh");
        command.arg(self.state("script"));
        let mut output = self.hermetic.run(&mut command);
        output.stdout = self.as_on_a_machine(&output.stdout);
        output
    }

    /// A command that starts in the home and has the variables of the place.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.hermetic.command(program);
        let cargo = Path::new(env!("CARGO")).parent().expect("a folder").display().to_string();
        let path = format!("{}/bin:/usr/bin:/bin:{cargo}", self.hermetic.root().display());
        command
            .env_clear()
            .current_dir(self.home())
            .env("PATH", path)
            .env("HOME", self.home())
            .env("TMPDIR", self.hermetic.root().join("tmp"))
            // Boxes of bubblewrap, also where an engine would answer.
            .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
            .env("USER", "ada")
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb")
            // A clone is built by the time that this test runs; make takes the compiler's name from here.
            .env("CARGO", "true");
        command
    }

    /// Replaces the folders of the place by those of a machine.
    fn as_on_a_machine(&self, text: &str) -> String {
        let root = self.hermetic.root().display().to_string();
        // Tests may run as root; readers should not.
        let is_kept = |line: &&str| !line.contains("runs as root; an ordinary user is safer");
        let text: String = text.split_inclusive('\n').filter(is_kept).collect();
        text.replace(&format!("{root}/work"), "/home/ada")
            .replace(&format!("{root}/forge"), "/srv/git")
            .replace(&format!("{root}/tmp"), "/tmp")
            .replace(&root, "/home")
    }
}

/// A product with a test that a Makefile runs.
fn make_product(folder: &Path) {
    let product = Repo::init(folder);
    product
        .write("Makefile", "test-unit:\n\tsh tests/all.sh\n")
        .write("tests/all.sh", "set -e\nfor test in tests/test_*; do sh \"$test\"; done\n")
        .write("tests/test_start", "test -f Makefile\n");
    product.commit("Start");
}

/// A scripted agent that commits and, where there is a forge, says that it is done.
fn make_agent(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let manifest = "provider = \"scripted\"\nscript = \"implementer-steps.txt\"\n";
    fs::write(folder.join("implementer.toml"), manifest).expect("written");
    let steps = "[[step]]\nrun = \"echo free > LICENSE && git add . && git commit -qm 'Add a licence'\"\n\
                 [[step]]\nrun = [\"forge\", \"done\", \"success\", \"there is a licence\"]\nexpect = \"any\"\n";
    fs::write(folder.join("implementer-steps.txt"), steps).expect("written");
}

/// What a clone has for those who try it and install it, built.
fn make_clone(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    for name in ["Makefile", "scripts", "contrib", "examples", "rust-toolchain.toml"] {
        symlink(root().join(name), folder.join(name)).expect("a link");
    }
    for profile in ["debug", "local"] {
        let folder = folder.join("target").join(profile);
        fs::create_dir_all(&folder).expect("a folder");
        symlink(PROGRAM, folder.join("bottleworks")).expect("a link");
    }
}
