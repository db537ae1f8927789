//! `project.env`: which repository a project is about and where its runtime lives.

use std::path::PathBuf;

use model::env_file::EnvFile;
use model::id::{BranchName, IdError, ProjectName};
use serde::Serialize;

use super::meta::{EnvKeyError, absolute, check_folder};

const REQUIRED: [&str; 3] = ["PROJECT_NAME", "REPO_PATH", "DEFAULT_BRANCH"];
const KNOWN: [&str; 5] =
    ["PROJECT_NAME", "REPO_PATH", "OPS_PATH", "DEFAULT_BRANCH", "BRANCH_PREFIX"];
const DEFAULT_PREFIX: &str = "feat";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Project {
    pub(crate) name: ProjectName,
    pub(crate) repo: PathBuf,
    pub(crate) ops: Option<PathBuf>,
    pub(crate) default_branch: BranchName,
    /// Prefix of workstream branches; may be empty.
    pub(crate) branch_prefix: String,
}

pub(crate) fn parse_project(file: &EnvFile, folder: &str) -> Result<Project, EnvKeyError> {
    file.require(&REQUIRED)?;
    let text = |key: &str| file.get(key).unwrap_or_default();
    let name = ProjectName::parse(text("PROJECT_NAME")).map_err(EnvKeyError::id("PROJECT_NAME"))?;
    check_folder("PROJECT_NAME", name.as_str(), folder)?;
    let default_branch =
        BranchName::parse(text("DEFAULT_BRANCH")).map_err(EnvKeyError::id("DEFAULT_BRANCH"))?;
    let prefix = file.get("BRANCH_PREFIX").unwrap_or(DEFAULT_PREFIX);
    branch_of(prefix, "x").map_err(EnvKeyError::id("BRANCH_PREFIX"))?;
    Ok(Project {
        name,
        repo: absolute("REPO_PATH", text("REPO_PATH"))?,
        ops: match text("OPS_PATH") {
            "" => None,
            path => Some(absolute("OPS_PATH", path)?),
        },
        default_branch,
        branch_prefix: strip_slash(prefix).to_owned(),
    })
}

pub(crate) fn unknown_keys(file: &EnvFile) -> Vec<&str> {
    file.unknown(&KNOWN)
}

/// Writes a project to its file and keeps all other content.
pub(crate) fn write_project(file: &mut EnvFile, project: &Project) -> Result<(), EnvKeyError> {
    let ops = project.ops.as_ref().map(|path| path.to_string_lossy().into_owned());
    let entries: [(&'static str, Option<&str>); 5] = [
        ("PROJECT_NAME", Some(project.name.as_str())),
        ("REPO_PATH", Some(&project.repo.to_string_lossy())),
        ("OPS_PATH", ops.as_deref()),
        ("DEFAULT_BRANCH", Some(project.default_branch.as_str())),
        ("BRANCH_PREFIX", Some(&project.branch_prefix)),
    ];
    for (key, value) in entries {
        if let Some(value) = value {
            file.set(key, value).map_err(|problem| EnvKeyError::Value { key, problem })?;
        }
    }
    Ok(())
}

pub(crate) fn branch_of(prefix: &str, id: &str) -> Result<BranchName, IdError> {
    match strip_slash(prefix) {
        "" => BranchName::parse(id),
        prefix => BranchName::parse(&format!("{prefix}/{id}")),
    }
}

fn strip_slash(prefix: &str) -> &str {
    prefix.strip_suffix('/').unwrap_or(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Project, EnvKeyError> {
        parse_project(&EnvFile::parse(text).unwrap(), "p")
    }

    const SAMPLE: &str = "PROJECT_NAME=p\nREPO_PATH=/r\nDEFAULT_BRANCH=main\n";

    #[test]
    fn ops_path_and_prefix_are_optional() {
        let project = read(SAMPLE).unwrap();
        assert_eq!((project.ops, project.branch_prefix.as_str()), (None, "feat"));
        let prefix =
            |text: &str| read(&format!("{SAMPLE}BRANCH_PREFIX={text}\n")).map(|p| p.branch_prefix);
        assert_eq!(prefix("fix/").unwrap(), "fix");
        assert_eq!(prefix("").unwrap(), "");
        assert!(prefix("a..b").is_err());
        assert_eq!(branch_of("", "tf").unwrap().as_str(), "tf");
        assert_eq!(branch_of("docs/", "tf").unwrap().as_str(), "docs/tf");
    }

    #[test]
    fn the_name_is_that_of_the_folder() {
        let error = parse_project(&EnvFile::parse(SAMPLE).unwrap(), "q").unwrap_err();
        assert_eq!(error.to_string(), "PROJECT_NAME is p, but the folder is called q");
        assert!(read("PROJECT_NAME=p\nREPO_PATH=r\nDEFAULT_BRANCH=main\n").is_err());
        assert!(read("PROJECT_NAME=p\nREPO_PATH=/r\nDEFAULT_BRANCH=-x\n").is_err());
    }

    #[test]
    fn writing_keeps_what_else_is_in_the_file() {
        let mut file = EnvFile::parse("# mine\nCOLOUR=blue\nPROJECT_NAME=p\n").unwrap();
        write_project(&mut file, &read(SAMPLE).unwrap()).unwrap();
        let text = file.to_string();
        assert!(text.starts_with("# mine\nCOLOUR=blue\n"), "{text}");
        assert!(parse_project(&file, "p").is_ok());
    }
}
