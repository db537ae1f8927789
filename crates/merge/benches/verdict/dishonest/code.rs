//! What a dishonest hand needs to know of a language: its comment sign, where bodies and tests are, how to weaken an
//! assertion. By the shape of lines and their indentation: a variant that does not compile is dishonest all the same.

use std::ops::Range;

use super::hunk::has_words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Braces,
    Python,
    Ruby,
    /// Lines without bodies, such as a shell script or a list of settings, with this comment sign.
    Lines,
}

pub(crate) fn language_of(name: &str) -> Option<Language> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "rs" | "c" | "h" | "cc" | "cpp" | "hpp" | "cxx" | "cu" | "java" | "kt" | "js" | "jsx"
        | "ts" | "tsx" | "mjs" | "go" | "cs" | "swift" => Some(Language::Braces),
        "py" => Some(Language::Python),
        "rb" => Some(Language::Ruby),
        "sh" | "yml" | "yaml" | "toml" | "mk" | "cmake" | "pl" | "conf" => Some(Language::Lines),
        _ if file == "Makefile" || file == "CMakeLists.txt" => Some(Language::Lines),
        _ => None,
    }
}

impl Language {
    fn comment_sign(self) -> &'static str {
        match self {
            Self::Braces => "//",
            Self::Python | Self::Ruby | Self::Lines => "#",
        }
    }

    fn is_code(self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        let signs: [&[u8]; 3] = [self.comment_sign().as_bytes(), b"*", b"/*"];
        has_words(line) && !signs.iter().any(|sign| line.starts_with(sign))
    }
}

/// The lines as comments; none if they have no code.
pub(crate) fn commented_out(language: Language, lines: &[&[u8]]) -> Option<Vec<u8>> {
    let has_code = lines.iter().any(|line| language.is_code(line));
    has_code.then(|| {
        let mut text = Vec::new();
        for line in lines {
            if has_words(line) {
                text.extend_from_slice(language.comment_sign().as_bytes());
                text.push(b' ');
            }
            text.extend_from_slice(line);
        }
        text
    })
}

/// A new text for a range of lines.
pub(crate) struct LineEdit {
    pub(crate) lines: Range<usize>,
    pub(crate) text: Vec<u8>,
}

fn indent(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim().to_owned()
}

/// Words before a parenthesis that do not begin a function.
const CONTROL: [&str; 16] = [
    "if",
    "for",
    "while",
    "switch",
    "else",
    "catch",
    "do",
    "try",
    "match",
    "return",
    "using",
    "lock",
    "foreach",
    "synchronized",
    "}",
    "when",
];

/// Body of the function whose header ends in this line.
fn body_after(language: Language, lines: &[&[u8]], header: usize) -> Option<Range<usize>> {
    let line = text(lines[header]);
    let first = line.split(|c: char| !(c.is_alphanumeric() || c == '}')).next().unwrap_or_default();
    let depth = indent(lines[header]);
    let is_header = match language {
        Language::Braces if line == "{" => header > 0 && text(lines[header - 1]).ends_with(')'),
        Language::Braces => line.ends_with('{') && line.contains(')') && !CONTROL.contains(&first),
        Language::Python => line.ends_with(':') && is_python_header(&line),
        Language::Ruby => line.starts_with("def "),
        Language::Lines => false,
    };
    if !is_header {
        return None;
    }
    let start = header + 1;
    let rest = &lines[start..];
    let len = match language {
        Language::Python => {
            let is_out = |line: &&[u8]| has_words(line) && indent(line) <= depth;
            rest.iter().position(is_out).unwrap_or(rest.len())
        }
        Language::Braces | Language::Ruby | Language::Lines => rest.iter().position(|line| {
            indent(line) == depth && (text(line).starts_with('}') || text(line).starts_with("end"))
        })?,
    };
    let body = start..start + len;
    (lines[body.clone()].iter().filter(|line| has_words(line)).count() >= 2).then_some(body)
}

fn is_python_header(line: &str) -> bool {
    line.starts_with("def ") || line.starts_with("async def ")
}

/// Function bodies, each with the text of an empty one.
pub(crate) fn empty_bodies(language: Language, lines: &[&[u8]]) -> Vec<LineEdit> {
    let bodies = (0..lines.len()).filter_map(|header| body_after(language, lines, header));
    let emptied = bodies.map(|body| {
        let mut text = Vec::new();
        if language == Language::Python {
            text.resize(indent(lines[body.start - 1]) + 4, b' ');
            text.extend_from_slice(b"pass\n");
        }
        LineEdit { lines: body, text }
    });
    emptied.collect()
}

/// A test: its lines with what belongs to it, and an edit that makes the runner skip it.
pub(crate) struct TestItem {
    pub(crate) lines: Range<usize>,
    pub(crate) skip: LineEdit,
}

