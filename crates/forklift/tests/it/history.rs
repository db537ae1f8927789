//! `forklift replay`, `trust` and `merge-plan`: a fork's past, looked at without touching anything.

use testkit::hermetic::{Hermetic, Output};
use testkit::repo::Fork;

fn forklift(hermetic: &Hermetic, fork: &Fork, args: &[&str]) -> Output {
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_forklift"));
    command.current_dir(fork.checkout.dir()).args(args);
    hermetic.run(&mut command)
}

/// A fork whose people merged upstream once.
fn merged_once(hermetic: &Hermetic) -> Fork {
    let fork = Fork::new(hermetic).clean_merge();
    fork.checkout.git(&["fetch", "--quiet", "--all"]);
    fork.checkout.git(&["merge", "--quiet", "--no-edit", "upstream/main"]);
    fork.checkout.git(&["push", "--quiet", "origin", "HEAD:main"]);
    fork.checkout.git(&["fetch", "--quiet", "--all"]);
    fork
}

#[test]
fn a_fork_without_merges_has_no_past() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic);
    fork.checkout.git(&["fetch", "--quiet", "--all"]);
    let output = forklift(&hermetic, &fork, &["replay"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("No merge of upstream was found"), "{}", output.stdout);
}

#[test]
fn a_merge_of_the_past_is_replayed_and_shown() {
    let hermetic = Hermetic::new();
    let fork = merged_once(&hermetic);
    let page = hermetic.root().join("page.html");
    let flags = ["replay", "--html", page.to_str().expect("UTF-8")];
    let output = forklift(&hermetic, &fork, &flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("1 merge of upstream"), "{}", output.stdout);
    assert!(std::fs::read_to_string(page).expect("a page").contains("git alone: 1"));
    let output = forklift(&hermetic, &fork, &["replay", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&output.stdout).expect("nothing but JSON");
    assert_eq!(told["summary"]["clean"], 1);
}

/// The page names fork and upstream, and a second replay takes its results from the first.
#[test]
fn a_replayed_merge_is_kept_and_its_page_says_of_what_it_is() {
    let hermetic = Hermetic::new();
    let fork = merged_once(&hermetic);
    let page = hermetic.root().join("page.html");
    let flags = ["replay", "--html", page.to_str().expect("UTF-8")];
    let first = forklift(&hermetic, &fork, &flags);
    assert_eq!(first.status, Some(0), "{}", first.snapshot());
    let kept = |suffix: &str| {
        let is_kept = |path: &std::path::Path| path.to_string_lossy().ends_with(suffix);
        files_below(hermetic.root()).into_iter().find(|path| is_kept(path))
    };
    let learned = kept(".learned.json").expect("what was learned is kept");
    assert!(kept(".commit-graph").is_some(), "a checkout without a commit graph gets one");
    let before = std::fs::metadata(&learned).expect("the file").modified().expect("a time");
    let second = forklift(&hermetic, &fork, &flags);
    assert_eq!((second.status, &second.stdout), (Some(0), &first.stdout));
    let after = std::fs::metadata(&learned).expect("the file").modified().expect("a time");
    assert_eq!(before, after, "nothing was learned anew");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("Merge remote-tracking branch") && page.contains("All merges"), "{page}");
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A failure must not leave an empty page behind, or take an old one away.
#[test]
fn a_replay_that_fails_leaves_the_page_as_it_was() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic);
    let page = hermetic.root().join("page.html");
    std::fs::write(&page, "old").expect("a page");
    let flags = ["replay", "--html", page.to_str().expect("UTF-8"), "--main-branch", "none"];
    let output = forklift(&hermetic, &fork, &flags);
    assert_ne!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(std::fs::read_to_string(page).expect("a page"), "old");
    let output = forklift(&hermetic, &fork, &["replay", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("there is no folder /nowhere"), "{}", output.stderr);
}

#[test]
fn trust_says_from_what_it_was_learned() {
    let hermetic = Hermetic::new();
    let fork = merged_once(&hermetic);
    let output = forklift(&hermetic, &fork, &["trust"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("Learned from 1 merge, "), "{}", output.stdout);
}

#[test]
fn a_trust_that_is_no_share_is_refused() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic);
    let output = forklift(&hermetic, &fork, &["replay", "--trust", "2"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("from 0 to 1"), "{}", output.stderr);
}

/// The form in which programs that compare mergers call one.
#[test]
fn a_merge_is_planned_for_other_programs() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic).conflicting_merge();
    fork.checkout.git(&["fetch", "--quiet", "--all"]);
    let [ours, theirs] = ["origin/main", "upstream/main"].map(|name| fork.checkout.sha(name));
    let git_dir = fork.checkout.git_dir();
    let [state, file] = ["state", "plan.json"].map(|name| hermetic.root().join(name));
    let [git_dir, state, out] =
        [&git_dir, &state, &file].map(|path| path.to_str().expect("UTF-8").to_owned());
    let asked = ["merge-plan", "--git-dir", &git_dir, &ours, &theirs];
    let flags = [&asked[..], &["--state", &state, "--json", &out]].concat();
    let output = forklift(&hermetic, &fork, &flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(output.stdout, "");
    let written = std::fs::read_to_string(file).expect("a plan");
    let plan: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(plan["unresolved"], serde_json::json!(["shared.txt"]));
    assert_eq!(plan["by"], serde_json::json!({}));
    let tree = plan["tree"].as_str().expect("a tree");
    assert_eq!(fork.checkout.git(&["cat-file", "-t", tree]).trim(), "tree");

    // What another version learned is learned again, once.
    let kept = hermetic.root().join("state/learned.json");
    let first = std::fs::read_to_string(&kept).expect("what was learned");
    std::fs::write(&kept, first.replacen("shape/", "shape/0", 1)).expect("a file");
    let output = forklift(&hermetic, &fork, &flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(std::fs::read_to_string(&kept).expect("what was learned"), first);

    // A program that replays merges in order teaches each one after it was scored.
    fork.checkout.git(&["checkout", "--quiet", "-b", "by-hand", &ours]);
    drop(fork.checkout.try_git(&["merge", "--no-commit", &theirs]));
    let merge = fork.checkout.write("shared.txt", "one\nboth\nthree\n").commit("by hand");
    let learn = ["merge-plan", "--git-dir", &git_dir, "--state", &state, "--learn"];
    let output = forklift(&hermetic, &fork, &[&learn[..], &[&merge]].concat());
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let output = forklift(&hermetic, &fork, &[&flags[..], &["--trust", "0.6"]].concat());
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let written = std::fs::read_to_string(hermetic.root().join("plan.json")).expect("a plan");
    let taught: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(taught["unresolved"], serde_json::json!([]), "{written}");
    assert_eq!(taught["receipts"][0]["steps"][0]["learned_from"], serde_json::json!(merge));
    let output = forklift(&hermetic, &fork, &[&learn[..], &[&ours]].concat());
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("is not a merge of two commits"), "{}", output.stderr);

    let output = forklift(&hermetic, &fork, &asked);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let told: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(told["tree"], plan["tree"], "nothing has to be kept from call to call");
}
