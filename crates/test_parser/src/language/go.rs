//! Go: functions and suite methods that `go test` runs, their subtests, and Ginkgo's specs.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::file_name;
use crate::source::{Source, children, is_comment, named_children};
use crate::walk::{Scope, Walk, early_return, first_statement, is_assertion_name};
use crate::{Condition, Tests};

pub(super) fn tests(path: &[u8], bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    let mut scope = Scope::default();
    if !file_name(path).ends_with(b"_test.go") || file_name(path).starts_with(b"_") {
        scope.conditions.insert(Condition::Never("its file is not collected"));
    }
    scope.conditions.extend(build_constraints(walk.source, root));
    for item in walk.source.live_children(root) {
        match item.kind() {
            "function_declaration" => visit_function(&mut walk, item, &scope, None),
            "method_declaration" => {
                let receiver = walk.source.field(item, "receiver");
                let receiver = crate::source::words(receiver.trim_matches(['(', ')'])).pop();
                visit_function(&mut walk, item, &scope, receiver.as_deref());
            }
            _ => visit_calls(&mut walk, item, &scope),
        }
    }
    walk.tests
}

/// The lines before the package clause that keep a file out of a build.
fn build_constraints(source: Source<'_>, root: Node<'_>) -> BTreeSet<Condition> {
    let comments = children(root).into_iter().take_while(|it| is_comment(*it));
    let lines = comments.map(|comment| source.text(comment));
    let constraints =
        lines.filter(|line| line.starts_with("//go:build") || line.starts_with("// +build"));
    let condition = |line: String| match line.split_whitespace().last() {
        Some("ignore" | "never") => Condition::Never("its file is never built"),
        _ => Condition::When(line.trim().to_owned()),
    };
    constraints.map(condition).collect()
}

fn visit_function(walk: &mut Walk<'_>, function: Node<'_>, scope: &Scope, receiver: Option<&str>) {
    let name = walk.source.field(function, "name");
    if !is_test_name(&name) {
        return;
    }
    let outer = match receiver {
        Some(receiver) => scope.inside(receiver, BTreeSet::new()),
        None => scope.clone(),
    };
    let body = function.child_by_field_name("body");
    let own = body.and_then(|body| body_condition(walk.source, body)).into_iter().collect();
    let scope = outer.inside(&name, own);
    walk.add(&scope, &[function]);
    if let Some(body) = body {
        visit_calls(walk, body, &scope);
    }
}

fn is_test_name(name: &str) -> bool {
    let rest = ["Test", "Benchmark", "Fuzz", "Example"].iter().find_map(|it| name.strip_prefix(it));
    name != "TestMain" && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_lowercase()))
}

/// Subtests and specs: calls with a name and a function.
fn visit_calls(walk: &mut Walk<'_>, node: Node<'_>, scope: &Scope) {
    if node.kind() == "call_expression"
        && let Some((spec, title, body)) = named_call(walk.source, node)
    {
        let mut conditions: BTreeSet<Condition> = spec.condition.into_iter().collect();
        conditions.extend(body.and_then(|body| body_condition(walk.source, body)));
        let scope = scope.inside(&title, conditions);
        if spec.is_test {
            walk.add(&scope, &[node]);
        }
        if let Some(body) = body {
            visit_calls(walk, body, &scope);
        }
        return;
    }
    for child in walk.source.live_children(node) {
        visit_calls(walk, child, scope);
    }
}

struct Spec {
    is_test: bool,
    condition: Option<Condition>,
}

/// A call that defines a test or a group of tests, with its title and the body of its function.
fn named_call<'t>(source: Source<'_>, call: Node<'t>) -> Option<(Spec, String, Option<Node<'t>>)> {
    let callee = source.callee_words(call.child_by_field_name("function")?).pop()?;
    let (kind, pending) = match callee.strip_prefix(['P', 'X']) {
        Some(kind) if is_spec(kind) => (kind, true),
        _ => (callee.strip_prefix('F').filter(|kind| is_spec(kind)).unwrap_or(&callee), false),
    };
    if kind != "Run" && !is_spec(kind) {
        return None;
    }
    let arguments = named_children(call.child_by_field_name("arguments")?);
    let title = arguments.first().filter(|it| it.kind().ends_with("string_literal"))?;
    let function = arguments.iter().rfind(|it| it.kind() == "func_literal");
    if function.is_none() && kind != "Entry" {
        return None;
    }
    let spec = Spec {
        is_test: ["Run", "It", "Specify", "Entry"].contains(&kind),
        condition: pending.then_some(Condition::Never("pending")),
    };
    let title = source.text(*title).trim_matches(['"', '`']).to_owned();
    Some((spec, title, function.and_then(|it| it.child_by_field_name("body"))))
}

fn is_spec(name: &str) -> bool {
    ["Describe", "Context", "When", "DescribeTable", "It", "Specify", "Entry"].contains(&name)
}

fn body_condition(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let list = named_children(body).into_iter().find(|it| it.kind() == "statement_list")?;
    let first = first_statement(source, list)?;
    let call = first.named_child(0).filter(|it| it.kind() == "call_expression");
    let callee = call.and_then(|call| call.child_by_field_name("function"));
    let name = callee.and_then(|callee| source.callee_words(callee).pop());
    if name.is_some_and(|name| ["Skip", "Skipf", "SkipNow"].contains(&name.as_str())) {
        return Some(Condition::Never("skips itself"));
    }
    early_return(source, list)
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    let callee = (node.kind() == "call_expression").then(|| node.child_by_field_name("function"));
    let Some(callee) = callee.flatten() else { return false };
    let names = source.callee_words(callee);
    let fails = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];
    names.first().is_some_and(|name| ["assert", "require", "is", "qt"].contains(&name.as_str()))
        || names.last().is_some_and(|name| fails.contains(&name.as_str()) && names.len() > 1)
        || names.iter().any(|name| is_assertion_name(name))
}
