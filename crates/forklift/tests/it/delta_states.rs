//! `forklift delta check` where a wrong word would cost the fork its work: what upstream has in another way, what its commits did
//! and is undone, and reverts that would take away more than they should.

use serde_json::Value;
use testkit::repo::Repo;

use crate::delta::{Keeper, PARSER};

/// Twelve lines, each with words of its own.
fn code() -> String {
    (1..=12).map(|line| format!("original line number {line}\n")).collect()
}

/// A fork of a project that has those lines.
fn coder() -> Keeper {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("code.c", &code(), "code");
    keeper.sync();
    keeper
}

impl Keeper {
    /// Upstream takes a commit and changes it before it is published, as after a review: author, date and subject stay.
    fn upstream_takes_otherwise(&self, commit: &str, change: impl FnOnce(&Repo)) {
        let origin = self.fork().origin.dir().to_string_lossy().into_owned();
        self.fork().upstream_does("and something else", |author| {
            author.git(&["fetch", "-q", &origin, "main"]);
            author.git(&["cherry-pick", commit]);
            change(author);
            author.git(&["add", "--all"]);
            author.git(&["commit", "-q", "--amend", "--no-edit"]);
        });
    }

    fn declare(&self, changes: &[(&str, &str)]) {
        let text: String = changes
            .iter()
            .map(|(name, commit)| {
                format!("[[change]]\nname = \"{name}\"\ncommits = [\"{commit}\"]\n")
            })
            .collect();
        self.commit("FORK.toml", &text, "name our changes");
    }

    /// A change of the check, as a script gets it.
    fn change(&self, name: &str) -> Value {
        let event = self.delta(&["delta", "check"]);
        let changes = event["delta"]["changes"].as_array().expect("a list");
        let change = changes.iter().find(|change| change["name"] == name);
        change.unwrap_or_else(|| panic!("{name} in {changes:#?}")).clone()
    }

    #[track_caller]
    fn check_status(&self, status: i32) {
        let output = self.run(&["delta", "check", "--all"]);
        assert_eq!(output.status, Some(status), "{}", output.snapshot());
    }
}

#[test]
fn a_revert_that_would_take_away_upstreams_lines_is_not_proposed() {
    let keeper = coder();
    let guests = "open the door\nturn on the light\ngreet the guest\nclose the door\n";
    let with = |limit: u32| {
        let text = code().replace("number 3\n", &format!("number 3\n{guests}"));
        text.replace("original line number 11", &format!("limit of guests: {limit}"))
    };
    let commit = keeper.commit("code.c", &with(10), "let guests in");
    keeper.upstream_takes_otherwise(&commit, |author| {
        author.write("code.c", with(99));
    });
    let checkout = keeper.checkout();
    checkout.git(&["fetch", "-q", "upstream"]);
    assert!(checkout.try_git(&["merge", "-q", "--no-edit", "upstream/main"]).is_err());
    checkout.write("code.c", with(10)).commit("merge upstream, with our limit");
    keeper.push();
    keeper.fork().upstream_commit("code.c", &with(10), "ten are enough");
    keeper.check_state("let guests in", "superseded");
    let output = keeper.run(&["delta", "check"]);
    assert_eq!(output.status, Some(11), "{}", output.snapshot());
    assert!(!output.stdout.contains("git revert"), "{}", output.stdout);
    assert!(output.stdout.contains("no revert takes away just this"), "{}", output.stdout);
}

#[test]
fn another_value_in_one_line_of_ten_is_not_superseded() {
    let keeper = coder();
    let steps: String = (1..10).map(|step| format!("sso: configure step {step}\n")).collect();
    let text = |who: &str| format!("{steps}allow_users = [\"{who}\"]\n");
    let commit = keeper.commit("sso.conf", &text("admin"), "single sign-on");
    keeper.upstream_takes_otherwise(&commit, |author| {
        author.write("sso.conf", text("everybody"));
    });
    keeper.check_state("single sign-on", "likely-superseded");
    keeper.check_status(0);
}

