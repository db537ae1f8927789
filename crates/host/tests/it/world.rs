//! A world of its own for each test: a home, repositories, fixed dates and names.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use host::git::{ObjectFormat, OldValue, RefName, SealedRepo, UserEnv, UserRepo};
use host::process::{ProcessOutput, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::id::Sha;

pub(crate) struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        // The temporary directory may be reached through a link, and git shows real paths.
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A program that leaves a mark when it is run.
    pub(crate) fn trap(&self, name: &str) -> PathBuf {
        let text = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", self.path("mark").display());
        let path = self.write(name, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn marks(&self) -> String {
        fs::read_to_string(self.path("mark")).unwrap_or_default()
    }

    pub(crate) fn env(&self) -> Vec<(OsString, OsString)> {
        let path = host::env::var_os("PATH").unwrap();
        vec![("PATH".into(), path), ("HOME".into(), self.path("home").into())]
    }

    pub(crate) fn user_env(&self) -> UserEnv {
        UserEnv::new(self.env()).with("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// Runs git as the world's inhabitants would, and gives back what it printed.
    pub(crate) async fn git(&self, dir: &str, args: &[&str]) -> String {
        let output = self.try_git(dir, args).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit, CommandExit::Exited(0), "git {args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) async fn try_git(&self, dir: &str, args: &[&str]) -> ProcessOutput {
        let mut spec = CommandSpec::new("git").args(args).cwd(self.path(dir));
        spec.env = self.env();
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_AUTHOR_EMAIL", "ada@example.org"),
            ("GIT_COMMITTER_NAME", "Bot"),
            ("GIT_COMMITTER_EMAIL", "bot@example.org"),
            ("GIT_AUTHOR_DATE", "2024-03-01T12:00:00Z"),
            ("GIT_COMMITTER_DATE", "2024-03-01T12:00:00Z"),
        ] {
            spec = spec.env(name, value);
        }
        run(&spec, &RunLimits::default(), &Cancel::new()).await.unwrap()
    }

    pub(crate) async fn init(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.git(name, &["init", "--quiet", "--initial-branch=main"]).await;
    }

    /// Commits a file and gives back the commit.
    pub(crate) async fn commit(&self, repo: &str, file: &str, text: &str) -> Sha {
        self.write(&format!("{repo}/{file}"), text);
        self.git(repo, &["add", "--all"]).await;
        self.git(repo, &["commit", "--quiet", "-m", &format!("change {file}")]).await;
        self.tip(repo, "HEAD").await
    }

    pub(crate) async fn tip(&self, repo: &str, rev: &str) -> Sha {
        Sha::parse(&self.git(repo, &["rev-parse", rev]).await).unwrap()
    }

    pub(crate) async fn user_repo(&self, name: &str) -> UserRepo {
        UserRepo::discover_as(&self.path(name), self.user_env()).await.unwrap()
    }

    pub(crate) async fn sealed(&self, name: &str) -> SealedRepo {
        SealedRepo::init_bare(&self.path(name), ObjectFormat::Sha1).await.unwrap()
    }

    /// A sealed repository that has all of `repo`, with `base` pinned.
    pub(crate) async fn sealed_over(&self, name: &str, repo: &str, base: &Sha) -> SealedRepo {
        let sealed = self.sealed(name).await;
        sealed.add_alternate(&self.path(repo).join(".git/objects")).unwrap();
        sealed.update_ref(&name_of("refs/pinned/base"), base, OldValue::Missing).await.unwrap();
        sealed
    }

    pub(crate) async fn bundle(&self, repo: &str, file: &str, revs: &[&str]) -> PathBuf {
        let path = self.path(file);
        let mut args = vec!["bundle", "create", "--quiet", path.to_str().unwrap()];
        args.extend(revs);
        self.git(repo, &args).await;
        path
    }
}

pub(crate) fn name_of(text: &str) -> RefName {
    RefName::parse(text).unwrap()
}

pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
