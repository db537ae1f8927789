//! `forklift security`: which of upstream's fixes the fork lacks.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::hermetic::{Hermetic, Output};
use testkit::repo::{Fork, Repo};

use crate::support::Person;

/// A parser with a hole.
pub(crate) const OPEN: &str = "int parse(char *text) {\n    int length = measure(text);\n    copy(buffer, text, length);\n\n    return length;\n}\n";

/// The same parser with upstream's fix.
pub(crate) const FIXED: &str = "int parse(char *text) {\n    int length = measure(text);\n    if (length > BUFFER_SIZE) {\n        return ERROR_TOO_LONG;\n    }\n    copy(buffer, text, length);\n\n    return length;\n}\n";

const FILE: &str = "src/parse.c";

/// A fork from before a fix, and advisories about it.
pub(crate) struct Lane {
    pub(crate) person: Person,
    pub(crate) advisories: PathBuf,
    /// Upstream's commit that makes the fix.
    pub(crate) fix: String,
}

impl Lane {
    /// Upstream fixes its parser between two other commits; `adapt` changes the fork before that.
    pub(crate) fn new(adapt: impl FnOnce(&Fork)) -> Option<Self> {
        let mut fix = String::new();
        let person = Person::with(|hermetic: &Hermetic| {
            let fork = Fork::new(hermetic);
            fork.upstream_commit(FILE, OPEN, "a parser");
            fork.checkout.git(&["fetch", "-q", "upstream"]);
            fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
            fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
            adapt(&fork);
            fork.upstream_commit("other.c", "int other;\n", "something else");
            fix = fork.upstream_commit(FILE, FIXED, "parse: check the length");
            fork.upstream_commit("other.c", "int other = 2;\n", "something else again");
            fork
        })?;
        let advisories = person.hermetic.root().join("advisories");
        std::fs::create_dir_all(&advisories).expect("a folder");
        let lane = Self { person, advisories, fix };
        lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", "0", &lane.fix.clone()));
        Some(lane)
    }

    /// An advisory about upstream.
    pub(crate) fn advisory(&self, id: &str, introduced: &str, fixed: &str) -> Value {
        json!({
            "schema_version": "1.6.0", "id": id, "aliases": [format!("CVE-2024-{}", 1000 + id.len())],
            "summary": "Buffer overflow in parse",
            "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
            "affected": [{
                "package": {"name": "parser", "ecosystem": "OSS-Fuzz"},
                "ranges": [{
                    "type": "GIT", "repo": "https://git.example.org/them/parser",
                    "events": [{"introduced": introduced}, {"fixed": fixed}],
                }],
            }],
        })
    }

    pub(crate) fn advise(&self, name: &str, advisory: &Value) {
        std::fs::write(self.advisories.join(name), advisory.to_string()).expect("written");
    }

    pub(crate) fn list(&self, flags: &[&str]) -> Output {
        let source = self.advisories.to_string_lossy().into_owned();
        let args = [&["security", "--advisories", &source], flags].concat();
        self.person.hermetic.run(&mut self.person.forklift(&args))
    }

    /// The findings as a script gets them, present ones included.
    pub(crate) fn findings(&self) -> Vec<Value> {
        findings(&self.list(&["--json"]))
    }

    #[track_caller]
    pub(crate) fn check_only(&self, state: &str, sureness: &str) {
        let found = self.findings();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["state"], &found[0]["sureness"]),
            (&json!(state), &json!(sureness)),
            "{found:?}"
        );
    }
}

pub(crate) fn findings(output: &Output) -> Vec<Value> {
    let line = output.stdout.lines().find(|line| line.contains("\"event\":\"security\""));
    let event: Value =
        serde_json::from_str(line.unwrap_or_else(|| panic!("{}", output.snapshot())))
            .expect("JSON");
    event["report"]["findings"].as_array().expect("a list").clone()
}

#[test]
fn a_missing_fix_is_listed_with_its_evidence_and_the_status_says_so() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let before = (
        lane.person.fork.checkout.head(),
        lane.person.fork.checkout.git(&["status", "--porcelain"]),
    );
    let output = lane.list(&[]);
    assert_eq!(output.status, Some(10), "{}", output.snapshot());
    for words in [
        "1 missing",
        "ADV-2024-1",
        "critical",
        "cleanly",
        &lane.fix[..12],
        "0 of 2 new lines are there",
        "forklift security land ADV-2024-1",
    ] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let after = (
        lane.person.fork.checkout.head(),
        lane.person.fork.checkout.git(&["status", "--porcelain"]),
    );
    assert_eq!(before, after);
    assert!(lane.person.runs().is_empty());
}

