//! Facts for the page and the API, read from the database and from the records of bottles and runs. Nothing is changed
//! here.

pub(crate) mod case;
pub(crate) mod log;
pub(crate) mod missing;
pub(crate) mod run;
pub(crate) mod spending;
pub(crate) mod timeline;
