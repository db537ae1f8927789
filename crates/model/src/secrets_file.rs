//! Secrets files: often written as shell scripts, always read as data.
//!
//! A line is blank, a comment, or `KEY=value` with an optional `export`. The value is literal to the end of its line,
//! quotes and `#` included: secrets hold any character, and the rules of env files would refuse some.

use crate::env_file::{EnvFault, EnvFileError, is_key, refuse_byte_order_mark};
use crate::secret::Secret;

/// Reads all secrets of a file, in its order.
pub fn parse_secrets(text: &str) -> Result<Vec<(String, Secret)>, EnvFileError> {
    refuse_byte_order_mark(text)?;
    let mut secrets: Vec<(String, Secret)> = Vec::new();
    let mut lines_of_secrets: Vec<usize> = Vec::new();
    for (index, raw) in text.split('\n').enumerate() {
        let at = |reason| EnvFileError { line: index + 1, reason };
        let Some((key, value)) = parse_line(raw).map_err(at)? else {
            continue;
        };
        if let Some(earlier) = secrets.iter().position(|(k, _)| k == key) {
            let first_line = lines_of_secrets[earlier];
            return Err(at(EnvFault::Duplicate { key: key.to_owned(), first_line }));
        }
        secrets.push((key.to_owned(), Secret::new(value)));
        lines_of_secrets.push(index + 1);
    }
    Ok(secrets)
}

fn parse_line(raw: &str) -> Result<Option<(&str, &str)>, EnvFault> {
    let body = raw.strip_suffix('\r').unwrap_or(raw);
    let text = body.trim_start_matches([' ', '\t']);
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (before, value) = text.split_once('=').ok_or(EnvFault::NoEquals)?;
    let key = match before.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        Some(_) | None => before,
    };
    // A blank before `=` is refused: the one behind it would belong to the secret.
    if !is_key(key) {
        return Err(EnvFault::BadKey);
    }
    if value.contains(char::is_control) {
        return Err(EnvFault::Control { key: key.to_owned() });
    }
    Ok(Some((key, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let secrets = parse_secrets(text).unwrap();
        let exposed: Vec<(&str, &str)> =
            secrets.iter().map(|(key, secret)| (key.as_str(), secret.expose())).collect();
        assert_eq!(exposed, expected);
    }

    #[track_caller]
    fn refuses(text: &str, line: usize, reason: EnvFault) {
        assert_eq!(parse_secrets(text).unwrap_err(), EnvFileError { line, reason });
    }

    #[test]
    fn export_is_optional() {
        check("export A=1\n  export\tB=2\nC=3", &[("A", "1"), ("B", "2"), ("C", "3")]);
        check("EXPORT=1\n", &[("EXPORT", "1")]);
    }

    #[test]
    fn a_value_is_literal_to_the_end_of_its_line() {
        check("A=a;b|$c`d` # e=\"f\" \n", &[("A", "a;b|$c`d` # e=\"f\" ")]);
        check("A=\"x\"\nB=\nC==\n", &[("A", "\"x\""), ("B", ""), ("C", "=")]);
    }

    #[test]
    fn comments_blank_lines_and_crlf_are_no_part_of_a_secret() {
        check("#!/bin/sh\r\n\r\n  # x=y\r\nA=1\r\n", &[("A", "1")]);
    }

    #[test]
    fn broken_lines_are_named_without_their_content() {
        refuses("A=1\nhunter2\n", 2, EnvFault::NoEquals);
        refuses("hunter2==\n", 1, EnvFault::BadKey);
        refuses("A =1\n", 1, EnvFault::BadKey);
        refuses("source x; A=1\n", 1, EnvFault::BadKey);
        refuses("A=1\0\n", 1, EnvFault::Control { key: "A".to_owned() });
        refuses("A=1\n\nA=2\n", 3, EnvFault::Duplicate { key: "A".to_owned(), first_line: 1 });
        refuses("\u{feff}A=1\n", 1, EnvFault::ByteOrderMark);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            drop(parse_secrets(&text));
        }

        #[test]
        fn any_printable_secret_is_read_as_it_is(value in "\\PC*") {
            let secrets = parse_secrets(&format!("export KEY={value}\n")).unwrap();
            prop_assert_eq!(secrets[0].1.expose(), value.as_str());
        }
    }
}
