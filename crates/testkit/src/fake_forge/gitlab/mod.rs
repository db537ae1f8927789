//! A GitLab on loopback that keeps its project in memory and fails on demand.
//!
//! It has GitLab's habits: issues and merge requests are numbered apart, a project is one segment of the path, and notes
//! of the system are among those of people.
//!
//! - `api` the paths
//! - `shape` the bodies

mod api;
mod shape;

use super::{FakeForge, FakeResponse, Flavour, ForgeRequest, Numbering, World};

/// A GitLab; serves until it is dropped.
pub type FakeGitlab = FakeForge<GitlabFlavour>;

/// GitLab's paths, shapes and habits.
#[derive(Debug)]
pub struct GitlabFlavour;

impl Flavour for GitlabFlavour {
    const NUMBERING: Numbering = Numbering::Separate;

    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> FakeResponse {
        api::answer(world, path, request)
    }
}
