//! The multi-call program and its installer, as a newcomer meets them.

mod install_script;
mod names;
