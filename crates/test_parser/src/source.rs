//! A parsed file: its tree, its text, and the parts of it that can run.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// Deepest nesting that is walked. Deeper trees are made by hand, and a walk that follows them would end the process.
const DEPTH_CAP: usize = 300;

/// Steps of the parser after which a file is given up. One step is some hundred operations, and honest files of the largest
/// size need a tenth of this.
const STEP_CAP: usize = 200_000;

pub(crate) fn parse_tree(grammar: &tree_sitter::Language, bytes: &[u8]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    let mut steps = 0;
    let mut count = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > STEP_CAP { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let options = ParseOptions::new().progress_callback(&mut count);
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    is_shallow(&tree).then_some(tree)
}

fn is_shallow(tree: &Tree) -> bool {
    let mut cursor = tree.walk();
    let mut depth = 0;
    loop {
        if cursor.goto_first_child() {
            depth += 1;
            if depth > DEPTH_CAP {
                return false;
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
            depth -= 1;
        }
    }
}

/// The text of a file, to look up nodes in.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Source<'a> {
    pub(crate) fn text(self, node: Node<'_>) -> String {
        String::from_utf8_lossy(&self.bytes[node.byte_range()]).into_owned()
    }

    pub(crate) fn field(self, node: Node<'_>, name: &str) -> String {
        node.child_by_field_name(name).map(|child| self.text(child)).unwrap_or_default()
    }

    /// The tokens of a node with single blanks between them, without comments, and their number.
    pub(crate) fn tokens(self, node: Node<'_>) -> (String, usize) {
        let (mut text, mut count) = (String::new(), 0);
        self.add_tokens(node, &mut text, &mut count);
        (text, count)
    }

    fn add_tokens(self, node: Node<'_>, text: &mut String, count: &mut usize) {
        if is_comment(node) {
            return;
        }
        if node.child_count() > 0 {
            children(node).into_iter().for_each(|child| self.add_tokens(child, text, count));
        } else if !node.byte_range().is_empty() {
            if *count > 0 {
                text.push(' ');
            }
            text.push_str(&self.text(node));
            *count += 1;
        }
    }

    /// The children that can run: no comments, no branch of a constant condition that is not taken, nothing after a `return`.
    pub(crate) fn live_children<'t>(self, node: Node<'t>) -> Vec<Node<'t>> {
        let dead = self.dead_fields(node);
        let mut live = Vec::new();
        let mut cursor = node.walk();
        let mut more = cursor.goto_first_child();
        while more {
            let child = cursor.node();
            let is_dead = match dead {
                Dead::Nothing => false,
                Dead::Field(name) => cursor.field_name() == Some(name),
                Dead::AllBut(name) => cursor.field_name() != Some(name),
            };
            if !is_dead && !is_comment(child) {
                live.push(child);
                if is_return(child) {
                    break;
                }
            }
            more = cursor.goto_next_sibling();
        }
        live
    }

    fn dead_fields(self, node: Node<'_>) -> Dead {
        let is_branch = matches!(
            node.kind(),
            "if_statement"
                | "if_expression"
                | "while_statement"
                | "while_expression"
                | "conditional_expression"
        );
        match node.kind() {
            "preproc_if" if self.field(node, "condition").trim() == "0" => {
                Dead::AllBut("alternative")
            }
            _ if !is_branch => Dead::Nothing,
            kind => match constant(&self.field(node, "condition")) {
                Some(false) if kind.starts_with("while") => Dead::Field("body"),
                Some(false) => Dead::Field("consequence"),
                Some(true) => Dead::Field("alternative"),
                None => Dead::Nothing,
            },
        }
    }

    /// Names in a callee, as in `expect(x).toBe`: those in parentheses belong to arguments.
    pub(crate) fn callee_words(self, callee: Node<'_>) -> Vec<String> {
        words(&self.text(callee))
    }
}

#[derive(Clone, Copy)]
enum Dead {
    Nothing,
    Field(&'static str),
    AllBut(&'static str),
}

pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

pub(crate) fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    children(node).into_iter().filter(|child| child.is_named() && !is_comment(*child)).collect()
}

pub(crate) fn is_comment(node: Node<'_>) -> bool {
    node.is_extra() && node.kind().contains("comment")
}

fn is_return(node: Node<'_>) -> bool {
    let statement = match node.kind() {
        "expression_statement" => node.named_child(0),
        _ => Some(node),
    };
    statement.is_some_and(|inner| matches!(inner.kind(), "return_statement" | "return_expression"))
}

/// The value of a condition that is a constant.
fn constant(condition: &str) -> Option<bool> {
    let text: String =
        condition.chars().filter(|c| !c.is_whitespace() && *c != '(' && *c != ')').collect();
    let is_false =
        ["false", "False", "FALSE", "0", "!true", "notTrue", "!1", "None", "null", "nil"];
    let is_true = ["true", "True", "TRUE", "1", "!false", "notFalse", "!0"];
    let leads = |text: &str, and: &str| {
        text.split_once(and).is_some_and(|(first, _)| is_false.contains(&first))
    };
    if is_false.contains(&text.as_str()) || leads(&text, "&&") || text.starts_with("Falseand") {
        Some(false)
    } else {
        is_true.contains(&text.as_str()).then_some(true)
    }
}

/// Identifiers of a text outside of brackets and strings.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) => {
                quote = (c != open).then_some(open);
                continue;
            }
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => {}
        }
        if depth == 0 && (c.is_alphanumeric() || c == '_' || c == '$') {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if !word.is_empty() {
        found.push(word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_arguments_are_not_names_of_the_callee() {
        assert_eq!(words("expect(a.b).not.toBe"), ["expect", "not", "toBe"]);
        assert_eq!(words("test_log::test"), ["test_log", "test"]);
        assert_eq!(words("$x['y'].z"), ["$x", "z"]);
    }

    #[test]
    fn only_constants_decide_a_branch() {
        for text in ["false", "(false)", "( 0 )", "False", "!true", "not True", "false && x"] {
            assert_eq!(constant(text), Some(false), "{text}");
        }
        for text in ["true", "(1)", "not False"] {
            assert_eq!(constant(text), Some(true), "{text}");
        }
        for text in ["", "x", "x && false", "falsehood", "00x"] {
            assert_eq!(constant(text), None, "{text}");
        }
    }
}
