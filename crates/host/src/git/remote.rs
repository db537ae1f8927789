//! Remotes of the user's repository: names, URLs and refs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use model::id::{BranchName, RemoteName, Sha};

use super::call::{GitCall, GitOutput, argv_with};
use super::user_git::keep_url;
use super::worktree_repo::{argv_ls_remote, read_remote_branch};
use super::{FetchProgress, GitError, RemoteBranch, UserRepo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRef {
    /// Its whole name, such as `refs/tags/v1.0`.
    pub name: String,
    /// Commit of the ref: for an annotated tag, the tagged commit.
    pub id: Sha,
}

/// The branches that a remote has now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteHeads {
    /// The branch that its HEAD names, if that branch is there.
    pub default: Option<BranchName>,
    pub branches: BTreeMap<BranchName, Sha>,
}

/// URLs that git pushes to for a remote. Git pushes to each of them; questions go to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushUrls {
    pub first: String,
    pub more: Vec<String>,
}

impl PushUrls {
    /// All URLs, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

impl UserRepo {
    /// Returns the URL of a remote after the user's rewriting rules; `None` if the remote does not exist.
    pub async fn remote_url(&self, remote: &RemoteName) -> Result<Option<String>, GitError> {
        let answer = self.git.call(argv_with("remote get-url --", [remote.as_str()])).await?;
        match answer.status {
            0 => read_line(&answer).map(Some),
            2 => Ok(None),
            _ => Err(answer.failure()),
        }
    }

    /// Returns the URLs that git pushes to for a remote, after the user's rewriting rules; `None` if the remote does not
    /// exist. A relative path is made absolute, so that it means the same in another folder.
    pub async fn push_urls(&self, remote: &RemoteName) -> Result<Option<PushUrls>, GitError> {
        let words = "remote get-url --push --all --";
        let answer = self.git.call(argv_with(words, [remote.as_str()])).await?;
        match answer.status {
            0 => {
                let urls = answer.parse(parse_urls, "it is not a list of URLs")?;
                let mut urls = urls.iter().map(|url| absolute_url(url, &self.git.cwd));
                let first = urls.next();
                Ok(first.map(|first| PushUrls { first, more: urls.collect() }))
            }
            2 => Ok(None),
            _ => Err(answer.failure()),
        }
    }

    /// Adds a remote to the user's repository.
    pub async fn add_remote(&self, remote: &RemoteName, url: &str) -> Result<(), GitError> {
        self.git.run(argv_with("remote add --", [remote.as_str(), url])).await
    }

    /// Updates the branches of a remote under `refs/remotes`, and nothing else.
    pub async fn fetch(
        &self,
        remote: &RemoteName,
        timeout: Duration,
        progress: &FetchProgress,
    ) -> Result<(), GitError> {
        let call = GitCall::new(argv_fetch(remote)).within(timeout).counting(progress);
        let fetched = self.git.run(call).await;
        fetched.map_err(|error| self.explain_fetch(error))
    }

    /// Fetches single refs without creating a local ref, so they cannot clash with the user's refs.
    pub async fn fetch_nameless(
        &self,
        remote: &RemoteName,
        names: &[&str],
        timeout: Duration,
        progress: &FetchProgress,
    ) -> Result<(), GitError> {
        let argv = argv_with(FETCH, [remote.as_str()].iter().chain(names));
        let fetched = self.git.run(GitCall::new(argv).within(timeout).counting(progress)).await;
        fetched.map_err(|error| self.explain_fetch(error))
    }

    /// Names the repository if it is one that this user cannot write to.
    fn explain_fetch(&self, error: GitError) -> GitError {
        match &error {
            GitError::Failed { stderr, .. } if is_read_only(stderr) => GitError::ReadOnlyObjects {
                path: self.common_dir().to_path_buf(),
                source: Box::new(error),
            },
            _ => error,
        }
    }

