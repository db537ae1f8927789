//! Issues for an agent, by label and member; and the people whose comments count.

use super::super::target::{judge_target, parse_labels};
use super::super::trust::judge_role;

#[test]
fn labels() {
    let sets: [&[&str]; 7] = [
        &[],
        &["bug"],
        &["bot-bottle:ann"],
        &["bot-bottle:zoe", "bot-bottle:ann", "bot-bottle:zoe"],
        &["bot-bottle-bottle:rust", "bot-bottle-bottle:go"],
        &[" bot-bottle: ann ", "bot-bottle:", "bot-bottle-bottle: "],
        &["Bot-Bottle:ann", "bot-bottle ann"],
    ];
    let line = |set: &&[&str]| {
        let read = parse_labels(set);
        format!("{set:?}: agents {:?}, bottles {:?}", read.agents, read.bottles)
    };
    insta::assert_snapshot!(sets.iter().map(line).collect::<Vec<_>>().join("\n"), @r#"
    []: agents [], bottles []
    ["bug"]: agents [], bottles []
    ["bot-bottle:ann"]: agents ["ann"], bottles []
    ["bot-bottle:zoe", "bot-bottle:ann", "bot-bottle:zoe"]: agents ["ann", "zoe"], bottles []
    ["bot-bottle-bottle:rust", "bot-bottle-bottle:go"]: agents [], bottles ["go", "rust"]
    [" bot-bottle: ann ", "bot-bottle:", "bot-bottle-bottle: "]: agents ["ann"], bottles []
    ["Bot-Bottle:ann", "bot-bottle ann"]: agents [], bottles []
    "#);
}

#[test]
fn issues_for_an_agent() {
    let check = |labels: &[&str], members: &[&str]| {
        let members: Vec<String> = members.iter().map(|it| (*it).to_owned()).collect();
        let why = judge_target(&parse_labels(labels), &members, "ann", "acme");
        format!("{labels:?} {members:?}: {}", why.unwrap_or_else(|| "for ann".to_owned()))
    };
    let all = [
        check(&["bot-bottle:ann"], &["bot1"]),
        check(&["bot-bottle:ann", "bot-bottle:zoe"], &["bot1"]),
        check(&["bot-bottle:zoe"], &["bot1"]),
        check(&[], &["bot1"]),
        check(&["bot-bottle:ann"], &[]),
        check(&[], &[]),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    ["bot-bottle:ann"] ["bot1"]: for ann
    ["bot-bottle:ann", "bot-bottle:zoe"] ["bot1"]: for ann
    ["bot-bottle:zoe"] ["bot1"]: it has no label 'bot-bottle:ann'
    [] ["bot1"]: it has no label 'bot-bottle:ann'
    ["bot-bottle:ann"] []: none of its assignees is a member of the organisation 'acme'
    [] []: it has no label 'bot-bottle:ann'
    "#);
}

#[test]
fn authors() {
    let triggers = ["Alice".to_owned()];
    let mut lines = Vec::new();
    for (login, bot) in [
        ("bot1", Some("Bot1")),
        ("alice", Some("bot1")),
        ("carol", Some("bot1")),
        ("carol", None),
        ("", None),
    ] {
        for is_member in [true, false] {
            let role = judge_role(login, bot, &triggers, is_member);
            lines.push(format!("{login:?}, bot {bot:?}, member {is_member}: {role:?}"));
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    "bot1", bot Some("Bot1"), member true: Bot
    "bot1", bot Some("Bot1"), member false: Bot
    "alice", bot Some("bot1"), member true: Trusted
    "alice", bot Some("bot1"), member false: Trusted
    "carol", bot Some("bot1"), member true: Trusted
    "carol", bot Some("bot1"), member false: Outsider
    "carol", bot None, member true: Trusted
    "carol", bot None, member false: Outsider
    "", bot None, member true: Trusted
    "", bot None, member false: Outsider
    "#);
}
