//! Repositories on every kind of forge, for one suite of promises: fake servers, a folder, and a live server if one is
//! named by the environment.

mod fake;
mod folder;
mod live;

use forge::{Forge, Thread};

pub(crate) use fake::FakePlace;
pub(crate) use folder::FolderPlace;
pub(crate) use live::LivePlace;

/// The branch that everything is merged into.
pub(crate) const BASE: &str = "main";

/// A repository that a test has for itself, and what people do there behind the forge's back.
pub(crate) trait Place: Sized {
    /// `None` after saying that this place is missing here.
    async fn make() -> Option<Self>;

    /// The repository as the account under test sees it.
    fn forge(&self) -> &Forge;

    /// The account under test.
    fn login(&self) -> String;

    /// Another existing account, which may be assigned.
    fn other(&self) -> String;

    /// Opens an issue, with labels that are made if need be. Returns its number.
    async fn add_issue(&self, title: &str, labels: &[&str], assignees: &[&str]) -> u64;

    /// Pushes a branch with a commit of its own.
    async fn push_branch(&self, name: &str);

    /// Merges a pull request.
    async fn merge(&self, pull: u64);

    /// Lets somebody else comment.
    async fn comment(&self, thread: Thread, body: &str);

    /// An organisation in which the account and [`Self::other`] are.
    async fn own_org(&self) -> String;

    /// An organisation in which [`Self::other`] is, and a forge whose account is not in it.
    async fn foreign_org(&self) -> (Forge, String);

    /// Removes what is not removed with the test.
    async fn clear(self) {}
}
