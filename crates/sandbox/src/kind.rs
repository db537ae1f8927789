//! The kinds of backend, and their differences as methods.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use model::digest::sha256;
use serde::{Deserialize, Serialize};

use crate::docker::{Engine, sweep};
use crate::error::SandboxError;
use crate::seccomp;
use crate::spec::Root;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// Bubblewrap: no daemon, an ordinary user suffices.
    Bwrap,
    /// Docker, or podman through the same API.
    Docker,
}

impl BackendKind {
    /// All of them, in the order in which help texts name them.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::successors(Some(Self::Docker), |kind| kind.next())
    }

    /// The kind after this one in [`Self::all`], so that a new one cannot be left out of it.
    fn next(self) -> Option<Self> {
        match self {
            Self::Docker => Some(Self::Bwrap),
            Self::Bwrap => None,
        }
    }

    /// Removes the boxes of killed shims that still run, and names their runs. Boxes of bubblewrap end with their shim.
    pub async fn remove_orphans(self) -> Result<Vec<String>, SandboxError> {
        match self {
            Self::Docker => {
                let swept = sweep(&Engine::find().await?).await?;
                Ok(swept.into_iter().map(|orphan| orphan.run).collect())
            }
            Self::Bwrap => Ok(Vec::new()),
        }
    }

    /// The name used in flags and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Docker => "docker",
        }
    }

    /// The root file system of a box: `image` on a container engine; otherwise `folder`, or the host's own `/usr`.
    pub fn root(self, image: &str, folder: Option<&Path>) -> Root {
        match self {
            Self::Docker => Root::Image(image.to_owned()),
            Self::Bwrap => folder.map_or(Root::HostUsr, |folder| Root::Folder(folder.to_owned())),
        }
    }

    /// Returns whether boxes come from an image that an engine holds.
    pub fn uses_image(self) -> bool {
        match self {
            Self::Docker => true,
            Self::Bwrap => false,
        }
    }

    /// SHA-256 of the system call filter that boxes get.
    pub fn seccomp_digest(self) -> Option<String> {
        match self {
            Self::Bwrap => Some(sha256(&seccomp::bwrap_programs().ok()?.concat())),
            Self::Docker => Some(sha256(seccomp::engine_profile().to_string().as_bytes())),
        }
    }

    /// SHA-256 of the image behind a root, as the engine names it; `None` for roots without an image.
    pub async fn image_digest(self, root: &Root) -> Option<String> {
        match (self, root) {
            (Self::Docker, Root::Image(name)) => Engine::find().await.ok()?.image_id(name).await,
            (Self::Docker, Root::HostUsr | Root::Folder(_)) | (Self::Bwrap, _) => None,
        }
    }

    /// Enforcer of the memory limit of a box, as statements name it.
    pub fn memory_guard(self) -> &'static str {
        match self {
            Self::Docker => "cgroup",
            Self::Bwrap => "watchdog",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown backend '{0}'; use docker or bwrap (podman is reached as docker)")]
pub struct UnknownBackend(String);

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        match text {
            "bwrap" | "bubblewrap" => Ok(Self::Bwrap),
            "docker" | "podman" => Ok(Self::Docker),
            other => Err(UnknownBackend(other.chars().take(40).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_root_on_an_engine_and_a_folder_or_the_host_elsewhere() {
        let folder = Path::new("/srv/root");
        let image = Root::Image("i:1".to_owned());
        assert_eq!(BackendKind::Docker.root("i:1", Some(folder)), image);
        assert_eq!(BackendKind::Bwrap.root("i:1", Some(folder)), Root::Folder(folder.to_owned()));
        assert_eq!(BackendKind::Bwrap.root("i:1", None), Root::HostUsr);
    }

    #[test]
    fn the_filters_of_two_backends_have_two_digests() {
        let digests: Vec<String> =
            BackendKind::all().map(|kind| kind.seccomp_digest().expect("a digest")).collect();
        assert_ne!(digests[0], digests[1]);
        assert!(digests.iter().all(|digest| digest.len() == 64), "{digests:?}");
    }

    #[test]
    fn names_are_read_back_and_strangers_are_refused_by_name() {
        for kind in BackendKind::all() {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        let error = "lxc".parse::<BackendKind>().unwrap_err().to_string();
        assert!(error.contains("'lxc'") && error.contains("bwrap"), "{error}");
    }
}
