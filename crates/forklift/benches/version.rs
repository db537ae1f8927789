//! How long a command takes to say its version, beside `true`: nobody should wait for a word.

#![expect(clippy::disallowed_methods, reason = "a yardstick is run as a person would run it")]

use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::measure::{compare, row, time};

const PROMISED: Duration = Duration::from_millis(10);

fn main() {
    let comparison = compare(
        40,
        || time(|| run(Command::new(env!("CARGO_BIN_EXE_forklift")).arg("--version"))),
        || time(|| run(&mut Command::new("true"))),
    );
    let word = if comparison.ours < PROMISED { "ok" } else { "OVER" };
    row(&format!(
        "forklift --version {:.2} ms beside true {:.2} ms   promised under {} ms: {word}",
        comparison.ours.as_secs_f64() * 1000.0,
        comparison.yardstick.as_secs_f64() * 1000.0,
        PROMISED.as_millis(),
    ));
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}
