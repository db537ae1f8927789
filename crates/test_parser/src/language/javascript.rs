//! JavaScript and TypeScript: `describe`, `it` and `test` of Jest, Vitest, Mocha, Jasmine, Node and Deno.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::file_name;
use crate::source::{Source, named_children};
use crate::walk::{Scope, Walk, early_return, first_statement, is_assertion_name};
use crate::{Condition, Tests};

const SUITES: [&str; 5] = ["describe", "suite", "context", "xdescribe", "fdescribe"];
const TESTS: [&str; 8] = ["it", "test", "specify", "xit", "xtest", "xspecify", "fit", "ftest"];

pub(super) fn tests(path: &[u8], bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    let mut scope = Scope::default();
    if !is_collected(path) {
        scope.conditions.insert(Condition::Never("its file is not collected"));
    }
    scope.conditions.extend(skipped_within(walk.source, root));
    let focus = if has_focus(walk.source, root) { Focus::Elsewhere } else { Focus::Everywhere };
    visit(&mut walk, root, &scope, focus);
    walk.tests
}

/// File names that at least one of the common runners collects by default.
fn is_collected(path: &[u8]) -> bool {
    let name = String::from_utf8_lossy(file_name(path)).to_ascii_lowercase();
    let parts: Vec<&str> = name.split(['.', '-', '_']).collect();
    let is_test = |part: &&str| ["test", "tests", "spec", "specs", "cy", "e2e"].contains(part);
    let folder = path.split(|byte| *byte == b'/').rev().skip(1);
    let folders = ["test", "tests", "__tests__", "spec", "specs", "e2e"];
    parts.iter().any(is_test)
        || folder.into_iter().any(|it| folders.iter().any(|name| it == name.as_bytes()))
}

/// `.only` anywhere in a file skips all tests outside of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Focus {
    Everywhere,
    Elsewhere,
    Here,
}

/// Call that defines a test or a suite.
struct Definition<'t> {
    is_test: bool,
    is_focused: bool,
    title: String,
    conditions: BTreeSet<Condition>,
    body: Option<Node<'t>>,
}

fn visit(walk: &mut Walk<'_>, node: Node<'_>, scope: &Scope, focus: Focus) {
    if let Some(found) = definition(walk.source, node) {
        let focus = if found.is_focused { Focus::Here } else { focus };
        let mut scope = scope.inside(&found.title, found.conditions);
        if found.is_test {
            if focus == Focus::Elsewhere {
                scope.conditions.insert(Condition::Never("another test is focused"));
            }
            walk.add(&scope, &[node]);
        }
        if let Some(body) = found.body {
            visit(walk, body, &scope, focus);
        }
        return;
    }
    let condition = (node.kind() == "if_statement").then(|| walk.source.field(node, "condition"));
    let mut inner = scope.clone();
    inner.conditions.extend(condition.map(Condition::When));
    for child in walk.source.live_children(node) {
        visit(walk, child, &inner, focus);
    }
}

fn has_focus(source: Source<'_>, node: Node<'_>) -> bool {
    definition(source, node).is_some_and(|found| found.is_focused)
        || source.live_children(node).into_iter().any(|child| has_focus(source, child))
}

fn definition<'t>(source: Source<'_>, node: Node<'t>) -> Option<Definition<'t>> {
    let call = Some(node).filter(|it| it.kind() == "call_expression")?;
    let names = source.callee_words(call.child_by_field_name("function")?);
    let arguments = call.child_by_field_name("arguments").filter(|it| it.kind() == "arguments")?;
    let arguments = named_children(arguments);
    let (title, rest) = arguments.split_first()?;
    let first = names.first()?.as_str();
    let second = names.get(1).map_or("", String::as_str);
    let is_known = SUITES.contains(&first) || TESTS.contains(&first);
    let kind = if is_known { first } else { second };
    let is_function =
        |it: &&Node<'_>| matches!(it.kind(), "arrow_function" | "function_expression");
    let function = rest.iter().rfind(is_function);
    if self_skip(source, node).is_some() {
        return None;
    }
    let is_todo = names.iter().any(|name| name == "todo");
    // `pattern.test("text")` is no test: it has no function to run.
    let is_definition = function.is_some() || (is_known && (is_todo || !rest.is_empty()));
    // What is called for a value or an object is no title: `model.test(Event.start({}), () => {})` is the tested code.
    let is_title = is_known || !matches!(title.kind(), "call_expression" | "object");
    if !is_definition || !is_title || !(SUITES.contains(&kind) || TESTS.contains(&kind)) {
        return None;
    }
    let body = function.and_then(|it| it.child_by_field_name("body"));
    let mut conditions = name_conditions(&names, source, call);
    conditions.extend(rest.iter().flat_map(|it| option_conditions(source, *it)));
    conditions.extend(body.and_then(|body| body_condition(source, body)));
    let is_focused = names
        .iter()
        .any(|name| name == "only" || name == "fit" || name == "fdescribe" || name == "ftest");
    Some(Definition {
        is_test: TESTS.contains(&kind),
        is_focused,
        title: source.text(*title).trim_matches(['"', '\'', '`']).to_owned(),
        conditions,
        body,
    })
}

