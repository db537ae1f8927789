//! Files of a checkout that git ignores.

use std::ffi::OsString;
use std::path::Path;

use super::WorktreeRepo;
use crate::git::GitError;
use crate::git::call::{GitCall, argv, argv_with};
use crate::git::parse::filled_fields;

impl WorktreeRepo {
    /// Lists the files of a checkout that git ignores and that a pattern names: those of a file in the form of `.gitignore`,
    /// and `patterns`.
    pub async fn ignored_files(
        &self,
        checkout: &Path,
        file: Option<&Path>,
        patterns: &[String],
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let mut values: Vec<OsString> = Vec::new();
        values.extend(file.map(|file| {
            let mut value = OsString::from("--exclude-from=");
            value.push(file);
            value
        }));
        values.extend(patterns.iter().map(|pattern| format!("--exclude={pattern}").into()));
        let git = self.git_at(checkout);
        let named = git.query(argv_with("ls-files --others --ignored -z", values)).await?;
        if named.stdout.is_empty() {
            return Ok(Vec::new());
        }
        let call = GitCall::new(argv("--no-literal-pathspecs check-ignore --stdin -z"))
            .reading(&named.stdout);
        let ignored = git.call(call).await?;
        let Some(ignored) = ignored.found()? else { return Ok(Vec::new()) };
        Ok(filled_fields(&ignored.stdout).map(<[u8]>::to_vec).collect())
    }

    /// Reports whether git ignores a path of a checkout.
    pub async fn is_ignored(&self, checkout: &Path, path: &str) -> Result<bool, GitError> {
        let answer = self
            .git_at(checkout)
            .call(argv_with("--no-literal-pathspecs check-ignore --quiet --", [path]))
            .await?;
        Ok(answer.found()?.is_some())
    }
}
