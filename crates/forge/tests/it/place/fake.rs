//! A fake server of any flavour.

use forge::{Forge, Thread};
use model::secret::Secret;
use testkit::fake_forge::{FakeForge, Flavour, LOGIN, Room, STRANGER, TOKEN};

use super::Place;
use crate::world::{address, options};

pub(crate) struct FakePlace<F: Flavour> {
    pub(crate) server: FakeForge<F>,
    forge: Forge,
}

async fn open<F: Flavour>(server: &FakeForge<F>) -> Forge {
    let address = address(&server.remote_url());
    Forge::open(&address, &Secret::new(TOKEN), &options()).await.unwrap()
}

impl<F: Flavour> Place for FakePlace<F> {
    async fn make() -> Option<Self> {
        let server = FakeForge::start();
        let forge = open(&server).await;
        Some(Self { server, forge })
    }

    fn forge(&self) -> &Forge {
        &self.forge
    }

    fn login(&self) -> String {
        LOGIN.to_owned()
    }

    fn other(&self) -> String {
        STRANGER.to_owned()
    }

    async fn add_issue(&self, title: &str, labels: &[&str], assignees: &[&str]) -> u64 {
        self.server.add_issue(title, "What is wanted.", labels, assignees)
    }

    async fn push_branch(&self, name: &str) {
        self.server.set_branch(name, "33be78b34ed90f637e647f1b97e5033f978586e9");
    }

    async fn merge(&self, pull: u64) {
        self.server.merge_pull(pull);
    }

    async fn comment(&self, thread: Thread, body: &str) {
        let room = match thread {
            Thread::Issue(_) => Room::Issue,
            Thread::Pull(_) => Room::Pull,
        };
        self.server.add_comment(room, thread.number(), STRANGER, body);
    }

    async fn own_org(&self) -> String {
        self.server.add_member("bot-bottle", LOGIN);
        self.server.add_member("bot-bottle", STRANGER);
        "bot-bottle".to_owned()
    }

    async fn foreign_org(&self) -> (Forge, String) {
        self.server.add_member("others", STRANGER);
        (open(&self.server).await, "others".to_owned())
    }
}
