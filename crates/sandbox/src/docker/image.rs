//! Building of an image on the engine, from files that are sent in one archive.

use std::collections::HashMap;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::BuildImageOptionsBuilder;
use futures_util::StreamExt;

use super::Engine;
use crate::error::SandboxError;

/// A file of the build context.
#[derive(Debug, Clone, Copy)]
pub struct ContextFile<'a> {
    /// Relative, such as `harness/run.sh`.
    pub path: &'a str,
    pub mode: u32,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub struct ImageBuild<'a> {
    /// Name of the image.
    pub tag: &'a str,
    /// With a `Dockerfile` among them.
    pub files: &'a [ContextFile<'a>],
    /// Values for the recipe's arguments.
    pub args: &'a [(&'a str, &'a str)],
    pub labels: &'a [(&'a str, &'a str)],
}

impl Engine {
    /// Builds an image and passes on each line of the builder's output.
    pub async fn build_image(
        &self,
        build: ImageBuild<'_>,
        mut on_line: impl FnMut(&str),
    ) -> Result<(), SandboxError> {
        let map = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let options = BuildImageOptionsBuilder::default()
            .t(build.tag)
            .dockerfile("Dockerfile")
            .rm(true)
            .forcerm(true)
            .buildargs(&map(build.args))
            .labels(&map(build.labels))
            .build();
        let context = pack(build.files).map_err(|error| failed(build.tag, &error.to_string()))?;
        let body = bollard::body_full(context.into());
        let mut lines = std::pin::pin!(self.client().build_image(options, None, Some(body)));
        // A failing command is reported by its status alone; its output is in the lines before.
        let mut last = String::new();
        while let Some(line) = lines.next().await {
            let with_last = |error: EngineError| failed(build.tag, &format!("{error} ({last})"));
            let line = line.map_err(with_last)?;
            if let Some(text) = line.stream.as_deref().or(line.status.as_deref()) {
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    on_line(line);
                    last = line.trim().to_owned();
                }
            }
            if let Some(error) = line.error_detail {
                return Err(failed(build.tag, &error.message.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Id of an image, which is the digest of its configuration.
    pub async fn image_id(&self, image: &str) -> Option<String> {
        self.client().inspect_image(image).await.ok()?.id
    }

    /// Labels of an image; `None` if there is no such image.
    pub async fn image_labels(&self, image: &str) -> Option<HashMap<String, String>> {
        let found = self.client().inspect_image(image).await.ok()?;
        Some(found.config.and_then(|config| config.labels).unwrap_or_default())
    }
}

fn failed(tag: &str, reason: &str) -> SandboxError {
    SandboxError::Build { image: tag.to_owned(), reason: reason.trim().to_owned() }
}

/// Renders the context as an archive. Times and owners are fixed, so that the same files are the same context.
fn pack(files: &[ContextFile<'_>]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode);
        header.set_mtime(0);
        archive.append_data(&mut header, file.path, file.bytes)?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const FILES: [ContextFile<'_>; 2] = [
        ContextFile { path: "Dockerfile", mode: 0o644, bytes: b"FROM scratch\n" },
        ContextFile { path: "harness/run.sh", mode: 0o755, bytes: b"#!/bin/sh\n" },
    ];

    #[test]
    fn a_context_holds_paths_modes_and_bytes_and_no_time() {
        let packed = pack(&FILES).expect("packed");
        let mut archive = tar::Archive::new(packed.as_slice());
        let mut found = Vec::new();
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            let header = entry.header();
            let path = entry.path().expect("a path").to_string_lossy().into_owned();
            found.push((path, header.mode().ok(), header.mtime().ok(), text));
        }
        assert_eq!(
            found,
            [
                ("Dockerfile".to_owned(), Some(0o644), Some(0), "FROM scratch\n".to_owned()),
                ("harness/run.sh".to_owned(), Some(0o755), Some(0), "#!/bin/sh\n".to_owned()),
            ]
        );
    }

    #[test]
    fn the_same_files_are_the_same_context() {
        assert_eq!(pack(&FILES).expect("packed"), pack(&FILES).expect("packed"));
    }

    #[test]
    fn a_path_that_leaves_the_context_is_refused() {
        assert!(pack(&[ContextFile { path: "../x", mode: 0o644, bytes: b"" }]).is_err());
    }
}
