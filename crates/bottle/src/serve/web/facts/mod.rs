//! What the page and the API know: gathered from the state and from the records of bottles and runs, changed by nobody
//! here.

pub(crate) mod case;
pub(crate) mod log;
pub(crate) mod run;
pub(crate) mod timeline;
