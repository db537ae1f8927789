//! Feeds arbitrary files to the readers of tests in every language: whatever an agent commits, they must not panic, and a file
//! that is read twice has the same tests.

#![no_main]

use libfuzzer_sys::fuzz_target;
use test_parser::parse_tests;

const PATHS: [&[u8]; 9] = [
    b"a.rs",
    b"test_a.py",
    b"a.test.js",
    b"a.test.ts",
    b"a.test.tsx",
    b"a_test.go",
    b"A.java",
    b"a.c",
    b"a.cc",
];

fuzz_target!(|bytes: &[u8]| {
    for path in PATHS {
        assert_eq!(parse_tests(path, bytes), parse_tests(path, bytes));
    }
});
