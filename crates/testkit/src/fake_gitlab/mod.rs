//! A GitLab on loopback that keeps its project in memory and fails when it is told to.
//!
//! It has GitLab's habits: issues and merge requests are numbered apart, a project is one segment of the path, notes of
//! the system are among those of people, and labels that do not exist are made.
//!
//! - `api` what each path does
//! - `shape` the bodies

mod api;
mod shape;

use crate::fake_forge::{Answer, FakeForge, Flavour, ForgeRequest, Numbering, World};

/// A GitLab; serves until it is dropped.
pub type FakeGitlab = FakeForge<GitlabFlavour>;

/// GitLab's paths, shapes and habits.
#[derive(Debug)]
pub struct GitlabFlavour;

impl Flavour for GitlabFlavour {
    const NUMBERING: Numbering = Numbering::Separate;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
        api::answer(world, path, request)
    }
}
