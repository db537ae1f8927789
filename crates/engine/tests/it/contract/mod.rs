//! What every box promises, whichever backend builds it. Each promise is a function that takes a rig; the macro makes
//! a test of it for each backend.

mod command;
mod crash;
mod end;
mod freeze;
mod limit;
mod memory;
mod record;
mod relay;
mod secret;
mod space;
mod terminal;
mod wall;
