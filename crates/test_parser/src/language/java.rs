//! Java: methods that JUnit and TestNG run.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::source::{Source, children, named_children, words};
use crate::walk::{Scope, Walk, early_return, first_statement, is_assertion_name};
use crate::{Condition, Tests};

const TEST_ANNOTATIONS: [&str; 8] = [
    "Test",
    "ParameterizedTest",
    "RepeatedTest",
    "TestFactory",
    "TestTemplate",
    "Property",
    "Theory",
    "CartesianTest",
];

pub(super) fn tests(bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    visit(&mut walk, root, &Scope::default(), Fixture::Annotated);
    walk.tests
}

/// Way in which a class marks its tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fixture {
    Annotated,
    /// A subclass of JUnit 3's `TestCase`: names that begin with `test` count too.
    Named,
}

fn visit(walk: &mut Walk<'_>, node: Node<'_>, scope: &Scope, fixture: Fixture) {
    let source = walk.source;
    match node.kind() {
        "class_declaration"
        | "record_declaration"
        | "enum_declaration"
        | "interface_declaration" => {
            let inner = scope.inside(&source.field(node, "name"), conditions(source, node));
            let parent = source.field(node, "superclass");
            let fixture = match parent.ends_with("TestCase") {
                true => Fixture::Named,
                false => Fixture::Annotated,
            };
            if let Some(body) = node.child_by_field_name("body") {
                for child in source.live_children(body) {
                    visit(walk, child, &inner, fixture);
                }
            }
        }
        "method_declaration" => visit_method(walk, node, scope, fixture),
        "program" => {
            for child in source.live_children(node) {
                visit(walk, child, scope, fixture);
            }
        }
        _ => {}
    }
}

fn visit_method(walk: &mut Walk<'_>, method: Node<'_>, scope: &Scope, fixture: Fixture) {
    let source = walk.source;
    let name = source.field(method, "name");
    let annotated = annotations(source, method)
        .iter()
        .any(|(annotation, _)| TEST_ANNOTATIONS.contains(&annotation.as_str()));
    let named = fixture == Fixture::Named && name.starts_with("test");
    if !annotated && !named {
        return;
    }
    let mut scope = scope.inside(&name, conditions(source, method));
    let body = method.child_by_field_name("body");
    scope.conditions.extend(body.and_then(|body| body_condition(source, body)));
    walk.add(&scope, &[method]);
}

/// The annotations of a declaration: the last part of each name, and its tokens.
fn annotations(source: Source<'_>, declaration: Node<'_>) -> Vec<(String, String)> {
    let modifiers = children(declaration).into_iter().find(|it| it.kind() == "modifiers");
    let list = modifiers.map(named_children).unwrap_or_default();
    let list = list.into_iter().filter(|it| it.kind().ends_with("annotation"));
    list.filter_map(|it| Some((words(&source.field(it, "name")).pop()?, source.tokens(it).0)))
        .collect()
}

fn conditions(source: Source<'_>, declaration: Node<'_>) -> BTreeSet<Condition> {
    let condition = |(name, text): (String, String)| match name.as_str() {
        "Disabled" | "Ignore" => Some(Condition::Never("@Disabled")),
        "Test" if text.contains("enabled = false") => Some(Condition::Never("enabled = false")),
        _ if name.starts_with("Disabled") || name.starts_with("Enabled") => {
            Some(Condition::When(text))
        }
        _ => None,
    };
    annotations(source, declaration).into_iter().filter_map(condition).collect()
}

fn body_condition(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let first = first_statement(source, body)?;
    let text = source.tokens(first).0;
    if first.kind() == "expression_statement" && text.contains("assume") {
        let never = ["assumeTrue ( false", "assumeFalse ( true"];
        return Some(match never.iter().any(|words| text.contains(words)) {
            true => Condition::Never("skips itself"),
            false => Condition::When(text),
        });
    }
    early_return(source, body)
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    if node.kind() != "method_invocation" {
        return false;
    }
    let object = source.field(node, "object");
    let names = words(&object).into_iter().chain([source.field(node, "name")]);
    names.into_iter().any(|name| is_assertion_name(&name))
}
