//! Why a box could not be built or driven. What happens inside a box is never an error here.

use std::path::PathBuf;

/// Something between this program and the box went wrong.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("could not build the image {image}: {reason}")]
    Build {
        /// The name that it was to get.
        image: String,
        reason: String,
    },
    #[error("{program} was not found; install it (Debian: apt-get install {package})")]
    Missing { program: &'static str, package: &'static str },
    #[error("the {backend} backend cannot use {root} as the root of a box; {hint}")]
    Root { backend: &'static str, root: String, hint: &'static str },
    #[error(
        "no container engine answers ({tried}); start Docker or podman, or use --backend bwrap"
    )]
    NoEngine { tried: String },
    #[error(
        "the container engine has no image '{image}'; build or load it, or use --backend bwrap"
    )]
    NoImage { image: String },
    #[error("could not prepare {path}", path = path.display())]
    Prepare { path: PathBuf, source: std::io::Error },
    /// The box's program could not be started or spoken to.
    #[error("could not {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        source: std::io::Error,
    },
    #[error(transparent)]
    Process(#[from] host::process::ProcessError),
    #[error("the container engine could not {doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        source: Box<bollard::errors::Error>,
    },
    #[error("the container engine did not answer within {secs} s when asked to {doing}")]
    EngineTimeout {
        /// What was being done.
        doing: &'static str,
        /// How long was waited.
        secs: u64,
    },
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
