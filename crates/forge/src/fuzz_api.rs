//! Entry point of the readers of responses for the fuzz target. It accepts any input.

/// Reads a body as every kind of response of every forge.
pub fn response(body: &[u8]) {
    crate::github_like::read_any(body);
    crate::gitlab::read_any(body);
}
