//! Words of a notice for each channel. The summary has no word that outsiders wrote; what others wrote is quoted, without
//! power in the channel that shows it.

use base64ct::{Base64, Encoding};
use jiff::Timestamp;
use model::escape::escape_line;
use model::inert::inert_line;
use serde_json::{Value, json};

use super::{IssueWords, NoticeKind};

/// Longest text of others in a notice.
const TEXT_MAX_CHARS: usize = 2_000;
/// Longest line of a body of mail in base64.
const MAIL_LINE: usize = 76;

/// One line that says what happened, in our own words.
pub(super) fn summary(kind: &NoticeKind) -> String {
    let of = |issue: &IssueWords| format!("{}#{}", issue.repo, issue.number);
    match kind {
        NoticeKind::Question { issue, .. } => format!("{}: the agent asks a question", of(issue)),
        NoticeKind::Attention { issue, .. } => format!("{} needs you", of(issue)),
        NoticeKind::Budget { issue, .. } => format!("{} waits for a budget", of(issue)),
        NoticeKind::PullRequest { issue, pull, .. } => {
            format!("{}: pull request #{pull} is up for review", of(issue))
        }
        NoticeKind::DispatchFailed { repo, .. } => format!("{repo}: a dispatch failed"),
    }
}

/// Words of others, each with its name.
fn quotes(kind: &NoticeKind) -> Vec<(&'static str, &str)> {
    match kind {
        NoticeKind::Question { issue, question } => {
            vec![("title", &issue.title), ("question", question)]
        }
        NoticeKind::Attention { issue, reason } | NoticeKind::Budget { issue, reason } => {
            vec![("title", &issue.title), ("reason", reason)]
        }
        NoticeKind::PullRequest { issue, .. } => vec![("title", &issue.title)],
        NoticeKind::DispatchFailed { origin, problem, .. } => {
            vec![("origin", origin), ("problem", problem)]
        }
    }
}

/// Address that leads to what has to be done.
fn link(kind: &NoticeKind) -> Option<&str> {
    match kind {
        NoticeKind::Question { issue, .. }
        | NoticeKind::Attention { issue, .. }
        | NoticeKind::Budget { issue, .. } => issue.page.as_deref().or(issue.url.as_deref()),
        NoticeKind::PullRequest { issue, url, .. } => url.as_deref().or(issue.url.as_deref()),
        NoticeKind::DispatchFailed { .. } => None,
    }
}

/// Body of a webhook, in the form of Standard Webhooks: type, time and data. `text` is for chats that show one line.
pub(super) fn render_webhook(id: &str, kind: &NoticeKind, at: Timestamp) -> String {
    let issue = match kind {
        NoticeKind::Question { issue, .. }
        | NoticeKind::Attention { issue, .. }
        | NoticeKind::Budget { issue, .. }
        | NoticeKind::PullRequest { issue, .. } => Some(issue),
        NoticeKind::DispatchFailed { .. } => None,
    };
    let mut data = json!({});
    if let Some(issue) = issue {
        data["repository"] = json!(issue.repo);
        data["issue"] = json!(issue.number);
        data["issue_url"] = json!(issue.url);
        data["agent"] = json!(inert_line(&issue.agent));
    }
    if let NoticeKind::PullRequest { pull, .. } = kind {
        data["pull_request"] = json!(pull);
    }
    if let NoticeKind::DispatchFailed { id, repo, .. } = kind {
        data["repository"] = json!(repo);
        data["dispatch"] = json!(id);
    }
    for (name, words) in quotes(kind) {
        data[name] = Value::String(inert_line(&shorten(words)));
    }
    let link = link(kind);
    data["url"] = json!(link);
    let text = match link {
        Some(link) => format!("{}: {link}", summary(kind)),
        None => summary(kind),
    };
    json!({
        "type": kind.word().name(), "id": id, "timestamp": at.to_string(), "text": text, "data": data,
    })
    .to_string()
}

/// Text for people, in which others are quoted.
fn render_text(kind: &NoticeKind) -> String {
    let mut lines = vec![summary(kind) + "."];
    for (name, words) in quotes(kind).into_iter().filter(|(_, words)| !words.trim().is_empty()) {
        lines.push(format!("\n{name}:"));
        let words = shorten(words);
        lines.extend(words.lines().map(|line| format!("> {}", escape_line(line))));
    }
    if let Some(link) = link(kind) {
        lines.push(format!("\n{link}"));
    }
    lines.join("\n") + "\n"
}

