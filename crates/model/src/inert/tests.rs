//! Texts that would act on some forge, and the forges' own searches as the judge of what is left of them.

use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;

use super::*;

/// Searches that forges make in the source of a text, wherever it stands.
const IN_SOURCE: [(&str, &str); 5] = [
    ("reference", r"[#!][0-9]"),
    ("GitHub's or GitLab's own number", r"(?i)\b(?:gh|gl)-[0-9]"),
    ("tracker's number", r"\b(?:JIRA|ABC|PROJ_2)-[0-9]"),
    ("address", r"(?i)[a-z]://"),
    ("command", r"(?m)^[\s>]*/[a-z]+[ \t]*$"),
];

/// Searches that they make in rendered text, so not in code.
const IN_TEXT: [(&str, &str); 14] = [
    ("mention", r"@[\w/-]"),
    ("address without a scheme", r"(?i)\bwww\."),
    ("link", r"\]\("),
    ("reference link", r"\]\["),
    ("definition of a link", r"\]:"),
    ("picture", r"!\["),
    ("HTML", r"<[a-zA-Z/!?]"),
    ("entity", r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z]+);"),
    ("GitLab's label, milestone, snippet or epic", r#"[~%$&]["\w]"#),
    ("commit", r"\b[0-9a-f]{7,64}\b"),
    ("box to tick", r"\[[ xX]\]"),
    ("footnote or wiki link", r"\[[\^\[]"),
    ("formula", r"\$[`$]"),
    ("drawing", r"(?m)^[\s>]*(?:```|~~~)\s*(?:mermaid|math|geojson|suggestion|plantuml)"),
];

/// Texts of others that would act somewhere.
const ACTING: &[&str] = &[
    // Closing words: GitHub, GitLab, Gitea and Forgejo, and words of an installation's own.
    "close #1",
    "closes #1",
    "closed #1",
    "Closing #1",
    "fix #1",
    "Fixes: #1",
    "FIXED #1",
    "fixing #1",
    "resolve #1",
    "resolves #1",
    "resolved #1",
    "Resolving #1",
    "implement #1",
    "implements #1",
    "Implemented #1",
    "implementing #1",
    "reopens #1",
    "schließt #1",
    "cierra #1",
    "ferme #1",
    "修复 #1",
    "fixes#1",
    "closes issue #1",
    "closes issues #1, #2 and #3",
    "fixes (#1)",
    "**Fixes** #1",
    "fixes `#1`",
    // References in every spelling.
    "fixes GH-12",
    "fixes gh-12",
    r"fixes GH\-12",
    "closes GL-12",
    "closes JIRA-7",
    "implements PROJ_2-15",
    "closes owner/repo#12",
    "closes group/sub/project#12",
    "closes owner/repo!12",
    "closes !12",
    "Fixes https://github.com/o/r/issues/3",
    "closes http://git.example/o/r/pulls/3",
    "Closes https://gitlab.com/g/p/-/issues/3",
    "closes HTTPS://git.example/o/r/issues/3",
    r"https:\/\/evil.example",
    r"fixes \#12",
    r"fixes #\12",
    // Mentions.
    "@victim",
    "thanks @victim!",
    "(@org/team)",
    r"\@victim",
    r"@\_victim",
    "@1h30m",
    "mail a@victim.example",
    // Links, pictures, addresses.
    "[click](https://evil.example)",
    "[logout](/logout)",
    "![x](https://evil.example/p.png)",
    "![x][p]",
    "[p]: https://evil.example/p.png",
    "<https://evil.example>",
    "www.evil.example",
    "WWW.evil.example",
    "ftp://evil.example",
    "ssh://evil.example",
    "see https://evil.example/a?b=c#d",
    // HTML and entities.
    "<img src=https://evil.example/p.png>",
    "</details>",
    "<!-- forklift -->",
    "<?x?>",
    "&commat;victim",
    "&num;7",
    "&#64;victim",
    "&#x40;victim",
    "&#35;7",
    "&lt;img&gt;",
    // GitLab's own.
    "!1",
    "~bug",
    "~\"needs review\"",
    "%v1",
    "%\"next one\"",
    "$1",
    "&1",
    "group&1",
    "%{project_name}",
    "[issue:1]",
    "[vulnerability:1]",
    "*iteration:1",
    "^alert#1",
    "[[page]]",
    // Commands.
    "/merge",
    "/close",
    "  /assign",
    "> /close",
    "/lgtm",
    "text\n/close",
    "text\r\n/close",
    // Commits, boxes, footnotes, formulas, drawings.
    "reverts 1234abc",
    "as in 0123456789abcdef0123456789abcdef01234567",
    "o/r@1234abc",
    "[ ] do it",
    "- [x] done",
    "a note[^1]",
    "[^1]: note",
    "$`x`$",
    "$$x$$",
    "```mermaid\ngraph TD\n```",
    "~~~ mermaid\nx\n~~~",
    "````math\nx\n````",
    "```suggestion:-0+0\nx\n```",
    "1. ```plantuml\nx",
    // Attempts to leave the code that the text stands in.
    "` @victim `` #1 ``` !1",
    "```\n@victim closes #1\n```",
    "a | b",
    r"a \| b",
    r"\",
    "`",
    "``a``",
    "",
    " ",
    // Characters that hide or reorder.
    "\u{202e}1# sesolc",
    "clo\u{200b}ses #1",
    "@\u{2060}victim",
    "\u{feff}/close",
    "\u{1b}[31mred",
    "@\u{e0041}",
];

