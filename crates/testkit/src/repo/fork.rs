//! A fork and its upstream in every state that a keeper of forks meets.

use std::fs;
use std::os::unix::fs::symlink;

use super::{MAIN, Repo};
use crate::hermetic::Hermetic;

/// The file that only upstream changes.
const UPSTREAM_FILE: &str = "upstream.txt";
/// The file that both sides may change.
const SHARED_FILE: &str = "shared.txt";

/// An upstream, a fork of it on a forge, and a person's checkout of that fork.
///
/// The fork carries one commit of its own (`FORK.md`); until a method says otherwise it is up to date.
#[derive(Debug)]
pub struct Fork {
    /// The upstream, bare.
    pub upstream: Repo,
    /// The fork, bare.
    pub origin: Repo,
    /// The person's checkout of the fork, with the remotes `origin` and `upstream`.
    pub checkout: Repo,
    /// Checkout of upstream's authors.
    author: Repo,
}

/// Options that must be chosen before the first commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkPlan<'a> {
    /// The name of the checkout's folder.
    pub folder: &'a str,
    /// Which hash names the objects.
    pub object_format: ObjectFormat,
    /// Relation of the two histories.
    pub history: History,
    /// Part of the history that the checkout has.
    pub depth: Depth,
}

/// Which hash names the objects of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The usual case.
    Sha1,
    /// A rare case.
    Sha256,
}

/// Relation of the histories of fork and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The fork started from a commit of upstream.
    Shared,
    /// Both have a first commit of their own.
    Unrelated,
    /// Neither has any commit.
    Empty,
}

/// Part of the history that a checkout has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All of it.
    Full,
    /// The newest commit only.
    One,
}

impl Default for ForkPlan<'_> {
    fn default() -> Self {
        Self {
            folder: "fork",
            object_format: ObjectFormat::Sha1,
            history: History::Shared,
            depth: Depth::Full,
        }
    }
}

impl Fork {
    /// An ordinary fork, up to date.
    pub fn new(hermetic: &Hermetic) -> Self {
        Self::build(hermetic, ForkPlan::default())
    }

    /// The ordinary fork of a world that is on disk already.
    pub fn open(hermetic: &Hermetic) -> Self {
        let forge = hermetic.root().join("forge/fork");
        Self {
            upstream: Repo::open(forge.join("upstream.git")),
            origin: Repo::open(forge.join("origin.git")),
            checkout: Repo::open(hermetic.work().join("fork")),
            author: Repo::open(forge.join("author")),
        }
    }

    /// A checkout in a folder of this name, such as one with a space and a `+`.
    pub fn named(hermetic: &Hermetic, folder: &str) -> Self {
        Self::build(hermetic, ForkPlan { folder, ..ForkPlan::default() })
    }

    /// Repositories whose objects are named by SHA-256.
    pub fn sha256(hermetic: &Hermetic) -> Self {
        let object_format = ObjectFormat::Sha256;
        Self::build(hermetic, ForkPlan { object_format, ..ForkPlan::default() })
    }

    /// A checkout that has only the newest commit.
    pub fn shallow(hermetic: &Hermetic) -> Self {
        Self::build(hermetic, ForkPlan { depth: Depth::One, ..ForkPlan::default() })
    }

    /// Two histories with no commit in common.
    pub fn unrelated(hermetic: &Hermetic) -> Self {
        Self::build(hermetic, ForkPlan { history: History::Unrelated, ..ForkPlan::default() })
    }

    /// Three repositories without any commit.
    pub fn empty(hermetic: &Hermetic) -> Self {
        Self::build(hermetic, ForkPlan { history: History::Empty, ..ForkPlan::default() })
    }

    /// A fork as planned.
    pub fn build(hermetic: &Hermetic, plan: ForkPlan<'_>) -> Self {
        let forge = hermetic.root().join("forge").join(plan.folder);
        let format = match plan.object_format {
            ObjectFormat::Sha1 => "--object-format=sha1",
            ObjectFormat::Sha256 => "--object-format=sha256",
        };
        let upstream = Repo::init_as(forge.join("upstream.git"), &["--bare", format]);
        let origin = Repo::init_as(forge.join("origin.git"), &["--bare", format]);
        let author = Repo::init_as(forge.join("author"), &[format]);
        let checkout = Repo::init_as(hermetic.work().join(plan.folder), &[format]);
        author.git(&["remote", "add", "upstream", &url(&upstream)]);
        checkout.git(&["remote", "add", "origin", &url(&origin)]);
        checkout.git(&["remote", "add", "upstream", &url(&upstream)]);
        let fork = Self { upstream, origin, checkout, author };
        fork.fill(plan.history);
        if plan.depth == Depth::One {
            fork.make_shallow();
        }
        fork
    }

