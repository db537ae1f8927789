//! Build systems, found by looking: which targets and commands a repository has for its tests.

use serde_json::Value;

/// Files of a repository's root that tell its build system; absent ones are `None` or `false`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RootFiles {
    pub(crate) makefile: Option<String>,
    pub(crate) justfile: Option<String>,
    pub(crate) package_json: Option<String>,
    pub(crate) pyproject: Option<String>,
    /// The names of all files in the root.
    pub(crate) names: Vec<String>,
}

/// Targets of a makefile or recipes of a justfile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildTargets {
    pub(crate) names: Vec<String>,
    /// False if it includes other files or has patterns, so that there may be more.
    pub(crate) is_complete: bool,
}

impl BuildTargets {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// The names that the suites have in most makefiles, the preferred one first.
pub(crate) fn usual_targets(suite: &str) -> &'static [&'static str] {
    match suite {
        "unit" => &["test-unit", "unit-test", "unit-tests", "test", "tests", "check"],
        "integration" => &["test-integration", "integration-test", "integration-tests"],
        "smoke" => &["test-smoke", "smoke-test", "smoke"],
        "e2e" => &["test-e2e", "e2e-test", "e2e"],
        _ => &[],
    }
}

/// Chooses the target of a suite: one that exists, the usual name where that cannot be known, or none.
pub(crate) fn choose_target(targets: Option<&BuildTargets>, suite: &str) -> String {
    let usual = usual_targets(suite);
    let first = usual.first().copied().unwrap_or_default();
    let Some(targets) = targets else { return first.to_owned() };
    match usual.iter().find(|name| targets.has(name)) {
        Some(found) => (*found).to_owned(),
        None if targets.is_complete => String::new(),
        None => first.to_owned(),
    }
}

/// Reads the targets of a makefile, without running anything in it.
pub(crate) fn parse_targets(text: &str) -> BuildTargets {
    let mut targets = BuildTargets { names: Vec::new(), is_complete: true };
    for line in text.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if ["include", "-include", "sinclude"].contains(&word) {
            targets.is_complete = false;
        }
        let Some(names) = target_names(line) else { continue };
        for name in names.split_whitespace() {
            if name.contains(['%', '$']) {
                targets.is_complete = false;
            } else if !name.starts_with('.') && !targets.has(name) {
                targets.names.push(name.to_owned());
            }
        }
    }
    targets
}

/// The part before the colon of a rule; none for recipes, comments and assignments.
fn target_names(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t', '#']) {
        return None;
    }
    let (names, rest) = line.split_once(':')?;
    let is_assignment = rest.starts_with('=') || rest.starts_with(":=") || names.contains('=');
    (!is_assignment && !names.trim().is_empty()).then_some(names)
}

/// Reads the recipes of a justfile.
pub(crate) fn parse_recipes(text: &str) -> BuildTargets {
    let mut targets = BuildTargets { names: Vec::new(), is_complete: true };
    for line in text.lines() {
        let Some(header) = target_names(line) else { continue };
        let name = header.split_whitespace().next().unwrap_or_default().trim_start_matches('@');
        targets.names.push(name.to_owned());
    }
    targets
}

/// The command that runs the tests of a repository without a makefile for them.
pub(crate) fn test_command(files: &RootFiles) -> Option<&'static str> {
    let has = |name: &str| files.names.iter().any(|known| known == name);
    let just = files.justfile.as_deref().map(parse_recipes).unwrap_or_default();
    if just.has("test") {
        return Some("just test");
    }
    if has("Cargo.toml") {
        return Some("cargo test");
    }
    if files.package_json.as_deref().is_some_and(has_test_script) {
        return Some(match () {
            () if has("pnpm-lock.yaml") => "pnpm test",
            () if has("yarn.lock") => "yarn test",
            () if has("bun.lock") || has("bun.lockb") => "bun run test",
            () => "npm test",
        });
    }
    let python = files.pyproject.as_deref();
    if has("pytest.ini") || has("tox.ini") || python.is_some_and(|text| text.contains("pytest")) {
        return Some(if has("uv.lock") { "uv run pytest" } else { "python3 -m pytest" });
    }
    let by_file = [
        ("go.mod", "go test ./..."),
        ("gradlew", "./gradlew test"),
        ("build.gradle", "gradle test"),
        ("build.gradle.kts", "gradle test"),
        ("mvnw", "./mvnw test"),
        ("pom.xml", "mvn test"),
    ];
    by_file.into_iter().find(|(name, _)| has(name)).map(|(_, command)| command)
}

