//! Words of judgement of `forklift security` in the worst case: code that was moved, switched off, lost or brought back.

use std::fmt::Write;

use serde_json::{Value, json};
use testkit::repo::Fork;

use crate::security::{FIXED, Lane, OPEN};

const FILE: &str = "src/parse.c";

/// Many functions of the fork's own, so that git sees no rename in a file that has another's code too.
fn own_code() -> String {
    (0..40).fold(String::new(), |mut text, number| {
        write!(text, "int ours_{number}(int a)\n{{\n  return a + {number};\n}}\n")
            .expect("written");
        text
    })
}

fn take_upstream(fork: &Fork) {
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
}

/// The only finding, whose state is one of these; the document for others claims nothing that is not certain.
#[track_caller]
fn check_open(lane: &Lane, states: &[&str]) -> Value {
    let found = lane.findings();
    assert_eq!(found.len(), 1, "{found:?}");
    let state = found[0]["state"].as_str().expect("a state");
    assert!(states.contains(&state), "{found:?}");
    let vex = lane.list(&["--format", "openvex"]).stdout;
    let is_claimed = vex.contains("\"not_affected\"") || vex.contains("\"fixed\"");
    assert!(!is_claimed, "{vex}");
    let shown = lane.list(&[]).stdout;
    assert!(shown.contains("ADV-2024-1"), "it is not in the list: {shown}");
    found[0].clone()
}

#[test]
fn a_hole_that_came_with_a_squashed_update_after_a_move_is_missing_its_fix() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    let open = OPEN.replace("int parse", "int read").replace("measure", "count");
    let introduced = fork.upstream_commit("src/read.c", &open, "a reader");
    fork.upstream_does("move the reader", |author| {
        std::fs::create_dir_all(author.dir().join("lib")).expect("a folder");
        author.git(&["mv", "src/read.c", "lib/read.c"]);
    });
    let checkout = &fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["merge", "-q", "--squash", "upstream/main"]);
    fork.fork_commit("update from upstream");
    let fixed = FIXED.replace("int parse", "int read").replace("measure", "count");
    let fix = fork.upstream_commit("lib/read.c", &fixed, "reader: check the length");
    for introduced in [introduced.as_str(), "0"] {
        lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", introduced, &fix));
        check_open(&lane, &["missing"]);
    }
}

#[test]
fn code_that_the_fork_moved_into_another_file_is_found_there() {
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.git(&["rm", "-q", FILE]);
        fork.checkout.write("src/core.c", own_code() + OPEN);
        fork.fork_commit("one file");
    }) else {
        return;
    };
    let found = check_open(&lane, &["missing", "unclear"]);
    assert!(found["why"].to_string().contains("src/core.c"), "{found}");
}

#[test]
fn a_fork_from_before_the_hole_is_certainly_not_affected_and_one_without_the_file_likely() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let later = lane.person.fork.upstream.git(&["rev-parse", "main~2"]);
    lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", later.trim(), &lane.fix));
    lane.check_only("not-affected", "certain");
    assert!(lane.list(&["--format", "openvex"]).stdout.contains("vulnerable_code_not_present"));
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.git(&["rm", "-q", FILE]);
        fork.fork_commit("no parser here");
    }) else {
        return;
    };
    check_open(&lane, &["not-affected"]);
    assert!(lane.list(&[]).stdout.contains("likely not affected"));
}

#[test]
fn a_release_that_brought_the_hole_back_counts_after_the_one_that_fixed_it() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    for version in ["v1.0", "v1.5", "v2.0", "v2.1"] {
        fork.upstream_commit("version.c", &format!("int version = {version:?};\n"), version);
        fork.upstream.git(&["tag", version, "main"]);
    }
    take_upstream(fork);
    fork.upstream_commit("version.c", "int version = 23;\n", "v2.3");
    fork.upstream.git(&["tag", "v2.3", "main"]);
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["affected"][0] = json!({
        "package": {"name": "git.example.org/them/parser", "ecosystem": "Go"},
        "ranges": [{"type": "SEMVER", "events": [
            {"introduced": "0"}, {"fixed": "1.5"}, {"introduced": "2.0"}, {"fixed": "2.3"},
        ]}],
    });
    lane.advise("ADV-2024-1.json", &advisory);
    let source = ["--json", "--project", "git.example.org/them/parser"];
    let found = crate::security::findings(&lane.list(&source));
    assert_eq!(found[0]["state"], "unclear", "{found:?}");
    assert!(found[0]["why"].to_string().contains("v2.0"), "{found:?}");
}

#[test]
fn a_hole_that_came_back_without_a_fix_is_not_closed_by_the_first_one() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    let again = fork.upstream_commit(FILE, OPEN, "parse: faster");
    take_upstream(fork);
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    let events =
        [json!({"introduced": "0"}), json!({"fixed": lane.fix}), json!({"introduced": again})];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let events: Vec<Value> = order.iter().map(|at| events[*at].clone()).collect();
        advisory["affected"][0]["ranges"][0]["events"] = json!(events);
        lane.advise("ADV-2024-1.json", &advisory);
        check_open(&lane, &["missing", "unclear"]);
    }
    // The same commit may end the hole and begin another one.
    let last = fork.upstream_commit(FILE, FIXED, "parse: check the length again");
    advisory["affected"][0]["ranges"][0]["events"] = json!([
        {"introduced": "0"}, {"fixed": again}, {"introduced": again}, {"fixed": last},
    ]);
    lane.advise("ADV-2024-1.json", &advisory);
    check_open(&lane, &["missing"]);
}

