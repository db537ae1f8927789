//! Placeholders of the form `{name}`. Substituted text is not expanded again, and `{{` and `}}` escape
//! braces.

use crate::request::AgentError;

pub(super) fn fill<'a>(
    word: &str,
    value: impl Fn(&str) -> Result<&'a str, AgentError>,
) -> Result<String, AgentError> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            filled.push_str(&rest[..1]);
            rest = &rest[2..];
        } else {
            let (name, after) = rest
                .strip_prefix('{')
                .and_then(|open| open.split_once('}'))
                .ok_or_else(|| AgentError::UnknownPlaceholder { name: rest.to_owned() })?;
            filled.push_str(value(name)?);
            rest = after;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(word: &str) -> Result<String, AgentError> {
        fill(word, |name| match name {
            "a" => Ok("{b}"),
            _ => Err(AgentError::UnknownPlaceholder { name: name.to_owned() }),
        })
    }

    #[test]
    fn braces_are_placeholders_or_doubled() {
        for (word, expected) in [
            ("", ""),
            ("plain é", "plain é"),
            ("{a}", "{b}"),
            ("x{a}{a}y", "x{b}{b}y"),
            ("{{a}}", "{a}"),
            ("{{{a}}}", "{{b}}"),
        ] {
            assert_eq!(filled(word).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn a_brace_without_a_partner_is_refused() {
        for word in ["{", "}", "{a", "a}", "{}", "{b}", "{ a }"] {
            assert!(matches!(filled(word), Err(AgentError::UnknownPlaceholder { .. })), "{word}");
        }
    }
}
