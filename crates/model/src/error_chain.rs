//! An error with its causes, in one line.

use std::error::Error;

/// Renders an error and its causes in one line. Leaves out causes whose text the line already has.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut last = error.to_string();
    let mut line = last.clone();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !last.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
            last = text;
        }
        source = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not open the door: the key broke")]
    struct Repeating(#[source] std::io::Error);

    #[test]
    fn a_cause_that_was_said_already_is_not_said_again() {
        let error = Repeating(std::io::Error::other("the key broke"));
        assert_eq!(error_chain(&error), "could not open the door: the key broke");
    }
}
