//! Names and ids of git: branches, remotes and object ids.
//!
//! The rules for refs are those of `git check-ref-format`, so that a name is checked without git and never passes for an
//! option or a revision expression.

use super::checked::{Rule, checked_id, keeps};

checked_id! {
    /// A branch, by its short name.
    BranchName, "branch name", check_branch
}

checked_id! {
    /// A remote, such as `origin`: one component of a ref name.
    RemoteName, "remote name", check_remote
}

checked_id! {
    /// A full object id, SHA-1 or SHA-256.
    Sha, "object id", check_sha
}

/// Far beyond any name in use, and short enough for a path and an argument.
const REF_MAX: usize = 1000;
const SHORT_SHA_LEN: usize = 12;

impl BranchName {
    /// The whole ref, which no tag and no option can be mistaken for.
    pub fn full_ref(&self) -> String {
        format!("refs/heads/{self}")
    }
}

impl Sha {
    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        &self.as_str()[..SHORT_SHA_LEN]
    }
}

fn check_branch(text: &str) -> Result<(), Rule> {
    check_ref(text)?;
    // Names of the current commit; git creates no such branch.
    keeps("it must not be '@' or 'HEAD'", text != "@" && text != "HEAD")
}

fn check_remote(text: &str) -> Result<(), Rule> {
    check_ref(text)?;
    keeps("it must not contain '/'", !text.contains('/'))?;
    keeps("it must not be '@'", text != "@")
}

fn check_ref(text: &str) -> Result<(), Rule> {
    let is_forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    keeps("it must not be empty", !text.is_empty())?;
    keeps("it must have at most 1000 bytes", text.len() <= REF_MAX)?;
    keeps("it must not start with '-'", !text.starts_with('-'))?;
    keeps(
        "it must not contain blanks, control characters or any of ~ ^ : ? * [ \\",
        !text.contains(is_forbidden),
    )?;
    keeps("it must not contain '..' or '@{'", !text.contains("..") && !text.contains("@{"))?;
    keeps("it must not end with '.'", !text.ends_with('.'))?;
    for component in text.split('/') {
        keeps("it must not start or end with '/' or contain '//'", !component.is_empty())?;
        keeps("no part of it may start with '.'", !component.starts_with('.'))?;
        keeps("no part of it may end with '.lock'", !component.ends_with(".lock"))?;
    }
    Ok(())
}

fn check_sha(text: &str) -> Result<(), Rule> {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    keeps("it must be 40 or 64 of 0-9 and a-f", is_hex && matches!(text.len(), 40 | 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, rule: &str) {
        let error = BranchName::parse(text).unwrap_err();
        assert!(error.rule().contains(rule), "{text:?}: {error}");
    }

    #[test]
    fn usual_branch_names_pass() {
        for name in
            ["main", "feat/login", "v1.2", "a@b", "renovate/foo-1.x", "grün", "a/@", "HEAD/x"]
        {
            assert_eq!(BranchName::parse(name).unwrap().full_ref(), format!("refs/heads/{name}"));
        }
    }

    #[test]
    fn a_branch_name_keeps_each_rule_of_git() {
        refused("", "empty");
        refused(&"a".repeat(1001), "1000 bytes");
        refused("-d", "start with '-'");
        for c in "\0\n\t\x1f\x7f ~^:?*[\\".chars() {
            refused(&format!("a{c}b"), "must not contain blanks");
        }
        refused("a..b", "'..'");
        refused("a@{1}", "'@{'");
        refused("a.", "end with '.'");
        for name in ["/a", "a/", "a//b", "/"] {
            refused(name, "'//'");
        }
        refused(".a", "start with '.'");
        refused("a/.b", "start with '.'");
        refused("a.lock", ".lock");
        refused("a.lock/b", ".lock");
        refused("@", "'@'");
        refused("HEAD", "'HEAD'");
    }

    #[test]
    fn a_remote_name_is_one_component() {
        assert!(RemoteName::parse("origin").is_ok());
        for bad in ["", "a/b", "-o", "..", ".x", "x.lock", "a b", "@"] {
            assert!(RemoteName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_object_id_is_whole_and_lower_case() {
        let sha = Sha::parse(&"0123456789abcdef".repeat(4)).unwrap();
        assert_eq!(sha.short(), "0123456789ab");
        assert!(Sha::parse(&"a".repeat(40)).is_ok());
        for bad in ["", "abc123", "HEAD", &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert!(Sha::parse(bad).is_err(), "{bad}");
        }
    }
}