#[test]
fn the_forks_own_pull_request_with_the_same_number_is_no_fix() {
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.write("logo.c", "int our_logo = 12;\n");
        fork.fork_commit("Add our logo (#12)");
    }) else {
        return;
    };
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["affected"][0] =
        json!({"package": {"name": "git.example.org/them/parser", "ecosystem": "Go"}});
    advisory["references"] =
        json!([{"type": "FIX", "url": "https://git.example.org/them/parser/pull/12"}]);
    lane.advise("ADV-2024-1.json", &advisory);
    let project = ["--json", "--project", "https://git.example.org/them/parser"];
    let found = crate::security::findings(&lane.list(&project));
    assert_eq!(found[0]["state"], "unclear", "{found:?}");
    assert_eq!(found[0]["fixes"], json!([]), "{found:?}");
}

#[test]
fn a_cherry_pick_that_a_merge_lost_is_not_present() {
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.write(FILE, OPEN.replace("int length =", "int length /* ours */ ="));
        fork.fork_commit("a comment");
    }) else {
        return;
    };
    let checkout = &lane.person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["switch", "-q", "-c", "fix"]);
    checkout.write(FILE, FIXED.replace("int length =", "int length /* ours */ ="));
    let message = format!("parse: check the length\n\n(cherry picked from commit {})", lane.fix);
    checkout.git(&["commit", "-q", "-a", "-m", &message]);
    checkout.git(&["switch", "-q", "-"]);
    checkout.write("x.c", "int x;\n");
    checkout.git(&["add", "-A"]);
    checkout.git(&["commit", "-q", "-m", "x"]);
    checkout.git(&["merge", "-q", "-s", "ours", "--no-edit", "fix"]);
    checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    check_open(&lane, &["missing", "unclear"]);
}

#[test]
fn a_fix_that_upstream_took_back_and_made_again_is_not_present_in_between() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    fork.upstream_does(
        &format!("Revert \"parse: check the length\"\n\nThis reverts commit {}.", lane.fix),
        |author| {
            author.write(FILE, OPEN);
        },
    );
    take_upstream(fork);
    check_open(&lane, &["missing", "unclear"]);
    let again = fork.upstream_commit(FILE, &FIXED.replace("BUFFER_SIZE", "SIZE"), "check again");
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["affected"][0]["ranges"][0]["events"] =
        json!([{"introduced": "0"}, {"fixed": lane.fix}, {"fixed": again}]);
    lane.advise("ADV-2024-1.json", &advisory);
    check_open(&lane, &["missing", "unclear"]);
}

#[test]
fn an_empty_commit_and_a_removal_of_moved_code_are_not_present_because_they_change_nothing() {
    let Some(lane) = Lane::new(|fork| {
        fork.checkout.git(&["rm", "-q", FILE]);
        fork.checkout.write("tools/core.c", own_code() + OPEN);
        fork.fork_commit("the parser is a tool");
    }) else {
        return;
    };
    let fork = &lane.person.fork;
    fork.upstream_commit(FILE, OPEN, "as it was");
    let removal = fork.upstream_does("remove the parser", |author| {
        author.git(&["rm", "-q", FILE]);
    });
    lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", "0", &removal));
    let found = check_open(&lane, &["missing"]);
    assert!(found["why"].to_string().contains("tools/core.c"), "{found}");
    let source = lane.advisories.to_string_lossy().into_owned();
    let args = ["security", "land", "ADV-2024-1", "--advisories", &source];
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&args));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("by hand"), "{}", output.stderr);
    let empty = fork.upstream_does("Release 1.2 (security)", |_| {});
    lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", "0", &empty));
    check_open(&lane, &["unclear"]);
}

#[test]
fn a_fix_of_the_history_is_not_present_where_the_old_code_stands_in_another_file() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    take_upstream(fork);
    fork.checkout.git(&["rm", "-q", FILE]);
    fork.checkout.write("core/all.c", own_code() + OPEN);
    fork.fork_commit("one file");
    let found = check_open(&lane, &["missing", "unclear"]);
    assert!(found["why"].to_string().contains("core/all.c"), "{found}");
}

#[test]
fn a_fix_that_the_fork_switched_off_is_at_most_likely() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    take_upstream(fork);
    lane.check_only("present", "certain");
    let off = FIXED.replace("    if (length", "#if 0\n    if (length");
    fork.checkout.write(FILE, off.replace("    copy(", "#endif\n    copy("));
    fork.fork_commit("off");
    check_open(&lane, &["present"]);
    lane.check_only("present", "likely");
    assert!(lane.list(&[]).stdout.contains("1 likely present, 0 present"));
    let source = lane.advisories.to_string_lossy().into_owned();
    let args = ["security", "land", "ADV-2024-1", "--advisories", &source];
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&args));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("is likely present"), "{}", output.stderr);
}

