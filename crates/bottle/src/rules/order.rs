//! The order of issues: priorities by label, and issues that come after others. A line of an issue's text that says nothing
//! else names the ones before it, as in "After #12 and #13"; dependencies that the forge itself knows count likewise.

use std::collections::{BTreeMap, BTreeSet};

/// Minutes that one step of a priority is worth: a day of waiting, so that nothing is overtaken for ever.
const STEP_MINS: i64 = 24 * 60;
/// Issues that one text may name; each of them costs a request.
const NAMED_MAX: usize = 8;
const AFTER_WORDS: [&str; 3] = ["after", "depends on", "blocked by"];

/// Sum of the priorities of an issue's labels, in minutes of waiting.
pub(crate) fn priority_mins(labels: &[String], priorities: &BTreeMap<String, i64>) -> i64 {
    labels.iter().filter_map(|label| priorities.get(label)).sum::<i64>().saturating_mul(STEP_MINS)
}

/// Issue that a text names, before its state is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NamedIssue {
    /// Of the same repository.
    Own(u64),
    /// Of another one, as the text names it.
    Foreign(String),
}

/// Issues that a text says to come after, in its order, each once.
pub(crate) fn find_after(text: &str, full_name: &str) -> Vec<NamedIssue> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for named in named_in(line, full_name).unwrap_or_default() {
            if !found.contains(&named) && found.len() < NAMED_MAX {
                found.push(named);
            }
        }
    }
    found
}

/// Issues of a line that says nothing else; `None` for any other line.
fn named_in(line: &str, full_name: &str) -> Option<Vec<NamedIssue>> {
    let line = line.trim_start_matches(['-', '*', '+', ' ']).trim_end_matches(['.', '*', ' ']);
    let rest = AFTER_WORDS.iter().find_map(|word| {
        let start = line.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word))?;
        let rest = &line[start.len()..];
        rest.starts_with([':', ' ', '*']).then(|| rest.trim_start_matches([':', ' ', '*']))
    })?;
    let words = rest.split([',', ' ', ';']).filter(|word| !word.is_empty() && *word != "and");
    let named: Option<Vec<NamedIssue>> = words.map(|word| parse_named(word, full_name)).collect();
    named.filter(|named| !named.is_empty())
}

/// Parses `#12` and `owner/name#12`.
fn parse_named(word: &str, full_name: &str) -> Option<NamedIssue> {
    let (repository, number) = word.split_once('#')?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    if repository.is_empty() || repository.eq_ignore_ascii_case(full_name) {
        return Some(NamedIssue::Own(number));
    }
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_repository = repository.contains('/') && repository.split('/').all(is_name);
    is_repository.then(|| NamedIssue::Foreign(word.to_owned()))
}

/// Issue that comes before another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierIssue {
    /// Its name for people: `#12` or `owner/name#12`.
    pub(crate) name: String,
    /// Its number, if it is of the same repository.
    pub(crate) number: Option<u64>,
    pub(crate) state: EarlierState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierState {
    Open,
    Closed,
    /// There is none with this number.
    Missing,
    /// It is named by the text, of another repository, and its state is not asked for.
    Foreign,
}

/// Judgement about an issue's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing is before it.
    Free,
    /// It waits for open issues, in words.
    Wait(String),
    /// It would wait for ever, so a person is told.
    Ask(String),
}

/// Judges the turn of an issue. `after` says what other issues of the repository come after, as far as it is known.
pub(crate) fn judge_turn(
    issue: u64,
    earlier: &[EarlierIssue],
    after: &BTreeMap<u64, Vec<u64>>,
) -> Turn {
    let names = |state: EarlierState| -> Vec<&str> {
        let those = earlier.iter().filter(|it| it.state == state);
        those.map(|it| it.name.as_str()).collect()
    };
    let edit = "edit its text and the work goes on";
    let missing = names(EarlierState::Missing);
    if !missing.is_empty() {
        let list = missing.join(" and ");
        return Turn::Ask(format!(
            "it comes after {list}, which this repository does not have; {edit}"
        ));
    }
    let foreign = names(EarlierState::Foreign);
    if !foreign.is_empty() {
        let list = foreign.join(" and ");
        return Turn::Ask(format!(
            "it comes after {list}, of another repository, which cannot be waited for; {edit}"
        ));
    }
    let open: Vec<&EarlierIssue> =
        earlier.iter().filter(|it| it.state == EarlierState::Open).collect();
    if let Some(circle) = open.iter().filter_map(|it| it.number).find_map(|next| {
        let mut path = vec![issue];
        find_circle(issue, next, after, &mut path, &mut BTreeSet::new()).then_some(path)
    }) {
        let path: Vec<String> = circle.iter().map(|number| format!("#{number}")).collect();
        return Turn::Ask(format!(
            "issues come after one another in a circle: {} after #{issue}; {edit}",
            path.join(" after ")
        ));
    }
    match open.as_slice() {
        [] => Turn::Free,
        [one] => Turn::Wait(format!("it comes after {}, which is open", one.name)),
        several => {
            let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
            Turn::Wait(format!("it comes after {}, which are open", names.join(" and ")))
        }
    }
}