/// The command that installs what a repository depends on, and the folders that it fills: in the workspace, or `~/name` in
/// the home of a box. None without a lock file, because then nothing tells when it has to run again.
pub(crate) fn setup_command(files: &RootFiles) -> Option<(&'static str, &'static str)> {
    let has = |name: &str| files.names.iter().any(|known| known == name);
    let modules = "node_modules";
    let by_file = [
        ("package-lock.json", ("npm ci", modules)),
        ("npm-shrinkwrap.json", ("npm ci", modules)),
        ("pnpm-lock.yaml", ("pnpm install --frozen-lockfile", modules)),
        (
            "yarn.lock",
            match has(".yarnrc.yml") {
                true => ("yarn install --immutable", modules),
                false => ("yarn install --frozen-lockfile", modules),
            },
        ),
        ("bun.lock", ("bun install --frozen-lockfile", modules)),
        ("bun.lockb", ("bun install --frozen-lockfile", modules)),
        ("uv.lock", ("uv sync", ".venv")),
        ("Cargo.lock", ("cargo fetch --locked", "~/.cargo")),
        ("go.sum", ("go mod download", "~/go")),
    ];
    by_file.into_iter().find(|(name, _)| has(name)).map(|(_, setup)| setup)
}

/// `npm init` writes a test script that only fails.
fn has_test_script(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let test = package["scripts"]["test"].as_str().unwrap_or_default();
    !test.is_empty() && !test.contains("no test specified")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> RootFiles {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        RootFiles { names, ..RootFiles::default() }
    }

    #[test]
    fn targets_are_read_without_assignments_recipes_and_special_ones() {
        let text = "X := a:b\nY = c: d\n.PHONY: test lint\nall: test\ntest lint: dep ; true\n\t@echo a: b\n# no: x\n";
        let targets = parse_targets(text);
        assert_eq!(targets.names, ["all", "test", "lint"]);
        assert!(targets.is_complete);
        assert!(!parse_targets("include x.mk\n").is_complete);
        assert!(!parse_targets("test-%:\n\tx\n").is_complete);
    }

    #[test]
    fn a_target_that_exists_is_chosen_and_none_that_does_not() {
        let only = |text: &str| Some(parse_targets(text));
        let choose = |text: &str, suite| choose_target(only(text).as_ref(), suite);
        assert_eq!(choose("test:\n\tx\n", "unit"), "test");
        assert_eq!(choose("check:\n\tx\ntest-unit:\n\tx\n", "unit"), "test-unit");
        assert_eq!(choose("test:\n\tx\n", "e2e"), "");
        assert_eq!(choose("include x.mk\n", "e2e"), "test-e2e");
        assert_eq!(choose_target(None, "smoke"), "test-smoke");
    }

    #[test]
    fn the_command_of_each_build_system_is_known() {
        for (names, command) in [
            (&["Cargo.toml"][..], "cargo test"),
            (&["go.mod"], "go test ./..."),
            (&["gradlew", "build.gradle"], "./gradlew test"),
            (&["build.gradle.kts"], "gradle test"),
            (&["pom.xml"], "mvn test"),
            (&["mvnw", "pom.xml"], "./mvnw test"),
            (&["pytest.ini"], "python3 -m pytest"),
            (&["pytest.ini", "uv.lock"], "uv run pytest"),
        ] {
            assert_eq!(test_command(&files(names)), Some(command), "{names:?}");
        }
        assert_eq!(test_command(&files(&["README.md"])), None);
        let just = RootFiles {
            justfile: Some("set x := 'y'\ntest *args: build\n  x\n".to_owned()),
            ..files(&["Cargo.toml"])
        };
        assert_eq!(test_command(&just), Some("just test"));
    }

    #[test]
    fn what_a_lock_file_names_is_installed() {
        for (names, setup) in [
            (&["package.json"][..], None),
            (&["package-lock.json"], Some(("npm ci", "node_modules"))),
            (&["pnpm-lock.yaml"], Some(("pnpm install --frozen-lockfile", "node_modules"))),
            (&["yarn.lock"], Some(("yarn install --frozen-lockfile", "node_modules"))),
            (&["yarn.lock", ".yarnrc.yml"], Some(("yarn install --immutable", "node_modules"))),
            (&["bun.lock"], Some(("bun install --frozen-lockfile", "node_modules"))),
            (&["uv.lock"], Some(("uv sync", ".venv"))),
            (&["Cargo.toml"], None),
            (&["Cargo.toml", "Cargo.lock"], Some(("cargo fetch --locked", "~/.cargo"))),
            (&["go.mod", "go.sum"], Some(("go mod download", "~/go"))),
            (&["pom.xml"], None),
        ] {
            assert_eq!(setup_command(&files(names)), setup, "{names:?}");
        }
    }

    #[test]
    fn a_package_is_tested_by_its_own_manager_if_it_has_tests() {
        let package = |script: &str, lock: &str| RootFiles {
            package_json: Some(format!("{{\"scripts\": {{\"test\": \"{script}\"}}}}")),
            ..files(&[lock])
        };
        for (lock, command) in [
            ("package-lock.json", "npm test"),
            ("pnpm-lock.yaml", "pnpm test"),
            ("yarn.lock", "yarn test"),
            ("bun.lock", "bun run test"),
        ] {
            assert_eq!(test_command(&package("jest", lock)), Some(command));
        }
        assert_eq!(test_command(&package("echo no test specified && exit 1", "x")), None);
    }
}
