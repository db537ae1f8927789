//! Limits on the length of functions and files, in products and in tests.

use crate::source::{Source, item_of, load};

const FUNCTION_LINES_MAX: usize = 80;
const FILE_LINES_MAX: usize = 600;

#[test]
fn no_function_is_too_long() {
    let mut long = Vec::new();
    for source in load("crates") {
        for (name, lines) in functions(&source) {
            if lines > FUNCTION_LINES_MAX {
                long.push(format!("{}: {name} has {lines} lines", source.path));
            }
        }
    }
    assert!(long.is_empty(), "over {FUNCTION_LINES_MAX} lines: {long:#?}");
}

#[test]
fn no_file_is_too_long() {
    let mut sources = load("crates");
    sources.retain(|source| source.text.lines().count() > FILE_LINES_MAX);
    let long: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    assert!(long.is_empty(), "over {FILE_LINES_MAX} lines: {long:#?}");
}

/// The functions of a file with the number of their lines. rustfmt puts the last brace under the first letter.
fn functions(source: &Source) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(("fn", name, _)) = item_of(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}");
        let is_one_line = line.ends_with('}') || line.ends_with(';');
        if let Some(end) = lines[start..].iter().position(ends).filter(|_| !is_one_line) {
            found.push((name, end + 1));
        }
    }
    found
}

#[test]
fn the_lines_of_a_function_are_counted() {
    let text = "fn a() {\n    b();\n}\n\nimpl C {\n    fn d() {\n    }\n    fn e() {}\n}\n";
    let source = Source { path: String::new(), text: text.to_owned() };
    assert_eq!(functions(&source), [("a", 3), ("d", 2)]);
}
