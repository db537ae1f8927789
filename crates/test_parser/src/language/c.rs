//! C and C++: GoogleTest, Catch2, doctest, Boost.Test, CppUTest, Criterion, Check, and functions named `test_…`.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::source::{Source, named_children, words};
use crate::walk::{Scope, Walk, early_return, first_statement, is_assertion_name};
use crate::{Condition, Tests};

pub(super) fn tests(bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    visit(&mut walk, root, &Scope::default());
    walk.tests
}

fn visit(walk: &mut Walk<'_>, node: Node<'_>, scope: &Scope) {
    let source = walk.source;
    let mut scope = scope.clone();
    scope.conditions.extend(preprocessor_condition(source, node));
    let children = source.live_children(node);
    let mut heads: Option<Head<'_>> = None;
    for child in children {
        let head = heads.take();
        match child.kind() {
            "function_definition" => match function_head(source, child) {
                Some(head) => add(walk, &head, child.child_by_field_name("body"), &scope),
                None => visit(walk, child, &scope),
            },
            // The grammars read a macro with a text for its name as a call, and the body as a block that follows.
            "expression_statement" => {
                let call = child.named_child(0).filter(|it| it.kind() == "call_expression");
                heads = call.and_then(|call| call_head(source, call));
            }
            "compound_statement" if head.is_some() => {
                if let Some(head) = head {
                    add(walk, &head, Some(child), &scope);
                }
            }
            _ => visit(walk, child, &scope),
        }
    }
}

/// Text in front of a test's body.
struct Head<'t> {
    node: Node<'t>,
    names: Vec<String>,
    conditions: BTreeSet<Condition>,
}

fn add(walk: &mut Walk<'_>, head: &Head<'_>, body: Option<Node<'_>>, scope: &Scope) {
    let mut scope = scope.clone();
    scope.names.extend(head.names.iter().cloned());
    scope.conditions.extend(head.conditions.iter().cloned());
    scope.conditions.extend(body.and_then(|body| body_condition(walk.source, body)));
    let nodes: Vec<Node<'_>> = match body {
        Some(body) if body.start_byte() >= head.node.end_byte() => vec![head.node, body],
        _ => vec![head.node],
    };
    walk.add(&scope, &nodes);
    if let Some(body) = body {
        visit(walk, body, &scope);
    }
}

fn function_head<'t>(source: Source<'_>, definition: Node<'t>) -> Option<Head<'t>> {
    let declarator = definition.child_by_field_name("declarator")?;
    if declarator.kind() == "parenthesized_declarator" {
        let macro_name = source.field(definition, "type");
        let arguments = vec![source.text(declarator).trim_matches(['(', ')']).to_owned()];
        return is_test_macro(&macro_name).then(|| head(definition, &macro_name, &arguments));
    }
    let function = Some(declarator).filter(|it| it.kind() == "function_declarator")?;
    let name = source.field(function, "declarator");
    if is_test_macro(&name) {
        let parameters = named_children(function.child_by_field_name("parameters")?);
        let arguments: Vec<String> = parameters.iter().map(|it| source.text(*it)).collect();
        return Some(head(definition, &name, &arguments));
    }
    let last = words(&name).pop().unwrap_or_default();
    let is_test = last.starts_with("test_") || last.ends_with("_test");
    is_test.then(|| Head { node: definition, names: vec![last], conditions: BTreeSet::new() })
}

fn call_head<'t>(source: Source<'_>, call: Node<'t>) -> Option<Head<'t>> {
    let name = source.field(call, "function");
    let arguments = named_children(call.child_by_field_name("arguments")?);
    let arguments: Vec<String> = arguments.iter().map(|it| source.text(*it)).collect();
    is_test_macro(&name).then(|| head(call, &name, &arguments))
}

fn is_test_macro(name: &str) -> bool {
    let sections = ["SECTION", "SUBCASE", "SCENARIO", "GIVEN", "WHEN", "THEN", "Test"];
    let others = ["TEST_GROUP", "TEST_SETUP", "TEST_TEAR_DOWN", "TEST_SUITE"];
    let is_upper = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    sections.contains(&name)
        || (is_upper
            && name.contains("TEST")
            && !others.contains(&name)
            && !name.contains("ASSERT"))
}

/// A text names the test by itself, and what follows are tags; names are suite and test. `DISABLED_` is no part of a name:
/// it is what has become of the test.
fn head<'t>(node: Node<'t>, macro_name: &str, arguments: &[String]) -> Head<'t> {
    let mut conditions = BTreeSet::new();
    let is_text = arguments.first().is_some_and(|it| it.starts_with('"'));
    let count = if is_text { 1 } else { arguments.len() };
    let mut names = Vec::new();
    for argument in arguments.iter().take(count) {
        let name = argument.trim_matches('"');
        if name.starts_with("DISABLED_") {
            conditions.insert(Condition::Never("DISABLED_"));
        }
        names.push(name.strip_prefix("DISABLED_").unwrap_or(name).to_owned());
    }
    let tags = arguments.iter().skip(count).any(|it| it.contains("[.") || it.contains("[!hide]"));
    let decorated = arguments.iter().any(|it| it.contains("doctest::skip"));
    if tags || decorated || macro_name.starts_with("IGNORE_") {
        conditions.insert(Condition::Never("skip"));
    }
    Head { node, names, conditions }
}

/// Header guards count like any condition: they are the same on both sides.
fn preprocessor_condition(source: Source<'_>, node: Node<'_>) -> Option<Condition> {
    let field = match node.kind() {
        "preproc_if" | "preproc_elif" => "condition",
        "preproc_ifdef" => "name",
        _ => return None,
    };
    let text = source.field(node, field);
    (text.trim() != "0" && text.trim() != "1")
        .then(|| Condition::When(format!("#if {}", text.trim())))
}

fn body_condition(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let first = first_statement(source, body)?;
    let name = words(&source.text(first)).into_iter().next().unwrap_or_default();
    if ["GTEST_SKIP", "SKIP", "TEST_IGNORE", "TEST_IGNORE_MESSAGE", "skip"].contains(&name.as_str())
    {
        return Some(Condition::Never("skips itself"));
    }
    early_return(source, body)
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    let callee = (node.kind() == "call_expression").then(|| node.child_by_field_name("function"));
    let Some(callee) = callee.flatten() else { return false };
    source.callee_words(callee).last().is_some_and(|name| {
        let starts = ["CHECK", "REQUIRE", "BOOST_CHECK", "BOOST_REQUIRE", "BOOST_TEST", "EXPECT_"];
        is_assertion_name(name)
            || name.to_ascii_lowercase().contains("assert")
            || starts.iter().any(|start| name.starts_with(start))
    })
}