#[test]
fn another_indentation_is_not_superseded() {
    let keeper = coder();
    let text = |indent: &str| {
        format!(
            "def check(user):\n    if user.admin:\n        log(\"admin\")\n{indent}return allow(user)\n    deny(user)\n"
        )
    };
    keeper.commit("auth.py", &text("        "), "check users");
    keeper.fork().upstream_commit("auth.py", &text("    "), "user checks");
    keeper.check_state("check users", "likely-superseded");
    keeper.check_status(0);
}

#[test]
fn short_lines_count_like_all_others() {
    let keeper = coder();
    let text = |ports: &str| format!("allowed ports of the firewall:\n{ports}");
    let commit = keeper.commit("ports.txt", &text("22\n80\n1\n2\n3\n4\n"), "ports");
    keeper.upstream_takes_otherwise(&commit, |author| {
        author.write("ports.txt", text("99\n98\n97\n"));
    });
    let change = keeper.change("ports");
    assert_ne!(change["state"], "superseded", "{change:#}");
    assert!(change["why"].as_str().expect("a reason").contains("1 of its 7 lines"), "{change:#}");
    keeper.check_status(0);
}

#[test]
fn a_removal_that_upstream_undid_in_a_file_that_it_renamed_is_the_forks_alone() {
    let keeper = coder();
    let short: String = code().lines().take(4).map(|line| format!("{line}\n")).collect();
    let commit = keeper.commit("code.c", &short, "remove telemetry");
    keeper.upstream_takes(&commit, &[]);
    keeper.fork().upstream_commit("code.c", &code(), "telemetry is back");
    keeper.fork().upstream_does("rename", |author| {
        author.git(&["mv", "code.c", "src_code.c"]);
    });
    let change = keeper.change("remove telemetry");
    assert_eq!(change["state"], "whole", "{change:#}");
    assert!(change["why"].as_str().expect("a reason").contains("still have 8 of 8"), "{change:#}");
    keeper.check_status(0);
}

#[test]
fn lines_that_upstream_parked_elsewhere_are_not_superseded() {
    let keeper = coder();
    let guard = "void guard() {\n  check_password(user);\n  check_token(user);\n}\n";
    keeper.fork().upstream_commit("g.c", guard, "guard");
    keeper.sync();
    let limited = guard.replace("}\n", "  check_rate_limit(user);\n}\n");
    let commit = keeper.commit("g.c", &limited, "rate limit");
    keeper.upstream_takes(&commit, &[]);
    let parked = format!("{guard}#if 0\nvoid old() {{\n  check_rate_limit(user);\n}}\n#endif\n");
    keeper.fork().upstream_commit("g.c", &parked, "rate limits slow us down: parked");
    keeper.check_state("rate limit", "likely-superseded");
    keeper.fork().upstream_commit("g.c", &format!("#if 0\n{limited}#endif\n"), "no guard at all");
    keeper.check_state("rate limit", "likely-superseded");
    keeper.fork().upstream_commit("g.c", &format!("#include <g.h>\n{limited}"), "a guard again");
    keeper.check_state("rate limit", "superseded");
}

#[test]
fn a_mode_that_upstream_did_not_take_is_not_superseded() {
    let keeper = coder();
    let checkout = keeper.checkout();
    checkout.write("deploy.sh", "#!/bin/sh\necho deploying now\necho deployed well\n");
    checkout.git(&["add", "deploy.sh"]);
    checkout.git(&["update-index", "--chmod=+x", "deploy.sh"]);
    let commit = checkout.commit_index("deploy script");
    checkout.git(&["checkout", "-q", "--", "deploy.sh"]);
    keeper.push();
    keeper.upstream_takes_otherwise(&commit, |author| {
        author.git(&["update-index", "--chmod=-x", "deploy.sh"]);
        author.git(&["checkout", "-q", "--", "deploy.sh"]);
    });
    let change = keeper.change("deploy script");
    assert_eq!(change["state"], "likely-superseded", "{change:#}");
    assert!(change["why"].as_str().expect("a reason").contains("another mode"), "{change:#}");
    keeper.check_status(0);
}