    /// Lists the refs of a remote whose names match a pattern such as `refs/tags/*`.
    pub async fn remote_refs(
        &self,
        remote: &RemoteName,
        pattern: &str,
        timeout: Duration,
    ) -> Result<Vec<RemoteRef>, GitError> {
        let argv = argv_with("ls-remote --end-of-options", [remote.as_str(), pattern]);
        let answer = self.git.query(GitCall::new(argv).within(timeout)).await?;
        answer.parse(parse_remote_refs, "it is not a list of refs")
    }

    /// Queries a repository for one branch. The URL is used as it is: the user's rewriting rules have been applied to it.
    pub async fn branch_at_url(
        &self,
        url: &str,
        branch: &BranchName,
        timeout: Duration,
    ) -> Result<RemoteBranch, GitError> {
        let mut git = self.git.clone();
        keep_url(&mut git, url);
        let call = GitCall::new(argv_ls_remote(url, branch)).within(timeout);
        read_remote_branch(&git.query(call).await?, branch)
    }

    /// Lists the branches of a remote as last fetched, newest first.
    pub async fn remote_branches(
        &self,
        remote: &RemoteName,
    ) -> Result<Vec<(BranchName, Sha)>, GitError> {
        let words =
            "for-each-ref --sort=-committerdate --format=%(objectname)%00%(symref)%00%(refname)";
        let prefix = format!("refs/remotes/{remote}/");
        let answer = self.git.query(argv_with(words, [&prefix])).await?;
        answer.parse(|bytes| parse_branches(bytes, &prefix), "it is not a list of branches")
    }

    /// Returns the default branch of a remote as recorded at clone time, if it was.
    pub async fn default_branch(
        &self,
        remote: &RemoteName,
    ) -> Result<Option<BranchName>, GitError> {
        let head = format!("refs/remotes/{remote}/HEAD");
        let answer = self.git.call(argv_with("symbolic-ref --quiet", [head])).await?;
        read_head(&answer, remote)
    }

    /// Queries the remote for its current default branch.
    pub async fn ask_default_branch(
        &self,
        remote: &RemoteName,
        timeout: Duration,
    ) -> Result<Option<BranchName>, GitError> {
        let argv = argv_with("ls-remote --symref --end-of-options", [remote.as_str(), "HEAD"]);
        let answer = self.git.query(GitCall::new(argv).within(timeout)).await?;
        Ok(parse_remote_head(&answer.stdout))
    }

    /// Queries the remote for its branches and for the default one.
    pub async fn remote_heads(
        &self,
        remote: &RemoteName,
        timeout: Duration,
    ) -> Result<RemoteHeads, GitError> {
        let patterns = [remote.as_str(), "HEAD", "refs/heads/*"];
        let argv = argv_with("ls-remote --symref --end-of-options", patterns);
        let answer = self.git.query(GitCall::new(argv).within(timeout)).await?;
        answer.parse(parse_heads, "it is not a list of refs")
    }

