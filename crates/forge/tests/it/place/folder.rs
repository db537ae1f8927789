//! A bare repository in a folder.

use std::path::Path;

use forge::{Forge, ForgeOptions, Remote, Thread};
use model::secret::Secret;
use tempfile::TempDir;
use testkit::repo::Repo;

use super::{BASE, Place};

const LOGIN: &str = "bot1";
const OTHER: &str = "alice";

pub(crate) struct FolderPlace {
    dir: TempDir,
    forge: Forge,
}

async fn open(repository: &Path, login: &str) -> Forge {
    let remote = Remote::Local(repository.display().to_string());
    let options = ForgeOptions { login: Some(login.to_owned()), ..ForgeOptions::default() };
    Forge::open(&remote, &Secret::new(""), &options).await.unwrap()
}

impl FolderPlace {
    fn bare(&self) -> Repo {
        Repo::open(self.dir.path().join("hooks.git"))
    }

    async fn as_other(&self) -> Forge {
        open(self.bare().dir(), OTHER).await
    }
}

impl Place for FolderPlace {
    async fn make() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let bare = Repo::init_bare(dir.path().join("hooks.git"));
        let work = Repo::init(dir.path().join("work"));
        work.write("a.txt", "1\n").commit("first");
        let target = format!("HEAD:refs/heads/{BASE}");
        work.git(&["push", "-q", bare.dir().to_str().unwrap(), &target]);
        let forge = open(bare.dir(), LOGIN).await;
        Some(Self { dir, forge })
    }

    fn forge(&self) -> &Forge {
        &self.forge
    }

    fn login(&self) -> String {
        LOGIN.to_owned()
    }

    fn other(&self) -> String {
        OTHER.to_owned()
    }

    async fn add_issue(&self, title: &str, labels: &[&str], assignees: &[&str]) -> u64 {
        let Forge::Folder(folder) = &self.as_other().await else { panic!("it is a folder") };
        let owned =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        folder.add_issue(title, "What is wanted.", &owned(labels), &owned(assignees)).await.unwrap()
    }

    async fn push_branch(&self, name: &str) {
        let work = Repo::open(self.dir.path().join("work"));
        work.git(&["checkout", "-q", "-B", "topic"]);
        work.write(&format!("{}.txt", name.replace('/', "-")), "x\n").commit(name);
        let target = format!("HEAD:refs/heads/{name}");
        work.git(&["push", "-q", self.bare().dir().to_str().unwrap(), &target]);
    }

    async fn merge(&self, pull: u64) {
        let head = self.forge.read_pr(pull).await.unwrap().head_branch;
        let tip = self.bare().sha(&format!("refs/heads/{head}"));
        self.bare().git(&["update-ref", &format!("refs/heads/{BASE}"), &tip]);
    }

    async fn comment(&self, thread: Thread, body: &str) {
        self.as_other().await.post_comment(thread, body).await.unwrap();
    }

    async fn own_org(&self) -> String {
        let Forge::Folder(folder) = &self.forge else { panic!("it is a folder") };
        for user in [LOGIN, OTHER] {
            folder.add_member("bot-bottle", user).await.unwrap();
        }
        "bot-bottle".to_owned()
    }

    async fn foreign_org(&self) -> (Forge, String) {
        let Forge::Folder(folder) = &self.forge else { panic!("it is a folder") };
        folder.add_member("others", OTHER).await.unwrap();
        (open(self.bare().dir(), LOGIN).await, "others".to_owned())
    }
}
