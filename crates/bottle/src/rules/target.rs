//! Issues for an agent: assigned to a member of the organisation, with a label that names the agent.

/// Prefix of labels that name an agent.
const AGENT_LABEL: &str = "bot-bottle:";
/// Name in place of an agent's: the label asks for a plan first.
const PLAN_NAME: &str = "plan";
/// Prefix of labels that name a bottle.
const BOTTLE_LABEL: &str = "bot-bottle-bottle:";

/// Names in the labels of an issue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    /// Sorted, so that the forge's order does not matter.
    pub(crate) agents: Vec<String>,
    pub(crate) bottles: Vec<String>,
    /// True if a plan has to be approved before the work.
    pub(crate) plan: bool,
}

pub(crate) fn agent_label(agent: &str) -> String {
    format!("{AGENT_LABEL}{agent}")
}

pub(crate) fn bottle_label(bottle: &str) -> String {
    format!("{BOTTLE_LABEL}{bottle}")
}

/// Parses labels; others are ignored.
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
    let mut agents = named(AGENT_LABEL);
    let plan = agents.iter().any(|name| name == PLAN_NAME);
    agents.retain(|name| name != PLAN_NAME);
    Labels { agents, bottles: named(BOTTLE_LABEL), plan }
}

/// Reason why an issue is not for an agent; `None` if it is. `members` are its assignees in `org`.
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
        assert_eq!((read.bottles.as_slice(), read.plan), (&["rust".to_owned()][..], false));
        let planned = parse_labels(&["bot-bottle:plan", "bot-bottle:implementer"]);
        assert_eq!(
            (planned.agents.as_slice(), planned.plan),
            (&["implementer".to_owned()][..], true)
        );
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
