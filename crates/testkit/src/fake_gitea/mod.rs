//! A Gitea on loopback that keeps its repository in memory and fails when it is told to.
//!
//! It answers in the shapes of a real server (the bodies are made from recorded ones), with its habits: unknown filters
//! are ignored, pages hold at most fifty entries, comments come all at once, success is 201 also for edits.
//!
//! - `api` what each path does
//! - `hooks` what it sends when something happens
//! - `shape` the bodies

mod api;
pub mod hooks;
mod shape;

use crate::fake_forge::{Answer, FakeForge, Flavour, Numbering, World};

pub use crate::fake_forge::{
    FakeComment, FakePull, ForgeRequest, LOGIN, Mishap, OWNER, REPO, Room, TOKEN,
};

/// A Gitea; serves until it is dropped.
pub type FakeGitea = FakeForge<GiteaFlavour>;

/// Gitea's paths, shapes and habits.
#[derive(Debug)]
pub struct GiteaFlavour;

impl Flavour for GiteaFlavour {
    const NUMBERING: Numbering = Numbering::Shared;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
        api::answer(world, path, request)
    }
}
