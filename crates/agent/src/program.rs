//! Programs of agents: their packages and installed paths.
//!
//! They are npm packages, installed into a folder of their own that boxes see read-only. Three of them are
//! one native program inside a package per platform, so that no install script has to run and no box needs
//! Node for them.

/// Directory of the installed programs in a box, one folder for each agent.
pub const AGENTS_DIR: &str = "/opt/agents";

/// The program of an agent: package, version and entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// The name of its folder, and of the program on a PATH.
    pub name: &'static str,
    pub package: &'static str,
    /// The version that this crate supports.
    pub version: &'static str,
    pub runtime: Runtime,
    pub(crate) entries: Entries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    Native,
    /// Node, of this version or a newer one.
    Node {
        major: u32,
        minor: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// x86-64 with AVX2.
    X64,
    /// x86-64 without AVX2.
    X64Baseline,
    Arm64,
}

/// Entry point for each processor, relative to the folder of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) x64: &'static str,
    pub(crate) x64_baseline: &'static str,
    pub(crate) arm64: &'static str,
}

impl Entries {
    /// Creates entries with the same file for every processor.
    pub(crate) const fn everywhere(entry: &'static str) -> Self {
        Self { x64: entry, x64_baseline: entry, arm64: entry }
    }
}

impl Program {
    /// Returns the entry point, relative to the folder of an installation.
    pub fn entry(&self, cpu: Cpu) -> &'static str {
        match cpu {
            Cpu::X64 => self.entries.x64,
            Cpu::X64Baseline => self.entries.x64_baseline,
            Cpu::Arm64 => self.entries.arm64,
        }
    }

    pub fn spec(&self) -> String {
        format!("{}@{}", self.package, self.version)
    }

    /// Builds the arguments that install the program into a folder. No script of any package runs.
    pub fn argv_install(&self, folder: &str) -> Vec<String> {
        let options = ["--ignore-scripts", "--no-audit", "--no-fund"];
        let words = ["npm", "install", "--prefix", folder].into_iter().chain(options);
        words.chain([self.spec().as_str()]).map(str::to_owned).collect()
    }

    /// Returns the command that starts the program in a box with the installation below [`AGENTS_DIR`].
    pub fn launcher(&self, cpu: Cpu) -> Vec<String> {
        let path = format!("{AGENTS_DIR}/{}/{}", self.name, self.entry(cpu));
        match self.runtime {
            Runtime::Native => vec![path],
            Runtime::Node { .. } => vec!["node".to_owned(), path],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Provider;

    #[test]
    fn an_installed_program_is_started_by_its_path() {
        let launchers: Vec<_> = Provider::all()
            .filter_map(Provider::program)
            .map(|program| program.launcher(Cpu::X64).join(" "))
            .collect();
        assert_eq!(
            launchers,
            [
                "/opt/agents/opencode/node_modules/opencode-linux-x64/bin/opencode",
                "/opt/agents/codex/node_modules/@openai/codex-linux-x64/vendor/\
                 x86_64-unknown-linux-musl/bin/codex",
                "/opt/agents/claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
                "node /opt/agents/pi/node_modules/@mariozechner/pi-coding-agent/dist/cli.js",
            ]
        );
    }

    #[test]
    fn an_old_processor_gets_the_build_it_can_run() {
        let entry = Provider::OpenCode.program().unwrap().entry(Cpu::X64Baseline);
        assert_eq!(entry, "node_modules/opencode-linux-x64-baseline/bin/opencode");
    }

    #[test]
    fn versions_are_pinned_and_scripts_stay_asleep() {
        let argv = Provider::Pi.program().unwrap().argv_install("/srv/pi");
        assert_eq!(
            argv.join(" "),
            "npm install --prefix /srv/pi --ignore-scripts --no-audit --no-fund \
             @mariozechner/pi-coding-agent@0.73.1"
        );
    }
}
