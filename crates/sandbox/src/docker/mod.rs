//! Boxes on a container engine: Docker, or podman through its compatible API.

mod create;
mod engine;
mod image;
mod link;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerCreateBody, ContainerState};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
    KillContainerOptionsBuilder, RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::backend::{
    Backend, BackendKind, BoxControl, BoxExit, MemoryUse, OUTPUT_QUEUE, OutputChunk, OutputStream,
    Started,
};
use crate::boxdir;
use crate::error::SandboxError;
use crate::seccomp::engine_profile;
use crate::spec::{BoxSpec, Root};

use create::EngineSettings;
pub use engine::{Engine, EngineFacts, EngineFlavour};
pub use image::{ContextFile, ImageBuild};
use link::{GuestEnd, GuestSocket};
pub use sweep::{SweptContainer, sweep};

/// Longest wait for an answer of the engine. A hung engine must not hang the deadline.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(30);

/// Limit on processes per user that podman requires; the control group's limit is the one that counts.
const PODMAN_NPROC: u64 = 4096;

#[derive(Debug, Clone)]
pub struct Docker {
    client: Client,
    flavour: EngineFlavour,
}

impl Docker {
    pub fn new(engine: &Engine) -> Self {
        Self { client: engine.client().clone(), flavour: engine.facts().flavour }
    }

    fn settings(&self, spec: &BoxSpec) -> Result<EngineSettings, SandboxError> {
        let profile = engine_profile().to_string();
        match self.flavour {
            EngineFlavour::Docker => Ok(EngineSettings { seccomp: profile, nproc: None }),
            EngineFlavour::Podman => {
                let path = spec.box_dir.join("seccomp.json");
                std::fs::write(&path, profile).map_err(SandboxError::prepare(&path))?;
                Ok(EngineSettings {
                    seccomp: path.to_string_lossy().into_owned(),
                    nproc: Some(PODMAN_NPROC),
                })
            }
        }
    }
}

impl Docker {
    /// Creates a container and returns its id. A name that is taken belongs to a leftover, which is removed, or to a
    /// run of the same name in another state folder, beside which a number makes the difference.
    async fn create(&self, name: &str, body: ContainerCreateBody) -> Result<String, SandboxError> {
        let number = host::clock::boottime().as_nanos();
        let mut created = self.create_named(name, body.clone()).await;
        if created.as_ref().is_err_and(is_name_taken) {
            sweep::sweep_client(&self.client).await?;
            created = self.create_named(name, body.clone()).await;
        }
        if created.as_ref().is_err_and(is_name_taken) {
            created = self.create_named(&format!("{name}-{number}"), body).await;
        }
        created
    }

    async fn create_named(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, SandboxError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let create = self.client.create_container(Some(options), body);
        Ok(in_time("create the box", create).await?.id)
    }
}

impl Backend for Docker {
    type Control = DockerBox;

