//! The multi-call program, its installer and its documentation, as a newcomer meets them.

mod docs;
mod install_script;
mod names;
