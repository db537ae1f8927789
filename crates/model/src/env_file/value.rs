//! Rules for values, and their written form.

use super::fault::EnvFault;

/// Writes a value so that it reads back the same: plain words bare, all else in double quotes.
pub(super) fn render_value(key: &str, value: &str) -> Result<String, EnvFault> {
    check_any(key, value)?;
    if value.contains('"') {
        return Err(EnvFault::DoubleQuote { key: key.to_owned() });
    }
    Ok(if is_plain(value) { value.to_owned() } else { format!("\"{value}\"") })
}

/// The rule for every value, quoted or not: nothing that a shell acts on.
pub(super) fn check_any(key: &str, value: &str) -> Result<(), EnvFault> {
    if value.contains(char::is_control) {
        return Err(EnvFault::Control { key: key.to_owned() });
    }
    match FORBIDDEN.into_iter().find(|what| value.contains(what)) {
        Some(what) => Err(EnvFault::Forbidden { key: key.to_owned(), what }),
        None => Ok(()),
    }
}

/// The rule for a value without quotes. [`check_any`] comes first, so that no message recommends quotes where they would
/// not help.
pub(super) fn check_bare(key: &str, value: &str) -> Result<(), EnvFault> {
    check_any(key, value)?;
    let key = || key.to_owned();
    if value.contains(char::is_whitespace) {
        return Err(EnvFault::Blank { key: key() });
    }
    if value.contains(['"', '\'']) {
        return Err(EnvFault::QuoteInside { key: key() });
    }
    if value.contains('&') {
        return Err(EnvFault::BareAmpersand { key: key() });
    }
    Ok(())
}

const FORBIDDEN: [&str; 5] = ["`", "$", ";", "|", "&&"];

/// Returns whether a value is written bare. This is narrower than the rule for reading, since other readers of env files
/// differ.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&b))
}
