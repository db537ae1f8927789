//! The common part of `doctor`: git, the backends, and the backend that a run would use.

use host::cgroup::MemoryControl;
use host::git::{GitError, GitVersion};
use model::exit::ExitStatus;
use sandbox::choice::{self, BackendChoice, BackendFacts, NoBackend};
use serde::Serialize;

use crate::failure::{Failure, OrExit};
use crate::ui::Ui;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub name: String,
    #[serde(rename = "words")]
    pub text: String,
    pub state: FindingState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    Good,
    /// Worth knowing, but no run fails for it.
    #[serde(rename = "told")]
    Odd,
    /// Runs would fail.
    Bad,
}

impl Finding {
    pub fn good(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Good }
    }

    pub fn odd(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Odd }
    }

    pub fn bad(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Bad }
    }
}

/// The way in which the memory limit of a box holds for this user.
pub fn memory_text() -> String {
    let bwrap = match host::cgroup::observe_memory_control() {
        MemoryControl::SystemManager => "limited by the kernel, in a systemd scope".to_owned(),
        MemoryControl::UserManager => {
            "limited by the kernel, in a user scope of systemd".to_owned()
        }
        MemoryControl::Delegated(path) => {
            format!("limited by the kernel, in control groups below {}", path.display())
        }
        MemoryControl::None => "counted by the shim, because this user has no control group \
            of version 2 with a memory controller"
            .to_owned(),
    };
    format!("bwrap: {bwrap}; engines: limited by the kernel, in their control groups")
}

/// Git, the backends and the image on this machine.
#[derive(Debug)]
pub struct MachineReport {
    pub git: Result<GitVersion, GitError>,
    pub found: BackendFacts,
    pub chosen: Result<BackendChoice, NoBackend>,
    image: String,
}

impl MachineReport {
    pub async fn observe(image: &str) -> Self {
        let git = host::git::check_version().await;
        let found = choice::observe(None, image).await;
        let chosen = choice::choose(None, &found, image);
        Self { git, found, chosen, image: image.to_owned() }
    }

    /// Git's version, or the reason why it cannot be used.
    pub fn git_text(&self) -> String {
        self.git.as_ref().map_or_else(ToString::to_string, ToString::to_string)
    }

    pub fn engine_text(&self) -> String {
        let Some(engine) = &self.found.engine else { return "none answers".to_owned() };
        let image = if self.found.has_image { "with" } else { "without the image" };
        format!("{} at {}, {image} {}", engine.version, engine.address, self.image)
    }

    pub fn backend_text(&self) -> String {
        match &self.chosen {
            Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
            Err(error) => error.to_string(),
        }
    }

    pub fn show(&self, ui: &Ui) {
        let bwrap = match &self.found.bwrap {
            Some(path) => path.display().to_string(),
            None => "not found (Debian: apt-get install bubblewrap)".to_owned(),
        };
        ui.result("git", &self.git_text());
        ui.result("bwrap", &bwrap);
        ui.result("engine", &self.engine_text());
        ui.result("backend", &self.backend_text());
        ui.result("memory", &memory_text());
    }

    /// Fails if no run could start here.
    pub fn check<S: ExitStatus>(self) -> Result<(), Failure<S>> {
        self.git.or_exit(S::USAGE)?;
        self.chosen.or_exit(S::USAGE)?;
        Ok(())
    }
}