type Searches = LazyLock<Vec<(&'static str, Regex)>>;

static SOURCE_SEARCHES: Searches = LazyLock::new(|| compile(&IN_SOURCE));
static TEXT_SEARCHES: Searches = LazyLock::new(|| compile(&IN_TEXT));

/// Formatting without a backslash before it.
static FORMATTING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?:^|[^\\])(?:\\\\)*[`*_\[\]|~<>]").unwrap());

fn compile(searches: &[(&'static str, &str)]) -> Vec<(&'static str, Regex)> {
    searches.iter().map(|(what, pattern)| (*what, Regex::new(pattern).unwrap())).collect()
}

#[track_caller]
fn finds_nothing(searches: &Searches, shown: &str, text: &str) {
    for (what, pattern) in searches.iter() {
        let found = pattern.find(shown).map(|found| found.as_str());
        assert_eq!(found, None, "{what} in {shown:?}, made of {text:?}");
    }
}

fn hides(c: char) -> bool {
    c != BREAK && c != '\n' && crate::escape::is_unsafe(c)
}

/// Text that Markdown shows of a code span; `None` if it is not one.
fn inside_span(shown: &str) -> Option<&str> {
    let fence = shown.len() - shown.trim_start_matches('`').len();
    let inside = shown.get(fence..shown.len().checked_sub(fence)?)?;
    let closes = shown.ends_with(&"`".repeat(fence)) && fence > 0;
    let is_closed_before = inside.split(|c| c != '`').any(|run| run.len() == fence);
    (closes && !is_closed_before && !shown.contains('\n')).then_some(inside)
}

#[track_caller]
fn check(text: &str) {
    let line = inert_line(text);
    finds_nothing(&SOURCE_SEARCHES, &line, text);
    finds_nothing(&TEXT_SEARCHES, &line, text);
    assert!(!line.contains('\n') && !line.contains(hides), "{line:?}");

    let prose = inert_prose(text);
    finds_nothing(&SOURCE_SEARCHES, &prose, text);
    finds_nothing(&TEXT_SEARCHES, &prose, text);
    assert!(!FORMATTING.is_match(&prose), "{prose:?}");

    let html = inert_html(text);
    finds_nothing(&SOURCE_SEARCHES, &html, text);
    assert!(!html.contains(['<', '>', '"', '`']), "{html:?}");

    for span in [inert_code(text), inert_cell(text)] {
        finds_nothing(&SOURCE_SEARCHES, &span, text);
        let inside = inside_span(&span);
        assert!(inside.is_some_and(|inside| !inside.contains(hides)), "{span:?}");
    }
    assert!(!inert_cell(text).contains('|'));

    let block = inert_block(text);
    finds_nothing(&SOURCE_SEARCHES, &block, text);
    let lines: Vec<&str> = block.lines().collect();
    let fence = lines[0].trim_end_matches("text");
    let closing = lines.iter().filter(|line| line.trim_start().starts_with(fence)).count();
    assert!(closing == 2 && lines.last() == Some(&fence), "{block}");
    assert!(!block.contains(|c| hides(c) && c != '\t'), "{block:?}");

    let markdown = inert_markdown(text, None);
    finds_nothing(&SOURCE_SEARCHES, &markdown, text);
    finds_nothing(&TEXT_SEARCHES, &markdown, text);
    assert_eq!(inert_markdown(&markdown, None), markdown, "a second time changes nothing");
}

