//! A full ref name, such as `refs/heads/main`: nothing that could pass for an option, a pattern or a revision
//! expression.

use std::fmt;

use model::id::{BranchName, IdError};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefName(String);

impl RefName {
    /// Parses a name; it must begin with `refs/` and follow git's rules.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        // The part after `refs/` follows the same rules as a branch name, including the one about `HEAD`.
        BranchName::parse(text.strip_prefix("refs/").unwrap_or_default())?;
        Ok(Self(text.to_owned()))
    }

    pub fn of_branch(branch: &BranchName) -> Self {
        Self(branch.full_ref())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_pass_and_others_do_not() {
        assert_eq!(RefName::parse("refs/bottle/r1/main").unwrap().as_str(), "refs/bottle/r1/main");
        for bad in
            ["main", "", "refs/", "-x", "refs/heads/a..b", "refs/heads/*", "refs/a b", "HEAD"]
        {
            assert!(RefName::parse(bad).is_err(), "{bad}");
        }
    }
}
