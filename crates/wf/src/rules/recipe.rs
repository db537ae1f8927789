//! Test recipes that a change weakens: commands that a makefile, a justfile or a package.json ran for its tests and no
//! longer runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Reports whether a file says how tests are run.
pub(crate) fn has_recipes(path: &str, makefile: Option<&str>) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    Some(path) == makefile
        || ["makefile", "gnumakefile", "justfile", ".justfile", "package.json"]
            .contains(&name.as_str())
        || name.ends_with(".mk")
}

/// Lists what the tests of a file no longer do, a sentence each. `suites` are the targets of the profile.
pub(crate) fn find_weakened_recipes(
    path: &str,
    before: &str,
    after: &str,
    suites: &[&str],
) -> Vec<String> {
    let (before, after) = match path.ends_with(".json") {
        true => (parse_scripts(before), parse_scripts(after)),
        false => (parse_rules(before), parse_rules(after)),
    };
    let is_tested = |name: &str| {
        suites.contains(&name) || ["test", "check", "spec"].iter().any(|word| name.contains(word))
    };
    let mut found = Vec::new();
    for (name, commands) in before.iter().filter(|(name, _)| is_tested(name)) {
        let Some(now) = after.get(name) else {
            found.push(format!("{path}: {name} was removed"));
            continue;
        };
        let lost: Vec<&str> =
            commands.iter().filter(|command| !now.contains(command)).map(String::as_str).collect();
        if !lost.is_empty() {
            found.push(format!("{path}: {name} no longer has: {}", lost.join("; ")));
        }
    }
    found
}

type Recipes = BTreeMap<String, Vec<String>>;

/// Reads the rules of a makefile or a justfile: the prerequisites and commands of each target.
fn parse_rules(text: &str) -> Recipes {
    let mut recipes = Recipes::new();
    let mut current: Vec<String> = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        if line.starts_with(['\t', ' ']) {
            add(&mut recipes, &current, line);
        } else if let Some((names, rest)) = parse_header(line) {
            current = names;
            for name in &current {
                recipes.entry(name.clone()).or_default();
            }
            let (needs, command) = rest.split_once(';').unwrap_or((rest, ""));
            for need in needs.split_whitespace() {
                add(&mut recipes, &current, need);
            }
            add(&mut recipes, &current, command);
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            current.clear();
        }
    }
    recipes
}

fn parse_header(line: &str) -> Option<(Vec<String>, &str)> {
    let (names, rest) = line.split_once(':')?;
    let is_rule = !line.starts_with('#') && !names.contains('=') && !rest.starts_with('=');
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    let is_special = names.first().is_none_or(|name| name.starts_with('.'));
    (is_rule && !is_special).then_some((names, rest.trim_start_matches(':')))
}

/// Adds a command. That it is not printed does not matter; that its failure is ignored does.
fn add(recipes: &mut Recipes, names: &[String], command: &str) {
    let command = command.trim().trim_start_matches('@').trim();
    if command.is_empty() || command.starts_with('#') {
        return;
    }
    for name in names {
        recipes.entry(name.clone()).or_default().push(command.to_owned());
    }
}

fn parse_scripts(text: &str) -> Recipes {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let empty = Map::new();
    let scripts = package["scripts"].as_object().unwrap_or(&empty);
    let script = |(name, command): (&String, &Value)| {
        (name.clone(), vec![command.as_str().unwrap_or_default().to_owned()])
    };
    scripts.iter().map(script).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(before: &str, after: &str) -> Vec<String> {
        find_weakened_recipes("Makefile", before, after, &["gate"])
    }

    #[test]
    fn a_recipe_that_does_nothing_any_more_is_named() {
        let before = "test-unit:\n\ttest ! -e broken\n\techo tested\n";
        let after = "test-unit:\n\ttrue\n\techo tested\n";
        assert_eq!(find(before, after), ["Makefile: test-unit no longer has: test ! -e broken"]);
        assert_eq!(find("test: a b\n", "test: a\n"), ["Makefile: test no longer has: b"]);
        assert_eq!(find("gate: ; cargo test\n", "gate: ; true\n").len(), 1);
        assert_eq!(find("test:\n\tx\n", "test:\n\t-x\n").len(), 1);
        assert_eq!(find("test:\n\tx\n", "all:\n\tx\n"), ["Makefile: test was removed"]);
    }

    #[test]
    fn more_tests_other_targets_and_printing_are_not() {
        assert!(find("test:\n\tx\n", "test: y\n\t@x\n\tz\n").is_empty());
        assert!(find("build:\n\tx\n", "build:\n\ty\n").is_empty());
        assert!(find("test:\n\tx \\\n\t  y\n", "# why\ntest:\n\tx \\\n\t  y\n").is_empty());
    }

    #[test]
    fn scripts_of_a_package_count() {
        let package =
            |test: &str| format!("{{\"scripts\": {{\"test\": \"{test}\", \"x\": \"y\"}}}}");
        let found = find_weakened_recipes("package.json", &package("jest"), &package("true"), &[]);
        assert_eq!(found, ["package.json: test no longer has: jest"]);
        assert!(has_recipes("web/package.json", None) && has_recipes("mk/t.mk", None));
        assert!(has_recipes("build/rules", Some("build/rules")) && !has_recipes("a.rs", None));
    }
}
