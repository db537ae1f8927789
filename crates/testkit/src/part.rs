//! Parts of the machine that a test may need: programs and engines.
//!
//! A test that lacks its part says so by name and passes, so that one machine need not have everything; where a part
//! is promised (as in CI), `REQUIRE_<PART>=1` makes the same test fail.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::program;

/// Variable that names the file in which tests list the parts they miss.
const MISSING_PARTS: &str = "BOTTLEWORKS_MISSING_PARTS";

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Bubblewrap, on a kernel that lets the caller make user namespaces.
    Bwrap,
    /// Chromium, to look at pages with.
    Chromium,
    /// The program that drives Chromium.
    Chromedriver,
    /// A container engine that answers on its socket.
    Docker,
    /// faketime, which has a program believe in another time.
    Faketime,
    /// The git program.
    Git,
    /// gitleaks, a scanner for secrets.
    Gitleaks,
    /// mergiraf, a merger that knows languages.
    Mergiraf,
    /// gpg, which signs commits with keys of its own.
    Gpg,
    /// Node, new enough for agents that are written for it.
    Node,
    /// openssl, which knows nothing of us and verifies our signatures all the same.
    Openssl,
    /// Perl, by which the abuse kit makes system calls.
    Perl,
    /// pgbouncer, which gives the connections of a PostgreSQL to many clients.
    Pgbouncer,
    /// The server of PostgreSQL, in the folder of its programs.
    Postgresql,
    /// `setpriv`, by which a test that runs as root becomes an ordinary user.
    Setpriv,
    /// ssh-keygen, which verifies our signatures of commits.
    SshKeygen,
    /// tmux, a terminal that a test can look at.
    Tmux,
    /// versitygw, a server of S3 on a folder.
    Versitygw,
}

/// Path of the part (a program, or the socket of an engine); `None` after reporting that it is missing.
///
/// # Panics
/// When the part is missing and `REQUIRE_<PART>=1` is set.
pub fn require(part: Part) -> Option<PathBuf> {
    let found = part.find();
    if found.is_none() {
        complain(&part.complaint(), part.name());
    }
    found
}

/// A folder that the environment names, such as one with installed programs; `None` after saying that it is missing.
///
/// # Panics
/// When it is missing and `REQUIRE_<NAME>=1` is set.
pub fn require_folder(name: &str, variable: &str, remedy: &str) -> Option<PathBuf> {
    let found = program::variable(variable).map(PathBuf::from).filter(|path| path.is_dir());
    if found.is_none() {
        complain(&format!("missing part: {name} ({variable} is not set; {remedy})"), name);
    }
    found
}

/// Setting of a part in the environment, such as the name of an image; `None` after reporting that it is missing.
///
/// # Panics
/// When it is missing and `REQUIRE_<NAME>=1` is set.
pub fn require_setting(name: &str, variable: &str, remedy: &str) -> Option<String> {
    let found = program::variable(variable);
    if found.is_none() {
        complain(&format!("missing part: {name} ({variable} is not set; {remedy})"), name);
    }
    found
}

/// Says that a test found a part missing by itself.
///
/// # Panics
/// When `REQUIRE_<NAME>=1` is set.
pub fn missing(name: &str, why: &str) {
    complain(&format!("missing part: {name} ({why})"), name);
}

fn variable_of(name: &str) -> String {
    format!("REQUIRE_{}", name.to_uppercase().replace('-', "_"))
}

/// Says that a part is missing, or fails where it is promised.
fn complain(message: &str, name: &str) {
    let variable = variable_of(name);
    assert!(program::variable(&variable).as_deref() != Some("1"), "{message}; {variable}=1");
    // A runner may keep what a passing test prints, and a test that did nothing must be seen: the file is shown at the
    // end. Not `eprintln`, which the harness keeps too.
    if let Some(path) = program::variable(MISSING_PARTS) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // In one write, because other tests append at the same time.
        let line = format!("{message}\n");
        file.expect("the file of missing parts").write_all(line.as_bytes()).expect("written");
    }
    writeln!(std::io::stderr(), "{message}").expect("stderr is open");
}