#[test]
fn a_fix_in_the_forks_history_is_present_and_the_status_is_zero() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    lane.person.fork.checkout.git(&["fetch", "-q", "upstream"]);
    lane.person.fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    lane.person.fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    let output = lane.list(&["--all"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("in the fork's history"), "{}", output.stdout);
    lane.check_only("present", "certain");
}

#[test]
fn the_same_change_under_another_id_is_present() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let checkout = &lane.person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["cherry-pick", &lane.fix]);
    checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    lane.check_only("present", "certain");
    checkout.write(FILE, FIXED.replace("return length", "return length + 0"));
    lane.person.fork.fork_commit("change it afterwards");
    lane.check_only("present", "likely");
}

#[test]
fn a_fix_made_by_hand_is_known_by_its_lines() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let text = FIXED.replace("    ", "\t").replace("int length", "int  length");
    lane.person.fork.checkout.write(FILE, format!("/* ours */\n{text}"));
    lane.person.fork.fork_commit("check lengths");
    lane.check_only("present", "likely");
}

#[test]
fn a_fix_that_the_fork_took_back_is_missing() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let checkout = &lane.person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    checkout.git(&["revert", "--no-edit", &lane.fix]);
    checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    lane.check_only("missing", "likely");
    let why = lane.findings()[0]["why"].to_string();
    assert!(why.contains("reverts it"), "{why}");
}

/// The fork takes upstream over in a merge that keeps its own files.
pub(crate) fn merge_ours(fork: &Fork) {
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "-s", "ours", "-m", "sync", "upstream/main"]);
    fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn a_fix_that_a_merge_left_out_is_missing_although_the_history_has_it() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    merge_ours(&lane.person.fork);
    lane.check_only("missing", "likely");
    let why = lane.findings()[0]["why"].to_string();
    assert!(why.contains("lost by a later change"), "{why}");
    let vex = lane.list(&["--format", "openvex"]).stdout;
    assert!(vex.contains("\"affected\"") && !vex.contains("\"fixed\""), "{vex}");
}

#[test]
fn a_fix_that_upstream_itself_wrote_anew_is_present() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let anew = OPEN.replace("copy(buffer, text, length);", "copy(buffer, text, bounded(length));");
    lane.person.fork.upstream_commit(FILE, &anew, "parse: bound the length in one place");
    let checkout = &lane.person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    lane.check_only("present", "likely");
}

#[test]
fn the_same_change_that_was_undone_without_a_word_is_missing() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let checkout = &lane.person.fork.checkout;
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["cherry-pick", &lane.fix]);
    checkout.write(FILE, OPEN);
    lane.person.fork.fork_commit("parse: as it was");
    lane.check_only("missing", "likely");
}

/// Upstream brings the hole in, and the fork takes it over in one squashed commit with changes of its own.
#[test]
fn a_hole_that_came_with_a_squashed_update_is_not_denied() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let fork = &lane.person.fork;
    let open = OPEN.replace("int parse", "int read");
    let introduced = fork.upstream_commit("src/read.c", &open, "a reader");
    let ours = open.replace("int length = measure", "int length = our_measure");
    fork.checkout.write("src/read.c", ours.replace("return length", "return ours + length"));
    fork.fork_commit("sync to upstream");
    let fix = fork.upstream_commit("src/read.c", &FIXED.replace("int parse", "int read"), "check");
    lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", &introduced, &fix));
    lane.check_only("unclear", "unknown");
    let vex = lane.list(&["--format", "openvex"]).stdout;
    assert!(!vex.contains("vulnerable_code_not_present"), "{vex}");
}

#[test]
fn a_fix_of_two_commits_that_build_on_one_another_is_missing_as_one() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let better = FIXED.replace("ERROR_TOO_LONG", "fail(ERROR_TOO_LONG)");
    let second = lane.person.fork.upstream_commit(FILE, &better, "parse: a better error");
    let url = |commit: &str| format!("https://git.example.org/them/parser/commit/{commit}");
    let references: Vec<Value> =
        [&lane.fix, &second].map(|it| json!({"type": "FIX", "url": url(it)})).into();
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["affected"][0]["ranges"] = json!([]);
    advisory["references"] = json!(references);
    lane.advise("ADV-2024-1.json", &advisory);
    lane.check_only("missing", "likely");
    let found = lane.findings();
    assert_eq!(found[0]["fixes"].as_array().map(Vec::len), Some(2), "{found:?}");
    let output = lane.list(&[]);
    assert!(output.stdout.contains("cleanly"), "{}", output.stdout);
}

