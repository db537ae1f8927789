//! Repositories beside a user's: bare ones that borrow its objects and settings. One of them stands in for a repository that
//! cannot be written to, and remotes are fetched into it instead.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{Access, access};

use model::id::{BranchName, Sha};

use super::call::argv_with;
use super::remote::{absolute_url, is_relative_url};
use super::sealed::argv_update_ref;
use super::{GitError, ObjectFormat, OldValue, RefName, SealedRepo, UserRepo};
use crate::file;

impl UserRepo {
    /// Returns whether objects and refs can be written: not on a file system that is read-only, and not in another user's
    /// repository.
    pub fn is_writable(&self) -> bool {
        let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        may_write(&self.objects_dir()) && may_write(&self.common_dir().join("refs"))
    }

    /// Opens the stand-in at `path`, and creates it first if it is missing. It has the remotes, the identity and the
    /// credential helpers of this repository, because it includes its settings, and its checkout is this one's.
    pub async fn stand_in(&self, path: &Path) -> Result<Self, GitError> {
        Ok(self.beside(path).await?.standing_in_for(self))
    }

    /// Opens a repository of this program's beside this one, and creates it first if it is missing: with refs of its own, and
    /// with the objects, remotes, identity and credential helpers of this one.
    pub async fn beside(&self, path: &Path) -> Result<Self, GitError> {
        let prepare = |source| GitError::Prepare { path: path.to_path_buf(), source };
        if !path.join("HEAD").exists() {
            let parent = path.parent().unwrap_or(path);
            std::fs::create_dir_all(parent)
                .map_err(file::FileError::io("create", parent))
                .map_err(prepare)?;
            SealedRepo::init_bare(path, self.object_format()).await?;
        }
        let objects = self.objects_dir();
        let alternates = path.join("objects/info/alternates");
        let info = path.join("objects/info");
        std::fs::create_dir_all(&info)
            .map_err(file::FileError::io("create", &info))
            .map_err(prepare)?;
        let line = format!("{}\n", objects.display());
        file::write_atomic(&alternates, line.as_bytes(), 0o600).map_err(prepare)?;
        let relative = self.relative_remote_urls().await?;
        let config = render_config(
            &self.common_dir().join("config"),
            self.object_format(),
            &absolute_urls(&relative, &self.git.cwd),
        );
        file::write_atomic(&path.join("config"), config.as_bytes(), 0o600).map_err(prepare)?;
        Self::discover(path).await
    }

    /// Lists the addresses of remotes that are paths relative to this repository's folder.
    async fn relative_remote_urls(&self) -> Result<BTreeSet<String>, GitError> {
        const PATTERN: &str = r"^remote\..*\.(url|pushurl)$";
        let answer = self.git.call(argv_with("config -z --get-regexp", [PATTERN])).await?;
        let Some(answer) = answer.found()? else { return Ok(BTreeSet::new()) };
        let urls = answer.parse(parse_remote_urls, "it is not a list of settings")?;
        Ok(urls.into_iter().filter(|url| is_relative_url(url)).collect())
    }

    /// Points a branch of a repository of this program's at a commit, if it is where it is expected.
    pub async fn move_branch(
        &self,
        branch: &BranchName,
        new: &Sha,
        old: OldValue<'_>,
    ) -> Result<(), GitError> {
        let name = RefName::of_branch(branch);
        self.git.run(argv_update_ref(&name, new, old, self.object_format())).await
    }
}

/// Relative addresses, each with what it means in this folder.
fn absolute_urls(relative: &BTreeSet<String>, dir: &Path) -> Vec<(String, String)> {
    relative.iter().map(|url| (url.clone(), absolute_url(url, dir))).collect()
}

/// Parses settings that end with NUL; the name of each is before its first newline.
fn parse_remote_urls(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let values = text.split_terminator('\0').filter_map(|setting| setting.split_once('\n'));
    Some(values.map(|(_, url)| url.to_owned()).collect())
}

/// Settings of the stand-in. Its own come last, because the borrowed ones describe a checkout. Addresses that are relative to
/// the checkout are rewritten, since git resolves them from the folder in which it runs; the longest match counts, so one
/// that begins like another is not taken for it.
fn render_config(borrowed: &Path, format: ObjectFormat, absolute: &[(String, String)]) -> String {
    let quoted = quoted(&borrowed.display().to_string());
    let (version, extension) = match format {
        ObjectFormat::Sha1 => (0, String::new()),
        ObjectFormat::Sha256 => {
            (1, format!("[extensions]\n\tobjectFormat = {}\n", format.as_str()))
        }
    };
    let rewritten: String = absolute
        .iter()
        .map(|(url, path)| {
            format!("[url \"{}\"]\n\tinsteadOf = \"{}\"\n", self::quoted(path), self::quoted(url))
        })
        .collect();
    format!(
        "[include]\n\tpath = \"{quoted}\"\n[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}{rewritten}"
    )
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_borrowed_first_and_the_stand_in_is_bare() {
        let config = render_config(Path::new("/a \"b\"/.git/config"), ObjectFormat::Sha1, &[]);
        let expected = "[include]\n\tpath = \"/a \\\"b\\\"/.git/config\"\n\
                        [core]\n\trepositoryformatversion = 0\n\tbare = true\n";
        assert_eq!(config, expected);
        let config = render_config(Path::new("/c"), ObjectFormat::Sha256, &[]);
        assert!(config.ends_with("= true\n[extensions]\n\tobjectFormat = sha256\n"), "{config}");
    }

    #[test]
    fn addresses_that_are_relative_to_the_checkout_are_rewritten() {
        let relative =
            parse_remote_urls(b"remote.a.url\n../a b\0remote.c.url\nhttps://c/d\0").unwrap();
        let relative = relative.into_iter().filter(|url| is_relative_url(url)).collect();
        let absolute = absolute_urls(&relative, Path::new("/w/fork"));
        let config = render_config(Path::new("/c"), ObjectFormat::Sha1, &absolute);
        let expected = "[url \"/w/fork/../a b\"]\n\tinsteadOf = \"../a b\"\n";
        assert!(config.ends_with(expected), "{config}");
    }
}
