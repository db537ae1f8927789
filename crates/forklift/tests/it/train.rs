//! `forklift train`: a plan before anything is done, steps that grow one branch, and a person who decides where one is needed.

use serde_json::Value;
use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::{Person, name_of};

/// An agent that keeps both sides of a conflict, and adds the file that the check wants.
pub(crate) const KEEPS_BOTH: &str = r#"[[step]]
run = '''set -e
git merge --no-edit upstream/main || true
sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' shared.txt
touch repaired
git add -A && git commit -q --no-edit'''
"#;

/// The fork has changed a line that the fourth of seven commits of upstream changes as well.
pub(crate) fn seven(rules: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("shared.txt", "one\ntwo, said the fork\nthree\n");
        fork.checkout.write("FORK.md", rules);
        fork.fork_commit("the fork's way");
        for number in 1..=7 {
            if number == 4 {
                let text = "one\ntwo, said upstream\nthree\n";
                fork.upstream_commit("shared.txt", text, "upstream's two");
            } else {
                let name = format!("n{number}.txt");
                fork.upstream_commit(&name, "x\n", &format!("number {number}"));
            }
        }
        fork
    })
}

pub(crate) fn train(person: &Person, script: &str, flags: &[&str]) -> Output {
    person.hermetic.run(&mut train_command(person, script, flags))
}

pub(crate) fn train_command(
    person: &Person,
    script: &str,
    flags: &[&str],
) -> std::process::Command {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, script).expect("the script");
    let mut command = person.forklift(&[
        "train",
        "--provider",
        "scripted",
        "--backend",
        "bwrap",
        "--accept-loss",
    ]);
    command.arg("--script").arg(path).args(flags);
    command
}

/// The last event of this name.
fn event(output: &Output, name: &str) -> Value {
    let lines = output.stdout.lines().rev();
    let mut found = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    found.find(|value| value["event"] == name).unwrap_or_else(|| panic!("{}", output.snapshot()))
}

/// Commits of upstream that the merges of a branch brought in, oldest first.
pub(crate) fn merged(person: &Person, branch: &str) -> Vec<String> {
    let range = format!("main..{branch}");
    let format = "--format=%P";
    let args = ["log", "--first-parent", "--merges", "--reverse", format, &range];
    let parents = person.fork.origin.git(&args);
    parents.lines().map(|line| line.split(' ').nth(1).expect("a merge").to_owned()).collect()
}

/// Upstream's commit this many before its newest.
fn upstream(person: &Person, before: usize) -> String {
    person.fork.upstream.sha(&format!("main~{before}"))
}

/// The only branch that a train has published.
pub(crate) fn only_branch(person: &Person) -> String {
    let branches = person.published();
    assert_eq!(branches.len(), 1, "{branches:?}");
    assert!(branches[0].starts_with("refs/heads/forklift/train-"), "{branches:?}");
    branches[0].clone()
}

#[test]
fn a_plan_is_shown_and_nothing_is_done() {
    let Some(person) = seven("words\n") else { return };
    let page = person.hermetic.root().join("plan.html");
    let flags = ["--plan", "--html", page.to_str().expect("UTF-8")];
    let output = train(&person, KEEPS_BOTH, &flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for words in ["7 commits in 3 steps; 1 needs a decision", "[===|x|===]", "shared.txt (content)"]
    {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("shared.txt (content)") && !html.contains("http"), "{html}");
    assert!(person.runs().is_empty() && person.published().is_empty());
    let output = train(&person, KEEPS_BOTH, &["--plan", "--json", "--batch", "2"]);
    let plan = event(&output, "plan");
    let kinds: Vec<&str> = plan["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["batch", "batch", "conflict", "batch", "batch"]);
    assert_eq!(plan["first_conflict"]["position"], 4);
    assert_eq!(plan["first_conflict"]["sha"], upstream(&person, 3));
    assert_eq!(plan["steps"][4]["is_estimate"], true);
}

/// Sixty commits touch a file that the fork changed; the sixth conflicts with it and the ninth undoes that.
#[test]
fn a_conflict_among_many_commits_that_upstream_undid_is_named() {
    let person = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        let lines = |first: &str, number: usize| {
            let rest = (0..100).map(|line| format!("line {line} {}\n", usize::from(line < number)));
            [first.to_owned(), "\n\n\n\n".to_owned()].into_iter().chain(rest).collect::<String>()
        };
        fork.upstream_commit("big.txt", &lines("first\n", 0), "a long file");
        fork.checkout.git(&["pull", "-q", "--no-rebase", "--no-edit", "upstream", "main"]);
        fork.checkout.write("big.txt", lines("ours\n", 0));
        fork.fork_commit("the fork's way");
        for number in 1..=60 {
            let first = if (6..9).contains(&number) { "theirs\n" } else { "first\n" };
            fork.upstream_commit("big.txt", &lines(first, number), &format!("number {number}"));
        }
        fork
    });
    let Some(person) = person else { return };
    let plan = event(&train(&person, KEEPS_BOTH, &["--plan", "--json"]), "plan");
    assert_eq!(plan["first_conflict"]["sha"], upstream(&person, 54), "{plan}");
    assert_eq!(plan["steps"][0]["passes"].as_array().map(Vec::len), Some(3), "{plan}");
}

