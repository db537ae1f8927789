//! Any bytes are read without harm, and a found test stays found when code is put around it.

use proptest::prelude::*;
use test_parser::{ParsedTests, is_source, parse_tests};

const FILES: [(&str, &str); 9] = [
    ("a.rs", "#[test] fn a() { assert!(x); }\n"),
    ("test_a.py", "def test_a():\n    assert x\n"),
    ("a.test.js", "it('a', () => { expect(x).toBe(1); });\n"),
    ("a.test.ts", "it('a', () => { expect(x).toBe(1); });\n"),
    ("a.test.tsx", "it('a', () => { expect(x).toBe(1); });\n"),
    ("a_test.go", "package x\nfunc TestA(t *testing.T) { t.Fatal() }\n"),
    ("A.java", "class A { @Test void a() { assertTrue(x); } }\n"),
    ("a.c", "void test_a(void) { assert(x); }\n"),
    ("a.cc", "TEST(S, N) { EXPECT_TRUE(x); }\n"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for (path, _) in FILES {
            parse_tests(path.as_bytes(), &bytes);
        }
    }

    #[test]
    fn a_file_cut_or_mixed_up_is_read_without_harm(from in 0..60_usize, to in 0..60_usize, other in 0..9_usize) {
        for (path, text) in FILES {
            let cut = text.get(from.min(to)..from.max(to)).unwrap_or(text);
            let mixed = format!("{}{cut}{}{}", &text[..text.len() / 2], FILES[other].1, &text[text.len() / 2..]);
            parse_tests(path.as_bytes(), cut.as_bytes());
            parse_tests(path.as_bytes(), mixed.as_bytes());
        }
    }

    #[test]
    fn comments_around_a_test_change_nothing(words in "[a-z (){}'\"]{0,30}") {
        for (path, text) in FILES {
            let mark = if path.ends_with(".py") { "#" } else { "//" };
            let comment = format!("{mark} {words}\n");
            let around = format!("{comment}{text}{comment}");
            prop_assert_eq!(
                parse_tests(path.as_bytes(), around.as_bytes()),
                parse_tests(path.as_bytes(), text.as_bytes())
            );
        }
    }
}

#[test]
fn every_language_finds_its_test() {
    for (path, text) in FILES {
        let ParsedTests::Tests(tests) = parse_tests(path.as_bytes(), text.as_bytes()) else {
            panic!("{path}")
        };
        let assertions: usize = tests.values().flat_map(|test| test.assertions.values()).sum();
        assert_eq!((tests.len(), assertions), (1, 1), "{path}: {tests:?}");
    }
}

#[test]
fn what_is_too_large_or_too_deep_is_said_and_not_guessed() {
    let large = vec![b' '; (1 << 20) + 1];
    assert_eq!(parse_tests(b"a.rs", &large), ParsedTests::Unreadable);
    let deep = format!("void test_a(void) {}{}", "{".repeat(2000), "}".repeat(2000));
    assert_eq!(parse_tests(b"a.c", deep.as_bytes()), ParsedTests::Unreadable);
    assert_eq!(parse_tests(b"README.md", b"# it('a')"), ParsedTests::NotSource);
    assert!(is_source(b"x/a.rs") && !is_source(b"x/rs") && !is_source(b"\xff.rs"));
}
