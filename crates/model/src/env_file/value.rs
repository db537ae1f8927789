//! What a value may hold, and how it is written.

use super::fault::EnvFault;

/// Writes a value so that it reads back the same: plain words bare, all else in double quotes.
pub(super) fn render_value(key: &str, value: &str) -> Result<String, EnvFault> {
    check_any(key, value)?;
    if value.contains('"') {
        return Err(EnvFault::DoubleQuote { key: key.to_owned() });
    }
    Ok(if is_plain(value) { value.to_owned() } else { format!("\"{value}\"") })
}

/// The rule for every value, quoted or not: nothing that a shell would act on.
pub(super) fn check_any(key: &str, value: &str) -> Result<(), EnvFault> {
    if value.contains(char::is_control) {
        return Err(EnvFault::Control { key: key.to_owned() });
    }
    match FORBIDDEN.into_iter().find(|what| value.contains(what)) {
        Some(what) => Err(EnvFault::Forbidden { key: key.to_owned(), what }),
        None => Ok(()),
    }
}

/// The rule for what may stand without quotes; [`check_any`] holds as well and is asked first, so
/// that nobody is told to quote what quotes would not help.
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

/// Narrower than what may be read bare: what other readers of env files could take differently is
/// written in quotes.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&b))
}
