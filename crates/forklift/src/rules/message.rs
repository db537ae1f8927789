//! Words of new commit messages that act on others once they are merged, or that speak for others.
//!
//! The text of a pull request is made inert. A commit message is published as it was written, and forges and people act on
//! it, so a person is told.

use engine::workspace::AGENT_IDENTITY;
use forge::find_foreign_actions;
use model::id::Sha;

/// References and trailers of one message that are named.
const NAMED: usize = 3;

/// Bytes of a message that are read.
const MESSAGE_BYTES: usize = 64 << 10;

/// Names of trailers that are somebody's word.
const TRAILERS: [&str; 8] = [
    "signed-off-by",
    "reviewed-by",
    "acked-by",
    "approved-by",
    "tested-by",
    "co-authored-by",
    "reported-by",
    "on-behalf-of",
];

/// Sentences about the message of a new commit. `own` is the user's address, whose word the host may write.
pub(crate) fn message_points(commit: &Sha, message: &str, own: Option<&str>) -> Vec<String> {
    let message = start_of(message);
    let mut points = Vec::new();
    let acting = find_foreign_actions(message, 0);
    if !acting.is_empty() {
        let acting = first_of(acting.into_iter());
        let commit = commit.short();
        points
            .push(format!("the message of {commit} closes or reopens {acting} when it is merged"));
    }
    let is_foreign = |line: &&str| {
        let Some((name, who)) = line.split_once(':') else { return false };
        let own = [Some(AGENT_IDENTITY.1), own].into_iter().flatten();
        let is_own =
            own.map(|mail| format!("<{mail}>")).any(|mail| who.trim_end().ends_with(&mail));
        TRAILERS.contains(&name.trim().to_ascii_lowercase().as_str()) && !is_own
    };
    let foreign = message.lines().map(str::trim).filter(is_foreign);
    let foreign = first_of(foreign);
    if !foreign.is_empty() {
        points.push(format!("the message of {} speaks for others: {foreign}", commit.short()));
    }
    points
}

/// The part of a message that is read.
pub(super) fn start_of(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES)]
}

pub(super) fn first_of<'a>(found: impl Iterator<Item = &'a str>) -> String {
    let found: Vec<&str> = found.collect();
    let shown = found.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &[&str]) {
        let commit = Sha::parse(&"a".repeat(40)).unwrap();
        assert_eq!(
            message_points(&commit, message, Some("ada@example.org")),
            expected,
            "{message}"
        );
    }

    #[test]
    fn words_that_close_issues_are_named() {
        check(
            "Merge upstream\n\nFixes #3, closes other/repo#4\nreopens #5",
            &[
                "the message of aaaaaaaaaaaa closes or reopens #3, other/repo#4, #5 when it is merged",
            ],
        );
        check("Merge upstream (#12)\n\n* fix a crash (#13)\n", &[]);
    }

    #[test]
    fn the_word_of_others_is_named() {
        check(
            "Merge\n\nReviewed-by: Linus <l@kernel.example>\nsigned-off-by : Eve <e@x>",
            &[
                "the message of aaaaaaaaaaaa speaks for others: Reviewed-by: Linus <l@kernel.example>, signed-off-by : Eve <e@x>",
            ],
        );
        check(
            "Merge\n\nCo-authored-by: claude (Bottleworks agent) <agent@bottle.invalid>\nSigned-off-by: Ada <ada@example.org>\n",
            &[],
        );
    }
}