impl Part {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Chromium => "chromium",
            Self::Chromedriver => "chromedriver",
            Self::Docker => "docker",
            Self::Faketime => "faketime",
            Self::Git => "git",
            Self::Gitleaks => "gitleaks",
            Self::Gpg => "gpg",
            Self::Mergiraf => "mergiraf",
            Self::Node => "node",
            Self::Openssl => "openssl",
            Self::Perl => "perl",
            Self::Pgbouncer => "pgbouncer",
            Self::Postgresql => "postgresql",
            Self::Setpriv => "setpriv",
            Self::SshKeygen => "ssh-keygen",
            Self::Tmux => "tmux",
            Self::Versitygw => "versitygw",
        }
    }

    /// The variable that makes the part obligatory.
    pub fn variable(self) -> String {
        variable_of(self.name())
    }

    fn complaint(self) -> String {
        let remedy = match self {
            Self::Bwrap => "install bubblewrap and allow user namespaces",
            Self::Chromium => "install chromium",
            Self::Chromedriver => "install chromium-driver",
            Self::Docker => "set DOCKER_HOST or start an engine",
            Self::Faketime => "install faketime",
            Self::Git => "install git",
            Self::Gitleaks => "install gitleaks 8.19 or newer",
            Self::Gpg => "install gnupg",
            Self::Mergiraf => "install mergiraf, as with: cargo install mergiraf",
            Self::Node => "install Node.js 20.6 or newer",
            Self::Openssl => "install openssl",
            Self::Perl => "install perl",
            Self::Pgbouncer => "install pgbouncer",
            Self::Postgresql => "install postgresql",
            Self::Setpriv => "install util-linux",
            Self::SshKeygen => "install openssh-client",
            Self::Tmux => "install tmux",
            Self::Versitygw => "run: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0",
        };
        format!("missing part: {} ({remedy})", self.name())
    }

    fn find(self) -> Option<PathBuf> {
        match self {
            Self::Bwrap => program::find("bwrap").filter(|bwrap| makes_namespaces(bwrap)),
            Self::Docker => {
                engine_sockets().into_iter().find(|path| UnixStream::connect(path).is_ok())
            }
            Self::Pgbouncer => program::find(self.name()).or_else(|| {
                Some(PathBuf::from("/usr/sbin/pgbouncer")).filter(|path| path.is_file())
            }),
            Self::Postgresql => find_postgresql(),
            Self::Versitygw => program::variable("BOTTLEWORKS_TEST_VERSITYGW")
                .map(PathBuf::from)
                .filter(|path| path.is_file())
                .or_else(|| program::find(self.name())),
            Self::Node => program::find("node").filter(|node| is_new_enough(node)),
            Self::Chromium
            | Self::Chromedriver
            | Self::Faketime
            | Self::Git
            | Self::Gitleaks
            | Self::Gpg
            | Self::Mergiraf
            | Self::Openssl
            | Self::Perl
            | Self::Setpriv
            | Self::SshKeygen
            | Self::Tmux => program::find(self.name()),
        }
    }
}

/// The server is in no folder of programs, but in one of its version.
fn find_postgresql() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let servers = versions.map(|version| version.path().join("bin/postgres"));
    servers.filter(|server| server.exists()).max()
}

fn is_new_enough(node: &Path) -> bool {
    let check = "const [a, b] = process.versions.node.split('.').map(Number); process.exit(a > 20 || (a === 20 && b >= 6) ? 0 : 1)";
    program::command(node).args(["-e", check]).status().is_ok_and(|status| status.success())
}

fn makes_namespaces(bwrap: &Path) -> bool {
    // Not the whole tree: bwrap walks its mounts, and those of an engine's containers come and go meanwhile.
    let usr = "--unshare-all --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 /usr/bin/true";
    let trial = program::command(bwrap).args(usr.split(' ')).output();
    trial.is_ok_and(|output| output.status.success())
}

/// The socket that was asked for, or else the usual places.
fn engine_sockets() -> Vec<PathBuf> {
    if let Some(host) = program::variable("DOCKER_HOST") {
        return host.strip_prefix("unix://").map(PathBuf::from).into_iter().collect();
    }
    let runtime = program::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own =
        runtime.iter().flat_map(|dir| [dir.join("docker.sock"), dir.join("podman/podman.sock")]);
    let shared = ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock"];
    own.chain(shared.map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_is_named_with_its_remedy() {
        assert_eq!(
            Part::Docker.complaint(),
            "missing part: docker (set DOCKER_HOST or start an engine)"
        );
        assert_eq!(Part::Docker.variable(), "REQUIRE_DOCKER");
        assert_eq!(Part::SshKeygen.variable(), "REQUIRE_SSH_KEYGEN");
    }

    #[test]
    fn git_is_found_where_it_is() {
        let git = require(Part::Git).expect("these tests need git");
        assert!(git.ends_with("git") && git.is_absolute(), "{}", git.display());
    }
}
