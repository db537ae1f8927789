//! The common part of `doctor`: what this machine offers, which backend a run would use and why.

use host::git::{GitError, GitVersion};
use model::exit::ExitStatus;
use sandbox::choice::{self, BackendChoice, BackendFacts, NoBackend};
use serde::Serialize;

use crate::failure::{Failure, OrExit};
use crate::ui::Ui;

/// One finding of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub name: String,
    #[serde(rename = "words")]
    pub text: String,
    pub state: FindingState,
}

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// As it should be.
    Good,
    /// Worth knowing, and in the way of nothing.
    #[serde(rename = "told")]
    Odd,
    /// Runs would fail.
    Bad,
}

impl Finding {
    /// Something is as it should be.
    pub fn good(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Good }
    }

    /// Something is worth knowing.
    pub fn odd(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Odd }
    }

    /// Something must be put right first.
    pub fn bad(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), state: FindingState::Bad }
    }
}

/// What this machine offers for boxes with one image.
#[derive(Debug)]
pub struct MachineReport {
    pub git: Result<GitVersion, GitError>,
    pub found: BackendFacts,
    /// The backend that a run would use.
    pub chosen: Result<BackendChoice, NoBackend>,
    image: String,
}

impl MachineReport {
    /// Looks at git, at both backends and for the image.
    pub async fn observe(image: &str) -> Self {
        let git = host::git::check_version().await;
        let found = choice::observe(None, image).await;
        let chosen = choice::choose(None, &found, image);
        Self { git, found, chosen, image: image.to_owned() }
    }

    /// Git's version, or why it cannot be used.
    pub fn git_text(&self) -> String {
        self.git.as_ref().map_or_else(ToString::to_string, ToString::to_string)
    }

    /// The engine that answers, and whether it holds the image.
    pub fn engine_text(&self) -> String {
        let Some(engine) = &self.found.engine else { return "none answers".to_owned() };
        let image = if self.found.has_image { "with" } else { "without the image" };
        format!("{} at {}, {image} {}", engine.version, engine.address, self.image)
    }

    /// The backend and the reason for it, or why there is none.
    pub fn backend_text(&self) -> String {
        match &self.chosen {
            Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
            Err(error) => error.to_string(),
        }
    }

    /// Prints what was found.
    pub fn show(&self, ui: &Ui) {
        let bwrap = match &self.found.bwrap {
            Some(path) => path.display().to_string(),
            None => "not found (Debian: apt-get install bubblewrap)".to_owned(),
        };
        ui.result("git", &self.git_text());
        ui.result("bwrap", &bwrap);
        ui.result("engine", &self.engine_text());
        ui.result("backend", &self.backend_text());
    }

    /// Fails if no run could start here.
    pub fn check<S: ExitStatus>(self) -> Result<(), Failure<S>> {
        self.git.or_exit(S::USAGE)?;
        self.chosen.or_exit(S::USAGE)?;
        Ok(())
    }
}
