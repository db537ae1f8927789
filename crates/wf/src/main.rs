//! `wf`: everything is in the library; this is its door.

fn main() -> std::process::ExitCode {
    wf::run()
}
