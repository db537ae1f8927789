//! Tests by name, in each language: a union of both sides loses nothing, and whatever is taken away from it is named.

use std::collections::BTreeSet;

use merge::path::TreePath;
use merge::test_names::{TestsByPath, missing_tests};
use proptest::prelude::*;
use test_parser::{ParsedTests, parse_tests};

/// A language: the name of a file, what stands around its tests, and a test of this number.
struct Shape {
    path: &'static str,
    around: (&'static str, &'static str),
    test: fn(u8) -> String,
    skipped: fn(u8) -> String,
}

const SHAPES: [Shape; 9] = [
    Shape {
        path: "a.rs",
        around: ("mod tests {\n", "}\n"),
        test: |n| format!("#[test] fn a{n}() {{ assert!(x == {n}); }}\n"),
        skipped: |n| format!("#[test] #[ignore] fn a{n}() {{ assert!(x == {n}); }}\n"),
    },
    Shape {
        path: "test_a.py",
        around: ("class TestA:\n", "    pass\n"),
        test: |n| format!("    def test_a{n}(self):\n        assert x == {n}\n"),
        skipped: |n| format!("    @skip\n    def test_a{n}(self):\n        assert x == {n}\n"),
    },
    Shape {
        path: "a.test.js",
        around: ("describe('d', () => {\n", "});\n"),
        test: |n| format!("it('a{n}', () => {{ expect(x).toBe({n}); }});\n"),
        skipped: |n| format!("it.skip('a{n}', () => {{ expect(x).toBe({n}); }});\n"),
    },
    Shape {
        path: "a.test.ts",
        around: ("describe('d', (): void => {\n", "});\n"),
        test: |n| format!("it('a{n}', () => {{ expect(x as number).toBe({n}); }});\n"),
        skipped: |n| format!("xit('a{n}', () => {{ expect(x as number).toBe({n}); }});\n"),
    },
    Shape {
        path: "a.test.tsx",
        around: ("describe('d', () => {\n", "});\n"),
        test: |n| format!("test('a{n}', () => {{ expect(<A b={{{n}}} />).toBe({n}); }});\n"),
        skipped: |n| format!("test.todo('a{n}');\n"),
    },
    Shape {
        path: "a_test.go",
        around: ("package x\n", ""),
        test: |n| format!("func TestA{n}(t *testing.T) {{ assert.Equal(t, x, {n}) }}\n"),
        skipped: |n| {
            format!("func TestA{n}(t *testing.T) {{ t.Skip(); assert.Equal(t, x, {n}) }}\n")
        },
    },
    Shape {
        path: "A.java",
        around: ("class A {\n", "}\n"),
        test: |n| format!("@Test void a{n}() {{ assertEquals({n}, x); }}\n"),
        skipped: |n| format!("@Disabled @Test void a{n}() {{ assertEquals({n}, x); }}\n"),
    },
    Shape {
        path: "a.c",
        around: ("", ""),
        test: |n| format!("void test_a{n}(void) {{ assert(x == {n}); }}\n"),
        skipped: |n| format!("void test_a{n}(void) {{ return; assert(x == {n}); }}\n"),
    },
    Shape {
        path: "a.cc",
        around: ("namespace n {\n", "}\n"),
        test: |n| format!("TEST(S, A{n}) {{ EXPECT_EQ(x, {n}); }}\n"),
        skipped: |n| format!("TEST(S, DISABLED_A{n}) {{ EXPECT_EQ(x, {n}); }}\n"),
    },
];

impl Shape {
    /// A tree with these tests, of which some are skipped.
    fn tree(&self, tests: &BTreeSet<u8>, skipped: &[u8]) -> TestsByPath {
        let text = |n: &u8| if skipped.contains(n) { (self.skipped)(*n) } else { (self.test)(*n) };
        let inner: String = tests.iter().map(text).collect();
        let text = [self.around.0, &inner, self.around.1].concat();
        let ParsedTests::Tests(found) = parse_tests(self.path.as_bytes(), text.as_bytes()) else {
            panic!("{text}")
        };
        assert_eq!(found.len(), tests.len(), "{text}\n{found:?}");
        [(TreePath::new(self.path.as_bytes()), found)].into()
    }
}

fn numbers() -> impl Strategy<Value = BTreeSet<u8>> {
    prop::collection::btree_set(0_u8..12, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_union_loses_nothing_and_what_is_taken_away_is_named(
        base in numbers(), by_fork in numbers(), by_upstream in numbers(), pick in any::<prop::sample::Index>(),
    ) {
        let ours: BTreeSet<u8> = base.union(&by_fork).copied().collect();
        let theirs: BTreeSet<u8> = base.union(&by_upstream).copied().collect();
        let union: BTreeSet<u8> = ours.union(&theirs).copied().collect();
        for shape in &SHAPES {
            let [base, ours, theirs] = [&base, &ours, &theirs].map(|tests| shape.tree(tests, &[]));
            let account = |result: &TestsByPath| missing_tests(&base, &ours, &theirs, result);
            prop_assert_eq!(account(&shape.tree(&union, &[])), Default::default(), "{}", shape.path);
            if union.is_empty() {
                continue;
            }
            let gone = *pick.get(&union.iter().copied().collect::<Vec<_>>());
            let mut rest = union.clone();
            rest.remove(&gone);
            let without = account(&shape.tree(&rest, &[]));
            prop_assert_eq!(without.missing.len(), 1, "{}: {:?}", shape.path, without);
            let skipped = account(&shape.tree(&union, &[gone]));
            prop_assert_eq!(skipped.skipped.len(), 1, "{}: {:?}", shape.path, skipped);
            prop_assert!(skipped.missing.is_empty() && without.skipped.is_empty());
        }
    }

    #[test]
    fn what_a_side_removed_is_not_missed(base in numbers(), removed in numbers()) {
        let fewer: BTreeSet<u8> = base.difference(&removed).copied().collect();
        for shape in &SHAPES {
            let [all, some] = [&base, &fewer].map(|tests| shape.tree(tests, &[]));
            prop_assert_eq!(missing_tests(&all, &some, &all, &some), Default::default());
            prop_assert_eq!(missing_tests(&all, &all, &some, &some), Default::default());
        }
    }
}