/// The condition of a call that skips the test or suite around it, as Playwright has it: `test.skip()`, `test.skip(condition,
/// "reason")` and `test.fixme`. With a title first and a function it defines a test of its own.
fn self_skip(source: Source<'_>, node: Node<'_>) -> Option<Condition> {
    let call = Some(node).filter(|it| it.kind() == "call_expression")?;
    let names = source.callee_words(call.child_by_field_name("function")?);
    let [first, last] = names.as_slice() else { return None };
    if !TESTS.contains(&first.as_str()) || !matches!(last.as_str(), "skip" | "fixme") {
        return None;
    }
    let arguments = call.child_by_field_name("arguments").filter(|it| it.kind() == "arguments")?;
    let arguments = named_children(arguments);
    let Some((condition, rest)) = arguments.split_first() else {
        return Some(Condition::Never("skips itself"));
    };
    let is_text = |node: &Node<'_>| matches!(node.kind(), "string" | "template_string");
    let is_reason = rest.iter().all(is_text) && rest.len() < 2;
    if is_text(condition) || !is_reason {
        return None;
    }
    let text = source.text(*condition);
    Some(match text.as_str() {
        "true" | "1" | "!0" | "!false" => Condition::Never("skips itself"),
        _ => Condition::When(text),
    })
}

/// The gravest condition that a statement of a body, or of a file, puts on the tests in it.
fn skipped_within(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let calls = source.live_children(body).into_iter().filter_map(|it| it.named_child(0));
    let mut skips: Vec<Condition> = calls.filter_map(|call| self_skip(source, call)).collect();
    let never = skips.iter().position(|it| matches!(it, Condition::Never(_))).unwrap_or_default();
    (!skips.is_empty()).then(|| skips.swap_remove(never))
}

fn name_conditions(names: &[String], source: Source<'_>, call: Node<'_>) -> BTreeSet<Condition> {
    let condition = |name: &String| match name.as_str() {
        "skip" | "ignore" | "xit" | "xtest" | "xdescribe" | "xspecify" => {
            Some(Condition::Never("skip"))
        }
        "todo" => Some(Condition::Never("todo")),
        "failing" | "fails" => Some(Condition::MayFail),
        "skipIf" | "runIf" => Some(Condition::When(source.field(call, "function"))),
        _ => None,
    };
    names.iter().filter_map(condition).collect()
}

/// Conditions of an options object, as Node, Deno and Vitest take it.
fn option_conditions(source: Source<'_>, argument: Node<'_>) -> BTreeSet<Condition> {
    let pairs = match argument.kind() {
        "object" => named_children(argument),
        _ => Vec::new(),
    };
    let condition = |pair: Node<'_>| {
        let (key, value) = (source.field(pair, "key"), source.field(pair, "value"));
        let skips = ["skip", "todo", "ignore", "fails"].contains(&key.trim_matches(['"', '\'']));
        match value.as_str() {
            _ if !skips => None,
            "false" => None,
            text if text == "true" || text.starts_with(['"', '\'', '`']) => {
                Some(Condition::Never("skip"))
            }
            _ => Some(Condition::When(format!("{key}: {value}"))),
        }
    };
    pairs.into_iter().filter_map(condition).collect()
}

fn body_condition(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    if body.kind() != "statement_block" {
        return None;
    }
    if let Some(condition) = skipped_within(source, body) {
        return Some(condition);
    }
    let first = first_statement(source, body)?;
    let call = first.named_child(0).filter(|it| it.kind() == "call_expression");
    let callee = call.and_then(|call| call.child_by_field_name("function"));
    let names = callee.map(|callee| source.callee_words(callee)).unwrap_or_default();
    // `it.skip` at the start of a suite skips a test, not the suite.
    let first = names.first().map_or("", String::as_str);
    let is_definition = SUITES.contains(&first) || TESTS.contains(&first);
    let skips = names.last().is_some_and(|name| name == "skip" || name == "pending");
    if skips && !is_definition {
        return Some(Condition::Never("skips itself"));
    }
    early_return(source, body)
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    let callee = (node.kind() == "call_expression").then(|| node.child_by_field_name("function"));
    let Some(callee) = callee.flatten() else { return false };
    let names = source.callee_words(callee);
    let (first, second) = (names.first().map(String::as_str), names.get(1).map(String::as_str));
    let of_context = first == Some("t")
        && !matches!(
            second,
            None | Some(
                "test" | "plan" | "end" | "skip" | "context" | "teardown" | "after" | "before"
            )
        );
    of_context || names.iter().any(|name| is_assertion_name(name))
}
