//! A forge in front of a fake server.

use std::time::Duration;

use forge::{Forge, ForgeAddress, ForgeError, ForgeOptions, NewPull, Remote, RetryPolicy};
use model::id::BranchName;
use model::secret::Secret;
use testkit::fake_forge::{FakeGitea, ForgeRequest, TOKEN};

pub(crate) fn retry() -> RetryPolicy {
    RetryPolicy {
        connect: Duration::from_secs(300),
        answer: Duration::from_secs(300),
        attempts: 3,
        backoff: Duration::from_millis(10),
        retry_after_max: Duration::from_secs(2),
    }
}

/// Opens a forge for which two seconds of silence are too much.
pub(crate) async fn open_impatient(server: &FakeGitea) -> Forge {
    let retry = RetryPolicy { answer: Duration::from_secs(2), ..retry() };
    let options = ForgeOptions { retry, ..ForgeOptions::default() };
    Forge::open(&address(&server.remote_url()), &Secret::new(TOKEN), &options).await.unwrap()
}

pub(crate) fn options() -> ForgeOptions {
    ForgeOptions { retry: retry(), ..ForgeOptions::default() }
}

pub(crate) fn address(url: &str) -> Remote {
    ForgeAddress::parse_remote(url).unwrap()
}

pub(crate) async fn open(server: &FakeGitea) -> Forge {
    open_with(server, TOKEN).await
}

pub(crate) async fn open_with(server: &FakeGitea, token: &str) -> Forge {
    let address = address(&server.remote_url());
    Forge::open(&address, &Secret::new(token), &options()).await.unwrap()
}

pub(crate) fn new_pull(head: &str) -> NewPull {
    NewPull {
        title: "Take in upstream".to_owned(),
        body: "Three commits.".to_owned(),
        head: branch(head),
        base: branch("main"),
        draft: false,
    }
}

pub(crate) fn branch(name: &str) -> BranchName {
    BranchName::parse(name).unwrap()
}

/// Number of requests with this method and end of the path.
pub(crate) fn count(server: &FakeGitea, method: &str, end: &str) -> usize {
    let fits = |request: &&ForgeRequest| request.method == method && request.path.ends_with(end);
    server.requests().iter().filter(fits).count()
}

/// The name of an error's kind.
pub(crate) fn kind(error: &ForgeError) -> String {
    let shown = format!("{error:?}");
    shown.split([' ', '(']).next().unwrap_or_default().to_owned()
}
