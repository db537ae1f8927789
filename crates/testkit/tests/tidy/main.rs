//! Rules of the house that a machine can hold: who may import whom, which modules are pure, how files begin, how long they
//! are, which names they define, and which public items are unused.

mod name;
mod size;
mod source;
mod unused;

use std::collections::BTreeMap;
use std::fs;

use source::{folders, name_of, root, sources};

/// Allowed dependencies. A crate that is not named here fails the test.
const MAP: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("guest", &[]),
    ("host", &["model"]),
    ("agent", &["model", "guest"]),
    ("sandbox", &["model", "host", "guest"]),
    ("egress", &["model", "host"]),
    ("forge", &["model", "host"]),
    ("test_parser", &[]),
    ("merge", &["model", "host", "test_parser"]),
    ("run_store", &["model", "host"]),
    ("attest", &["model", "host"]),
    ("orchestrator_db", &["model", "host"]),
    ("bottle_store", &["model", "host"]),
    ("sidecar", &["model", "host", "forge"]),
    ("web_base", &["model", "host"]),
    ("engine", &["model", "host", "guest", "agent", "sandbox", "egress", "run_store"]),
    ("shell", &["model", "host", "agent", "sandbox", "egress", "forge", "run_store", "engine"]),
    (
        "forklift",
        &[
            "model",
            "host",
            "agent",
            "sandbox",
            "egress",
            "forge",
            "merge",
            "run_store",
            "engine",
            "shell",
        ],
    ),
    (
        "wf",
        &[
            "model",
            "host",
            "agent",
            "sandbox",
            "egress",
            "forge",
            "merge",
            "run_store",
            "engine",
            "shell",
            "web_base",
        ],
    ),
    (
        "bottle",
        &[
            "model",
            "host",
            "guest",
            "agent",
            "sandbox",
            "egress",
            "forge",
            "merge",
            "run_store",
            "orchestrator_db",
            "bottle_store",
            "sidecar",
            "engine",
            "attest",
            "shell",
            "web_base",
        ],
    ),
    // One program that is all three.
    ("bottleworks", &["model", "host", "shell", "forklift", "wf", "bottle"]),
    ("testkit", &[]),
];

/// Names that a `rules/` module must not contain: the machine, time, and ways to reach them.
const IMPURE: &[&str] = &[
    "host::",
    "tokio",
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::thread",
    "SystemTime",
    "Instant",
    "async fn",
];

#[test]
fn every_crate_uses_only_those_below_it() {
    let map: BTreeMap<&str, &[&str]> = MAP.iter().copied().collect();
    for folder in folders(&root().join("crates")) {
        let name = name_of(&folder);
        let allowed = map.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not on the map"));
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for used in house_dependencies(&manifest) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn decisions_are_pure() {
    for file in sources() {
        if !file.components().any(|part| part.as_os_str() == "rules") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for word in IMPURE {
                assert!(
                    !line.contains(word),
                    "{}:{}: {word} in a rule",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn every_module_opens_with_its_purpose() {
    for file in sources() {
        let text = fs::read_to_string(&file).expect("a source file");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 12, "{} does not", file.display());
    }
}

#[test]
fn every_test_file_is_listed() {
    for folder in folders(&root().join("crates")) {
        let tests = folder.join("tests/it");
        let Ok(main) = fs::read_to_string(tests.join("main.rs")) else { continue };
        for entry in fs::read_dir(&tests).expect("a folder").flatten() {
            let stem = entry.path().file_stem().expect("a name").to_string_lossy().into_owned();
            let has_code = entry.path().extension().is_some_and(|kind| kind == "rs")
                || entry.path().join("mod.rs").exists();
            if has_code && stem != "main" {
                assert!(
                    main.contains(&format!("mod {stem};")),
                    "{} is not listed",
                    entry.path().display()
                );
            }
        }
    }
}

/// Git is started in one place, so that its safe flags stand in one place.
#[test]
fn git_is_started_by_the_host_crate_alone() {
    for file in sources() {
        let inside = |name: &str| file.starts_with(root().join("crates").join(name));
        if inside("host")
            || inside("testkit")
            || file
                .components()
                .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches")
        {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["Command::new(\"git", "CommandSpec::new(\"git"] {
            assert!(!production.contains(word), "{} starts git by itself", file.display());
        }
    }
}

/// The names under `[dependencies]` that are crates of the house; what tests use is another matter.
fn house_dependencies(manifest: &str) -> Vec<String> {
    let names: Vec<&str> = MAP.iter().map(|(name, _)| *name).collect();
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.extend(names.contains(&name).then(|| name.to_owned()));
        }
    }
    found
}
