//! The programs of agents on this host: put there from npm in a pinned version, or the user's own on the PATH, and bound
//! read-only into boxes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::program::{AGENTS_DIR, Cpu, Program, Runtime};
use host::file::FileError;
use host::process::{ProcessError, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use sandbox::spec::ProgramMount;

/// Time limit for a few hundred megabytes over a slow line.
const INSTALL_LIMIT: Duration = Duration::from_secs(1200);

/// Time limit for a program to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub mount: ProgramMount,
    /// Command that starts it in the box.
    pub launcher: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("npm was not found; install Node.js with npm to install agents")]
    NoNpm,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("npm could not install {spec}: {reason}")]
    Npm { spec: String, reason: String },
    #[error("{spec} has no {entry} for this machine")]
    NoEntry { spec: String, entry: &'static str },
    #[error(transparent)]
    File(#[from] FileError),
}

/// The folder of a program's version, below the folder of all agents.
pub fn folder_of(agents: &Path, program: &Program) -> PathBuf {
    agents.join(program.name).join(program.version)
}

pub fn find(agents: &Path, program: &Program) -> Option<Installed> {
    let folder = folder_of(agents, program);
    let cpu = this_cpu();
    folder.join(program.entry(cpu)).is_file().then(|| Installed {
        mount: ProgramMount { host: folder, inside: format!("{AGENTS_DIR}/{}", program.name) },
        launcher: program.launcher(cpu),
    })
}

/// Finds a program: the installed one, or else the user's own on the PATH.
pub fn find_any(agents: &Path, program: &Program) -> Option<Installed> {
    find(agents, program).or_else(|| find_on_path(program))
}

/// Finds the user's own program. A launcher that is a script for Node or for a version manager stands for a native program that
/// is elsewhere; one that leads to none of the known places cannot run in a box.
fn find_on_path(program: &Program) -> Option<Installed> {
    let found = host::tool::which(program.name)?;
    locate(program, &std::fs::canonicalize(found).ok()?, this_cpu())
}

fn locate(program: &Program, path: &Path, cpu: Cpu) -> Option<Installed> {
    let inside = format!("{AGENTS_DIR}/{}", program.name);
    // In an npm package the program is below the launcher's own package or beside it.
    let has_entry = |folder: &&Path| folder.join(program.entry(cpu)).is_file();
    if let Some(folder) = path.ancestors().skip(1).find(has_entry) {
        let packages = "node_modules";
        let mount =
            ProgramMount { host: folder.join(packages), inside: format!("{inside}/{packages}") };
        return Some(Installed { mount, launcher: program.launcher(cpu) });
    }
    if program.runtime != Runtime::Native || !is_elf(path) {
        return None;
    }
    let inside = format!("{inside}/{}", program.name);
    let mount = ProgramMount { host: path.to_path_buf(), inside: inside.clone() };
    Some(Installed { mount, launcher: vec![inside] })
}

fn is_elf(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"\x7fELF"
}

/// Installs a program. It appears under its final name only when it is complete.
pub async fn install(
    agents: &Path,
    program: &Program,
    cancel: &Cancel,
) -> Result<Installed, InstallError> {
    if let Some(there) = find(agents, program) {
        return Ok(there);
    }
    let npm = host::tool::which("npm").ok_or(InstallError::NoNpm)?;
    let folder = folder_of(agents, program);
    let half = folder.with_extension("half");
    if half.exists() {
        host::file::remove_tree_safely(&half)?;
    }
    std::fs::create_dir_all(&half).map_err(FileError::io("create", &half))?;
    let argv = program.argv_install(&half.to_string_lossy());
    let command = npm_command(&npm, argv.get(1..).unwrap_or_default(), &half);
    let limits = RunLimits { timeout: Some(INSTALL_LIMIT), ..RunLimits::default() };
    let output = run(&command, &limits, cancel).await?;
    if output.exit != CommandExit::Exited(0) {
        let reason = npm_reason(&String::from_utf8_lossy(&output.stderr));
        return Err(InstallError::Npm { spec: program.spec(), reason });
    }
    let entry = program.entry(this_cpu());
    if !half.join(entry).is_file() {
        return Err(InstallError::NoEntry { spec: program.spec(), entry });
    }
    if folder.exists() {
        host::file::remove_tree_safely(&folder)?;
    }
    std::fs::rename(&half, &folder).map_err(FileError::io("move into place", &folder))?;
    find(agents, program).ok_or(InstallError::NoEntry { spec: program.spec(), entry })
}

/// Describes the runtime that the program needs and this machine lacks.
pub async fn missing_runtime(program: &Program) -> Option<String> {
    let Runtime::Node { major, minor } = program.runtime else { return None };
    let version = host::tool::tool_version("node", &["--version"], VERSION_LIMIT).await;
    let enough = version
        .as_deref()
        .and_then(parse_node_version)
        .is_some_and(|found| found >= (major, minor));
    let found = version.unwrap_or_else(|| "none".to_owned());
    (!enough)
        .then(|| format!("{} needs Node.js {major}.{minor} or newer; found: {found}", program.name))
}

/// Parses `v20.11.1`.
fn parse_node_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// npm needs its caller's settings (registry, proxy, certificates), and nothing else of the environment.
fn npm_command(npm: &Path, args: &[String], cwd: &Path) -> CommandSpec {
    let mut command = CommandSpec::new(npm).args(args).cwd(cwd);
    let wanted = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("npm_config_")
            || name.ends_with("_proxy")
            || matches!(name.as_str(), "path" | "home" | "node_extra_ca_certs" | "ssl_cert_file")
    };
    for (name, value) in host::env::vars_os() {
        if name.to_str().is_some_and(wanted) {
            command = command.env(name, value);
        }
    }
    command
}