#[test]
fn sources_that_say_nothing_about_upstream_are_no_good_news() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let other = json!({"id": "X-1", "affected": [{"package": {"name": "z", "ecosystem": "Go"}}]});
    lane.advise("ADV-2024-1.json", &other);
    let output = lane.list(&["--quiet"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stderr.contains("none of the advisories is about upstream"),
        "{}",
        output.stderr
    );
    let mut command = lane.person.forklift(&["security", "--quiet"]);
    let output = lane.person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("no source of advisories is set"), "{}", output.stderr);
}

#[test]
fn what_nobody_can_tell_is_unclear_and_does_not_change_the_status() {
    let Some(lane) = Lane::new(|fork| {
        let ours = OPEN.replace("copy(buffer, text, length)", "copy_all(text)");
        fork.checkout.write(FILE, ours.replace("return length", "return all"));
        fork.fork_commit("another way to copy");
    }) else {
        return;
    };
    let conflicting = "int parse(char *text) {\n    if (measure(text) > BUFFER_SIZE) {\n        return ERROR_TOO_LONG;\n    }\n    return 0;\n}\n";
    let fix = lane.person.fork.upstream_commit(FILE, conflicting, "parse: once more");
    lane.advise("ADV-2024-1.json", &lane.advisory("ADV-2024-1", "0", &fix));
    lane.check_only("unclear", "unknown");
    assert_eq!(lane.list(&[]).status, Some(0));
}

#[test]
fn a_fix_that_is_only_known_to_lie_in_a_range_is_unclear() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    let start = lane.person.fork.upstream.git(&["rev-parse", &format!("{}~2", lane.fix)]);
    let range = format!("{}:{}", start.trim(), lane.fix);
    advisory["affected"][0]["database_specific"] = json!({"fixed_range": range});
    lane.advise("ADV-2024-1.json", &advisory);
    lane.check_only("unclear", "unknown");
    assert!(lane.findings()[0]["why"].to_string().contains("one of 2 commits"));
}

#[test]
fn upstreams_own_words_are_a_source_and_are_said_to_be_one() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    std::fs::remove_file(lane.advisories.join("ADV-2024-1.json")).expect("removed");
    lane.advise("OTHER-1.json", &json!({"id": "OTHER-1"}));
    let more = FIXED.replace("return length;", "wipe(buffer, length);\n    return length;");
    lane.person.fork.upstream_commit(FILE, &more, "parse: wipe the buffer\n\nFixes CVE-2024-7777.");
    lane.person.fork.upstream_does("Revert CVE-2024-8888", |author: &Repo| {
        author.write("other.c", "int other = 3;\n");
    });
    lane.person.fork.upstream.git(&["tag", "-a", "-m", "Fixes CVE-2024-9999 too", "v2.0", "main"]);
    let found = lane.findings();
    assert_eq!(lane.person.fork.checkout.git(&["tag"]), "", "tags came into the checkout");
    let row = |id: &str| {
        found.iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("{id}: {found:?}"))
    };
    assert_eq!(row("CVE-2024-7777")["source"]["kind"], "message");
    assert_eq!(row("CVE-2024-7777")["severity"], "unknown");
    assert_eq!(row("CVE-2024-9999")["source"], json!({"kind": "tag", "name": "v2.0"}));
    assert_eq!(row("CVE-2024-9999")["state"], "unclear");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_pull_request_that_an_advisory_names_is_found_by_its_number() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let text = FIXED.replace("return length;", "wipe(buffer, length);\n    return length;");
    let fix = lane.person.fork.upstream_commit(FILE, &text, "parse: wipe the buffer (#321)");
    let url = "https://git.example.org/them/parser/pull/321";
    lane.advise(
        "ADV-2024-2.json",
        &json!({"id": "ADV-2024-2", "references": [{"type": "FIX", "url": url}],
            "affected": [{"package": {"name": "git.example.org/them/parser", "ecosystem": "Go"}}]}),
    );
    let output = lane.list(&["--json", "--project", "https://git.example.org/them/parser"]);
    let found = findings(&output);
    let row = found.iter().find(|it| it["id"] == "ADV-2024-2").expect("listed");
    assert_eq!(row["fixes"][0]["commit"], fix);
}

#[test]
fn advisories_are_read_from_a_repository_at_a_ref() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let repo = Repo::init(lane.person.hermetic.root().join("database"));
    repo.write("README.md", "x\n").commit("start");
    repo.branch("osv").checkout("osv");
    repo.write("osv/ADV-2024-3.yaml", format!("id: ADV-2024-3\naffected:\n- ranges:\n  - type: GIT\n    events:\n    - introduced: '0'\n    - fixed: {}\n  ecosystem_specific: {{severity: HIGH}}\n", lane.fix)).commit("an advisory");
    repo.checkout("main");
    let source = format!("{}#osv", repo.dir().display());
    let mut command = lane.person.forklift(&["security", "--json", "--advisories", &source]);
    let output = lane.person.hermetic.run(&mut command);
    let found = findings(&output);
    assert_eq!((&found[0]["id"], &found[0]["severity"]), (&json!("ADV-2024-3"), &json!("high")));
}

