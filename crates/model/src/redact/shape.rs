//! Shapes of well-known tokens.
//!
//! Each family is searched on its own, since a match of one may begin inside a match of another. A token with a
//! distinctive prefix needs no word boundary before it: in JSON a `\n`, and in a terminal a colour, ends with a letter.

use super::Hit;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// Finds all known shapes.
pub(super) fn find(bytes: &[u8]) -> Vec<Hit> {
    FAMILIES.iter().flat_map(|family| find_family(family, bytes)).collect()
}

fn find_family<'a>(family: &'a Regex, bytes: &'a [u8]) -> impl Iterator<Item = Hit> + 'a {
    family.captures_iter(bytes).filter_map(|captures| {
        // The group `hide` is replaced; without it, the whole match.
        let whole = captures.get(0)?;
        let hidden = captures.name("hide").unwrap_or(whole);
        Some(Hit { whole: whole.range(), hidden: hidden.range() })
    })
}

static FAMILIES: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    [TOKEN, SK_KEY, HEADER, URL_PASSWORD, PRIVATE_KEY]
        .map(|pattern| Regex::new(pattern).expect("the patterns are constants under test"))
});

/// Tokens with a prefix of their own.
const TOKEN: &str = r"(?x-u)
      gh[pousr]_[A-Za-z0-9]{16,}                                    # GitHub
    | github_pat_[A-Za-z0-9_]{16,}
    | gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_.-]{16,} # GitLab
    | sk-(?:ant|proj|svcacct|or)-[A-Za-z0-9_-]{16,}                 # Anthropic, OpenAI, OpenRouter
    | (?:AKIA|ASIA)[A-Z0-9]{16}                                     # AWS access key ids
    | AIza[A-Za-z0-9_-]{35}                                         # Google
    | xox[abceoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}      # Slack
    | npm_[A-Za-z0-9]{36,}
    | pypi-(?:AgE[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]{40,})             # PyPI; package names are shorter
    | hf_[A-Za-z0-9]{30,}                                           # Hugging Face
    | eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}    # JSON web tokens
";

/// Keys that start with a bare `sk-`, which also ends many a word: `disk-`, `task-`.
const SK_KEY: &str = r"(?x-u)
    (?:\b|\\[nrt]|\x1b\[[0-9;]*m) (?<hide>sk-[A-Za-z0-9_-]{20,})
";

/// Credentials in headers, as sent, in JSON, and in JSON within JSON.
const HEADER: &str = r#"(?xi-u)
    (?: authorization [\\"']* [\ \t]* [:=] [\ \t]* [\\"']* (?:bearer|basic|token) [\ \t]+
      | (?:x-api-key|private-token) [\\"']* [\ \t]* [:=] [\ \t]* [\\"']* )
    (?<hide> [^\s"',;\\]+ )
"#;

/// Passwords in the user part of a URL.
const URL_PASSWORD: &str = r#"(?x-u)
    :// [^\s/:@"'<>]* : (?<hide> [^\s/"'<>]+ ) @
"#;

/// Private keys, with real line ends or `\n` in JSON. A block without an end counts as far as it looks like one.
const PRIVATE_KEY: &str = r"(?x-u)
    -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY[A-Z\ ]*-----
    (?: [A-Za-z0-9+/=:,.()\\\s-]*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY[A-Z\ ]*-----
      | [A-Za-z0-9+/=:,.()\\\s-]* )
";

#[cfg(test)]
mod tests {
    use crate::redact::Redactor;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Redactor::new([]).redact(text), expected);
    }

    /// A body that is long enough for any token; put together here so that no scanner of
    /// repositories takes these tests for a leak.
    fn body(len: usize) -> String {
        "aB3dE6gH9jK2mN5pQ8sT".chars().cycle().take(len).collect()
    }

    #[test]
    fn tokens_with_a_prefix_are_replaced() {
        let prefixes = [
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "sk-",
            "sk-proj-",
            "sk-ant-api03-",
            "xoxb-",
            "xoxp-",
            "npm_",
            "pypi-AgE",
            "hf_",
        ];
        for prefix in prefixes {
            let token = format!("{prefix}{}", body(40));
            check(&format!("a {token}, b"), "a ***, b");
            check(&format!(r#"{{"x":"a\n{token}"}}"#), r#"{"x":"a\n***"}"#);
            check(&format!("\x1b[31m{token}\x1b[0m"), "\x1b[31m***\x1b[0m");
        }
        check(&format!("AIza{} x", body(35)), "*** x");
        check(
            &format!("AKIA{} ASIA{}", body(16).to_uppercase(), body(16).to_uppercase()),
            "*** ***",
        );
    }

    #[test]
    fn words_that_only_resemble_tokens_stay() {
        for text in [
            "task-management-for-large-organisations",
            "the ghp_ prefix, sk-, sk-learn and npm_config_registry",
            "pypi-attestation-models",
            "AKIA and eyJ.a.b",
            "https://example.org:8080/a@b",
            "git@github.com:owner/name.git",
            "ssh://git@example.org:22/x",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn json_web_tokens_are_replaced() {
        check(&format!("t=eyJ{}.eyJ{}.{};", body(20), body(30), body(43)), "t=***;");
    }

    #[test]
    fn credentials_in_headers_are_replaced_and_the_header_stays() {
        check("Authorization: Bearer abc.def\nx", "Authorization: Bearer ***\nx");
        check("> authorization: basic dTpw", "> authorization: basic ***");
        check("-H 'Authorization: token abc'", "-H 'Authorization: token ***'");
        check(r#"{"Authorization":"Bearer abc"}"#, r#"{"Authorization":"Bearer ***"}"#);
        check(r#""{\"Authorization\":\"Bearer abc\"}""#, r#""{\"Authorization\":\"Bearer ***\"}""#);
        check("x-api-key: abc", "x-api-key: ***");
        check("PRIVATE-TOKEN: abc", "PRIVATE-TOKEN: ***");
    }

    #[test]
    fn a_password_in_a_url_is_replaced_and_the_user_stays() {
        check("https://user:pa55@host/x", "https://user:***@host/x");
        check("https://:pa55@host", "https://:***@host");
        check("postgres://u:p@ss@host/db", "postgres://u:***@host/db");
        check(r#"["a://u:p@h","b@c"]"#, r#"["a://u:***@h","b@c"]"#);
    }

    #[test]
    fn private_keys_are_replaced_whole() {
        for kind in ["", "RSA ", "OPENSSH ", "ENCRYPTED "] {
            let (begin, end) = (
                format!("-----BEGIN {kind}PRIVATE KEY-----"),
                format!("-----END {kind}PRIVATE KEY-----"),
            );
            check(&format!("a\n{begin}\nMIIE+/\nab==\n{end}\nb"), "a\n***\nb");
            check(&format!(r#"{{"k":"{begin}\nMIIE\n{end}\n"}}"#), r#"{"k":"***\n"}"#);
        }
        check("-----BEGIN PRIVATE KEY-----\nMIIE\nabc", "***");
        check("-----BEGIN PUBLIC KEY-----\nMIIE", "-----BEGIN PUBLIC KEY-----\nMIIE");
    }

    #[test]
    fn a_token_inside_another_match_is_still_replaced() {
        let token = format!("ghp_{}", body(36));
        check(&format!("-----BEGIN PRIVATE KEY----- {token}"), "***");
        check(&format!("https://{token}:x@h"), "https://***:***@h");
    }
}
