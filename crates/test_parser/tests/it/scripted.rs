//! Python, JavaScript and TypeScript.

use crate::{check, check_absent, check_skipped};

#[test]
fn python_tests_have_their_classes_in_their_names() {
    let text = "
def test_one():
    '''Words.'''
    assert f() == 1, 'no'
    with pytest.raises(ValueError):
        g()

class TestA(unittest.TestCase):
    def setUp(self): pass
    @pytest.mark.parametrize('x', [1, 2])
    async def test_two(self, x):
        self.assertEqual(x, 2)

try:
    import x
except ImportError:
    pass
else:
    def test_three(): helper()

def helper():
    def test_inner(): pass
";
    let expected = ["TestA > test_two: active, 1", "test_one: active, 2", "test_three: active, 0"];
    check("tests/test_a.py", text, &expected);
}

#[test]
fn python_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "@unittest.skip('x')\ndef test_a(): f()",
        "@pytest.mark.skip\ndef test_a(): f()",
        "def test_a():\n    pytest.skip('x')\n    f()",
        "def test_a():\n    'words'\n    return\n    assert x",
        "def test_a():\n    raise unittest.SkipTest('x')",
        "pytestmark = pytest.mark.skip(reason='x')\ndef test_a(): f()",
        "pytest.skip('x', allow_module_level=True)\ndef test_a(): f()",
        "raise unittest.SkipTest('x')\ndef test_a(): f()",
    ];
    check_skipped("test_a.py", "test_a", &skipped);
    for may_fail in ["@pytest.mark.xfail(reason='x')", "@unittest.expectedFailure"] {
        let text = format!("{may_fail}\ndef test_a(): f()");
        check("test_a.py", &text, &["test_a: active, 0"]);
    }
    check_skipped("checks.py", "test_a", &["def test_a(): f()"]);
    let class = "@unittest.skip('x')\nclass A(TestCase):\n    def test_a(self): f()";
    let other = "class A:\n    __test__ = False\n    def test_a(self): f()";
    check_skipped("test_a.py", "A > test_a", &[class, other]);
    let absent = [
        "# def test_a(): pass",
        "'''\ndef test_a(): pass\n'''",
        "if False:\n    def test_a(): pass",
        "if 0:\n    def test_a(): pass",
        "def _test_a(): pass",
        "def test_a(): f()\ndel test_a",
        "def test_a(): f()\ntest_a = None",
    ];
    check_absent("test_a.py", &absent);
    let dead = "def test_a():\n    if False:\n        assert x\n    assert y";
    check("test_a.py", dead, &["test_a: active, 1"]);
}

#[test]
fn a_condition_is_remembered_with_its_words() {
    let text = "@pytest.mark.skipif(sys.platform == 'win32', reason='x')\ndef test_a(): assert x";
    check("test_a.py", text, &["test_a: active, 1"]);
    let found = crate::tests("test_a.py", text);
    let conditions: Vec<String> =
        found.values().flat_map(|test| &test.conditions).map(ToString::to_string).collect();
    assert!(conditions.len() == 1 && conditions[0].contains("win32"), "{conditions:?}");
}

const SPEC: &str = "
describe('math', () => {
    it('adds', () => { expect(1 + 1).toBe(2); expect(x).not.toThrow(); });
    describe(`deep`, function () { test.each([[1], [2]])('case %s', async n => { assert.equal(n, 1); }); });
    beforeEach(() => {});
});
test('bare', t => { t.is(1, 1); t.true(x); });
const found = /x/.test('text');";

#[test]
fn javascript_tests_have_their_suites_in_their_names() {
    let expected =
        ["bare: active, 2", "math > adds: active, 2", "math > deep > case %s: active, 1"];
    for path in ["a.test.js", "src/__tests__/a.jsx", "a.spec.mjs", "a.test.ts", "a.test.tsx"] {
        check(path, SPEC, &expected);
    }
}

#[test]
fn a_skipped_test_at_the_start_of_a_suite_skips_itself_alone() {
    let text = "describe('s', () => { it.skip('a', () => { f(); }); it('b', () => { f(); }); });";
    check("a.test.js", text, &["s > a: skipped, 0", "s > b: active, 0"]);
}

#[test]
fn a_test_that_skips_itself_is_skipped_and_its_condition_is_no_test() {
    let within =
        |skip: &str| format!("test('a', async () => {{ f(); {skip} expect(x).toBe(1); }});");
    for skip in ["test.skip();", "test.skip(true, 'flaky');", "test.fixme();", "it.skip(true);"] {
        check("a.spec.ts", &within(skip), &["a: skipped, 1"]);
    }
    let windows = within("test.skip(process.platform === 'win32', 'slow there');");
    check("a.spec.ts", &windows, &["a: active, 1"]);
    let found = crate::tests("a.spec.ts", &windows);
    let conditions: Vec<String> =
        found.values().flat_map(|test| &test.conditions).map(ToString::to_string).collect();
    assert_eq!(conditions, ["only under: process.platform === 'win32'"]);
    let file = "test.skip(true, 'later'); test('a', () => { expect(x).toBe(1); });";
    check("a.spec.ts", file, &["a: skipped, 1"]);
}

#[test]
fn a_call_that_is_tested_is_no_test() {
    let text =
        "it('a', () => { model.test(Event.start({ index: 0 }), () => { expect(x).toBe(1); }); });";
    check("a.test.ts", text, &["a: active, 1"]);
}

#[test]
fn typescript_is_read_with_its_types() {
    let text = "import { it } from 'vitest';\ntype A = { b?: string };\n
        it('typed', (): void => { const a: A = {} as A; expect<string | undefined>(a.b).toBe(undefined); });";
    check("a.test.ts", text, &["typed: active, 1"]);
}

#[test]
fn javascript_tests_that_do_not_run_are_skipped_or_absent() {
    let skipped = [
        "it.skip('a', () => { f(); });",
        "xit('a', () => { f(); });",
        "xtest('a', () => { f(); });",
        "test.todo('a');",
        "test('a', { skip: true }, () => { f(); });",
        "test('a', { skip: 'later' }, () => { f(); });",
        "it('a', function () { this.skip(); f(); });",
        "it('a', () => { return; });",
        "it('a', () => { f(); }); it.only('b', () => { f(); });",
        "Deno.test.ignore('a', () => { f(); });",
    ];
    for path in ["a.test.js", "a.test.ts"] {
        check_skipped(path, "a", &skipped);
    }
    check_skipped("lib/a.js", "a", &["it('a', () => { f(); });"]);
    let suites = [
        "describe.skip('s', () => { it('a', () => { f(); }); });",
        "xdescribe('s', () => { it('a', () => { f(); }); });",
    ];
    check_skipped("a.test.js", "s > a", &suites);
    let absent = [
        "// it('a', () => {});",
        "/* it('a', () => {}); */",
        "const text = `it('a', () => {})`;",
        "if (false) { it('a', () => {}); }",
    ];
    check_absent("a.test.js", &absent);
    check("a.test.js", "it('a', () => { if (false) { expect(1).toBe(2); } });", &["a: active, 0"]);
}
