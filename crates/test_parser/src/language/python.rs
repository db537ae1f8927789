//! Python: functions and methods whose names begin with `test`, as pytest and unittest collect them.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::file_name;
use crate::source::{Source, children, words};
use crate::walk::{Scope, Walk, early_return, first_statement, is_assertion_name};
use crate::{Condition, Tests};

pub(super) fn tests(path: &[u8], bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    let mut scope = Scope::default();
    if !is_collected(file_name(path)) {
        scope.conditions.insert(Condition::Never("its file is not collected"));
    }
    visit_block(&mut walk, root, &scope);
    walk.tests
}

fn is_collected(name: &[u8]) -> bool {
    name.starts_with(b"test") || name.ends_with(b"_test.py") || name.ends_with(b"tests.py")
}

fn visit_block(walk: &mut Walk<'_>, block: Node<'_>, scope: &Scope) {
    let mut scope = scope.clone();
    let statements = walk.source.live_children(block);
    for statement in &statements {
        scope.conditions.extend(block_condition(walk.source, *statement));
    }
    for statement in statements {
        visit_statement(walk, statement, &scope);
    }
}

fn visit_statement(walk: &mut Walk<'_>, statement: Node<'_>, scope: &Scope) {
    let source = walk.source;
    match statement.kind() {
        "decorated_definition" => {
            let decorators: Vec<Node<'_>> =
                children(statement).into_iter().filter(|it| it.kind() == "decorator").collect();
            if let Some(definition) = statement.child_by_field_name("definition") {
                visit_definition(walk, definition, &decorators, scope);
            }
        }
        "function_definition" | "class_definition" => visit_definition(walk, statement, &[], scope),
        "if_statement" => {
            let condition = source.field(statement, "condition");
            let mut inner = scope.clone();
            inner.conditions.insert(Condition::When(condition));
            for part in source.live_children(statement) {
                visit_part(walk, part, &inner);
            }
        }
        "try_statement" | "with_statement" | "for_statement" | "while_statement" => {
            source
                .live_children(statement)
                .into_iter()
                .for_each(|part| visit_part(walk, part, scope));
        }
        "expression_statement" => {
            let target = statement.named_child(0).filter(|it| it.kind() == "assignment");
            if let Some(target) = target.and_then(|it| it.child_by_field_name("left")) {
                walk.remove(scope, &source.text(target));
            }
        }
        "delete_statement" => {
            for name in words(&source.text(statement)) {
                walk.remove(scope, &name);
            }
        }
        _ => {}
    }
}

fn visit_part(walk: &mut Walk<'_>, part: Node<'_>, scope: &Scope) {
    match part.kind() {
        "block" => visit_block(walk, part, scope),
        kind if kind.ends_with("_clause") => {
            for inner in walk.source.live_children(part) {
                visit_part(walk, inner, scope);
            }
        }
        _ => {}
    }
}

fn visit_definition(
    walk: &mut Walk<'_>,
    definition: Node<'_>,
    decorators: &[Node<'_>],
    scope: &Scope,
) {
    let source = walk.source;
    let name = source.field(definition, "name");
    let conditions: BTreeSet<Condition> =
        decorators.iter().filter_map(|it| decorator_condition(source, *it)).collect();
    let mut scope = scope.inside(&name, conditions);
    let body = definition.child_by_field_name("body");
    if definition.kind() == "class_definition" {
        if let Some(body) = body {
            visit_block(walk, body, &scope);
        }
        return;
    }
    if !name.starts_with("test") {
        return;
    }
    scope.conditions.extend(body.and_then(|body| body_condition(source, body)));
    let nodes: Vec<Node<'_>> = decorators.iter().copied().chain([definition]).collect();
    walk.add(&scope, &nodes);
}

/// Condition that a statement of a module or class sets for all tests in it.
fn block_condition(source: Source<'_>, statement: Node<'_>) -> Option<Condition> {
    let text = source.tokens(statement).0;
    let names = words(&text);
    match names.first()?.as_str() {
        "pytestmark" if statement.kind() == "expression_statement" => mark_condition(&text),
        "__test__" if text.ends_with("False") => Some(Condition::Never("__test__ = False")),
        "pytest" if names.get(1).is_some_and(|name| name == "skip") => {
            Some(Condition::Never("its module is skipped"))
        }
        "raise" if text.contains("SkipTest") => Some(Condition::Never("its module is skipped")),
        _ => None,
    }
}

fn decorator_condition(source: Source<'_>, decorator: Node<'_>) -> Option<Condition> {
    mark_condition(&source.tokens(decorator).0)
}

/// Condition of a mark such as `pytest.mark.skipif(…)`, from its tokens.
fn mark_condition(text: &str) -> Option<Condition> {
    let all: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |name: &str| all.contains(&name);
    let follows = |name: &str, values: &[&str]| {
        let at = all.iter().position(|word| *word == name);
        let next = at.and_then(|at| all.get(at + 1));
        next.is_some_and(|next| values.contains(next))
    };
    let (yes, no) = (["True", "1", "condition"], ["False", "0", "None"]);
    let is_named = follows("condition", &yes[..2]) || !has("condition");
    let is_constant =
        ["skipif", "skipIf"].iter().any(|name| follows(name, &yes)) || follows("skipUnless", &no);
    if is_constant && is_named {
        Some(Condition::Never("skip"))
    } else if ["skipif", "skipIf", "skipUnless"].iter().any(|name| has(name)) {
        Some(Condition::When(text.to_owned()))
    } else if has("skip") {
        Some(Condition::Never("skip"))
    } else if has("xfail") || has("expectedFailure") {
        Some(Condition::MayFail)
    } else {
        None
    }
}

fn body_condition(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let first = first_statement(source, body)?;
    let text = source.tokens(first).0;
    let names = words(&text);
    let last = names.last().map(String::as_str);
    let is_call = first.kind() == "expression_statement" && text.ends_with(')');
    if is_call && matches!(last, Some("skip" | "skipTest" | "xfail")) {
        return Some(Condition::Never("skips itself"));
    }
    if first.kind() == "raise_statement" && text.contains("Skip") {
        return Some(Condition::Never("skips itself"));
    }
    early_return(source, body)
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    match node.kind() {
        "assert_statement" => true,
        "call" => node.child_by_field_name("function").is_some_and(|callee| {
            source.callee_words(callee).last().is_some_and(|name| is_assertion_name(name))
        }),
        _ => false,
    }
}
