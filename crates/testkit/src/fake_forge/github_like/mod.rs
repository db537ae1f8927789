//! Gitea and GitHub on loopback: one API with the habits of either.
//!
//! A Gitea answers in the shapes of a real server (the bodies are made from recorded ones): unknown filters are ignored,
//! pages hold at most fifty entries, comments come all at once, success is 201 also for edits. A GitHub Enterprise server
//! ends its lists where no `Link` names a next page, answers 422 for a second pull request from one branch, and takes one
//! webhook for each address. On both, pull requests are among the issues, and asking for a member of an organisation that
//! the account is not in is a redirect.
//!
//! - `api` the paths
//! - `shape` the bodies

mod api;
mod shape;

use super::{FakeForge, FakeResponse, Flavour, ForgeRequest, Numbering, World};

/// A Gitea; serves until it is dropped.
pub type FakeGitea = FakeForge<GiteaFlavour>;

/// A GitHub; serves until it is dropped.
pub type FakeGithub = FakeForge<GithubFlavour>;

/// Gitea's habits.
#[derive(Debug)]
pub struct GiteaFlavour;

/// GitHub's habits.
#[derive(Debug)]
pub struct GithubFlavour;

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Gitea,
    GitHub,
}

impl Flavour for GiteaFlavour {
    const NUMBERING: Numbering = Numbering::Shared;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> FakeResponse {
        api::answer(Dialect::Gitea, world, path, request)
    }
}

impl Flavour for GithubFlavour {
    const NUMBERING: Numbering = Numbering::Shared;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> FakeResponse {
        api::answer(Dialect::GitHub, world, path, request)
    }
}
