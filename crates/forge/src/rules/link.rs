//! Keywords by which a text acts on issues of a forge, and the pull request that belongs to an issue.

use crate::pull::PullRequest;

/// Keywords that forges understand as "closes", in lower case.
const CLOSING: [&str; 16] = [
    "close",
    "closes",
    "closed",
    "closing",
    "fix",
    "fixes",
    "fixed",
    "fixing",
    "resolve",
    "resolves",
    "resolved",
    "resolving",
    "implement",
    "implements",
    "implemented",
    "implementing",
];

/// Keywords that forges understand as "reopens", in lower case.
const REOPENING: [&str; 4] = ["reopen", "reopens", "reopened", "reopening"];

/// Prefixes of references without a mark, in lower case: GitHub's and GitLab's.
const BARE_PREFIXES: [&str; 2] = ["gh-", "gl-"];

/// Words before the number, or before the project and the number, in GitLab's brackets: `[issue:3]`.
const BRACKETED: [&str; 2] = ["issue:", "work_item:"];

/// Reference that a keyword acts on: the position of its mark, and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosingReference<'a> {
    /// Offset of the reference in the text, after the keyword.
    pub(crate) at: usize,
    /// As written: `#3`, `!3`, `GH-3`, `issue:3` in brackets, `owner/repo#3` or an address.
    pub(crate) reference: &'a str,
}

impl ClosingReference<'_> {
    /// Returns whether it is an issue of the repository itself.
    pub(crate) fn is_own_issue(&self, number: u64) -> bool {
        let bare = strip_bare_prefix(self.reference).or_else(|| strip_bracketed(self.reference));
        self.reference.strip_prefix('#').or(bare) == Some(&number.to_string())
    }
}

/// Finds every reference after a closing keyword, in order.
pub(crate) fn find_closings(text: &str) -> Vec<ClosingReference<'_>> {
    find_after(text, |word| CLOSING.contains(&word))
}

/// Finds the references by which a text closes or reopens anything but the own issue, as they are written. A commit
/// message acts when its commit reaches the default branch.
pub fn find_foreign_actions(text: &str, own_issue: u64) -> Vec<&str> {
    let acts = |word: &str| CLOSING.contains(&word) || REOPENING.contains(&word);
    let found = find_after(text, acts);
    let foreign = found.into_iter().filter(|found| !found.is_own_issue(own_issue));
    foreign.map(|found| found.reference).collect()
}

fn find_after(text: &str, is_keyword: impl Fn(&str) -> bool) -> Vec<ClosingReference<'_>> {
    let mut found = Vec::new();
    let mut closes = false;
    for (at, word) in words(text) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if let Some((at, reference)) = reference_in(at, word).filter(|_| closes) {
            found.push(ClosingReference { at, reference });
            // A list continues: "closes #1, #2 and #3".
            continue;
        }
        let goes_on = closes && matches!(bare.as_str(), "and" | "" | "issue" | "issues");
        closes = goes_on || is_keyword(&bare);
    }
    found
}

/// Returns whether a text closes this issue of the repository itself.
pub fn closes_issue(text: &str, number: u64) -> bool {
    find_closings(text).iter().any(|found| found.is_own_issue(number))
}

/// Chooses the open pull request of `login` that closes the issue, the newest of several. Without a login
/// there is none.
pub(crate) fn choose_pull_for_issue(
    pulls: &[PullRequest],
    issue: u64,
    login: Option<&str>,
) -> Option<u64> {
    let login = login?;
    let fits = |pull: &&PullRequest| {
        let own = pull.author.eq_ignore_ascii_case(login) && !pull.from_fork && pull.is_open();
        own && (closes_issue(&pull.body, issue) || closes_issue(&pull.title, issue))
    };
    pulls.iter().filter(fits).map(|pull| pull.number).max()
}

/// Splits a text into words with their offsets. A colon or a comma may separate two without a blank.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_gap = |c: char| c.is_whitespace() || c == ',';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(|c| !is_gap(c))?;
        // `closes:#3` is two words. Each character is looked at once: messages of others may be long.
        let next = |from: usize, is_end: &dyn Fn(char) -> bool| {
            text[from..].find(is_end).map_or(text.len(), |len| from + len)
        };
        let end = next(start, &|c| is_gap(c) || c == ':');
        let end = match &text[end..] {
            after if after.starts_with("://") => next(end, &is_gap),
            _ if is_bracket(&text[start..end]) => next(end, &is_gap),
            after if after.starts_with(':') => end + 1,
            _ => end,
        };
        rest = end;
        Some((start, &text[start..end]))
    })
}

/// Returns whether a word up to its colon opens one of GitLab's brackets.
fn is_bracket(word: &str) -> bool {
    let Some((_, name)) = word.rsplit_once('[') else { return false };
    BRACKETED.iter().any(|it| it.trim_end_matches(':').eq_ignore_ascii_case(name))
}

/// Returns the reference in a word, without surrounding punctuation.
fn reference_in(at: usize, word: &str) -> Option<(usize, &str)> {
    let start = word.find(|c: char| c.is_alphanumeric() || "#!".contains(c))?;
    let body = &word[start..];
    let mark = body.find(['#', '!']);
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    if let Some(mark) = mark.filter(|mark| digits(&body[mark + 1..]) > 0) {
        let end = mark + 1 + digits(&body[mark + 1..]);
        return Some((at + start, &body[..end]));
    }
    if let Some(number) = strip_bare_prefix(body).filter(|rest| digits(rest) > 0) {
        let end = body.len() - number.len() + digits(number);
        return Some((at + start, &body[..end]));
    }
    if let Some(target) = strip_bracketed(body) {
        let end = target.find(']').unwrap_or(target.len());
        let target = &target[..end];
        let is_number = target.rsplit('/').next().is_some_and(|it| digits(it) > 0);
        return is_number.then(|| (at + start, &body[..body.find(']').unwrap_or(body.len())]));
    }
    let is_address = ["http://", "https://"].iter().any(|scheme| starts_with(body, scheme));
    let names_one = ["/issues/", "/work_items/", "/pull/", "/pulls/", "/merge_requests/"];
    let is_thread = is_address && names_one.iter().any(|part| body.to_lowercase().contains(part));
    is_thread.then(|| (at + start, body.trim_end_matches(|c: char| !c.is_alphanumeric())))
}

