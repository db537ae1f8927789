//! `docs_manifest.json` of a workstream, and pictures that no documentation page refers to.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::meta::stamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DocsManifest {
    pub(crate) version: u32,
    pub(crate) generated: String,
    pub(crate) assets: Vec<Asset>,
    pub(crate) orphaned: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asset {
    pub(crate) path: String,
    pub(crate) created: String,
    pub(crate) source: String,
    pub(crate) referenced_by: Vec<String>,
    pub(crate) workstream: String,
    pub(crate) commit: String,
}

impl DocsManifest {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { version: 1, generated: stamp(now), assets: Vec::new(), orphaned: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        screenshots: &[String],
        workstream: &str,
        commit: &str,
        now: Timestamp,
    ) {
        self.generated = stamp(now);
        for path in screenshots {
            match self.assets.iter_mut().find(|asset| asset.path == *path) {
                Some(asset) => {
                    asset.created = stamp(now);
                    workstream.clone_into(&mut asset.workstream);
                }
                None => self.assets.push(Asset {
                    path: path.clone(),
                    created: stamp(now),
                    source: format!("e2e:{commit}"),
                    referenced_by: Vec::new(),
                    workstream: workstream.to_owned(),
                    commit: commit.to_owned(),
                }),
            }
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Coverage {
    pub(crate) pages: usize,
    pub(crate) assets: usize,
    /// Pictures that no page mentions.
    pub(crate) orphaned: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocFile {
    /// Relative to the documentation folder.
    pub(crate) path: String,
    pub(crate) text: Option<String>,
}

const PAGES: [&str; 6] = [".md", ".markdown", ".rst", ".adoc", ".html", ".txt"];
const ASSETS: [&str; 7] = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4"];

pub(crate) fn is_page(name: &str) -> bool {
    ends_with_any(name, &PAGES)
}

fn ends_with_any(name: &str, ends: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    ends.iter().any(|end| name.ends_with(end))
}

/// Finds unreferenced pictures. A picture counts as referenced when a page has its file name, percent-encoded or not: it
/// is better to keep one too many than to delete one that is used.
pub(crate) fn judge_coverage(files: &[DocFile]) -> Coverage {
    let texts: Vec<&str> = files.iter().filter_map(|file| file.text.as_deref()).collect();
    let assets: Vec<&str> = files
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| ends_with_any(path, &ASSETS))
        .collect();
    let is_used = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let encoded = name.replace(' ', "%20");
        texts.iter().any(|text| text.contains(name) || text.contains(&encoded))
    };
    let mut orphaned: Vec<String> =
        assets.iter().filter(|path| !is_used(path)).map(|&path| path.to_owned()).collect();
    orphaned.sort();
    Coverage { pages: texts.len(), assets: assets.len(), orphaned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::schema::Schema;

    #[test]
    fn a_manifest_keeps_the_schema_and_counts_a_picture_once() {
        let mut manifest = DocsManifest::new(Timestamp::UNIX_EPOCH);
        let shots = ["a.png".to_owned()];
        manifest.add(&shots, "tf", "COMMIT-TF-001", Timestamp::UNIX_EPOCH);
        manifest.add(&shots, "tf", "COMMIT-TF-002", Timestamp::UNIX_EPOCH);
        assert_eq!(manifest.assets.len(), 1);
        assert_eq!(Schema::DocsManifest.check(&serde_json::to_value(&manifest).unwrap()), Ok(()));
    }

    #[test]
    fn a_picture_without_a_page_is_an_orphan() {
        let file = |path: &str, text: Option<&str>| DocFile {
            path: path.to_owned(),
            text: text.map(str::to_owned),
        };
        let files = [
            file("a.md", Some("![x](assets/my%20shot.png)")),
            file("assets/my shot.png", None),
            file("assets/old.PNG", None),
            file("Makefile", None),
        ];
        let coverage = judge_coverage(&files);
        assert_eq!((coverage.pages, coverage.assets), (1, 2));
        assert_eq!(coverage.orphaned, ["assets/old.PNG"]);
    }
}
