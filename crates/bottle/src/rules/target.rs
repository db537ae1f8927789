//! Which issues are for an agent: one assigned to a member of the organisation, with a label that names the agent.

/// What stands before the agent's name in a label.
const AGENT_LABEL: &str = "bot-bottle:";
/// What stands before a bottle's name in a label.
const BOTTLE_LABEL: &str = "bot-bottle-bottle:";

/// What the labels of an issue ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The agents that are named, in the order of their names: nothing hangs on the forge's order.
    pub(crate) agents: Vec<String>,
    /// The bottles that are named.
    pub(crate) bottles: Vec<String>,
}

/// The label that names an agent.
pub(crate) fn agent_label(agent: &str) -> String {
    format!("{AGENT_LABEL}{agent}")
}

/// Reads labels; others than ours mean nothing here.
pub(crate) fn parse_labels<S: AsRef<str>>(labels: &[S]) -> Labels {
    let named = |prefix: &str| {
        let mut names: Vec<String> = labels
            .iter()
            .filter_map(|label| label.as_ref().trim().strip_prefix(prefix))
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        names.sort();
        names.dedup();
        names
    };
    Labels { agents: named(AGENT_LABEL), bottles: named(BOTTLE_LABEL) }
}

/// Why an issue is not for an agent; `None` if it is. `members` are those assignees that are members of `org`.
pub(crate) fn judge_target(
    labels: &Labels,
    members: &[String],
    agent: &str,
    org: &str,
) -> Option<String> {
    if !labels.agents.iter().any(|name| name == agent) {
        return Some(format!("it has no label '{}'", agent_label(agent)));
    }
    members
        .is_empty()
        .then(|| format!("none of its assignees is a member of the organisation '{org}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_agents_and_bottles() {
        let labels = ["bug", "bot-bottle:implementer", "bot-bottle-bottle:rust", "bot-bottle:"];
        let read = parse_labels(&labels);
        assert_eq!(read.agents, ["implementer"]);
        assert_eq!(read.bottles, ["rust"]);
    }

    #[test]
    fn two_agents_are_told_in_the_order_of_their_names() {
        let read = parse_labels(&["bot-bottle:zoe", "bot-bottle:ann", "bot-bottle:zoe"]);
        assert_eq!(read.agents, ["ann", "zoe"]);
    }

    #[test]
    fn both_the_label_and_a_member_are_needed() {
        let labels = parse_labels(&["bot-bottle:ann"]);
        let member = vec!["bot1".to_owned()];
        assert_eq!(judge_target(&labels, &member, "ann", "org"), None);
        let why = judge_target(&labels, &[], "ann", "org").expect("refused");
        assert!(why.contains("organisation 'org'"), "{why}");
        let why = judge_target(&labels, &member, "bob", "org").expect("refused");
        assert!(why.contains("bot-bottle:bob"), "{why}");
    }
}
