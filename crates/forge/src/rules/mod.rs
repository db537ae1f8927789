//! Pure decisions: the scope of writes, the keywords of forges, and the pull request that belongs to an issue.

pub(crate) mod link;
pub(crate) mod scope;
