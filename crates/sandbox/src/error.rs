//! Errors of building and driving a box. Events inside a box are never errors here.

use std::path::PathBuf;

/// Failure between this program and the box.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("could not build the image {image}: {reason}")]
    Build { image: String, reason: String },
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
    #[error("could not {doing}")]
    Io { doing: &'static str, source: std::io::Error },
    #[error(transparent)]
    Process(#[from] host::process::ProcessError),
    #[error("the container engine could not {doing}")]
    Engine { doing: &'static str, source: Box<bollard::errors::Error> },
    #[error("the container engine did not answer within {secs} s when asked to {doing}")]
    EngineTimeout { doing: &'static str, secs: u64 },
    #[error(transparent)]
    Seccomp(#[from] crate::seccomp::SeccompError),
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