    pub async fn config_get(&self, key: &str) -> Result<Option<String>, GitError> {
        read_setting(&self.git.call(argv_with("config -z --get", [key])).await?)
    }
}

/// Returns whether git could not write what it fetched.
fn is_read_only(stderr: &str) -> bool {
    let signs = [
        "Read-only file system",
        "insufficient permission for adding an object",
        "unable to create temporary file: Permission denied",
    ];
    signs.iter().any(|sign| stderr.contains(sign))
}

/// Start of a fetch. The empty refmap disables the configured refspecs, so the refs that a fetch may change
/// are known beforehand.
const FETCH: &str = "fetch --progress --no-tags --no-recurse-submodules --no-auto-maintenance \
    --no-write-fetch-head --refmap= --end-of-options";

fn argv_fetch(remote: &RemoteName) -> Vec<OsString> {
    let refspec = format!("+refs/heads/*:refs/remotes/{remote}/*");
    argv_with(FETCH, [remote.as_str(), &refspec])
}

fn parse_urls(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Resolves a relative path as git does, from the folder in which it runs for this repository. A URL with a colon before its
/// first slash names a server or a helper, and one that begins with a tilde is resolved by the other side.
pub(super) fn absolute_url(url: &str, dir: &Path) -> String {
    if is_relative_url(url) { dir.join(url).display().to_string() } else { url.to_owned() }
}

pub(super) fn is_relative_url(url: &str) -> bool {
    let start = url.split('/').next().unwrap_or_default();
    !url.starts_with('/') && !start.contains(':') && !start.starts_with('~')
}

/// Parses lines of an id, a tab and a name. An annotated tag is followed by a line whose name ends with `^{}`
/// and whose id is the tagged commit.
fn parse_remote_refs(bytes: &[u8]) -> Option<Vec<RemoteRef>> {
    let text = String::from_utf8_lossy(bytes);
    let mut refs: Vec<RemoteRef> = Vec::new();
    for line in text.lines() {
        let (id, name) = line.split_once('\t')?;
        let id = Sha::parse(id).ok()?;
        match name.strip_suffix("^{}") {
            Some(name) => refs.iter_mut().rfind(|known| known.name == name)?.id = id,
            None => refs.push(RemoteRef { name: name.to_owned(), id }),
        }
    }
    Some(refs)
}

/// Parses lines of an object, the ref that it stands for (none for a branch) and a name. Names that are no branches are left out.
fn parse_branches(bytes: &[u8], prefix: &str) -> Option<Vec<(BranchName, Sha)>> {
    let text = String::from_utf8_lossy(bytes);
    let mut branches = Vec::new();
    for line in text.lines() {
        let mut fields = line.split('\0');
        let (id, symref, name) = (fields.next()?, fields.next()?, fields.next()?);
        let branch = name.strip_prefix(prefix).and_then(|name| BranchName::parse(name).ok());
        if let Some(branch) = branch.filter(|_| symref.is_empty()) {
            branches.push((branch, Sha::parse(id).ok()?));
        }
    }
    Some(branches)
}

/// Reads the branch. Status 1 means that the remote's HEAD is not recorded locally.
fn read_head(answer: &GitOutput, remote: &RemoteName) -> Result<Option<BranchName>, GitError> {
    let Some(name) = answer.found()?.map(read_line).transpose()? else { return Ok(None) };
    let prefix = format!("refs/remotes/{remote}/");
    Ok(name.strip_prefix(&prefix).and_then(|branch| BranchName::parse(branch).ok()))
}

/// Parses lines of an id, a tab and a name, and the line of [`parse_remote_head`]. Other refs that the patterns match are left
/// out.
fn parse_heads(bytes: &[u8]) -> Option<RemoteHeads> {
    let text = String::from_utf8_lossy(bytes);
    let mut branches = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("ref: ")) {
        let (id, name) = line.split_once('\t')?;
        let branch = name.strip_prefix("refs/heads/").and_then(|it| BranchName::parse(it).ok());
        if let Some(branch) = branch {
            branches.insert(branch, Sha::parse(id).ok()?);
        }
    }
    let default = parse_remote_head(bytes).filter(|branch| branches.contains_key(branch));
    Some(RemoteHeads { default, branches })
}

/// Parses the line `ref: refs/heads/main`, tab, `HEAD`.
fn parse_remote_head(bytes: &[u8]) -> Option<BranchName> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|line| {
        let branch = line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD")?;
        BranchName::parse(branch).ok()
    })
}

/// Reads the value. Status 1 means that the setting does not exist.
fn read_setting(answer: &GitOutput) -> Result<Option<String>, GitError> {
    Ok(answer.found()?.map(|answer| {
        let value = answer.stdout.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(value).into_owned()
    }))
}

