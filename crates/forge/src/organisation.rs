//! New issues, and the repositories that an organisation has.

use std::path::Path;

use model::secret::Secret;

use crate::address::{ForgeAddress, WebBase};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::{Forge, ForgeOptions};
use crate::kind::ForgeKind;

/// An issue to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIssue {
    pub title: String,
    /// Text; it has to contain `mark`.
    pub body: String,
    /// Labels by name; missing ones are created where the forge allows it.
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// A text that no other issue has, by which this one is found again.
    pub mark: String,
    /// Login of the token's account, where the token may not say it.
    pub author: Option<String>,
}

/// A repository in the list of an organisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRepository {
    /// `owner/name`.
    pub full_name: String,
    /// True if nothing can be changed there.
    pub is_archived: bool,
    pub has_issues: bool,
    /// True if the account may push, where the forge reports it.
    pub may_push: Option<bool>,
}

impl FoundRepository {
    /// Returns whether work can be done there.
    pub fn is_workable(&self) -> bool {
        !self.is_archived && self.has_issues && self.may_push != Some(false)
    }
}

/// Lists the repositories of an organisation, or of an account, by name.
pub async fn list_repositories(
    kind: ForgeKind,
    web: &str,
    org: &str,
    token: &Secret,
    options: &ForgeOptions,
) -> ForgeResult<Vec<FoundRepository>> {
    let mut found = match kind {
        ForgeKind::Folder => list_folder(Path::new(web.trim_start_matches("file://")), org)?,
        ForgeKind::Gitea | ForgeKind::GitHub | ForgeKind::GitLab => {
            // The name of the repository does not matter: only the organisation is asked for.
            let remote = format!("{}/{org}/any.git", web.trim_end_matches('/'));
            let unknown = || ForgeError::UnknownForge { host: web.to_owned() };
            let remote = ForgeAddress::parse_remote(&remote).ok_or_else(unknown)?;
            let web = WebBase::parse(web);
            let options = ForgeOptions { kind: Some(kind), web, ..options.clone() };
            Forge::open(&remote, token, &options).await?.list_repositories(org).await?
        }
    };
    found.sort_by(|one, other| one.full_name.cmp(&other.full_name));
    found.dedup_by(|one, other| one.full_name == other.full_name);
    Ok(found)
}

/// Lists the bare repositories in a folder.
fn list_folder(root: &Path, org: &str) -> ForgeResult<Vec<FoundRepository>> {
    let folder = root.join(org);
    let failed = ForgeError::folder(&folder, "list the repositories");
    let entries = std::fs::read_dir(&folder).map_err(failed)?;
    let name = |path: &Path| {
        let stem = path.file_stem()?.to_str()?.to_owned();
        (path.extension()? == "git" && path.is_dir()).then_some(stem)
    };
    let names = entries.flatten().filter_map(|entry| name(&entry.path()));
    let found = |name: String| FoundRepository {
        full_name: format!("{org}/{name}"),
        is_archived: false,
        has_issues: true,
        may_push: Some(true),
    };
    Ok(names.map(found).collect())
}
