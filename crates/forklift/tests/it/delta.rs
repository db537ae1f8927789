//! `forklift delta`: the inventory of a fork, and what upstream has taken of it.

use serde_json::{Value, json};
use testkit::hermetic::{Hermetic, Output};
use testkit::repo::{Fork, Repo};

use crate::support::Person;

/// Lines that only the fork has.
pub(crate) const PARSER: &str = "int parse(char *text) {\n    int length = measure(text);\n    if (length > BUFFER_SIZE) {\n        return ERROR_TOO_LONG;\n    }\n    copy(buffer, text, length);\n    return finish(buffer, length);\n}\n";

/// A person at a fork; no box is needed.
pub(crate) struct Keeper(pub(crate) Person);

impl Keeper {
    pub(crate) fn new() -> Self {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic);
        Self(Person { hermetic, fork })
    }

    pub(crate) fn fork(&self) -> &Fork {
        &self.0.fork
    }

    pub(crate) fn checkout(&self) -> &Repo {
        &self.0.fork.checkout
    }

    /// Commits a file to the fork's main branch.
    pub(crate) fn commit(&self, path: &str, text: &str, message: &str) -> String {
        self.checkout().write(path, text);
        self.fork().fork_commit(message)
    }

    /// Merges upstream into the fork and pushes that.
    pub(crate) fn sync(&self) {
        self.checkout().git(&["fetch", "-q", "upstream"]);
        self.checkout().git(&["merge", "-q", "--no-edit", "upstream/main"]);
        self.push();
    }

    pub(crate) fn push(&self) {
        self.checkout().git(&["push", "-q", "origin", "HEAD:main"]);
    }

    /// Upstream takes a commit of the fork, as with `git am`.
    pub(crate) fn upstream_takes(&self, commit: &str, flags: &[&str]) {
        let origin = self.fork().origin.dir().to_string_lossy().into_owned();
        self.fork().upstream_does("and something else", |author| {
            author.git(&["fetch", "-q", &origin, "main"]);
            author.git(&[&["cherry-pick"], flags, &[commit]].concat());
        });
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.0.hermetic.run(&mut self.0.forklift(args))
    }

    /// The inventory as a script gets it.
    pub(crate) fn delta(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let is_event = |line: &&str| line.contains("\"event\":\"delta");
        let line = output.stdout.lines().find(is_event);
        let line = line.unwrap_or_else(|| panic!("{}", output.snapshot()));
        serde_json::from_str(line).expect("JSON")
    }

    /// Name and lines of each change.
    fn changes(&self) -> Vec<(String, u64, u64)> {
        let event = self.delta(&["delta"]);
        let row = |change: &Value| {
            let number = |key: &str| change["lines"][key].as_u64().expect("a number");
            let name = change["name"].as_str().expect("a name").to_owned();
            (name, number("added"), number("removed"))
        };
        event["delta"]["changes"].as_array().expect("a list").iter().map(row).collect()
    }

    /// Number of lines of a change.
    #[track_caller]
    fn check_lines(&self, name: &str, added: u64, removed: u64) {
        let changes = self.changes();
        assert!(changes.contains(&(name.to_owned(), added, removed)), "{name}: {changes:?}");
    }

    /// State of a change.
    #[track_caller]
    pub(crate) fn check_state(&self, name: &str, state: &str) {
        let event = self.delta(&["delta", "check"]);
        let changes = event["delta"]["changes"].as_array().expect("a list");
        let change = changes.iter().find(|change| change["name"] == name);
        let change = change.unwrap_or_else(|| panic!("{name} in {changes:#?}"));
        assert_eq!(change["state"], state, "{change:#}");
    }
}

#[test]
fn every_line_belongs_to_the_commit_that_wrote_or_removed_it() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\nfour\nfive\n", "a file");
    keeper.sync();
    keeper.commit("src/a.c", "one\ntwo of ours\nthree\nfour\nfive\n", "say two");
    keeper.commit("src/a.c", "one\ntwo of ours\nthree\nfive\n", "without four");
    keeper.commit("src/parse.c", PARSER, "a parser");
    // Upstream goes on, and the fork takes it: none of that is the fork's.
    keeper.fork().upstream_commit("src/a.c", "zero\none\ntwo\nthree\nfour\nfive\n", "zero");
    keeper.sync();
    keeper.fork().upstream_commit("later.c", "later\n", "not yet taken");
    keeper.check_lines("say two", 1, 1);
    keeper.check_lines("without four", 0, 1);
    keeper.check_lines("a parser", 8, 0);
    let event = keeper.delta(&["delta"]);
    assert_eq!(event["delta"]["lines"], json!({"added": 12, "removed": 2}), "{event:#}");
    assert_eq!(event["delta"]["without_commit"], json!({"merges": 0, "upstream": 0, "unknown": 0}));
    assert_eq!(event["delta"]["unread"], 0);
}