fn read_line(answer: &GitOutput) -> Result<String, GitError> {
    let not_utf8 = |_| answer.unreadable("it is not UTF-8");
    let text = std::str::from_utf8(&answer.stdout).map_err(not_utf8)?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        Some(_) | None => Err(answer.unreadable("it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::call::tests::answer;

    #[test]
    fn a_tag_stands_for_what_it_was_put_on() {
        let (tag, commit) = ("1".repeat(40), "2".repeat(40));
        let text =
            format!("{tag}\trefs/tags/v1\n{commit}\trefs/tags/v1^{{}}\n{tag}\trefs/tags/w\n");
        let refs = parse_remote_refs(text.as_bytes()).expect("refs");
        let seen: Vec<_> = refs.iter().map(|it| (it.name.as_str(), it.id.as_str())).collect();
        assert_eq!(seen, [("refs/tags/v1", commit.as_str()), ("refs/tags/w", tag.as_str())]);
        assert_eq!(parse_remote_refs(b"not a list\n"), None);
    }

    #[test]
    fn only_a_relative_path_depends_on_the_folder() {
        for (url, expected) in [
            ("../origin.git", "/home/me/fork/../origin.git"),
            ("origin.git", "/home/me/fork/origin.git"),
            ("./a:b", "/home/me/fork/./a:b"),
            ("/srv/origin.git", "/srv/origin.git"),
            ("~/origin.git", "~/origin.git"),
            ("file:///srv/origin.git", "file:///srv/origin.git"),
            ("git@forge.example:me/fork", "git@forge.example:me/fork"),
            ("https://forge.example/me/fork", "https://forge.example/me/fork"),
            ("ext::sh -c x", "ext::sh -c x"),
        ] {
            assert_eq!(absolute_url(url, Path::new("/home/me/fork")), expected);
        }
    }

    #[test]
    fn a_store_that_cannot_be_written_to_is_told_from_other_failures() {
        assert!(is_read_only(
            "error: unable to create temporary file: Read-only file system; fatal: x"
        ));
        assert!(is_read_only(
            "error: insufficient permission for adding an object to repository database"
        ));
        assert!(!is_read_only("fatal: could not read from remote repository"));
    }

    #[test]
    fn a_fetch_changes_only_the_branches_of_its_remote() {
        let argv = argv_fetch(&RemoteName::parse("upstream").unwrap()).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"fetch --progress --no-tags --no-recurse-submodules --no-auto-maintenance --no-write-fetch-head --refmap= --end-of-options upstream +refs/heads/*:refs/remotes/upstream/*");
    }

    #[test]
    fn the_default_branch_may_have_slashes() {
        let origin = RemoteName::parse("origin").unwrap();
        let head = |status, text| read_head(&answer(status, text), &origin).unwrap();
        let branch = head(0, "refs/remotes/origin/release/2.x\n").unwrap();
        assert_eq!(branch.as_str(), "release/2.x");
        assert_eq!(head(1, ""), None);
        assert_eq!(head(0, "refs/remotes/other/main\n"), None);
    }

    #[test]
    fn the_remote_says_what_its_head_stands_for() {
        let text = b"ref: refs/heads/trunk\tHEAD\naaaa\tHEAD\n";
        assert_eq!(parse_remote_head(text).unwrap().as_str(), "trunk");
        assert_eq!(parse_remote_head(b"aaaa\tHEAD\n"), None);
        assert_eq!(parse_remote_head(b"ref: refs/heads/-x\tHEAD\n"), None);
    }

    #[test]
    fn only_branches_that_are_there_are_heads_of_a_remote() {
        let id = "1".repeat(40);
        let text = format!(
            "ref: refs/heads/gone\tHEAD\n{id}\tHEAD\n{id}\trefs/heads/a/b\n{id}\trefs/remotes/x/HEAD\n"
        );
        let heads = parse_heads(text.as_bytes()).expect("heads");
        let names: Vec<&str> = heads.branches.keys().map(BranchName::as_str).collect();
        assert_eq!((heads.default, names), (None, vec!["a/b"]));
        assert_eq!(parse_heads(b""), Some(RemoteHeads::default()));
        assert_eq!(parse_heads(b"not a list\n"), None);
    }

    #[test]
    fn a_setting_may_span_lines_and_may_be_absent() {
        assert_eq!(read_setting(&answer(0, "a\nb\0")).unwrap().as_deref(), Some("a\nb"));
        assert_eq!(read_setting(&answer(1, "")).unwrap(), None);
        assert!(read_setting(&answer(3, "")).is_err());
    }
}
