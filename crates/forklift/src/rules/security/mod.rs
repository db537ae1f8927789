//! Rules of `forklift security`: what advisories say, whether a fork has a fix, and how both are reported.

pub(crate) mod advisory;
pub(crate) mod candidate;
pub(crate) mod code_path;
pub(crate) mod code_place;
pub(crate) mod finding;
pub(crate) mod fix;
pub(crate) mod message;
pub(crate) mod openvex;
pub(crate) mod osv;
pub(crate) mod presence;
pub(crate) mod project;
pub(crate) mod release;
pub(crate) mod sarif;
pub(crate) mod severity;
pub(crate) mod source_name;