#[test]
fn fork_toml_and_trailers_name_changes() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser\n\nFork-Change: parser\n");
    let login = keeper.commit("src/login.c", "login\n", "log in");
    keeper.commit("brand/logo.svg", "<svg/>\n", "a logo");
    let text = format!(
        "[[change]]\nname = \"login\"\nintent = \"single sign-on\"\ncommits = [\"{}\"]\n\
         upstream = {{open = \"https://git.example.org/them/7\"}}\nretire_when = \"they have 2.0\"\n\
         [[change]]\nname = \"brand\"\npaths = [\"brand/\", \"FORK.*\"]\nupstream = \"not sent\"\n\
         [[change]]\nname = \"parser\"\nintent = \"no overflow\"\n",
        &login[..10]
    );
    keeper.commit("FORK.toml", &text, "name our changes");
    let output = keeper.run(&["delta"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for words in [
        "single sign-on",
        "open: https://git.example.org/them/7",
        "they have 2.0",
        "not sent",
        "no overflow",
        "all lines: ",
    ] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let names: Vec<String> = keeper.changes().into_iter().map(|change| change.0).collect();
    assert_eq!(names, ["login", "brand", "parser"]);
    keeper.check_lines("parser", 8, 0);
}

#[test]
fn a_change_and_its_revert_leave_nothing() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser");
    keeper.checkout().git(&["revert", "--no-edit", "HEAD"]);
    keeper.push();
    let event = keeper.delta(&["delta"]);
    let names: Vec<String> = keeper.changes().into_iter().map(|change| change.0).collect();
    assert_eq!(names, ["fork: say what it is for"]);
    assert_eq!(
        (&event["delta"]["commits"], &event["delta"]["without_lines"]),
        (&json!(3), &json!(2))
    );
}

#[test]
fn commits_of_a_merged_branch_are_one_change() {
    let keeper = Keeper::new();
    let checkout = keeper.checkout();
    checkout.branch("parser").checkout("parser");
    checkout.write("src/parse.c", PARSER).commit("a parser");
    checkout.write("src/parse.h", "int parse(char *text);\n").commit("its header");
    checkout.checkout("main");
    let message = "Merge pull request #7 from me/parser\n\nParse without overflow\n";
    checkout.git(&["merge", "-q", "--no-ff", "-m", message, "parser"]);
    keeper.push();
    keeper.check_lines("Parse without overflow", 9, 0);
}

#[test]
fn lines_that_a_merge_made_are_listed_by_folder_and_counted() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\n", "a file");
    keeper.sync();
    keeper.commit("src/a.c", "one\nours\nthree\n", "our two");
    keeper.fork().upstream_commit("src/a.c", "one\ntheirs\nthree\n", "their two");
    let checkout = keeper.checkout();
    checkout.git(&["fetch", "-q", "upstream"]);
    assert!(checkout.try_git(&["merge", "-q", "upstream/main"]).is_err());
    checkout.write("src/a.c", "one\nours and theirs\nthree\n").commit("merge upstream");
    keeper.push();
    keeper.check_lines("left in src/", 1, 1);
    let event = keeper.delta(&["delta"]);
    assert_eq!(event["delta"]["without_commit"]["merges"], 2, "{event:#}");
    let output = keeper.run(&["delta"]);
    assert!(output.stdout.contains("2 made by merges"), "{}", output.stdout);
}

#[test]
fn renamed_deleted_and_binary_files_are_the_forks_too() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("old.c", PARSER, "a parser");
    keeper.fork().upstream_commit("gone.c", "a\nb\n", "a file");
    keeper.sync();
    keeper.checkout().git(&["mv", "old.c", "new.c"]);
    let more = format!("{PARSER}int more;\n");
    keeper.commit("new.c", &more, "move it");
    keeper.checkout().git(&["rm", "-q", "gone.c"]);
    keeper.fork().fork_commit("without it");
    keeper.commit("logo.bin", "\0\x01\x02", "a picture");
    keeper.check_lines("move it", 1, 0);
    keeper.check_lines("without it", 0, 2);
    keeper.check_lines("a picture", 0, 0);
}

