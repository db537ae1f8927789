//! `wf`: everything is in the library; this is its door.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The same program is the shim of its boxes. This comes before anything else: a shim has no terminal, no flags and
    // no settings.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == engine::shim::SHIM_WORD) {
        return wf::shim(words.next());
    }
    wf::run()
}
