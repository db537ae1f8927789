//! Names that people choose: projects, boxes, slugs, agents, and the overrides of an agent.

use super::checked::{Rule, checked_id, is_shaped, keeps};
use crate::escape::escape_line;
use std::borrow::Cow;

checked_id! {
    /// A project: it enters paths, run ids and branch names.
    ProjectName, "project name", check_project
}

checked_id! {
    /// A box, as its backend knows it.
    BoxName, "box name", check_box
}

checked_id! {
    /// A short name made for a piece of work.
    Slug, "slug", check_slug
}

checked_id! {
    /// An agent, such as `opencode` or `claude`.
    AgentName, "agent name", check_agent
}

checked_id! {
    /// A model, variant or agent given in place of the configured one.
    ///
    /// It enters the box as an environment variable, so it holds nothing that a shell reads as more than a word.
    Override, "override", check_override
}

const PROJECT_MAX: usize = 64;
const PROJECT_FALLBACK: &str = "repo";
const OVERRIDE_MAX: usize = 128;

impl ProjectName {
    /// Derives a name from a folder's: illegal characters become `-`, and illegal first ones are dropped. A legal name
    /// stays as it is.
    pub fn from_folder(folder: &str) -> Self {
        let mut name = String::new();
        for c in folder.chars() {
            let c = if c.is_ascii() && is_project_byte(c as u8) { c } else { '-' };
            let is_second_dot = c == '.' && name.ends_with('.');
            if !name.is_empty() || c.is_ascii_alphanumeric() {
                name.push(if is_second_dot { '-' } else { c });
            }
        }
        name.truncate(PROJECT_MAX);
        if name.is_empty() { Self(PROJECT_FALLBACK.to_owned()) } else { Self(name) }
    }
}

fn check_project(text: &str) -> Result<(), Rule> {
    // A name with `..` could enter neither a run id nor a branch.
    let kept =
        is_shaped(text, is_alphanumeric, is_project_byte, PROJECT_MAX) && !text.contains("..");
    keeps(
        "1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit, without '..'",
        kept,
    )
}

fn check_box(text: &str) -> Result<(), Rule> {
    let kept = is_shaped(text, |b| b.is_ascii_lowercase(), |b| is_lower(b) || b == b'-', 32);
    keeps("1 to 32 of a-z, 0-9 and '-', starting with a letter", kept)
}

fn check_slug(text: &str) -> Result<(), Rule> {
    let kept = is_shaped(text, is_lower, |b| is_lower(b) || b == b'-', 64);
    keeps("1 to 64 of a-z, 0-9 and '-', starting with a letter or digit", kept)
}

fn check_agent(text: &str) -> Result<(), Rule> {
    let kept = is_shaped(text, is_lower, |b| is_lower(b) || b"._-".contains(&b), 64);
    keeps("1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit", kept)
}

fn check_override(text: &str) -> Result<(), Rule> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    if let Some(forbidden) = text.chars().find(|&c| !is_allowed(c)) {
        let shown = escape_line(forbidden.encode_utf8(&mut [0; 4])).into_owned();
        let rule =
            format!("'{shown}' is not allowed; use only letters, digits, '.', '_', '/' and '-'");
        return Err(Cow::Owned(rule));
    }
    keeps("1 to 128 characters", !text.is_empty() && text.len() <= OVERRIDE_MAX)
}

fn is_alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn is_project_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"._-".contains(&b)
}

fn is_lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check<T, E>(parse: fn(&str) -> Result<T, E>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(parse(text).is_ok(), "{text:?} should pass");
        }
        for text in bad {
            assert!(parse(text).is_err(), "{text:?} should be refused");
        }
    }

    #[test]
    fn project_names_are_safe_in_a_path() {
        let long = "a".repeat(65);
        check(
            ProjectName::parse,
            &["a", "A.b_c-9", "0", &long[1..]],
            &["", ".", "..", ".git", "-a", "_a", "a/b", "a b", "a+b", "é", "a..b", "a\n", &long],
        );
    }

    #[test]
    fn box_names_start_with_a_letter() {
        let long = "a".repeat(33);
        check(
            BoxName::parse,
            &["a", "box-1", &long[1..]],
            &["", "1a", "-a", "A", "a_b", "a.b", &long],
        );
    }

    #[test]
    fn slugs_are_lower_case() {
        let long = "a".repeat(65);
        check(
            Slug::parse,
            &["a", "9-lives", &long[1..]],
            &["", "-a", "A", "a_b", "a/b", "ä", &long],
        );
    }

    #[test]
    fn agent_names_may_have_dots_and_underscores() {
        check(AgentName::parse, &["codex", "pi.v2_x-1"], &["", ".a", "Codex", "a b", "a/b"]);
    }

    #[test]
    fn an_override_is_one_word_for_any_shell() {
        let long = "a".repeat(129);
        check(
            Override::parse,
            &["claude-35-sonnet", "anthropic/claude-4.5_x", &long[1..]],
            &["", "a b", "a;b", "$(x)", "a\nb", "a`b", "a'b", "é", &long],
        );
    }

    #[test]
    fn a_refused_override_names_the_first_forbidden_character() {
        let rule = |text| Override::parse(text).unwrap_err().rule().to_owned();
        assert!(rule("gpt;rm $x").starts_with("';' is not allowed"), "{}", rule("gpt;rm $x"));
        assert!(rule("a\nb").starts_with("'\\n' is not allowed"));
    }

    #[test]
    fn a_folder_name_becomes_a_project_name() {
        let made = |folder| ProjectName::from_folder(folder).as_str().to_owned();
        assert_eq!(made("my project"), "my-project");
        assert_eq!(made("libstdc++"), "libstdc--");
        assert_eq!(made(".dotfiles"), "dotfiles");
        assert_eq!(made("a..b"), "a.-b");
        assert_eq!(made("naïve"), "na-ve");
        for nothing_left in ["", "проект", "...", "--"] {
            assert_eq!(made(nothing_left), "repo");
        }
    }

    proptest! {
        #[test]
        fn every_folder_name_gives_a_legal_project_name(folder in any::<String>()) {
            let name = ProjectName::from_folder(&folder);
            prop_assert_eq!(ProjectName::parse(name.as_str()), Ok(name));
        }

        #[test]
        fn a_legal_folder_name_is_kept(folder in "[A-Za-z0-9](\\.?[A-Za-z0-9_-]){0,31}\\.?") {
            let name = ProjectName::from_folder(&folder);
            prop_assert_eq!(name.as_str(), folder.as_str());
        }
    }
}
