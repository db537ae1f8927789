//! `wf`: see the library.

fn main() {}
