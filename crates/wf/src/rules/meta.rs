//! `meta.env` of a workstream: read into types, changed key by key, so that comments and unknown keys stay.

use std::num::ParseIntError;
use std::path::PathBuf;

use jiff::Timestamp;
use model::env_file::{EnvFault, EnvFile, MissingKeys};
use model::id::{BranchName, IdError, Sha, WorkstreamId};
use serde::Serialize;

use super::status::{UnknownStatus, WorkstreamStatus};

const REQUIRED: [&str; 9] = [
    "ID",
    "TITLE",
    "BRANCH",
    "WORKTREE",
    "BASE_BRANCH",
    "BASE_SHA",
    "STATUS",
    "CREATED_AT",
    "LAST_REFRESHED",
];

const OPTIONAL: [&str; 16] = [
    "AFTER",
    "SPARSE",
    "STORY",
    "STORY_DIGEST",
    "EXPECTED_PATHS",
    "LAST_RUN_ID",
    "LAST_COMMIT_SHA",
    "LAST_RESULT",
    "BLOCKED_BY",
    "APPROVED_SHA",
    "REVIEWED_SHA",
    "MERGE_PULL",
    "MERGE_PULL_SHA",
    "CLOSED_AT",
    "TOUCHED_HEAD",
    "TOUCHED_BASE",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Meta {
    pub(crate) id: WorkstreamId,
    pub(crate) title: String,
    pub(crate) branch: BranchName,
    pub(crate) worktree: PathBuf,
    pub(crate) base_branch: BranchName,
    pub(crate) base_sha: Sha,
    pub(crate) status: WorkstreamStatus,
    pub(crate) expected_paths: Vec<String>,
    /// Ids of the workstreams that must be merged before `wf run --all` starts this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) after: Vec<String>,
    /// Folders that the worktree has; empty means all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sparse: Vec<String>,
    /// The story that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) story: Option<String>,
    /// Digest of the story at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) story_digest: Option<String>,
    pub(crate) created_at: String,
    pub(crate) last_refreshed: String,
    pub(crate) last_run_id: Option<String>,
    pub(crate) last_commit_sha: Option<Sha>,
    pub(crate) last_result: Option<String>,
    pub(crate) blocked_by: Vec<String>,
    pub(crate) approved_sha: Option<Sha>,
    /// The tip of the branch that a reviewer approved as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reviewed_sha: Option<Sha>,
    /// The number of the pull request by which it is to be merged.
    pub(crate) merge_pull: Option<u64>,
    /// The commit that was pushed for it.
    pub(crate) merge_pull_sha: Option<Sha>,
    /// The tip that touched_files.txt was made for.
    pub(crate) touched_head: Option<Sha>,
    /// The tip of the base branch that it was made against.
    pub(crate) touched_base: Option<Sha>,
}

/// Error of a meta.env or a project.env.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvKeyError {
    #[error(transparent)]
    Missing(#[from] MissingKeys),
    #[error("{key}: {problem}")]
    Id { key: &'static str, problem: IdError },
    #[error(transparent)]
    Status(#[from] UnknownStatus),
    #[error("{key} is {found}, but the folder is called {folder}")]
    WrongFolder { key: &'static str, found: String, folder: String },
    #[error("{key} must be a number")]
    NoNumber { key: &'static str, source: ParseIntError },
    #[error("{key} must be an absolute path")]
    Relative { key: &'static str },
    #[error("{key}: {problem}")]
    Value { key: &'static str, problem: EnvFault },
}

impl EnvKeyError {
    /// Adds the key to the error of an id.
    pub(super) fn id(key: &'static str) -> impl FnOnce(IdError) -> Self {
        move |problem| Self::Id { key, problem }
    }
}

/// Refuses a name that is not that of its folder.
pub(super) fn check_folder(
    key: &'static str,
    found: &str,
    folder: &str,
) -> Result<(), EnvKeyError> {
    if found == folder {
        return Ok(());
    }
    Err(EnvKeyError::WrongFolder { key, found: found.to_owned(), folder: folder.to_owned() })
}

pub(super) fn absolute(key: &'static str, text: &str) -> Result<PathBuf, EnvKeyError> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(EnvKeyError::Relative { key }) }
}

pub(crate) fn parse_meta(file: &EnvFile, folder: &str) -> Result<Meta, EnvKeyError> {
    file.require(&REQUIRED)?;
    let text = |key: &str| file.get(key).unwrap_or_default().to_owned();
    let optional = |key: &str| file.get(key).filter(|value| !value.is_empty()).map(str::to_owned);
    let words_in = |key: &str| text(key).split_whitespace().map(str::to_owned).collect();
    let meta = Meta {
        id: WorkstreamId::parse(&text("ID")).map_err(EnvKeyError::id("ID"))?,
        title: text("TITLE"),
        branch: BranchName::parse(&text("BRANCH")).map_err(EnvKeyError::id("BRANCH"))?,
        worktree: absolute("WORKTREE", &text("WORKTREE"))?,
        base_branch: BranchName::parse(&text("BASE_BRANCH"))
            .map_err(EnvKeyError::id("BASE_BRANCH"))?,
        base_sha: sha_in(file, "BASE_SHA")?
            .ok_or_else(|| MissingKeys { keys: vec!["BASE_SHA".to_owned()] })?,
        status: WorkstreamStatus::parse(&text("STATUS"))?,
        expected_paths: words_in("EXPECTED_PATHS"),
        after: words_in("AFTER"),
        sparse: words_in("SPARSE"),
        story: optional("STORY"),
        story_digest: optional("STORY_DIGEST"),
        created_at: text("CREATED_AT"),
        last_refreshed: text("LAST_REFRESHED"),
        last_run_id: optional("LAST_RUN_ID"),
        last_commit_sha: sha_in(file, "LAST_COMMIT_SHA")?,
        last_result: optional("LAST_RESULT"),
        blocked_by: text("BLOCKED_BY")
            .split(',')
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect(),
        approved_sha: sha_in(file, "APPROVED_SHA")?,
        reviewed_sha: sha_in(file, "REVIEWED_SHA")?,
        merge_pull: number_in(file, "MERGE_PULL")?,
        merge_pull_sha: sha_in(file, "MERGE_PULL_SHA")?,
        touched_head: sha_in(file, "TOUCHED_HEAD")?,
        touched_base: sha_in(file, "TOUCHED_BASE")?,
    };
    check_folder("ID", meta.id.as_str(), folder)?;
    Ok(meta)
}

/// Lists unknown keys. They cause a warning and are kept.
pub(crate) fn unknown_keys(file: &EnvFile) -> Vec<&str> {
    file.unknown(&[&REQUIRED[..], &OPTIONAL].concat())
}

fn sha_in(file: &EnvFile, key: &'static str) -> Result<Option<Sha>, EnvKeyError> {
    match file.get(key) {
        None | Some("") => Ok(None),
        Some(text) => Sha::parse(text).map(Some).map_err(EnvKeyError::id(key)),
    }
}

fn number_in(file: &EnvFile, key: &'static str) -> Result<Option<u64>, EnvKeyError> {
    match file.get(key) {
        None | Some("") => Ok(None),
        Some(text) => {
            text.parse().map(Some).map_err(|source| EnvKeyError::NoNumber { key, source })
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewMeta {
    pub(crate) id: WorkstreamId,
    pub(crate) title: String,
    pub(crate) branch: BranchName,
    pub(crate) worktree: PathBuf,
    pub(crate) base_branch: BranchName,
    pub(crate) base_sha: Sha,
    pub(crate) expected_paths: Vec<String>,
    pub(crate) after: Vec<String>,
    pub(crate) sparse: Vec<String>,
    pub(crate) story: Option<StoryLink>,
    pub(crate) now: Timestamp,
}

/// The story of a workstream, and its digest when the workstream was made.
#[derive(Debug, Clone)]
pub(crate) struct StoryLink {
    pub(crate) id: String,
    pub(crate) digest: String,
}

/// Renders the file of a new workstream; fails on a value that the env-file grammar cannot represent.
pub(crate) fn render_new(new: &NewMeta) -> Result<EnvFile, EnvFault> {
    let mut file = EnvFile::default();
    let now = stamp(new.now);
    for (key, value) in [
        ("ID", new.id.as_str()),
        ("TITLE", &new.title),
        ("BRANCH", new.branch.as_str()),
        ("WORKTREE", &new.worktree.to_string_lossy()),
        ("BASE_BRANCH", new.base_branch.as_str()),
        ("BASE_SHA", new.base_sha.as_str()),
        ("STATUS", WorkstreamStatus::Planning.word()),
        ("EXPECTED_PATHS", &new.expected_paths.join(" ")),
        ("CREATED_AT", &now),
        ("LAST_REFRESHED", &now),
    ] {
        file.set(key, value)?;
    }
    for (key, words) in [("AFTER", &new.after), ("SPARSE", &new.sparse)] {
        if !words.is_empty() {
            file.set(key, &words.join(" "))?;
        }
    }
    if let Some(story) = &new.story {
        file.set("STORY", &story.id)?;
        file.set("STORY_DIGEST", &story.digest)?;
    }
    Ok(file)
}

/// Formats a time for records: RFC 3339, UTC, whole seconds.
pub(crate) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn sample() -> String {
        format!(
            "# mine\nID=tf\nTITLE=\"Test framework\"\nBRANCH=feat/tf\nWORKTREE=/ops/worktrees/tf\nBASE_BRANCH=main\nBASE_SHA={SHA}\nSTATUS=implement\nEXPECTED_PATHS=\"mk/ tests/\"\nCREATED_AT=2025-01-15T10:00:00Z\nLAST_REFRESHED=2025-01-15T12:00:00Z\nBLOCKED_BY=\"CLQ-001,CLQ-002\"\nCOLOUR=blue\n"
        )
    }

    #[track_caller]
    fn refused(from: &str, to: &str, words: &str) {
        let file = EnvFile::parse(&sample().replace(from, to)).unwrap();
        let error = parse_meta(&file, "tf").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_meta_file_is_read_and_unknown_keys_are_named() {
        let file = EnvFile::parse(&sample()).unwrap();
        let meta = parse_meta(&file, "tf").unwrap();
        assert_eq!(meta.expected_paths, ["mk/", "tests/"]);
        assert_eq!(meta.blocked_by, ["CLQ-001", "CLQ-002"]);
        assert_eq!(meta.last_commit_sha, None);
        assert_eq!(unknown_keys(&file), ["COLOUR"]);
    }

    #[test]
    fn a_bad_value_is_named_by_its_key() {
        refused("ID=tf", "ID=../x", "ID: ");
        refused("ID=tf", "ID=other", "the folder is called tf");
        refused(&format!("BASE_SHA={SHA}"), "BASE_SHA=abc123", "BASE_SHA: ");
        refused("STATUS=implement", "STATUS=busy", "STATUS is not one of");
        refused("WORKTREE=/ops", "WORKTREE=ops", "absolute");
        refused("BRANCH=feat/tf\n", "", "missing or empty: BRANCH");
    }

    #[test]
    fn a_new_file_reads_back_and_a_bad_title_is_refused() {
        let (id, branch) =
            (WorkstreamId::parse("tf").unwrap(), BranchName::parse("feat/tf").unwrap());
        let (base, sha) = (BranchName::parse("main").unwrap(), Sha::parse(SHA).unwrap());
        let render = |title: &str| {
            render_new(&NewMeta {
                id: id.clone(),
                title: title.to_owned(),
                branch: branch.clone(),
                worktree: "/ops/worktrees/tf".into(),
                base_branch: base.clone(),
                base_sha: sha.clone(),
                expected_paths: vec!["mk/".to_owned(), "tests/".to_owned()],
                after: vec!["low".to_owned()],
                story: None,
                sparse: Vec::new(),
                now: Timestamp::UNIX_EPOCH,
            })
        };
        let meta = parse_meta(&render("A & B: it's").unwrap(), "tf").unwrap();
        assert_eq!((meta.title.as_str(), meta.status), ("A & B: it's", WorkstreamStatus::Planning));
        assert_eq!(meta.created_at, "1970-01-01T00:00:00Z");
        assert_eq!((meta.after, meta.sparse), (vec!["low".to_owned()], Vec::new()));
        for bad in ["a;b", "a|b", "a`b", "$(x)", "say \"x\"", "a\nb"] {
            assert!(render(bad).is_err(), "{bad}");
        }
    }
}