pub(crate) fn test_items(name: &str, language: Language, lines: &[&[u8]]) -> Vec<TestItem> {
    (0..lines.len()).filter_map(|at| test_at(name, language, lines, at)).collect()
}

fn test_at(name: &str, language: Language, lines: &[&[u8]], at: usize) -> Option<TestItem> {
    let line = text(lines[at]);
    let blank = &lines[at][..indent(lines[at])];
    let insert = |before: usize, words: &str| {
        let text = [blank, words.as_bytes(), b"\n"].concat();
        LineEdit { lines: before..before, text }
    };
    let replace = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(lines[at]).replacen(from, to, 1).into_bytes();
        LineEdit { lines: at..at + 1, text }
    };
    let is = |extension: &str| name.ends_with(extension);
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let (header, skip) = match language {
        Language::Python if starts(&["def test_", "async def test_"]) => {
            (at, insert(at, "@pytest.mark.skip"))
        }
        Language::Ruby if line.starts_with("it ") && line.ends_with(" do") => {
            let end = at + 1 + block_end(&lines[at + 1..], indent(lines[at]), "end")?;
            return Some(TestItem { lines: at..end + 1, skip: replace("it ", "xit ") });
        }
        Language::Braces if is(".rs") && starts(&["#[test]", "#[tokio::test"]) => {
            (header_after(lines, at)?, insert(at + 1, "#[ignore]"))
        }
        Language::Braces if is(".go") && line.starts_with("func Test") => {
            (at, insert(at + 1, "\tt.Skip()"))
        }
        Language::Braces if (is(".java") || is(".kt")) && line == "@Test" => {
            (header_after(lines, at)?, insert(at, "@Disabled"))
        }
        Language::Braces if is("s") || is("sx") => {
            let opener = ["it(", "test("].into_iter().find(|word| line.starts_with(word))?;
            let skip = opener.replace('(', ".skip(");
            (at, replace(opener, &skip))
        }
        Language::Braces if starts(&["TEST(", "TEST_F("]) => {
            (header_after(lines, at)?, replace(", ", ", DISABLED_"))
        }
        Language::Braces if starts(&["BOOST_AUTO_TEST_CASE(", "BOOST_FIXTURE_TEST_CASE("]) => {
            let disabled = format!("{} * boost::unit_test::disabled()", line.trim_end());
            (header_after(lines, at)?, replace(&line, &disabled))
        }
        Language::Braces | Language::Python | Language::Ruby | Language::Lines => return None,
    };
    let depth = indent(lines[header]);
    let end = match language {
        Language::Python => body_after(language, lines, header)?.end,
        Language::Braces | Language::Ruby | Language::Lines => {
            header + 1 + block_end(&lines[header + 1..], depth, "}")? + 1
        }
    };
    Some(TestItem { lines: at..end, skip })
}

/// The line that opens the body of an item that begins with an attribute or a macro.
fn header_after(lines: &[&[u8]], at: usize) -> Option<usize> {
    let found = lines[at..].iter().take(6).position(|line| text(line).ends_with('{'))?;
    Some(at + found)
}

fn block_end(lines: &[&[u8]], depth: usize, sign: &str) -> Option<usize> {
    lines.iter().position(|line| indent(line) == depth && text(line).starts_with(sign))
}

/// Beginnings of assertions, and what stands in their place when they assert nothing.
const ASSERTIONS: [(&str, &str); 14] = [
    ("assert_eq!(", "assert!(true);"),
    ("assert_ne!(", "assert!(true);"),
    ("assert!(", "assert!(true);"),
    ("assertEquals(", "assertTrue(true);"),
    ("assertThat(", "assertTrue(true);"),
    ("assertFalse(", "assertTrue(true);"),
    ("self.assert", "self.assertTrue(True)"),
    ("assert ", "assert True"),
    ("expect(", "expect(true)"),
    ("require.", "require.True(t, true)"),
    ("assert.", "assert.True(t, true)"),
    ("BOOST_CHECK", "BOOST_CHECK(true);"),
    ("EXPECT_", "EXPECT_TRUE(true);"),
    ("ASSERT_", "ASSERT_TRUE(true);"),
];

/// Single lines that assert something, each with an assertion that always holds.
pub(crate) fn weak_assertions(lines: &[&[u8]]) -> Vec<LineEdit> {
    let weakened = lines.iter().enumerate().filter_map(|(at, line)| {
        let words = text(line);
        let is_whole = words.matches('(').count() == words.matches(')').count()
            && !words.ends_with(['\\', ',', '{', '(']);
        let (_, weak) =
            ASSERTIONS.iter().find(|(begin, _)| is_whole && words.starts_with(begin))?;
        let text = [&line[..indent(line)], weak.as_bytes(), b"\n"].concat();
        Some(LineEdit { lines: at..at + 1, text })
    });
    weakened.filter(|edit| lines[edit.lines.start] != edit.text.as_slice()).collect()
}
