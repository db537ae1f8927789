//! The train: planning, its repository and record, and the search for the commit that breaks the check.

pub(crate) mod break_search;
pub(crate) mod check_bench;
pub(crate) mod plan;
pub(crate) mod prove;
mod publish;
pub(crate) mod steps;
pub(crate) mod store;

use host::git::UserRepo;

use super::record::ForkRunRecord;
use crate::exit::{Failure, OrExit};

/// The repository that a run reads from: the user's, or for a step of a train the train's, which has the steps before it.
pub(crate) async fn repo_of_run(meta: &ForkRunRecord, user: UserRepo) -> Result<UserRepo, Failure> {
    match &meta.train {
        Some(step) => user.beside(&step.repo).await.or_machine(),
        None => Ok(user),
    }
}
