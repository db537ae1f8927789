//! A GitHub Enterprise server on loopback that keeps its repository in memory and fails when it is told to.
//!
//! It has GitHub's habits: lists end where no `Link` names a next page, pull requests are among the issues, a second
//! pull request from one branch is 422, labels that do not exist are made, and whoever asks for a member of an
//! organisation that they are not in is redirected.
//!
//! - `api` what each path does
//! - `shape` the bodies

mod api;
mod shape;

use crate::fake_forge::{Answer, FakeForge, Flavour, ForgeRequest, Numbering, World};

/// A GitHub; serves until it is dropped.
pub type FakeGithub = FakeForge<GithubFlavour>;

/// GitHub's paths, shapes and habits.
#[derive(Debug)]
pub struct GithubFlavour;

impl Flavour for GithubFlavour {
    const NUMBERING: Numbering = Numbering::Shared;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
        api::answer(world, path, request)
    }
}
