//! The walk over a file's tree that collects its tests.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use crate::source::Source;
use crate::{Condition, Test, TestName, Tests};

/// Enclosing modules, classes or suites, and what they say about the tests in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) names: Vec<String>,
    pub(crate) conditions: BTreeSet<Condition>,
}

impl Scope {
    pub(crate) fn inside(&self, name: &str, conditions: BTreeSet<Condition>) -> Self {
        let mut inner = self.clone();
        inner.names.push(name.to_owned());
        inner.conditions.extend(conditions);
        inner
    }
}

/// Returns whether a node is an assertion of its language.
pub(crate) type IsAssertion = fn(Source<'_>, Node<'_>) -> bool;

pub(crate) struct Walk<'a> {
    pub(crate) source: Source<'a>,
    is_assertion: IsAssertion,
    pub(crate) tests: Tests,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8], is_assertion: IsAssertion) -> Self {
        Self { source: Source { bytes }, is_assertion, tests: Tests::new() }
    }

    /// Adds a test whose text is made of these nodes: its attributes and its body. A name that is taken gets a number, so that
    /// one of two tests of the same name cannot disappear behind the other.
    pub(crate) fn add(&mut self, scope: &Scope, nodes: &[Node<'_>]) {
        let mut test = Test { conditions: scope.conditions.clone(), ..Test::default() };
        for node in nodes {
            let (text, count) = self.source.tokens(*node);
            test.body.push_str(&text);
            test.body.push('\n');
            test.tokens += count;
            self.add_assertions(*node, &mut test.assertions);
        }
        let mut name = TestName::new(&scope.names);
        let mut number = 1;
        while self.tests.contains_key(&name) {
            number += 1;
            name = TestName(format!("{} ({number})", TestName::new(&scope.names)));
        }
        self.tests.insert(name, test);
    }

    /// Removes a test that later code of the file takes away.
    pub(crate) fn remove(&mut self, scope: &Scope, name: &str) {
        self.tests.remove(&TestName::new(&scope.inside(name, BTreeSet::new()).names));
    }

    /// An assertion within another one belongs to it.
    fn add_assertions(&self, node: Node<'_>, found: &mut BTreeMap<String, usize>) {
        if (self.is_assertion)(self.source, node) {
            *found.entry(self.source.tokens(node).0).or_default() += 1;
            return;
        }
        for child in self.source.live_children(node) {
            self.add_assertions(child, found);
        }
    }
}

/// Returns whether a name is one that test libraries give to assertions.
pub(crate) fn is_assertion_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["assert", "expect", "verify", "should"].iter().any(|start| name.starts_with(start))
        || ["_assert", "assert_"].iter().any(|part| name.contains(part))
        || ["check", "fail", "raises", "warns"].contains(&name.as_str())
}

/// The first statement of a body that is not a text.
pub(crate) fn first_statement<'t>(source: Source<'_>, body: Node<'t>) -> Option<Node<'t>> {
    let statements = source.live_children(body).into_iter().filter(Node::is_named);
    let is_text = |node: &Node<'_>| {
        node.kind() == "expression_statement"
            && node.named_child(0).is_some_and(|inner| inner.kind().starts_with("string"))
    };
    statements.into_iter().find(|node| !is_text(node))
}

/// The condition of a test that ends before it does anything.
pub(crate) fn early_return(source: Source<'_>, body: Node<'_>) -> Option<Condition> {
    let first = first_statement(source, body)?;
    let inner = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
    let is_return = matches!(inner.kind(), "return_statement" | "return_expression");
    // A body that is one returned value does something.
    let is_bare = inner.named_child_count() == 0;
    (is_return && is_bare).then_some(Condition::Never("returns at once"))
}