fn this_cpu() -> Cpu {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match std::env::consts::ARCH {
        "aarch64" => Cpu::Arm64,
        _ if flags.contains(" avx2") => Cpu::X64,
        _ => Cpu::X64Baseline,
    }
}

/// Lines of npm's reason that are shown.
const REASON_LINES: usize = 4;

/// npm's own reason: the first of its errors, without the pointer to its log that they end with.
fn npm_reason(stderr: &str) -> String {
    let said = stderr.lines().filter_map(|line| {
        let line = line.strip_prefix("npm error").or_else(|| line.strip_prefix("npm ERR!"))?.trim();
        let is_reason = !line.is_empty() && !line.starts_with("A complete log of this run");
        is_reason.then_some(line)
    });
    let said: Vec<&str> = said.take(REASON_LINES).collect();
    let last = || stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    let reason = if said.is_empty() { last().to_owned() } else { said.join("; ") };
    model::escape::escape_line(&reason).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_npms_first_error_and_not_the_place_of_its_log() {
        let log = "npm error A complete log of this run can be found in: /x.log\n";
        for (stderr, expected) in [
            (
                format!(
                    "npm warn old\nnpm error code E404\nnpm error\nnpm error 404 Not Found\n{log}"
                ),
                "code E404; 404 Not Found",
            ),
            ("npm ERR! code ENOSPC\nnpm ERR! errno -28\n".to_owned(), "code ENOSPC; errno -28"),
            ("node: bad option\n\n".to_owned(), "node: bad option"),
            (String::new(), "it said nothing"),
        ] {
            assert_eq!(npm_reason(&stderr), expected);
        }
    }

    #[test]
    fn a_program_on_the_path_is_found_behind_its_launcher() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &[u8]| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let codex = agent::Provider::Codex.program().unwrap();
        let found = |path: &Path| {
            let found = locate(&codex, path, Cpu::X64)?;
            let host = found.mount.host.strip_prefix(dir.path()).unwrap().display().to_string();
            Some([host, found.mount.inside, found.launcher.join(" ")])
        };
        let script = write("lib/node_modules/@openai/codex/bin/codex.js", b"#!/usr/bin/env node");
        assert_eq!(found(&script), None);
        write(&format!("lib/{}", codex.entry(Cpu::X64)), b"\x7fELF");
        let launcher = codex.launcher(Cpu::X64).join(" ");
        let beside = ["lib/node_modules", "/opt/agents/codex/node_modules", &launcher];
        assert_eq!(found(&script).unwrap(), beside);
        let native = write("versions/1.2.3", b"\x7fELF and more");
        let inside = "/opt/agents/codex/codex";
        assert_eq!(found(&native).unwrap(), ["versions/1.2.3", inside, inside]);
        let pi = agent::Provider::Pi.program().unwrap();
        assert_eq!(locate(&pi, &native, Cpu::X64), None);
    }

    #[test]
    fn versions_of_node_are_compared_by_number() {
        assert_eq!(parse_node_version("v20.11.1\n"), Some((20, 11)));
        assert!(parse_node_version("v18.19.0") < Some((20, 6)));
        assert_eq!(parse_node_version("none"), None);
    }
}