/// A whole message for `sendmail`. Its id is the notice's, so that a repetition is recognised.
pub(super) fn render_mail(
    id: &str,
    kind: &NoticeKind,
    at: Timestamp,
    from: Option<&str>,
    to: &[String],
) -> String {
    let from = from.map_or_else(String::new, |from| format!("From: bot-bottle <{from}>\r\n"));
    let date = at.strftime("%a, %d %b %Y %H:%M:%S +0000");
    let body = Base64::encode_string(render_text(kind).as_bytes());
    let mut lines = String::new();
    for (index, c) in body.chars().enumerate() {
        if index > 0 && index % MAIL_LINE == 0 {
            lines.push_str("\r\n");
        }
        lines.push(c);
    }
    format!(
        "{from}To: {}\r\nSubject: [bot-bottle] {}\r\nDate: {date}\r\nMessage-ID: <{id}@bot-bottle>\r\n\
         Auto-Submitted: auto-generated\r\nX-Bot-Bottle-Notice: {}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{lines}\r\n",
        to.join(", "),
        escape_line(&summary(kind)),
        kind.word().name(),
    )
}

/// Body of a notice on the desktop, which understands a little markup.
pub(super) fn render_desktop(kind: &NoticeKind) -> String {
    let words =
        quotes(kind).into_iter().map(|(_, words)| escape_line(&shorten(words)).into_owned());
    let words: Vec<String> = words.filter(|words| !words.trim().is_empty()).collect();
    words.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn shorten(text: &str) -> String {
    match text.chars().count() <= TEXT_MAX_CHARS {
        true => text.to_owned(),
        false => text.chars().take(TEXT_MAX_CHARS).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "@channel <!here> [click](https://evil.example) <b>x</b>\r\nBcc: all@example.org\u{202e}";

    fn question() -> NoticeKind {
        let issue = IssueWords {
            repo: "acme/widget".to_owned(),
            number: 3,
            title: HOSTILE.to_owned(),
            agent: "worker".to_owned(),
            url: Some("https://git.example/acme/widget/issues/3".to_owned()),
            page: None,
        };
        NoticeKind::Question { issue, question: HOSTILE.to_owned() }
    }

    fn at() -> Timestamp {
        "2026-11-15T08:06:07Z".parse().expect("a time")
    }

    #[test]
    fn words_of_others_call_nobody_in_a_chat() {
        let body = render_webhook("msg_1", &question(), at());
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            body["text"],
            "acme/widget#3: the agent asks a question: https://git.example/acme/widget/issues/3"
        );
        assert_eq!((&body["type"], &body["id"]), (&json!("question"), &json!("msg_1")));
        for field in ["title", "question"] {
            let text = body["data"][field].as_str().expect("a text");
            assert!(!text.contains("@channel") && !text.contains("<!here>"), "{text}");
            assert!(!text.contains("](https"), "{text}");
            assert!(!text.contains('\n') && !text.contains('\u{202e}'), "{text}");
        }
    }

    #[test]
    fn words_of_others_add_no_header_to_a_mail() {
        let to = ["ann@example.org".to_owned()];
        let mail = render_mail("msg_1", &question(), at(), Some("bot@example.org"), &to);
        let (head, body) = mail.split_once("\r\n\r\n").expect("a head");
        assert!(!head.contains("Bcc") && !head.contains("channel"), "{head}");
        assert!(head.contains("Message-ID: <msg_1@bot-bottle>"), "{head}");
        assert!(head.contains("Date: Sun, 15 Nov 2026 08:06:07 +0000"), "{head}");
        assert!(body.lines().all(|line| line.len() <= MAIL_LINE), "{body}");
        let body = Base64::decode_vec(&body.replace("\r\n", "")).expect("base64");
        let body = String::from_utf8(body).expect("text");
        assert!(body.contains("> @channel") && body.contains("\n> Bcc: all@example.org\\u{202e}"));
        assert!(!body.contains("\nBcc"), "every line of others is quoted: {body}");
    }

    #[test]
    fn markup_of_others_is_text_on_the_desktop() {
        let body = render_desktop(&question());
        assert!(body.contains("&lt;b&gt;x&lt;/b&gt;") && !body.contains('<'), "{body}");
        assert_eq!(body.lines().count(), 2, "{body}");
    }

    #[test]
    fn every_kind_says_what_happened() {
        let issue = IssueWords { repo: "a/b".to_owned(), number: 1, ..IssueWords::default() };
        let pull = NoticeKind::PullRequest { issue, pull: 4, url: None };
        assert_eq!(summary(&pull), "a/b#1: pull request #4 is up for review");
        let failed = NoticeKind::DispatchFailed {
            id: "d1".to_owned(),
            repo: "a/b".to_owned(),
            origin: "the schedule 'nightly'".to_owned(),
            problem: "it is not served".to_owned(),
        };
        let body: Value =
            serde_json::from_str(&render_webhook("msg_2", &failed, at())).expect("JSON");
        assert_eq!(body["text"], "a/b: a dispatch failed");
        assert_eq!(body["data"]["dispatch"], "d1");
    }
}