    fn fill(&self, history: History) {
        match history {
            History::Empty => return,
            History::Shared => {
                self.first_upstream_commit();
                self.checkout.git(&["fetch", "--quiet", "upstream"]);
                self.checkout.git(&["reset", "--quiet", "--hard", "upstream/main"]);
            }
            History::Unrelated => {
                self.first_upstream_commit();
                self.checkout.git(&["fetch", "--quiet", "upstream"]);
            }
        }
        self.checkout.write("FORK.md", "# What this fork is for\n\nKeep `FORK.md`.\n");
        self.fork_commit("fork: say what it is for");
    }

    fn first_upstream_commit(&self) {
        self.author.write("README.md", "# Project\n").write(SHARED_FILE, "one\ntwo\nthree\n");
        self.author.write(UPSTREAM_FILE, "1\n").commit("first");
        self.author.git(&["push", "--quiet", "upstream", MAIN]);
    }

    /// Replaces the checkout by one that has only the newest commit.
    fn make_shallow(&self) {
        let dir = self.checkout.dir();
        fs::remove_dir_all(dir).expect("the checkout goes");
        let target = dir.to_string_lossy();
        self.origin.git(&[
            "clone",
            "--quiet",
            "--depth=1",
            "--template=",
            &url(&self.origin),
            &target,
        ]);
        self.checkout.git(&["remote", "add", "upstream", &url(&self.upstream)]);
    }

    /// Commits what was written to the checkout and pushes it to the fork's main branch.
    pub fn fork_commit(&self, message: &str) -> String {
        let sha = self.checkout.commit(message);
        self.publish();
        sha
    }

    /// Lets upstream's authors commit and push one file; the checkout has not seen it.
    pub fn upstream_commit(&self, path: &str, text: &str, message: &str) -> String {
        let sha = self.author.write(path, text).commit(message);
        self.author.git(&["push", "--quiet", "upstream", MAIN]);
        sha
    }

    /// Lets upstream's authors remove one file and push that; the checkout has not seen it.
    pub fn upstream_remove(&self, path: &str) -> String {
        self.author.git(&["rm", "--quiet", path]);
        let sha = self.author.commit(&format!("without {path}"));
        self.author.git(&["push", "--quiet", "upstream", MAIN]);
        sha
    }

    /// Lets upstream's authors replace their newest commit by another and push that by force.
    pub fn upstream_rewrite(&self, path: &str, text: &str, message: &str) -> String {
        self.author.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        let sha = self.author.write(path, text).commit(message);
        self.author.git(&["push", "--quiet", "--force", "upstream", MAIN]);
        sha
    }

    /// Upstream does whatever `act` does in its checkout, and publishes it.
    pub fn upstream_does(&self, message: &str, act: impl FnOnce(&Repo)) -> String {
        act(&self.author);
        let sha = self.author.commit(message);
        self.author.git(&["push", "--quiet", "upstream", MAIN]);
        sha
    }

    /// Upstream has one new commit, in a file that the fork does not touch.
    pub fn clean_merge(self) -> Self {
        self.upstream_commit(UPSTREAM_FILE, "1\n2\n", "second");
        self
    }

    /// Upstream and the fork both changed the same line.
    pub fn conflicting_merge(self) -> Self {
        self.upstream_commit(SHARED_FILE, "one\ntwo, said upstream\nthree\n", "upstream's two");
        self.checkout.write(SHARED_FILE, "one\ntwo, said the fork\nthree\n");
        self.fork_commit("the fork's two");
        self
    }

    /// The fork's tree has a symbolic link that leads nowhere, and one that leads out of the tree.
    pub fn dangling_symlink(self) -> Self {
        symlink("no/such/file", self.checkout.dir().join("dangling")).expect("a link");
        symlink("../../..", self.checkout.dir().join("outside")).expect("a link");
        self.fork_commit("add links");
        self
    }

    /// The fork's tree has a submodule, as a gitlink to a commit that is missing here.
    pub fn submodule(self) -> Self {
        let module = "[submodule \"vendor/lib\"]\n\tpath = vendor/lib\n\turl = https://example.com/lib.git\n";
        let gitlink = format!("160000,{},vendor/lib", self.checkout.head());
        // The empty folder is how git shows a submodule that was never fetched; without it, it counts as deleted.
        fs::create_dir_all(self.checkout.dir().join("vendor/lib")).expect("a folder");
        self.checkout.write(".gitmodules", module).git(&["add", ".gitmodules"]);
        self.checkout.git(&["update-index", "--add", "--cacheinfo", &gitlink]);
        self.checkout.commit_index("add a submodule");
        self.publish();
        self
    }

    /// The fork's tree has a file that Git LFS keeps elsewhere: attributes and a pointer.
    pub fn lfs(self) -> Self {
        self.checkout.write_lfs_file();
        self.fork_commit("keep the model in LFS");
        self
    }

    /// The person is on another branch, with a commit that is nowhere else.
    pub fn on_branch(self, name: &str) -> Self {
        self.checkout.branch(name).checkout(name).write("draft.txt", "draft\n").commit("a draft");
        self
    }

    /// The person is on no branch at all.
    pub fn detached(self) -> Self {
        self.checkout.git(&["checkout", "--quiet", "--detach"]);
        self
    }