#[test]
fn the_configuration_names_sources_for_every_fork() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let mut command = lane.person.forklift(&["security"]);
    let output = lane.person.hermetic.run(command.env("BOTTLEWORKS_ADVISORIES", &lane.advisories));
    assert_eq!(output.status, Some(10), "{}", output.snapshot());
}

#[test]
fn sarif_and_openvex_are_whole_documents() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let document = |format: &str| -> Value {
        let output = lane.list(&["--format", format]);
        assert_eq!(output.status, Some(10), "{}", output.snapshot());
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
    };
    let sarif = document("sarif");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "ADV-2024-1");
    let place = "/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri";
    assert_eq!(sarif.pointer(place), Some(&json!(FILE)));
    let vex = document("openvex");
    assert_eq!(vex["statements"][0]["status"], "affected");
    assert_eq!(vex["statements"][0]["vulnerability"]["name"], "ADV-2024-1");
}

#[test]
fn what_is_less_severe_can_be_left_out() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let mut advisory = lane.advisory("ADV-2024-1", "0", &lane.fix);
    advisory["severity"] = json!([]);
    advisory["database_specific"] = json!({"severity": "LOW"});
    lane.advise("ADV-2024-1.json", &advisory);
    assert_eq!(lane.list(&["--min-severity", "low"]).status, Some(10));
    assert_eq!(lane.list(&["--min-severity", "high"]).status, Some(0));
}

/// Every file of the folder is hostile, and none of them stops the good one from being read.
#[test]
fn hostile_files_are_counted_and_the_others_are_read() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let write =
        |name: &str, text: &str| std::fs::write(lane.advisories.join(name), text).expect("written");
    write("path.json", r#"{"id": "../../../etc/passwd"}"#);
    write("deep.json", &format!("{{\"id\": {}", "[".repeat(200_000)));
    write("large.json", &format!("{{\"id\": \"X-1\", \"details\": \"{}\"}}", "x".repeat(17 << 20)));
    write("bytes.yaml", "\u{0}\u{1}");
    write(
        "escape.json",
        &format!(
            r#"{{"id": "X-2", "summary": "\u001b[2J\u202egone", "affected": [{{"ranges": [{{"type": "GIT", "events": [{{"introduced": "0"}}, {{"fixed": "{}"}}]}}]}}]}}"#,
            lane.fix
        ),
    );
    std::os::unix::fs::symlink("/etc/passwd", lane.advisories.join("link.json")).expect("a link");
    std::os::unix::fs::symlink("..", lane.advisories.join("loop")).expect("a link");
    let output = lane.list(&[]);
    assert_eq!(output.status, Some(10), "{}", output.snapshot());
    assert!(
        output.stdout.contains("ADV-2024-1") && output.stdout.contains("X-2"),
        "{}",
        output.stdout
    );
    assert!(output.stderr.contains("4 files of"), "{}", output.stderr);
    assert!(!output.stdout.contains(['\u{1b}', '\u{202e}']), "{:?}", output.stdout);
    assert!(!output.stdout.contains("root:"), "{}", output.stdout);
}

#[test]
fn wrong_sources_are_usage_errors_that_name_the_remedy() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let list = |args: &[&str]| {
        let args = [&["security"], args].concat();
        let output = lane.person.hermetic.run(&mut lane.person.forklift(&args));
        assert_eq!(output.status, Some(2), "{args:?}: {}", output.snapshot());
        output.stderr
    };
    assert!(list(&["--advisories", "/no/such/folder"]).contains("there is no folder"));
    let empty = lane.person.hermetic.root().join("empty");
    std::fs::create_dir_all(&empty).expect("a folder");
    assert!(list(&["--advisories", path(&empty)]).contains("no file ends with .json"));
    assert!(list(&["--advisories", "ext::sh -c date"]).contains("not a source"));
    let absent = list(&["--advisories", "https://git.example.org/osv"]);
    assert!(absent.contains("no copy of") && absent.contains("--update"), "{absent}");
    lane.person.fork.checkout.write("FORK.md", "---\nsecurity: {advisories: [/etc]}\n---\n");
    lane.person.fork.fork_commit("reach out");
    assert!(list(&[]).contains("a folder of this machine"));
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn without_advisories_upstreams_words_are_searched_and_the_lack_is_said() {
    let Some(lane) = Lane::new(|_| {}) else { return };
    let output = lane.person.hermetic.run(&mut lane.person.forklift(&["security"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("none: name a source with --advisories"), "{}", output.stdout);
}