#[test]
fn a_declared_change_that_came_back_with_a_merge_is_not_gone() {
    let keeper = coder();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let text = format!(
        "[[change]]\nname = \"parser\"\ncommits = [\"{commit}\"]\n[[change]]\nname = \"by path\"\npaths = [\"src/parse.c\"]\n"
    );
    keeper.commit("FORK.toml", &text, "name our changes");
    keeper.upstream_takes(&commit, &[]);
    keeper.sync();
    keeper.check_state("parser", "superseded");
    keeper.check_state("by path", "superseded");
    let output = keeper.run(&["delta", "check"]);
    assert_eq!(output.status, Some(11), "{}", output.snapshot());
    assert!(!output.stderr.contains("no commit of the fork's own"), "{}", output.stderr);
    assert!(!output.stdout.contains("git revert"), "{}", output.stdout);
}

#[test]
fn a_declared_commit_that_upstream_merged_as_it_is_is_not_gone() {
    let keeper = coder();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let origin = keeper.fork().origin.dir().to_string_lossy().into_owned();
    keeper.fork().upstream_does("and something else", |author| {
        author.git(&["fetch", "-q", &origin, "main"]);
        author.git(&["merge", "-q", "--no-edit", &commit]);
    });
    keeper.declare(&[("parser", &commit)]);
    keeper.sync();
    keeper.check_state("parser", "superseded");
    let output = keeper.run(&["delta", "check"]);
    assert!(!output.stderr.contains("no commit of the fork's own"), "{}", output.stderr);
}

#[test]
fn a_mode_a_name_and_a_removal_stay_their_commits_when_others_touch_the_file() {
    let keeper = coder();
    keeper.fork().upstream_commit(
        "run.sh",
        "#!/bin/sh\necho start the service\necho stop it\n",
        "run",
    );
    keeper.fork().upstream_commit("README", "words of the project\nand more of them\n", "readme");
    keeper.sync();
    let checkout = keeper.checkout();
    checkout.git(&["update-index", "--chmod=+x", "run.sh"]);
    let executable = checkout.commit_index("make it executable");
    checkout.git(&["checkout", "-q", "--", "run.sh"]);
    checkout.git(&["mv", "README", "GUIDE"]);
    let guide = checkout.commit_index("the readme is a guide");
    let without = code().replace("original line number 5\n", "");
    let removal = keeper.commit("code.c", &without, "remove the back door");
    checkout.write("run.sh", "#!/bin/sh\necho start our service\necho stop it\n");
    checkout.write("GUIDE", "words of the project\nand more of them\nand ours\n");
    keeper.commit("code.c", &without.replace("4\n", "4\nanother line of ours\n"), "words");
    keeper.declare(&[("executable", &executable), ("guide", &guide), ("back door", &removal)]);
    for name in ["executable", "guide", "back door"] {
        keeper.check_state(name, "whole");
    }
    keeper.check_status(0);
    checkout.git(&["update-index", "--chmod=-x", "run.sh"]);
    checkout.git(&["checkout", "-q", "--", "run.sh"]);
    keeper.commit("code.c", &code(), "tidy up");
    keeper.check_state("executable", "gone");
    keeper.check_state("back door", "gone");
    keeper.check_status(3);
}

#[test]
fn a_declared_change_of_which_most_is_lost_is_changed() {
    let keeper = coder();
    let guards: String = (1..=20).map(|line| format!("guard number {line}\n")).collect();
    let commit = keeper.commit("guard.c", &guards, "guards");
    keeper.declare(&[("guards", &commit)]);
    keeper.check_state("guards", "whole");
    keeper.commit("guard.c", "guard number 1\n", "a bad merge");
    let change = keeper.change("guards");
    assert_eq!(change["state"], "changed", "{change:#}");
    assert!(change["why"].as_str().expect("a reason").contains("1 of 20 lines"), "{change:#}");
}

