//! What the crate promises about agents, shown on recorded output.

mod any_line;
mod sample;
mod scripted;
