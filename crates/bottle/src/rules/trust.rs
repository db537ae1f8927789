//! Whose words count. Anybody may write on a public forge; an agent is told only what people said who may tell it.

/// What somebody is to an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The account that agents act as: what it says is what they said themselves.
    Bot,
    /// Somebody who may set agents to work.
    Trusted,
    /// Anybody else.
    Outsider,
}

/// Who somebody is. Names are compared as forges do, without regard to case.
pub(crate) fn judge_standing(
    login: &str,
    bot: Option<&str>,
    triggers: &[String],
    is_member: bool,
) -> Standing {
    let is = |name: &str| name.eq_ignore_ascii_case(login);
    if bot.is_some_and(is) {
        return Standing::Bot;
    }
    match is_member || triggers.iter().any(|name| is(name)) {
        true => Standing::Trusted,
        false => Standing::Outsider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(login: &str, is_member: bool, expected: Standing) {
        let triggers = ["Alice".to_owned()];
        assert_eq!(judge_standing(login, Some("bot1"), &triggers, is_member), expected, "{login}");
    }

    #[test]
    fn members_and_those_who_are_named_may_set_agents_to_work() {
        check("dora", true, Standing::Trusted);
        check("alice", false, Standing::Trusted);
        check("carol", false, Standing::Outsider);
    }

    #[test]
    fn the_bots_own_words_are_no_news_even_if_it_is_a_member() {
        check("Bot1", true, Standing::Bot);
    }
}
