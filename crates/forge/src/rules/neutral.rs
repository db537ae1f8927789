//! Neutralisation of an agent's text: it stays readable and triggers nothing.
//!
//! Forges act on some words anywhere in a text: "closes #3" closes an issue, `@all` notifies everyone, a line with
//! `/close` is a command to GitLab. An invisible character in the middle disables them and leaves them readable.

use super::link::find_closings;

/// Invisible, and not part of a reference, a mention or a command.
const BREAK: char = '\u{200b}';

/// Limit on mentions in one text; above it all of them are disabled.
const MENTIONS_MAX: usize = 8;

/// Names that notify many users on some forge or bridge.
const CROWDS: [&str; 6] = ["all", "everyone", "here", "channel", "team", "group"];

/// Disables closing keywords (except for the run's own issue), mentions of groups, and commands.
pub fn neutralise(text: &str, own_issue: u64) -> String {
    let text = text.replace('\0', "\u{fffd}");
    let text = break_closings(&text, own_issue);
    let text = break_mentions(&text);
    text.split('\n').map(break_command).collect::<Vec<_>>().join("\n")
}

fn break_closings(text: &str, own_issue: u64) -> String {
    let others = find_closings(text).into_iter().filter(|found| !found.is_own_issue(own_issue));
    // After the mark, or after the scheme of an address.
    let cut = |reference: &str| reference.find(['#', '!', ':']).map_or(0, |mark| mark + 1);
    insert_breaks(text, others.map(|found| found.at + cut(found.reference)))
}

fn break_mentions(text: &str) -> String {
    let mentions: Vec<(usize, &str)> = text
        .match_indices('@')
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '.'))
        .map(|(at, _)| (at, name_after(&text[at + 1..])))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    let shouts = mentions.len() > MENTIONS_MAX;
    let is_crowd =
        |name: &str| name.contains('/') || CROWDS.contains(&name.to_lowercase().as_str());
    let broken = mentions.iter().filter(|(_, name)| shouts || is_crowd(name));
    insert_breaks(text, broken.map(|(at, _)| at + 1))
}

/// Inserts a break at each of these offsets, which ascend.
fn insert_breaks(text: &str, offsets: impl Iterator<Item = usize>) -> String {
    let mut broken = String::with_capacity(text.len());
    let mut done = 0;
    for offset in offsets {
        broken.push_str(&text[done..offset]);
        broken.push(BREAK);
        done = offset;
    }
    broken + &text[done..]
}

fn name_after(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && !"-_./".contains(c));
    text[..end.unwrap_or(text.len())].trim_end_matches(['.', '/', '-'])
}

/// Disables a command: a line that begins with a slash and one word; a path has more slashes.
fn break_command(line: &str) -> String {
    let Some(rest) = line.trim_start().strip_prefix('/') else { return line.to_owned() };
    let word = rest.split_whitespace().next().unwrap_or_default();
    let is_command = !word.is_empty()
        && !rest.starts_with(char::is_whitespace)
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_command {
        return line.to_owned();
    }
    let indent = line.len() - rest.len() - 1;
    format!("{}/{BREAK}{rest}", &line[..indent])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` stands for the invisible mark.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(neutralise(text, 317).replace(BREAK, "|"), expected);
    }

    #[test]
    fn closing_words_lose_their_power_but_for_the_own_issue() {
        check("Fixes #12 and #317, a/b#317", "Fixes #|12 and #317, a/b#|317");
        check(
            "closes https://git.example/a/b/issues/3",
            "closes https:|//git.example/a/b/issues/3",
        );
        check("see #12", "see #12");
    }

    #[test]
    fn nobody_calls_everybody() {
        check("hello @all, @Everyone!", "hello @|all, @|Everyone!");
        check("ask @acme/core-team.", "ask @|acme/core-team.");
        check("ask @alice", "ask @alice");
        check("mail a.b@all.example", "mail a.b@all.example");
    }

    #[test]
    fn who_calls_many_one_by_one_calls_nobody() {
        let names = |count: usize| -> String {
            (0..count).map(|n| format!("@user{n} ")).collect::<Vec<_>>().concat()
        };
        check(&names(8), &names(8));
        check(&names(9), &names(9).replace('@', "@|"));
    }

    #[test]
    fn a_line_is_no_command() {
        check("/close", "/|close");
        check("ok\n  /assign @bob", "ok\n  /|assign @bob");
        check("/usr/bin/env", "/usr/bin/env");
        check("/ 2", "/ 2");
        check("a /close b", "a /close b");
    }

    #[test]
    fn every_other_text_stays_as_it_is() {
        check("Grüße\r\n```\nfn a() {}\n```\n", "Grüße\r\n```\nfn a() {}\n```\n");
        check("nul\0", "nul\u{fffd}");
    }
}
