//! Stories and requirements in the product's checkout. Links are not followed: a story goes to a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use host::safe_read::read_beneath;
use model::digest::sha256;

use super::{DiskError, DiskResult, ProjectDirs, Workstream};
use crate::rules::profile::Profile;
use crate::rules::story::{Story, StoryWork, find_requirements, parse_story};

const MOST_BYTES: usize = 1 << 20;
/// File of requirements at the top of a product, read beside RAW_REQUIREMENTS_PATHS.
const REQUIREMENTS: &str = "REQS.md";

/// Stories of a product, in the order of their names, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct StoryFolder {
    pub(crate) stories: Vec<Story>,
    pub(crate) warnings: Vec<String>,
}

impl StoryFolder {
    pub(crate) fn load(dirs: &ProjectDirs, profile: &Profile) -> DiskResult<Self> {
        let repo = &dirs.project.repo;
        let mut folder = Self::default();
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for name in markdown_in(&repo.join(&profile.stories_path))? {
            let path = format!("{}/{name}", profile.stories_path);
            if parse_story(&path, "").is_none() {
                continue;
            }
            let text = match read_text(repo, &path) {
                Ok(text) => text.unwrap_or_default(),
                Err(problem) => {
                    folder.warnings.push(format!("{path} was not read: {problem}"));
                    continue;
                }
            };
            let Some(story) = parse_story(&path, &text) else { continue };
            if let Some(first) = paths.get(&story.id) {
                folder.warnings.push(format!("{path} has the id of {first}; give it another"));
                continue;
            }
            paths.insert(story.id.clone(), path);
            folder.stories.push(story);
        }
        Ok(folder)
    }

    /// The story with this id; leading zeros may be left out.
    pub(crate) fn find(&self, typed: &str) -> Option<&Story> {
        let number = |id: &str| id.strip_prefix("STORY-").and_then(|it| it.parse::<u64>().ok());
        let is_it = |story: &&Story| {
            story.id == typed || (number(typed).is_some() && number(typed) == number(&story.id))
        };
        self.stories.iter().find(is_it)
    }
}

/// Lists the requirements that the product's files name and none of the stories does, each with its file.
pub(crate) fn find_uncovered(
    dirs: &ProjectDirs,
    profile: &Profile,
    stories: &[Story],
) -> DiskResult<Vec<(String, String)>> {
    let repo = &dirs.project.repo;
    let mut files = vec![REQUIREMENTS.to_owned()];
    for path in &profile.raw_requirements {
        match repo.join(path).is_dir() {
            true => {
                let names = markdown_in(&repo.join(path))?;
                files.extend(names.iter().map(|name| format!("{path}/{name}")));
            }
            false => files.push(path.clone()),
        }
    }
    let mut uncovered: Vec<(String, String)> = Vec::new();
    for file in files {
        let Ok(Some(text)) = read_text(repo, &file) else { continue };
        for id in find_requirements(&text) {
            let is_known = uncovered.iter().any(|(known, _)| *known == id);
            if !is_known && !stories.iter().any(|story| story.requirements.contains(&id)) {
                uncovered.push((id, file.clone()));
            }
        }
    }
    Ok(uncovered)
}

/// View that a story has of a workstream that was made for it.
pub(crate) fn story_work(
    workstream: &Workstream,
    is_closed: bool,
    lost: &BTreeSet<String>,
) -> Option<StoryWork> {
    let meta = &workstream.meta;
    let id = meta.id.to_string();
    let is_lost = lost.contains(&id);
    Some(StoryWork {
        workstream: id,
        story: meta.story.clone()?,
        digest: meta.story_digest.clone(),
        status: meta.status,
        is_closed,
        is_lost,
    })
}

/// Digest by which a later change of a story is seen.
pub(crate) fn digest_story(text: &str) -> String {
    sha256(text.as_bytes()).chars().take(16).collect()
}

fn markdown_in(folder: &Path) -> DiskResult<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DiskError::io("read the folder", folder)(error)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    Ok(names)
}

fn read_text(repo: &Path, path: &str) -> Result<Option<String>, String> {
    let file = read_beneath(repo, path, MOST_BYTES).map_err(|error| error.to_string())?;
    let Some(file) = file else { return Ok(None) };
    if file.truncated {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(file.bytes).map(Some).map_err(|error| format!("it is not UTF-8: {error}"))
}