#[test]
fn remotes_with_relative_addresses_are_those_of_the_checkout() {
    let Some(person) = seven("words\n") else { return };
    for (remote, repo) in [("origin", &person.fork.origin), ("upstream", &person.fork.upstream)] {
        let name = repo.dir().file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let address = format!("../../forge/fork/{name}");
        person.fork.checkout.git(&["remote", "set-url", remote, &address]);
    }
    let output = train(&person, KEEPS_BOTH, &["--no-pull-request"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    only_branch(&person);
}

#[test]
fn steps_grow_one_branch_by_merges_and_one_pull_request_lists_them() {
    let Some(person) = seven("---\ncheck: echo 3 passed\n---\n") else { return };
    let forge = FakeGitea::start();
    let mut command = train_command(&person, KEEPS_BOTH, &["--forge-url", &forge.remote_url()]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("complete: 3 steps"), "{}", output.stdout);
    let branch = only_branch(&person);
    let steps = [4, 3, 0].map(|before| upstream(&person, before));
    assert_eq!(merged(&person, &branch), steps);
    let text = person.fork.origin.git(&["show", &format!("{branch}:shared.txt")]);
    assert!(text.contains("said the fork") && text.contains("said upstream"), "{text}");
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    assert_eq!(pulls[0].title, "Merge upstream tip of main (step 3 of 3)");
    for words in ["| 1 | 3 |", "| 2 | 1 |", "| 3 | 3 |", "upstream's two", "conflict decided"] {
        assert!(pulls[0].body.contains(words), "{words}: {}", pulls[0].body);
    }
    // Only the step with a conflict had an agent, and it was told about that commit alone.
    let agents: Vec<bool> =
        person.runs().iter().map(|run| run.join("boxes/agent").exists()).collect();
    assert_eq!(agents, [false, true, false]);
    let plan = std::fs::read_to_string(person.runs()[1].join("plan.json")).expect("the plan");
    assert!(plan.contains("> upstream's two") && plan.contains("- shared.txt"), "{plan}");
    let mut command = train_command(&person, KEEPS_BOTH, &["--forge-url", &forge.remote_url()]);
    let again = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert_eq!((person.runs().len(), forge.pulls().len()), (3, 1), "{}", again.snapshot());
}

/// A train that stops at the conflict, and goes on after a person did what it says. Returns the output of the last call.
fn decide_by_hand(person: &Person, flags: &[&str]) -> Output {
    let stuck = "[[step]]\nrun = \"echo what now > STUCK.md\"\n";
    let output = train(person, stuck, flags);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let branch = only_branch(person);
    assert_eq!(merged(person, &branch), [upstream(person, 4)]);
    let by_hand = output.stdout.lines().find_map(|line| line.strip_prefix("by hand"));
    let by_hand = by_hand.unwrap_or_else(|| panic!("{}", output.snapshot())).trim();
    let [fetch, switch, merge, push, next] = by_hand.split("; ").collect::<Vec<_>>()[..] else {
        panic!("{by_hand}");
    };
    assert_eq!(next, "forklift train");
    let checkout = &person.fork.checkout;
    assert!(switch.starts_with("git fetch origin && "), "{by_hand}");
    for words in [fetch].into_iter().chain(switch.split(" && ")) {
        let words: Vec<&str> = words.split(' ').skip(1).collect();
        checkout.git(&words);
    }
    let words: Vec<&str> = merge.split(' ').skip(1).collect();
    assert!(checkout.try_git(&words).is_err(), "it conflicts");
    checkout.write("shared.txt", "one\ntwo, said both\nthree\n").commit("by hand");
    let words: Vec<&str> = push.split(' ').skip(1).collect();
    checkout.git(&words);
    let never = "[[step]]\nexit = 9\n";
    let output = train(person, never, flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("taking over"), "{}", output.stderr);
    output
}

#[test]
fn a_person_decides_a_step_by_hand_and_the_train_goes_on() {
    let Some(person) = seven("words\n") else { return };
    let output = decide_by_hand(&person, &[]);
    assert!(output.stdout.contains("complete: 3 steps"), "{}", output.stdout);
    let steps = [4, 3, 0].map(|before| upstream(&person, before));
    assert_eq!(merged(&person, &only_branch(&person)), steps);
    let run = person.runs().pop().expect("a run");
    let text = std::fs::read_to_string(run.join("PULL_REQUEST.md")).expect("the pull request");
    for words in [
        "(step 3 of 3)",
        "| 1 | 3 |",
        "| 2 | 1 |",
        "| a person | not checked here |",
        "| 3 | 3 |",
        "Step 2 was made by a person and not checked here.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_step_that_a_person_made_in_a_stack_keeps_its_branch() {
    let Some(person) = seven("words\n") else { return };
    decide_by_hand(&person, &["--stack"]);
    let branches = person.published();
    let steps: Vec<usize> = branches.iter().map(|branch| merged(&person, branch).len()).collect();
    assert_eq!(steps, [1, 2, 3], "{branches:?}");
    assert!(branches[2].ends_with("-step-3"), "{branches:?}");
}

#[test]
fn another_machine_goes_on_with_a_stack_where_it_ends() {
    let Some(person) = seven("words\n") else { return };
    train(&person, KEEPS_BOTH, &["--stack", "--steps", "1"]);
    let first = person.fork.origin.sha(&only_branch(&person));
    std::fs::remove_dir_all(person.hermetic.home().join(".local/state/forklift")).expect("removed");
    let output = train(&person, KEEPS_BOTH, &["--stack"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branches = person.published();
    let steps: Vec<usize> = branches.iter().map(|branch| merged(&person, branch).len()).collect();
    assert_eq!(steps, [1, 2, 3], "{branches:?}");
    assert_eq!(person.fork.origin.sha(&branches[0]), first, "the first step was pushed over");
}

#[test]
fn an_answer_to_a_stuck_agent_is_a_step_and_the_train_goes_on() {
    let Some(person) = seven("words\n") else { return };
    let stuck = "[[step]]\nrun = \"echo what now > STUCK.md\"\n";
    let output = train(&person, stuck, &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let run = person.runs().pop().expect("a run");
    assert!(output.stdout.contains("; forklift train"), "{}", output.stdout);
    let retry = person.about(&run, &["retry"]);
    assert_eq!(retry.status, Some(2), "{}", retry.snapshot());
    assert!(retry.stderr.contains("forklift train"), "{}", retry.stderr);
    let script = person.hermetic.root().join("answer.toml");
    std::fs::write(&script, KEEPS_BOTH).expect("the script");
    let script = script.to_str().expect("UTF-8");
    let words = ["resume", name_of(&run).as_str(), "--answer", "both", "--script", script]
        .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let resumed = person.hermetic.run(&mut person.forklift(&words));
    assert_eq!(resumed.status, Some(0), "{}", resumed.snapshot());
    let output = train(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let steps = [4, 3, 0].map(|before| upstream(&person, before));
    assert_eq!(merged(&person, &only_branch(&person)), steps);
}

#[test]
fn steps_that_were_kept_back_are_published_by_the_next_call() {
    let Some(person) = seven("words\n") else { return };
    let output = train(&person, KEEPS_BOTH, &["--no-push"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.published().is_empty(), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 3);
    let output = train(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let steps = [4, 3, 0].map(|before| upstream(&person, before));
    assert_eq!(merged(&person, &only_branch(&person)), steps);
}

#[test]
fn a_stack_has_a_branch_and_a_pull_request_for_each_step() {
    let Some(person) = seven("words\n") else { return };
    let forge = FakeGitea::start();
    let flags = ["--stack", "--forge-url", &forge.remote_url()];
    let mut command = train_command(&person, KEEPS_BOTH, &flags);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branches = person.published();
    assert_eq!(branches.len(), 3, "{branches:?}");
    for (branch, count) in branches.iter().zip(1..) {
        assert!(branch.ends_with(&format!("-step-{count}")), "{branches:?}");
        assert_eq!(merged(&person, branch).len(), count);
    }
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 3, "{pulls:?}");
    assert!(pulls.iter().all(|pull| pull.base == "main"), "{pulls:?}");
}

#[test]
fn a_train_that_is_merged_is_over_and_the_next_one_takes_the_rest() {
    let Some(person) = seven("words\n") else { return };
    let output = train(&person, KEEPS_BOTH, &["--steps", "2"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branch = only_branch(&person);
    assert_eq!(merged(&person, &branch).len(), 2);
    person.fork.origin.git(&["update-ref", "refs/heads/main", &branch]);
    let output = train(&person, KEEPS_BOTH, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("is in the fork"), "{}", output.stderr);
    assert_eq!(person.published().len(), 2);
    let output = train(&person, KEEPS_BOTH, &["--plan"]);
    assert!(output.stdout.contains("0 commits in 0 steps"), "{}", output.stdout);
}

#[test]
fn an_ordinary_run_leaves_the_branch_of_a_train_alone() {
    let Some(person) = seven("words\n") else { return };
    train(&person, KEEPS_BOTH, &["--steps", "1"]);
    let branch = only_branch(&person);
    let before = person.fork.origin.sha(&branch);
    let output = crate::support::run_if_needed(&person, KEEPS_BOTH, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.fork.origin.sha(&branch), before);
    assert_eq!(person.published().len(), 2);
}

#[test]
fn a_branch_that_others_rewrote_or_deleted_stops_the_train() {
    let Some(person) = seven("words\n") else { return };
    train(&person, KEEPS_BOTH, &["--steps", "1"]);
    let branch = only_branch(&person);
    let main = person.fork.origin.sha("main");
    let other = person.fork.origin.git(&["commit-tree", "-p", &main, "-m", "other", "main^{tree}"]);
    person.fork.origin.git(&["update-ref", &branch, &other]);
    let output = train(&person, KEEPS_BOTH, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.fork.origin.sha(&branch), other, "it was overwritten");
    person.fork.origin.git(&["update-ref", "-d", &branch]);
    person.fork.checkout.git(&["remote", "update", "--prune"]);
    let output = train(&person, KEEPS_BOTH, &["--again"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(merged(&person, &only_branch(&person)).len(), 3);
}

#[test]
fn a_train_goes_on_where_its_runs_and_records_are_lost() {
    let Some(person) = seven("words\n") else { return };
    train(&person, KEEPS_BOTH, &["--steps", "1"]);
    let branch = only_branch(&person);
    std::fs::remove_dir_all(person.hermetic.home().join(".local/state/forklift")).expect("removed");
    let output = train(&person, KEEPS_BOTH, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("on origin"), "{}", output.stderr);
    let steps = [4, 3, 0].map(|before| upstream(&person, before));
    assert_eq!(only_branch(&person), branch);
    assert_eq!(merged(&person, &branch), steps);
}

#[test]
fn a_train_is_no_rebase_and_needs_a_common_history() {
    let Some(person) = seven("---\nstrategy: rebase\n---\n") else { return };
    let output = train(&person, KEEPS_BOTH, &["--plan"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("--strategy merge"), "{}", output.stderr);
    let Some(person) = Person::with(Fork::unrelated) else { return };
    let output = train(&person, KEEPS_BOTH, &["--plan"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
}