/// Follows what `at` comes after until it leads back to `issue`; `path` then has the way.
fn find_circle(
    issue: u64,
    at: u64,
    after: &BTreeMap<u64, Vec<u64>>,
    path: &mut Vec<u64>,
    seen: &mut BTreeSet<u64>,
) -> bool {
    if at == issue {
        return true;
    }
    if !seen.insert(at) {
        return false;
    }
    path.push(at);
    let next = after.get(&at).map(Vec::as_slice).unwrap_or_default();
    if next.iter().any(|next| find_circle(issue, *next, after, path, seen)) {
        return true;
    }
    path.pop();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(numbers: &[u64]) -> Vec<NamedIssue> {
        numbers.iter().copied().map(NamedIssue::Own).collect()
    }

    #[test]
    fn a_line_of_its_own_names_the_issues_before() {
        let find = |text: &str| find_after(text, "acme/widget");
        assert_eq!(find("Do it.\n\nAfter #12"), own(&[12]));
        assert_eq!(find("- after: #12, #13 and #14."), own(&[12, 13, 14]));
        assert_eq!(find("**Depends on** #3\r\nblocked by #3"), own(&[3]));
        assert_eq!(find("After ACME/widget#7"), own(&[7]));
        let foreign = vec![NamedIssue::Foreign("acme/other#7".to_owned())];
        assert_eq!(find("After acme/other#7"), foreign);
    }

    #[test]
    fn other_mentions_name_nothing() {
        for text in [
            "After #12 was merged it fails.",
            "It broke after #12",
            "> After #12",
            "```\nAfter #12\n```",
            "After",
            "After tomorrow",
            "Afternoon #12",
            "After #0",
            "After a b#3",
            "After <b>#3",
            "",
        ] {
            assert_eq!(find_after(text, "acme/widget"), [], "{text}");
        }
        let many: String = (1..=20).map(|number| format!("After #{number}\n")).collect();
        assert_eq!(find_after(&many, "acme/widget").len(), NAMED_MAX);
    }

    #[test]
    fn a_step_is_worth_a_day() {
        let priorities = [("high".to_owned(), 1), ("low".to_owned(), -2)].into();
        let mins = |labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            priority_mins(&labels, &priorities)
        };
        assert_eq!([mins(&["high"]), mins(&["low", "bug"]), mins(&[])], [1440, -2880, 0]);
        assert_eq!(mins(&["high", "low"]), -1440);
    }

    fn earlier(number: u64, state: EarlierState) -> EarlierIssue {
        EarlierIssue { name: format!("#{number}"), number: Some(number), state }
    }

    #[test]
    fn open_issues_are_waited_for_and_closed_ones_are_not() {
        let none = BTreeMap::new();
        let judge = |list: &[EarlierIssue]| judge_turn(9, list, &none);
        assert_eq!(judge(&[]), Turn::Free);
        assert_eq!(judge(&[earlier(1, EarlierState::Closed)]), Turn::Free);
        let open = [earlier(1, EarlierState::Open), earlier(2, EarlierState::Closed)];
        assert_eq!(judge(&open), Turn::Wait("it comes after #1, which is open".to_owned()));
        let both = [earlier(1, EarlierState::Open), earlier(2, EarlierState::Open)];
        assert_eq!(judge(&both), Turn::Wait("it comes after #1 and #2, which are open".to_owned()));
    }

    #[test]
    fn what_would_be_waited_for_in_vain_is_named() {
        let none = BTreeMap::new();
        let missing = [earlier(99, EarlierState::Missing), earlier(1, EarlierState::Open)];
        let Turn::Ask(words) = judge_turn(9, &missing, &none) else { panic!("a question") };
        assert!(words.contains("#99, which this repository does not have"), "{words}");
        let foreign = EarlierIssue {
            name: "acme/other#7".to_owned(),
            number: None,
            state: EarlierState::Foreign,
        };
        let Turn::Ask(words) = judge_turn(9, &[foreign], &none) else { panic!("a question") };
        assert!(words.contains("acme/other#7, of another repository"), "{words}");
    }

    #[test]
    fn a_circle_is_named_with_its_issues() {
        let after = BTreeMap::from([
            (1, vec![2, 3]),
            (2, vec![4]),
            (3, vec![9]),
            (5, vec![6]),
            (6, vec![5]),
        ]);
        let open = |number| [earlier(number, EarlierState::Open)];
        let Turn::Ask(words) = judge_turn(9, &open(1), &after) else { panic!("a circle") };
        assert!(words.contains("#9 after #1 after #3 after #9"), "{words}");
        let Turn::Ask(words) = judge_turn(9, &open(9), &after) else { panic!("a circle") };
        assert!(words.contains("#9 after #9"), "{words}");
        assert!(matches!(judge_turn(9, &open(5), &after), Turn::Wait(_)), "others' circle ends");
        let closed = [earlier(1, EarlierState::Closed)];
        assert_eq!(judge_turn(9, &closed, &after), Turn::Free, "a closed one closes no circle");
    }
}
