//! Finding a container engine that answers.

use std::path::PathBuf;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker as Client};

use crate::error::SandboxError;

/// Time limit of the first response, after which an engine counts as absent.
const HELLO: Duration = Duration::from_secs(3);

/// Time limit of the version, for an engine that has answered: podman starts programs to find it out.
const VERSION: Duration = Duration::from_secs(20);

/// Seconds that any single answer may take; the API client wants a number.
const ANSWER_SECS: u64 = 120;

/// An engine that has answered.
#[derive(Debug, Clone)]
pub struct Engine {
    client: Client,
    facts: EngineFacts,
}

/// Self-description of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    pub address: String,
    pub version: String,
    pub flavour: EngineFlavour,
}

/// Engines share the API, but not all details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineFlavour {
    /// Takes a system call filter inline.
    Docker,
    /// Takes it as the path of a file on its host, and does not start a container without explicit limits on open
    /// files and processes.
    Podman,
}

impl Engine {
    /// Tries, in this order, `DOCKER_HOST`, Docker's socket and podman's sockets. The first response wins.
    pub async fn find() -> Result<Self, SandboxError> {
        let mut tried = Vec::new();
        for address in candidates(host::env::var("DOCKER_HOST"), host::env::var("XDG_RUNTIME_DIR"))
        {
            match Self::hello(&address).await {
                Some(engine) => return Ok(engine),
                None => tried.push(address),
            }
        }
        Err(SandboxError::NoEngine { tried: format!("tried {}", tried.join(", ")) })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn facts(&self) -> &EngineFacts {
        &self.facts
    }

    /// Returns whether it holds an image by this name.
    pub async fn has_image(&self, image: &str) -> bool {
        let inspect = self.client.inspect_image(image);
        matches!(tokio::time::timeout(HELLO, inspect).await, Ok(Ok(_)))
    }

    async fn hello(address: &str) -> Option<Self> {
        let path = address.strip_prefix("unix://")?;
        if !std::path::Path::new(path).exists() {
            return None;
        }
        let client = Client::connect_with_unix(path, ANSWER_SECS, API_DEFAULT_VERSION).ok()?;
        tokio::time::timeout(HELLO, client.ping()).await.ok()?.ok()?;
        let client = tokio::time::timeout(VERSION, client.negotiate_version()).await.ok()?.ok()?;
        let version = tokio::time::timeout(VERSION, client.version()).await.ok()?.ok()?;
        let name = version
            .components
            .and_then(|parts| parts.into_iter().next())
            .map_or_else(|| "Engine".to_owned(), |part| part.name);
        let number = version.version.unwrap_or_default();
        let flavour =
            if name.contains("Podman") { EngineFlavour::Podman } else { EngineFlavour::Docker };
        // Docker calls itself just "Engine".
        let version = match flavour {
            EngineFlavour::Docker => format!("Docker {number}"),
            EngineFlavour::Podman => format!("{name} {number}"),
        };
        let facts = EngineFacts { address: address.to_owned(), version, flavour };
        Some(Self { client, facts })
    }
}

/// Only local sockets: a box shares folders and sockets with this host, and those do not cross machines.
fn candidates(docker_host: Option<String>, runtime_dir: Option<String>) -> Vec<String> {
    if let Some(address) = docker_host.filter(|text| !text.is_empty()) {
        return vec![address];
    }
    let mut paths = vec![PathBuf::from("/var/run/docker.sock")];
    if let Some(runtime) = runtime_dir {
        paths.push(PathBuf::from(&runtime).join("docker.sock"));
        paths.push(PathBuf::from(runtime).join("podman/podman.sock"));
    }
    paths.push(PathBuf::from("/run/podman/podman.sock"));
    paths.iter().map(|path| format!("unix://{}", path.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_host_is_the_only_candidate_if_it_is_set() {
        let given = Some("unix:///x.sock".to_owned());
        assert_eq!(candidates(given, Some("/run/user/7".to_owned())), ["unix:///x.sock"]);
        assert_eq!(candidates(Some(String::new()), None), candidates(None, None));
    }

    #[test]
    fn sockets_of_the_system_come_before_those_of_the_user_and_docker_before_podman() {
        assert_eq!(
            candidates(None, Some("/run/user/7".to_owned())),
            [
                "unix:///var/run/docker.sock",
                "unix:///run/user/7/docker.sock",
                "unix:///run/user/7/podman/podman.sock",
                "unix:///run/podman/podman.sock",
            ]
        );
    }
}
