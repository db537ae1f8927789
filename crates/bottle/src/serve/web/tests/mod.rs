//! The page and the API on a folder with bottles in every state, asked as a browser and as a program would.

mod api;
mod document;
mod page;
mod safety;
mod snapshot;
mod stage;
mod webhook;
