//! Documentation that holds: every command block runs, recorded output is what the programs print, links resolve, the
//! reference is generated from the code, and examples are accepted by the programs.
//!
//! `scripts/record` renews the recorded outputs and the reference.

mod block;
mod book;
mod examples;
mod mask;
mod names;
mod page;
mod place;
mod reference;

/// Setting by which a test writes what it would compare.
fn is_recording() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a switch of the test itself")]
    std::env::var("RECORD_DOCS").is_ok_and(|value| value == "1")
}
