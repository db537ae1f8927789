//! Rust: functions with a test attribute, in modules and in macros such as `proptest!`.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::source::{Source, children, words};
use crate::walk::{Scope, Walk, early_return, is_assertion_name};
use crate::{Condition, Tests};

pub(super) fn tests(bytes: &[u8], root: Node<'_>) -> Tests {
    let mut walk = Walk::new(bytes, is_assertion);
    visit_items(&mut walk, root, &Scope::default());
    walk.tests
}

/// Attribute with its text between the brackets.
struct Attribute<'t> {
    node: Node<'t>,
    text: String,
}

fn visit_items(walk: &mut Walk<'_>, block: Node<'_>, scope: &Scope) {
    let mut scope = scope.clone();
    let mut attributes: Vec<Attribute<'_>> = Vec::new();
    for child in walk.source.live_children(block) {
        match child.kind() {
            "inner_attribute_item" => {
                scope.conditions.extend(condition(&bracketed(&walk.source.text(child))));
                continue;
            }
            "attribute_item" => {
                let text = bracketed(&walk.source.text(child));
                attributes.push(Attribute { node: child, text });
                continue;
            }
            "mod_item" => {
                if let Some(body) = child.child_by_field_name("body") {
                    let name = walk.source.field(child, "name");
                    visit_items(walk, body, &scope.inside(&name, conditions(&attributes)));
                }
            }
            "function_item" => visit_function(walk, child, &attributes, &scope),
            "macro_invocation" => visit_macro(walk, child, &attributes, &scope),
            "expression_statement" => {
                if let Some(inner) =
                    child.named_child(0).filter(|it| it.kind() == "macro_invocation")
                {
                    visit_macro(walk, inner, &attributes, &scope);
                }
            }
            _ => {}
        }
        attributes.clear();
    }
}

fn visit_function(
    walk: &mut Walk<'_>,
    function: Node<'_>,
    attributes: &[Attribute<'_>],
    scope: &Scope,
) {
    if !attributes.iter().any(is_test) {
        return;
    }
    let mut scope = scope.inside(&walk.source.field(function, "name"), conditions(attributes));
    let body = function.child_by_field_name("body");
    scope.conditions.extend(body.and_then(|body| early_return(walk.source, body)));
    let nodes: Vec<Node<'_>> =
        attributes.iter().map(|attribute| attribute.node).chain([function]).collect();
    walk.add(&scope, &nodes);
}

fn visit_macro(walk: &mut Walk<'_>, call: Node<'_>, attributes: &[Attribute<'_>], scope: &Scope) {
    let mut scope = scope.clone();
    scope.conditions.extend(conditions(attributes));
    for tree in children(call).into_iter().filter(|child| child.kind() == "token_tree") {
        visit_tokens(walk, tree, &scope);
    }
}

/// Finds functions among the bare tokens of a macro: attributes, `fn`, a name, and braces.
fn visit_tokens(walk: &mut Walk<'_>, tree: Node<'_>, scope: &Scope) {
    let mut attributes: Vec<Attribute<'_>> = Vec::new();
    let mut name: Option<String> = None;
    let mut before = "";
    for token in children(tree) {
        let text = walk.source.text(token);
        match token.kind() {
            "token_tree" if before == "#" && text.starts_with('[') => {
                attributes.push(Attribute { node: token, text: bracketed(&text) });
            }
            "token_tree" if text.starts_with('{') => {
                match name.take() {
                    Some(name) if attributes.iter().any(is_test) => {
                        let scope = scope.inside(&name, conditions(&attributes));
                        let nodes: Vec<Node<'_>> =
                            attributes.iter().map(|it| it.node).chain([token]).collect();
                        walk.add(&scope, &nodes);
                    }
                    Some(_) => {}
                    None => {
                        let mut inner = scope.clone();
                        inner.conditions.extend(conditions(&attributes));
                        visit_tokens(walk, token, &inner);
                    }
                }
                attributes.clear();
            }
            "identifier" if before == "fn" => name = Some(text),
            ";" => {
                attributes.clear();
                name = None;
            }
            _ => {}
        }
        before = token.kind();
    }
}

/// The text between the outermost square brackets.
fn bracketed(text: &str) -> String {
    let inner = text.split_once('[').map_or(text, |(_, rest)| rest);
    inner.rsplit_once(']').map_or(inner, |(before, _)| before).trim().to_owned()
}

fn is_test(attribute: &Attribute<'_>) -> bool {
    let path = attribute.text.split(['(', '=', '{']).next().unwrap_or_default();
    words(path).last().is_some_and(|name| {
        name.ends_with("_test")
            || ["test", "rstest", "test_case", "quickcheck", "proptest", "bench"]
                .contains(&name.as_str())
    })
}

fn conditions(attributes: &[Attribute<'_>]) -> BTreeSet<Condition> {
    attributes.iter().filter_map(|attribute| condition(&attribute.text)).collect()
}

fn condition(attribute: &str) -> Option<Condition> {
    let text: String = attribute.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = words(text.split(['(', '=']).next().unwrap_or_default()).pop()?;
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match name.as_str() {
        "ignore" => Some(Condition::Never("#[ignore]")),
        "cfg" if bare == "cfg(test)" => None,
        "cfg"
            if ["cfg(any())", "cfg(FALSE)", "cfg(false)", "cfg(not(all()))", "cfg(not(test))"]
                .contains(&bare.as_str()) =>
        {
            Some(Condition::Never("#[cfg] that never holds"))
        }
        "cfg" => Some(Condition::When(text)),
        "cfg_attr" if bare.contains("ignore") => Some(Condition::When(text)),
        _ => None,
    }
}

fn is_assertion(source: Source<'_>, node: Node<'_>) -> bool {
    let asserts = |name: &String| is_assertion_name(name) || name == "panic";
    match node.kind() {
        "macro_invocation" => node
            .child_by_field_name("macro")
            .is_some_and(|callee| source.callee_words(callee).last().is_some_and(asserts)),
        "call_expression" => node
            .child_by_field_name("function")
            .is_some_and(|callee| source.callee_words(callee).last().is_some_and(asserts)),
        // Arguments of an assertion among the bare tokens of a macro.
        "token_tree" => {
            let before = node.prev_sibling().filter(|it| it.kind() == "!");
            let name = before.and_then(|mark| mark.prev_sibling());
            name.is_some_and(|name| asserts(&source.text(name)))
        }
        _ => false,
    }
}
