//! Tests that are found in source files, language by language.

mod compiled;
mod property;
mod scripted;

use test_parser::{ParsedTests, TestState, Tests, parse_tests};

fn tests(path: &str, text: &str) -> Tests {
    match parse_tests(path.as_bytes(), text.as_bytes()) {
        ParsedTests::Tests(tests) => tests,
        other => panic!("{path}: {other:?}"),
    }
}

/// Compares the tests of a file with lines such as `name: active, 2 assertions`.
#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let found = tests(path, text);
    let line = |(name, test): (&test_parser::TestName, &test_parser::Test)| {
        let state = match test.state() {
            TestState::Active => "active",
            TestState::Skipped => "skipped",
        };
        let assertions: usize = test.assertions.values().sum();
        format!("{name}: {state}, {assertions}")
    };
    let found: Vec<String> = found.iter().map(line).collect();
    assert_eq!(found, expected, "{text}");
}

/// Each change of an active test keeps its name and makes it skipped.
#[track_caller]
fn check_skipped(path: &str, name: &str, texts: &[&str]) {
    for text in texts {
        let found = tests(path, text);
        let test = found.iter().find(|(found, _)| found.as_str() == name);
        let state = test.map(|(_, test)| test.state());
        assert_eq!(state, Some(TestState::Skipped), "{text}\n{found:?}");
    }
}

#[track_caller]
fn check_absent(path: &str, texts: &[&str]) {
    for text in texts {
        let found = tests(path, text);
        assert!(found.is_empty(), "{text}\n{found:?}");
    }
}