/// The part of a reference after `GH-` or `GL-`.
fn strip_bare_prefix(text: &str) -> Option<&str> {
    BARE_PREFIXES
        .iter()
        .find(|prefix| starts_with(text, prefix))
        .map(|prefix| &text[prefix.len()..])
}

/// The part of a reference after `issue:` or `work_item:`: a number, or a project and a number.
fn strip_bracketed(text: &str) -> Option<&str> {
    BRACKETED.iter().find(|prefix| starts_with(text, prefix)).map(|prefix| &text[prefix.len()..])
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_foreign(text: &str, expected: &[&str]) {
        assert_eq!(find_foreign_actions(text, 3), expected, "{text}");
    }

    #[test]
    fn words_that_act_on_other_issues_are_found() {
        check_foreign("Do it\n\nCloses #26\nReopens #27", &["#26", "#27"]);
        check_foreign("reopened a/b#12", &["a/b#12"]);
        check_foreign("fixes GH-26, gh-27", &["GH-26", "gh-27"]);
        check_foreign("Implemented: !7", &["!7"]);
        check_foreign("fixes GL-26 and gl-27", &["GL-26", "gl-27"]);
        check_foreign("Closes [issue:26], [work_item:a/b/27].", &["issue:26", "work_item:a/b/27"]);
        check_foreign("Closes: [#26](HTTPS://git.example/a/b/Issues/26)", &["#26"]);
        check_foreign(
            "Closes <HTTPS://git.example/a/b/-/Issues/26>",
            &["HTTPS://git.example/a/b/-/Issues/26"],
        );
        check_foreign("closes #3, #4", &["#4"]);
        check_foreign(
            "closes https://git.example/a/b/issues/9",
            &["https://git.example/a/b/issues/9"],
        );
    }

    #[test]
    fn words_about_the_own_issue_and_mentions_act_on_no_other() {
        check_foreign("Closes #3", &[]);
        check_foreign("fixes GH-3", &[]);
        check_foreign("fixes GL-3", &[]);
        check_foreign("fixes [issue:3]", &[]);
        check_foreign("fixes the issue: 26 files are left", &[]);
        check_foreign("see #26 and GH-27", &[]);
        check_foreign("reopen the file", &[]);
        assert!(!closes_issue("reopens #3", 3));
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = find_closings(text).iter().map(|found| found.reference).collect();
        assert_eq!(found, expected, "{text}");
        for found in find_closings(text) {
            assert!(text[found.at..].starts_with(found.reference), "{text}");
        }
    }

    #[test]
    fn closing_words_are_known_in_every_form() {
        check("closes #3", &["#3"]);
        check("This FIXES: #3.", &["#3"]);
        check("fixes:#3", &["#3"]);
        check("Resolved a/b#12", &["a/b#12"]);
        check("closes !7", &["!7"]);
        check("**Fixes** (#3)", &["#3"]);
        check("closes https://git.example/a/b/issues/3.", &["https://git.example/a/b/issues/3"]);
        check("closes\n#3", &["#3"]);
        check("a:b:fixes:#3:x https://a/issues/1:2", &["#3"]);
        let item = "https://git.example/a/b/-/work_items/3";
        check(&format!("Closes {item}"), &[item]);
    }

    #[test]
    fn a_list_goes_on_and_then_ends() {
        check("closes #1, #2 and #3. See #4", &["#1", "#2", "#3"]);
        check("fixes issue #3", &["#3"]);
    }

    #[test]
    fn a_mere_mention_closes_nothing() {
        check("see #3", &[]);
        check("this does not disclose #3", &[]);
        check("closes the door on #3", &[]);
        check("closed it. #hashtag", &[]);
        check("https://git.example/a/b/issues/3", &[]);
    }

    fn pull(number: u64, author: &str, body: &str) -> PullRequest {
        PullRequest {
            number,
            url: String::new(),
            title: String::new(),
            body: body.to_owned(),
            state: crate::thread::ThreadState::Open,
            merged: false,
            mergeable: None,
            head_branch: "topic".to_owned(),
            head_sha: String::new(),
            from_fork: false,
            base_branch: "main".to_owned(),
            author: author.to_owned(),
            labels: Vec::new(),
            assignees: Vec::new(),
            comments: None,
            draft: false,
            has_conflicts: None,
            is_behind: false,
            checks: None,
        }
    }

    #[test]
    fn the_pull_request_of_an_issue_is_our_own_newest() {
        let pulls = [
            pull(5, "bot1", "Closes #3"),
            pull(6, "Bot1", "fixes #3"),
            pull(7, "carol", "closes #3"),
            pull(8, "bot1", "closes #33, see #3"),
            PullRequest { from_fork: true, ..pull(9, "bot1", "closes #3") },
        ];
        assert_eq!(choose_pull_for_issue(&pulls, 3, Some("bot1")), Some(6));
        assert_eq!(choose_pull_for_issue(&pulls, 4, Some("bot1")), None);
        assert_eq!(choose_pull_for_issue(&pulls, 3, None), None);
    }
}