#[test]
fn a_list_changes_nothing() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser");
    let state = || {
        let checkout = keeper.checkout();
        let refs = checkout.git(&["for-each-ref", "refs/heads", "refs/tags"]);
        (refs, checkout.head(), checkout.git(&["status", "--porcelain"]))
    };
    let before = state();
    for args in [&["delta"][..], &["delta", "check"]] {
        assert_eq!(keeper.run(args).status, Some(0), "{args:?}");
    }
    assert_eq!(before, state());
    assert!(keeper.0.runs().is_empty());
}

#[test]
fn a_fork_toml_that_cannot_be_read_is_refused_with_the_place() {
    let keeper = Keeper::new();
    keeper.commit("FORK.toml", "[[change]]\nname = \"a\"\nintend = \"b\"\n", "a slip");
    let output = keeper.run(&["delta"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stderr.contains("FORK.toml on the fork's main branch: line 3"),
        "{}",
        output.stderr
    );
}

#[test]
fn histories_without_a_common_commit_have_no_delta() {
    let hermetic = Hermetic::new();
    let fork = Fork::unrelated(&hermetic);
    let keeper = Keeper(Person { hermetic, fork });
    let output = keeper.run(&["delta"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("no commit in common"), "{}", output.stderr);
}

#[test]
fn a_change_that_upstream_took_is_superseded_and_proposed_for_dropping() {
    let keeper = Keeper::new();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    keeper.commit("ours.c", "int ours;\n", "ours alone");
    keeper.upstream_takes(&commit, &[]);
    keeper.check_state("a parser", "superseded");
    keeper.check_state("ours alone", "whole");
    let output = keeper.run(&["delta", "check"]);
    assert_eq!(output.status, Some(11), "{}", output.snapshot());
    let revert = format!("git revert {}", &commit[..12]);
    assert!(output.stdout.contains(&revert), "{}", output.stdout);
    assert!(output.stdout.contains("+4 -0 would remain"), "{}", output.stdout);
}

#[test]
fn a_change_that_upstream_took_and_undid_is_not_superseded() {
    let keeper = Keeper::new();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let origin = keeper.fork().origin.dir().to_string_lossy().into_owned();
    keeper.fork().upstream_does("and something else", |author| {
        author.git(&["fetch", "-q", &origin, "main"]);
        author.git(&["cherry-pick", &commit]);
        author.git(&["revert", "--no-edit", "HEAD"]);
    });
    keeper.check_state("a parser", "whole");
    assert_eq!(keeper.run(&["delta", "check"]).status, Some(0));
}

#[test]
fn the_same_lines_without_a_commit_behind_them_are_only_likely_superseded() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser");
    let adapted = format!("#include <parse.h>\n\n{}", PARSER.replace("    ", "\t"));
    keeper.fork().upstream_commit("src/parse.c", &adapted, "parse: a new beginning");
    keeper.check_state("a parser", "likely-superseded");
    assert_eq!(keeper.run(&["delta", "check"]).status, Some(0));
}

#[test]
fn a_message_that_names_the_commit_supersedes_nothing_by_itself() {
    let keeper = Keeper::new();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let origin = keeper.fork().origin.dir().to_string_lossy().into_owned();
    keeper.fork().upstream_does("and something else", |author| {
        author.git(&["fetch", "-q", &origin, "main"]);
        author.write("src/parse.c", format!("#include <parse.h>\n{PARSER}"));
        author.commit(&format!(
            "parse: as the fork has it\n\n(cherry picked from commit {commit})\n"
        ));
    });
    keeper.check_state("a parser", "likely-superseded");
    let output = keeper.run(&["delta", "check"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("1 change that upstream seems to have"), "{}", output.stdout);
}

#[test]
fn a_declared_change_that_is_gone_is_said_with_a_status_of_its_own() {
    let keeper = Keeper::new();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let text = format!("[[change]]\nname = \"parser\"\ncommits = [\"{commit}\"]\n");
    keeper.commit("FORK.toml", &text, "name our changes");
    keeper.check_state("parser", "whole");
    keeper.checkout().git(&["rm", "-q", "src/parse.c"]);
    keeper.fork().fork_commit("clean up");
    let output = keeper.run(&["delta", "check"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("gone"), "{}", output.stdout);
}

#[test]
fn a_change_of_which_a_part_is_left_is_changed() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser");
    let half: String = PARSER.lines().take(3).map(|line| format!("{line}\n")).collect();
    keeper.commit("src/parse.c", &format!("{half}    return 0;\n"), "less of it");
    keeper.check_state("a parser", "changed");
}
