//! Feeds arbitrary text to the parser of FORK.md: it must not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The rules are private to forklift, so their files are part of this target.
#[path = "../../crates/forklift/src/rules"]
#[expect(dead_code, reason = "forklift uses the rest")]
mod rules {
    pub(crate) mod branch_pair;
    pub(crate) mod fork_file;
    pub(crate) mod security {
        pub(crate) mod source_name;
    }
    pub(crate) mod strategy;
    pub(crate) mod target;
}

fuzz_target!(|text: &str| {
    drop(rules::fork_file::parse_fork_file(text));
});