    /// The person has changes that are staged, not staged and not even known to git.
    pub fn dirty(self) -> Self {
        self.checkout.write("staged.txt", "staged\n").git(&["add", "staged.txt"]);
        self.checkout.write("README.md", "# Project, edited\n").write("unknown.txt", "unknown\n");
        self
    }

    /// The person's main branch lacks the newest commit of the fork.
    pub fn behind_origin(self) -> Self {
        self.checkout.write("newer.txt", "newer\n");
        self.fork_commit("a newer commit");
        self.checkout.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        self
    }

    fn publish(&self) {
        self.checkout.git(&["push", "--quiet", "origin", &format!("HEAD:refs/heads/{MAIN}")]);
    }
}

/// A plain path would make git copy objects by itself instead of speaking its protocol.
fn url(repo: &Repo) -> String {
    format!("file://{}", repo.dir().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_fork_is_up_to_date() {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic);
        assert_eq!(fork.checkout.head(), fork.origin.sha(MAIN));
        assert_eq!(ahead(&fork), ["fork: say what it is for"]);
        assert!(missing(&fork).is_empty());
        assert_eq!(fork.checkout.git(&["status", "--porcelain"]), "");
    }

    #[test]
    fn a_clean_merge_merges_and_a_conflicting_one_does_not() {
        let hermetic = Hermetic::new();
        let fork = Fork::named(&hermetic, "clean").clean_merge();
        assert_eq!(missing(&fork), ["second"]);
        fork.checkout.merge("upstream/main");
        let fork = Fork::named(&hermetic, "conflict").conflicting_merge();
        assert_eq!(missing(&fork), ["upstream's two"]);
        assert!(fork.checkout.try_git(&["merge", "upstream/main"]).is_err());
        assert_eq!(fork.checkout.git(&["diff", "--name-only", "--diff-filter=U"]), SHARED_FILE);
    }

    #[test]
    fn odd_names_formats_and_depths_hold() {
        let hermetic = Hermetic::new();
        let fork = Fork::named(&hermetic, "my fork +1").clean_merge();
        assert_eq!(missing(&fork), ["second"]);
        assert!(fork.checkout.dir().ends_with("my fork +1"));
        let fork = Fork::build(
            &hermetic,
            ForkPlan {
                folder: "new hash",
                object_format: ObjectFormat::Sha256,
                ..ForkPlan::default()
            },
        );
        assert_eq!(fork.clean_merge().checkout.head().len(), 64);
        let fork = Fork::build(
            &hermetic,
            ForkPlan { folder: "shallow", depth: Depth::One, ..ForkPlan::default() },
        );
        assert_eq!(fork.checkout.git(&["rev-parse", "--is-shallow-repository"]), "true");
        assert_eq!(fork.checkout.git(&["rev-list", "--count", "HEAD"]), "1");
    }

    #[test]
    fn histories_may_be_unrelated_or_absent() {
        let hermetic = Hermetic::new();
        let fork = Fork::unrelated(&hermetic);
        assert!(fork.checkout.try_git(&["merge-base", "HEAD", "upstream/main"]).is_err());
        let hermetic = Hermetic::new();
        assert!(
            Fork::empty(&hermetic).checkout.try_git(&["rev-parse", "--verify", "HEAD"]).is_err()
        );
    }

    #[test]
    fn the_person_may_be_anywhere() {
        let hermetic = Hermetic::new();
        let fork = Fork::named(&hermetic, "branch").on_branch("draft");
        assert_eq!(fork.checkout.git(&["branch", "--show-current"]), "draft");
        let fork = Fork::named(&hermetic, "detached").detached();
        assert_eq!(fork.checkout.git(&["branch", "--show-current"]), "");
        let fork = Fork::named(&hermetic, "dirty").dirty();
        let status = fork.checkout.git(&["status", "--porcelain"]);
        assert_eq!(status, " M README.md\nA  staged.txt\n?? unknown.txt");
        let fork = Fork::named(&hermetic, "behind").behind_origin();
        assert_eq!(fork.checkout.git(&["rev-list", "--count", "HEAD..origin/main"]), "1");
    }

    #[test]
    fn trees_may_hold_links_submodules_and_pointers() {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic).dangling_symlink().submodule().lfs();
        let tree = fork.origin.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", MAIN]);
        for line in ["120000 dangling", "120000 outside", "160000 vendor/lib", "100644 model.bin"] {
            assert!(tree.lines().any(|entry| entry == line), "{line} in\n{tree}");
        }
    }

    /// Subjects of the commits that only the fork has.
    fn ahead(fork: &Fork) -> Vec<String> {
        subjects(fork, "upstream/main..HEAD")
    }

    /// Subjects of the commits that the fork lacks.
    fn missing(fork: &Fork) -> Vec<String> {
        fork.checkout.git(&["fetch", "--quiet", "upstream"]);
        subjects(fork, "HEAD..upstream/main")
    }

    fn subjects(fork: &Fork, range: &str) -> Vec<String> {
        fork.checkout.git(&["log", "--format=%s", range]).lines().map(str::to_owned).collect()
    }
}
