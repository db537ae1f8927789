//! Whose comments reach an agent. Anyone may write on a public forge; only trusted authors are quoted in a prompt.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthorRole {
    /// The account that agents act as.
    Bot,
    /// An author who may give agents work.
    Trusted,
    Outsider,
}

/// Judges the role of a login. Like forges, it ignores case.
pub(crate) fn judge_role(
    login: &str,
    bot: Option<&str>,
    triggers: &[String],
    is_member: bool,
) -> AuthorRole {
    let is = |name: &str| name.eq_ignore_ascii_case(login);
    if bot.is_some_and(is) {
        return AuthorRole::Bot;
    }
    match is_member || triggers.iter().any(|name| is(name)) {
        true => AuthorRole::Trusted,
        false => AuthorRole::Outsider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(login: &str, is_member: bool, expected: AuthorRole) {
        let triggers = ["Alice".to_owned()];
        assert_eq!(judge_role(login, Some("bot1"), &triggers, is_member), expected, "{login}");
    }

    #[test]
    fn members_and_named_authors_may_give_agents_work() {
        check("dora", true, AuthorRole::Trusted);
        check("alice", false, AuthorRole::Trusted);
        check("carol", false, AuthorRole::Outsider);
    }

    #[test]
    fn the_bots_own_comments_are_never_new_even_if_it_is_a_member() {
        check("Bot1", true, AuthorRole::Bot);
    }
}