#[test]
fn removed_lines_that_came_back_do_not_leave_a_change_whole() {
    let keeper = coder();
    let closed = format!(
        "{}our back door is closed\n",
        code()
            .lines()
            .filter(|line| !line.ends_with(['3', '4', '5', '6', '7']))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
    keeper.commit("code.c", &closed, "close the back door");
    keeper.check_state("close the back door", "whole");
    keeper.commit("code.c", &format!("{}our back door is closed\n", code()), "tidy up");
    let change = keeper.change("close the back door");
    assert_eq!(change["state"], "changed", "{change:#}");
    assert!(change["why"].as_str().expect("a reason").contains("1 of 6 lines"), "{change:#}");
}

#[test]
fn a_submodule_that_was_just_moved_is_whole() {
    let keeper = coder();
    let [old, new] = ["a", "b"].map(|fill| format!("160000,{},lib", fill.repeat(40)));
    keeper.fork().upstream_does("with a submodule", |author| {
        author.write(
            ".gitmodules",
            "[submodule \"lib\"]\n\tpath = lib\n\turl = https://git.example.org/lib\n",
        );
        // An empty folder is a submodule that is not checked out; none would be one that is deleted.
        std::fs::create_dir(author.dir().join("lib")).expect("a folder");
        author.git(&["update-index", "--add", "--cacheinfo", &old]);
        author.git(&["add", ".gitmodules"]);
        author.git(&["commit", "-q", "-m", "a submodule"]);
    });
    keeper.sync();
    let checkout = keeper.checkout();
    checkout.git(&["update-index", "--cacheinfo", &new]);
    checkout.commit_index("bump lib");
    keeper.push();
    keeper.check_state("bump lib", "whole");
}

#[test]
fn a_change_with_its_own_fix_up_is_whole() {
    let keeper = coder();
    keeper.commit("feat.c", "one feature\ntwo feature\nthree feature\n", "add feature");
    keeper.commit("feat.c", "one feature\nsecond feature\nthree feature\n", "fixup! add feature");
    keeper.check_state("add feature", "whole");
}

#[test]
fn a_revert_of_a_revert_at_upstream_undoes_nothing() {
    let keeper = coder();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let origin = keeper.fork().origin.dir().to_string_lossy().into_owned();
    keeper.fork().upstream_does("and something else", |author| {
        author.git(&["fetch", "-q", &origin, "main"]);
        author.git(&["cherry-pick", &commit]);
        author.git(&["revert", "--no-edit", "HEAD"]);
        author.git(&["revert", "--no-edit", "HEAD"]);
    });
    keeper.check_state("a parser", "superseded");
}

#[test]
fn a_message_that_quotes_a_revert_undoes_nothing() {
    let keeper = coder();
    let commit = keeper.commit("src/parse.c", PARSER, "a parser");
    let origin = keeper.fork().origin.dir().to_string_lossy().into_owned();
    keeper.fork().upstream_does("and something else", |author| {
        author.git(&["fetch", "-q", &origin, "main"]);
        author.git(&["cherry-pick", &commit]);
        author.write("src/parse.c", format!("{PARSER}int more;\n")).commit("more");
        let taken = author.git(&["rev-parse", "HEAD~1"]);
        author.commit(&format!("notes\n\nThe last release said: This reverts commit {taken}.\n"));
    });
    let change = keeper.change("a parser");
    assert_eq!(change["state"], "likely-superseded", "{change:#}");
    assert!(!change["why"].as_str().expect("a reason").contains("undid"), "{change:#}");
}

#[test]
fn a_subject_that_is_the_name_of_a_declared_change_hides_no_loss() {
    let keeper = coder();
    keeper.commit("c.c", "gamma by chance\n", "login");
    keeper.checkout().write("login.c", "login code\n");
    let text = "[[change]]\nname = \"login\"\npaths = [\"login.c\"]\n";
    keeper.commit("FORK.toml", text, "single sign-on");
    keeper.check_state("login", "whole");
    keeper.checkout().git(&["rm", "-q", "login.c"]);
    keeper.fork().fork_commit("a bad merge");
    keeper.check_state("login", "gone");
    keeper.check_status(3);
}

#[test]
fn two_commits_of_one_subject_are_two_changes() {
    let keeper = coder();
    let one = keeper.commit("a.c", "alpha of ours\n", "fix");
    let other = keeper.commit("b.c", "beta of ours\n", "fix");
    for commit in [one, other] {
        keeper.check_state(&format!("fix ({})", &commit[..12]), "whole");
    }
}