#[test]
fn nothing_that_others_write_acts_on_a_forge() {
    for text in ACTING {
        check(text);
        check(&format!("fixes {text}, and then"));
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in [
        "Grüße, 日本 👍🏽",
        "src/net/http.rs",
        "a: b",
        "10 % off",
        "C++ & Rust",
        "x != y",
        "a <b",
        "f(x)[0]",
        "UTF-8",
        "CVE-2021-29477",
        "usr/bin/env",
        "1.2.3",
        "- item",
        "# heading",
        "*emphasis*",
        "that's it!",
        "array[i]",
        "#",
        "@ home",
        "a/b",
    ] {
        let expected = if text == "a <b" { "a <|b" } else { text };
        assert_eq!(inert_line(text).replace(BREAK, "|"), expected);
        assert_eq!(inert_code(text), format!("`{text}`"));
    }
    assert_eq!(inert_code("/usr/bin/env @x <b>"), "`/usr/bin/env @x <b>`", "code stays code");
    let code = "```rust\n#[test]\nfn a() -> Vec<u8> {}\n```";
    assert_eq!(inert_markdown(code, None).replace(BREAK, ""), code);
    assert!(inert_markdown(code, None).starts_with("```rust\n#[test]"));
}

#[test]
fn breaks_stand_behind_the_mark() {
    for (text, expected) in [
        ("fixes #12 and o/r!3", "fixes #|12 and o/r!|3"),
        ("GH-12 ABC-1", "GH-|12 ABC-|1"),
        ("https://x.example", "https:|//x.example"),
        ("@all", "@|all"),
        ("[a](b) ![c][d]", "[a]|(b) !|[c]|[d]"),
        ("at 1234abcd", "at 1234ab|cd"),
        ("/close", "/|close"),
    ] {
        assert_eq!(inert_line(text).replace(BREAK, "|"), expected);
    }
}

#[test]
fn a_run_may_refer_to_its_own_issue_and_to_no_other() {
    let check = |text: &str, expected: &str| {
        assert_eq!(inert_markdown(text, Some(317)).replace(BREAK, "|"), expected);
    };
    check("Closes #317.", "Closes #317.");
    check("closes #31, #3170, a/b#317, &#317;", "closes #|31, #|3170, a/b#|317, &|#|317;");
    check("Grüße\r\n- [link](x)\n", "Grüße\n- [link]|(x)\n");
    check("family \u{1f468}\u{200d}\u{1f469}", "family \u{1f468}\u{200d}\u{1f469}");
    check("nul\0", "nul\\x00");
}

#[test]
fn a_span_cannot_be_closed_and_a_cell_has_no_pipe() {
    assert_eq!(inert_code("a `b` c"), "``a `b` c``");
    assert_eq!(inert_code("`a"), "`` `a ``");
    assert_eq!(inert_code(""), "`  `");
    assert_eq!(inert_cell("a | b"), r"`a \x7c b`");
    assert_eq!(inert_block("a\n```\nb"), "````text\na\n```\nb\n````");
}

proptest! {
    #[test]
    fn nothing_acts_whatever_it_is_made_of(parts in proptest::collection::vec(piece(), 0..12)) {
        check(&parts.concat());
    }

    #[test]
    fn any_text_is_shown_whole(text in any::<String>()) {
        check(&text);
        let shown = inert_line(&text).replace(BREAK, "");
        prop_assert_eq!(shown, escape_line(&text).into_owned());
    }
}

/// A piece of an acting text.
fn piece() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "#", "!", "@", "&", "~", "%", "$", "[", "]", "(", ")", "<", ">", "`", "```", "\\", "/",
        ":", "//", "-", "|", "^", "*", "_", " ", "\n", ".", "1", "12", "a", "gh", "GH", "GL",
        "ABC", "www", "https", "mermaid", "close", "fixes", "x", "1234abc", "\u{200b}", "\u{202e}",
        "\t", "\r", "\"", ";", "num", "issue",
    ]);
    marks.prop_map(str::to_owned)
}