    async fn start(&self, spec: &BoxSpec) -> Result<Started<DockerBox>, SandboxError> {
        let Root::Image(image) = &spec.root else {
            return Err(SandboxError::Root {
                backend: "docker",
                root: format!("{:?}", spec.root),
                hint: "name an image with --image",
            });
        };
        boxdir::prepare(spec, BackendKind::Docker)?;
        let link =
            GuestSocket::bind(spec).map_err(SandboxError::io("make the link to the guest"))?;
        let now = host::clock::boottime().as_secs();
        let labels = create::labels(spec, now, host::proc::boot_id());
        let body = create::create_body(spec, image, labels, &self.settings(spec)?);
        let created = self.create(&create::container_name(spec), body).await;
        let id = match created {
            Ok(id) => id,
            Err(error) if is_not_found(&error) => {
                return Err(SandboxError::NoImage { image: image.clone() });
            }
            Err(error) => return Err(error),
        };
        let control = DockerBox { client: self.client.clone(), id, link: Arc::new(link) };
        match control.attach_and_start().await {
            Ok(output) => {
                let exit = Box::pin(control.clone().exit());
                Ok(Started { control, exit, output })
            }
            Err(error) => {
                // Nothing of a box that never started may stay; the first error is the one that matters.
                drop(control.remove().await);
                Err(error)
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct DockerBox {
    client: Client,
    id: String,
    link: Arc<GuestSocket>,
}

impl DockerBox {
    async fn attach_and_start(&self) -> Result<OutputStream, SandboxError> {
        let options =
            AttachContainerOptionsBuilder::default().stdout(true).stderr(true).stream(true).build();
        let attach = self.client.attach_container(&self.id, Some(options));
        let attached = in_time("attach to the box", attach).await?;
        let (sender, receiver) = mpsc::channel(OUTPUT_QUEUE);
        tokio::spawn(pump(attached.output, sender));
        in_time("start the box", self.client.start_container(&self.id, None)).await?;
        Ok(receiver)
    }

    async fn signal(&self, signal: &str) -> Result<(), SandboxError> {
        let options = KillContainerOptionsBuilder::default().signal(signal).build();
        match in_time("signal the box", self.client.kill_container(&self.id, Some(options))).await {
            // It has ended by itself in the meantime.
            Err(error) if is_gone(&error) => Ok(()),
            other => other,
        }
    }

    async fn exit(self) -> BoxExit {
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        let mut waiting = std::pin::pin!(self.client.wait_container(&self.id, Some(options)));
        // The inspection says the same with more detail; here a status other than 0 even comes as an error.
        drop(waiting.next().await);
        let state = match self.inspect().await {
            Ok(state) => state,
            // A broken wait says nothing about the agent: the engine may have been restarted.
            Err(error) => return BoxExit::Lost(format!("the engine lost the box: {error}")),
        };
        match state.oom_killed {
            Some(true) => BoxExit::OutOfMemory,
            _ if state.running == Some(true) => {
                BoxExit::Lost("the engine stopped watching a running container".to_owned())
            }
            // Podman does not tell of it on every machine, so the guest looks for itself.
            _ if state.exit_code == Some(guest::EXIT_OUT_OF_MEMORY.into()) => BoxExit::OutOfMemory,
            _ => {
                let code = i32::try_from(state.exit_code.unwrap_or(-1)).unwrap_or(-1);
                match self.link.observe_end() {
                    GuestEnd::Said | GuestEnd::Unknown => BoxExit::Exited(code),
                    // The agent cannot kill the guest, which is the first process of its namespace.
                    GuestEnd::Silent => BoxExit::KilledOutside(format!(
                        "the box was killed from outside (the engine reports status {code})"
                    )),
                }
            }
        }
    }

    async fn inspect(&self) -> Result<ContainerState, SandboxError> {
        let inspect = self.client.inspect_container(&self.id, None::<InspectContainerOptions>);
        Ok(in_time("inspect the box", inspect).await?.state.unwrap_or_default())
    }
}

impl BoxControl for DockerBox {
    async fn terminate(&self) -> Result<(), SandboxError> {
        self.signal("SIGTERM").await
    }

    async fn kill(&self) -> Result<(), SandboxError> {
        self.signal("SIGKILL").await
    }

    async fn memory(&self) -> Option<MemoryUse> {
        None
    }

    /// The engine reports the guest's process id on this machine.
    async fn init_pid(&self) -> Option<i32> {
        let pid = self.inspect().await.ok()?.pid?;
        i32::try_from(pid).ok().filter(|pid| *pid > 0)
    }

    async fn cpu_time(&self) -> Option<Duration> {
        let pid = self.init_pid().await?;
        Some(host::proc::cpu_time(&host::proc::descendants(pid)))
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        remove_container(&self.client, &self.id, "remove the box").await.map(drop)
    }
}

/// Removes a container; returns false if it was already gone.
async fn remove_container(
    client: &Client,
    id: &str,
    doing: &'static str,
) -> Result<bool, SandboxError> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match in_time(doing, client.remove_container(id, Some(options))).await {
        Ok(()) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn pump(
    mut output: impl futures_util::Stream<Item = Result<LogOutput, EngineError>> + Unpin,
    sender: mpsc::Sender<OutputChunk>,
) {
    while let Some(Ok(piece)) = output.next().await {
        let chunk = match piece {
            LogOutput::StdErr { message } => OutputChunk::Err(message.to_vec()),
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                OutputChunk::Out(message.to_vec())
            }
            LogOutput::StdIn { .. } => continue,
        };
        if sender.send(chunk).await.is_err() {
            return;
        }
    }
}

/// Sends a request to the engine within the time limit.
async fn in_time<T>(
    doing: &'static str,
    request: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, SandboxError> {
    match tokio::time::timeout(ENGINE_TIMEOUT, request).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(source)) => Err(SandboxError::Engine { doing, source: Box::new(source) }),
        Err(_elapsed) => Err(SandboxError::EngineTimeout { doing, secs: ENGINE_TIMEOUT.as_secs() }),
    }
}

fn is_not_found(error: &SandboxError) -> bool {
    status_of(error) == Some(404)
}

/// Not found, or not running any more.
fn is_gone(error: &SandboxError) -> bool {
    matches!(status_of(error), Some(404 | 409))
}

/// Podman once reported this as a fault of its own.
fn is_name_taken(error: &SandboxError) -> bool {
    match error {
        SandboxError::Engine { source, .. } => match source.as_ref() {
            EngineError::DockerResponseServerError { status_code, message } => {
                *status_code == 409 || *status_code == 500 && message.contains("already in use")
            }
            _ => false,
        },
        _ => false,
    }
}

fn status_of(error: &SandboxError) -> Option<u16> {
    match error {
        SandboxError::Engine { source, .. } => match source.as_ref() {
            EngineError::DockerResponseServerError { status_code, .. } => Some(*status_code),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn answer(status_code: u16) -> SandboxError {
        let message = "no".to_owned();
        let source = Box::new(EngineError::DockerResponseServerError { status_code, message });
        SandboxError::Engine { doing: "ask", source }
    }

    #[test]
    fn a_container_that_is_missing_or_stopped_is_gone() {
        let table = [(404, true, true), (409, false, true), (500, false, false)];
        for (status, not_found, gone) in table {
            let error = answer(status);
            assert_eq!((is_not_found(&error), is_gone(&error)), (not_found, gone), "{status}");
        }
        let timeout = SandboxError::EngineTimeout { doing: "ask", secs: 1 };
        assert!(!is_gone(&timeout), "silence says nothing about the container");
    }

    #[test]
    fn a_taken_name_is_told_from_other_failures() {
        let said = |status_code, message: &str| {
            let message = message.to_owned();
            let source = Box::new(EngineError::DockerResponseServerError { status_code, message });
            is_name_taken(&SandboxError::Engine { doing: "ask", source })
        };
        assert!(said(409, "Conflict. The container name \"/x\" is already in use"));
        assert!(said(500, "the container name \"x\" is already in use"));
        assert!(!said(500, "no space left on device") && !said(404, "no such image"));
    }

    #[tokio::test]
    async fn output_keeps_its_stream_and_ends_at_the_first_error() {
        let pieces = vec![
            Ok(LogOutput::StdOut { message: "out".into() }),
            Ok(LogOutput::StdErr { message: "err".into() }),
            Ok(LogOutput::StdIn { message: "in".into() }),
            Ok(LogOutput::Console { message: "tty".into() }),
            Err(EngineError::RequestTimeoutError),
            Ok(LogOutput::StdOut { message: "late".into() }),
        ];
        let (sender, mut receiver) = mpsc::channel(OUTPUT_QUEUE);
        pump(stream::iter(pieces), sender).await;
        let mut seen = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            seen.push(chunk);
        }
        let out = |text: &str| OutputChunk::Out(text.as_bytes().to_vec());
        assert_eq!(seen, [out("out"), OutputChunk::Err(b"err".to_vec()), out("tty")]);
    }
}
