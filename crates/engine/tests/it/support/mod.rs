//! What the suites stand on: a rig with one backend, a project with a fork, and what can be seen of boxes from the
//! host.

mod beat;
mod part;
mod process;
mod project;
mod rig;

pub(crate) use beat::{DAEMONS, assert_beating, assert_silent, beats_of};
pub(crate) use process::{environs_with, words_with};
pub(crate) use project::{Imported, Project, next_export, user_env};
pub(crate) use rig::{Ran, Rig, Running, Sh};

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use testkit::wait::PATIENCE;

/// Makes two tests of each promise, `bwrap::<name>` and `docker::<name>`. A promise is a function that takes a rig.
macro_rules! on_every_backend {
    ($($promise:ident),+ $(,)?) => {
        $crate::support::on_backend!(bwrap, Bwrap, $($promise),+);
        $crate::support::on_backend!(docker, Docker, $($promise),+);
    };
}

/// Makes a test of each promise that only one backend gives.
macro_rules! on_backend {
    ($module:ident, $kind:ident, $($promise:ident),+ $(,)?) => {
        mod $module {
            $(#[tokio::test]
            async fn $promise() {
                let kind = sandbox::backend::BackendKind::$kind;
                if let Some(rig) = $crate::support::Rig::on(kind) {
                    super::$promise(&rig).await;
                }
            })+
        }
    };
}

pub(crate) use {on_backend, on_every_backend};

/// A word that no other test and no other process has.
pub(crate) fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("token-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until something is so, and says what it was if it never is.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