#[test]
fn a_severity_that_is_not_understood_is_below_no_limit() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    let v4 = json!([{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H"}]);
    for severity in [v4, json!([])] {
        advisory["severity"] = severity;
        lane.advise("ADV-2024-1.json", &advisory);
        let output = lane.list(&["--min-severity", "critical"]);
        assert_eq!(output.status, Some(10), "{}", output.snapshot());
        assert!(output.stdout.contains("unknown"), "{}", output.stdout);
    }
    advisory["severity"] = json!([
        {"type": "CVSS_V3", "score": "CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"},
    ]);
    lane.advise("ADV-2024-1.json", &advisory);
    assert_eq!(lane.list(&["--min-severity", "critical"]).status, Some(0));
}

#[test]
fn an_advisory_that_cannot_be_read_shows_in_every_format_and_in_the_status() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    take_upstream(&lane.person.fork);
    assert_eq!(lane.list(&[]).status, Some(0));
    let mut advisory = lane.advisory("ADV-2024-2", "0", &lane.fix);
    advisory["aliases"] = json!([1]);
    lane.advise("BAD.json", &advisory);
    for flags in
        [&[][..], &["--quiet"], &["--json"], &["--format", "sarif"], &["--format", "openvex"]]
    {
        let output = lane.list(flags);
        assert_eq!(output.status, Some(2), "{flags:?}: {}", output.snapshot());
        assert!(output.stderr.contains("1 file of"), "{flags:?}: {}", output.snapshot());
    }
    let sarif = lane.list(&["--format", "sarif"]).stdout;
    assert!(
        sarif.contains("BAD.json") && sarif.contains("\"executionSuccessful\": false"),
        "{sarif}"
    );
    assert!(lane.list(&["--format", "openvex"]).stdout.contains("incomplete: 1 file of"));
    // Settings of the database itself are no advisories.
    std::fs::remove_file(lane.advisories.join("BAD.json")).expect("removed");
    lane.advise("package.json", &json!({"name": "osv", "version": "1"}));
    assert_eq!(lane.list(&[]).status, Some(0));
}

#[test]
fn of_two_copies_of_an_advisory_the_newer_counts_and_without_dates_the_worse() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    let first = fork.upstream.sha("main~3");
    for folder in ["2023", "2024"] {
        std::fs::create_dir_all(lane.advisories.join(folder)).expect("a folder");
    }
    std::fs::remove_file(lane.advisories.join("ADV-2024-1.json")).expect("removed");
    let mut old = lane.advisory("ADV-2024-1", "0", &first);
    let mut new = lane.advisory("ADV-2024-1", "0", &lane.fix);
    let state = |old: &Value, new: &Value| {
        lane.advise("2023/a.json", old);
        lane.advise("2024/a.json", new);
        let found = lane.findings();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!(state(&old, &new), "missing");
    assert_eq!(state(&new, &old), "missing");
    old["modified"] = json!("2023-01-01T00:00:00Z");
    new["modified"] = json!("2024-01-01T00:00:00Z");
    assert_eq!(state(&old, &new), "missing");
    new["modified"] = json!("2022-01-01T00:00:00Z");
    assert_eq!(state(&old, &new), "present");
}

#[test]
fn fixes_that_exclude_each_other_are_not_said_to_apply_and_one_is_asked_for() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    fork.upstream_does("one more", |author| {
        author.git(&["switch", "-q", "-c", "release", "HEAD~3"]);
        author.write(FILE, FIXED.replace("length > BUFFER_SIZE", "length > MOST"));
        author.git(&["commit", "-q", "-a", "-m", "backport: check the length"]);
        author.git(&["push", "-q", "upstream", "release"]);
        author.git(&["switch", "-q", "main"]);
        author.write("more.c", "int more;\n");
    });
    let other = fork.upstream.sha("release");
    let url = |commit: &str| format!("https://git.example.org/them/parser/commit/{commit}");
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["affected"][0]["ranges"] = json!([]);
    advisory["references"] =
        json!([{"type": "FIX", "url": url(&lane.fix)}, {"type": "FIX", "url": url(&other)}]);
    lane.advise("ADV-2024-1.json", &advisory);
    let output = lane.list(&[]);
    assert_eq!(output.status, Some(10), "{}", output.snapshot());
    assert!(!output.stdout.contains("cleanly"), "{}", output.stdout);
    assert!(output.stdout.contains("land ADV-2024-1 --commit COMMIT"), "{}", output.stdout);
    let source = lane.advisories.to_string_lossy().into_owned();
    let args = ["security", "land", "ADV-2024-1", "--advisories", &source];
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&args));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    for commit in [&lane.fix, &other] {
        assert!(
            output.stderr.contains(&format!("--commit {}", &commit[..12])),
            "{}",
            output.stderr
        );
    }
}
