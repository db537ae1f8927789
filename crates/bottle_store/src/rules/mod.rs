//! Decisions without effects: who may move a head, what is garbage, which names an archive may have.

pub(crate) mod entry_path;
pub(crate) mod garbage;
pub(crate) mod head;
pub(crate) mod manifest;
