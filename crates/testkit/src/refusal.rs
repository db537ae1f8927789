//! Wrong command lines in one table: each has to end with one line that says what is wrong.

use std::process::Command;

use crate::hermetic::Hermetic;

/// Runs wrong command lines, written with a space between words, and returns them with their errors and statuses.
///
/// Each must print nothing on standard output and exactly one `error:` line, which a `hint:` may follow; progress on
/// standard error is left out.
pub fn refusals(
    hermetic: &Hermetic,
    name: &str,
    lines: &[&str],
    command: impl Fn(&[&str]) -> Command,
) -> String {
    let refusal = |line: &&str| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let output = hermetic.run(&mut command(&words));
        let is_told = |it: &&str| it.starts_with("error: ") || it.starts_with("hint: ");
        let is_aside = |it: &&str| it.starts_with("> ") || it.contains(" runs as root");
        let told: Vec<&str> = output.stderr.lines().filter(|it| !is_aside(it)).collect();
        let errors = told.iter().filter(|it| it.starts_with("error: ")).count();
        assert!(
            output.stdout.is_empty() && errors == 1 && told.iter().all(is_told),
            "{line}: {}",
            output.snapshot()
        );
        let status = output.status.expect("a status");
        assert_ne!(status, 0, "{line}: {}", output.snapshot());
        hermetic.redact(&format!("$ {name} {line}\n{}\n[{status}]\n", told.join("\n")))
    };
    lines.iter().map(refusal).collect()
}
