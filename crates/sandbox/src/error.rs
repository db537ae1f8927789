//! Why a box could not be built or driven. What happens inside a box is never an error here.

use std::path::PathBuf;

/// Something between this program and the box went wrong.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// An image could not be built.
    #[error("could not build the image {image}: {reason}")]
    Build {
        /// The name that it was to get.
        image: String,
        /// What the builder said last.
        reason: String,
    },
    /// A needed program is not installed.
    #[error("{program} was not found; install it (Debian: apt-get install {package})")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The backend cannot use this kind of root.
    #[error("the {backend} backend cannot use {root} as the root of a box; {hint}")]
    Root {
        /// Which backend.
        backend: &'static str,
        /// What was asked for.
        root: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// No engine answered.
    #[error(
        "no container engine answers ({tried}); start Docker or podman, or use --backend bwrap"
    )]
    NoEngine {
        /// Where it was looked for.
        tried: String,
    },
    /// The engine has no such image.
    #[error(
        "the container engine has no image '{image}'; build or load it, or use --backend bwrap"
    )]
    NoImage {
        /// The image.
        image: String,
    },
    /// A file of the box could not be prepared.
    #[error("could not prepare {path}", path = path.display())]
    Prepare {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The box's program could not be started or spoken to.
    #[error("could not {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Starting a program failed.
    #[error(transparent)]
    Process(#[from] host::process::ProcessError),
    /// The engine answered with an error.
    #[error("the container engine could not {doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        source: Box<bollard::errors::Error>,
    },
    /// The engine did not answer in time.
    #[error("the container engine did not answer within {secs} s when asked to {doing}")]
    EngineTimeout {
        /// What was being done.
        doing: &'static str,
        /// How long was waited.
        secs: u64,
    },
    /// The filter could not be built.
    #[error(transparent)]
    Seccomp(#[from] crate::seccomp::SeccompError),
    /// Data that this program wrote could not be written or read as JSON.
    #[error("could not write the box configuration")]
    Json(#[from] serde_json::Error),
}

impl SandboxError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    pub(crate) fn prepare(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Prepare { path, source }
    }
}
