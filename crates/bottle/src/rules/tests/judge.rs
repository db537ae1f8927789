//! Verdicts and statuses over every end of an agent and every report of its own.

use engine::evidence::{Evidence, SensitiveChange};
use engine::run::ImportOutcome;
use model::sensitive_path::SensitiveKind;
use model::verdict::Ended;
use sidecar::DoneStatus;

use super::super::judge::{AgentWork, headless_status, judge};
use super::super::leak::{ScanOutcome, ScanReport};

fn ends() -> [Ended; 10] {
    [
        Ended::Exited { code: 0 },
        Ended::Exited { code: 7 },
        Ended::Exited { code: 300 },
        Ended::Signalled { signal: 9 },
        Ended::OutOfTime,
        Ended::OutOfMemory,
        Ended::OutOfSpace,
        Ended::Stopped,
        Ended::Frozen,
        Ended::Infra { reason: "the shim died".to_owned() },
    ]
}

const REPORTS: [(&str, Option<DoneStatus>); 4] = [
    ("no report", None),
    ("success", Some(DoneStatus::Success)),
    ("failure", Some(DoneStatus::Failure)),
    ("blocked", Some(DoneStatus::Blocked)),
];

fn aftermath(
    ended: Ended,
    report: Option<DoneStatus>,
    import: ImportOutcome,
) -> AgentWork<'static> {
    AgentWork {
        ended,
        report,
        import,
        scans: &[],
        protected: &[],
        allowed: &[],
        changed: &[],
        acting: &[],
        planning: false,
    }
}

fn good() -> Evidence {
    Evidence { base_reachable: true, ..Evidence::default() }
}

#[test]
fn every_end_with_every_report() {
    let mut lines = Vec::new();
    for ended in ends() {
        for (words, report) in REPORTS {
            let import = ImportOutcome::Commits(Box::new(good()));
            let verdict = judge(&aftermath(ended.clone(), report, import)).words();
            let status = headless_status(&ended, report);
            lines.push(format!("{ended:?}, {words}: {verdict}; status {status}"));
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Exited { code: 0 }, no report: the work holds; status 0
    Exited { code: 0 }, success: the work holds; status 0
    Exited { code: 0 }, failure: not finished: the agent says that it could not do it; status 0
    Exited { code: 0 }, blocked: not finished: the agent waits for a person; status 0
    Exited { code: 7 }, no report: not finished: status 7; status 7
    Exited { code: 7 }, success: the work holds; status 7
    Exited { code: 7 }, failure: not finished: the agent says that it could not do it; status 7
    Exited { code: 7 }, blocked: not finished: the agent waits for a person; status 7
    Exited { code: 300 }, no report: not finished: status 300; status 1
    Exited { code: 300 }, success: the work holds; status 1
    Exited { code: 300 }, failure: not finished: the agent says that it could not do it; status 1
    Exited { code: 300 }, blocked: not finished: the agent waits for a person; status 1
    Signalled { signal: 9 }, no report: not finished: ended by signal 9; status 137
    Signalled { signal: 9 }, success: not finished: ended by signal 9; status 137
    Signalled { signal: 9 }, failure: not finished: ended by signal 9; status 137
    Signalled { signal: 9 }, blocked: not finished: ended by signal 9; status 137
    OutOfTime, no report: not finished: out of time; status 124
    OutOfTime, success: not finished: out of time; status 124
    OutOfTime, failure: not finished: out of time; status 124
    OutOfTime, blocked: not finished: out of time; status 124
    OutOfMemory, no report: not finished: it used up its memory; status 137
    OutOfMemory, success: not finished: it used up its memory; status 137
    OutOfMemory, failure: not finished: it used up its memory; status 137
    OutOfMemory, blocked: not finished: it used up its memory; status 137
    OutOfSpace, no report: not finished: it used up its disk space; status 137
    OutOfSpace, success: not finished: it used up its disk space; status 137
    OutOfSpace, failure: not finished: it used up its disk space; status 137
    OutOfSpace, blocked: not finished: it used up its disk space; status 137
    Stopped, no report: not finished: stopped; status 143
    Stopped, success: not finished: stopped; status 143
    Stopped, failure: not finished: stopped; status 143
    Stopped, blocked: not finished: stopped; status 143
    Frozen, no report: not finished: frozen before it said that it is done; status 143
    Frozen, success: the work holds; status 0
    Frozen, failure: not finished: the agent says that it could not do it; status 1
    Frozen, blocked: not finished: the agent waits for a person; status 8
    Infra { reason: "the shim died" }, no report: the machine failed: the shim died; status 125
    Infra { reason: "the shim died" }, success: the machine failed: the shim died; status 125
    Infra { reason: "the shim died" }, failure: the machine failed: the shim died; status 125
    Infra { reason: "the shim died" }, blocked: the machine failed: the shim died; status 125
    "#);
}

#[test]
fn every_import_of_an_agent_that_ended_well() {
    let of = |import| judge(&aftermath(Ended::Exited { code: 0 }, None, import)).words();
    let all = [
        of(ImportOutcome::Nothing),
        of(ImportOutcome::Refused("the bundle is longer than 1 GiB".to_owned())),
        of(ImportOutcome::Commits(Box::new(good()))),
        of(ImportOutcome::Commits(Box::default())),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    no new commits
    not to be published: the bundle is longer than 1 GiB
    the work holds
    not to be published: history that others built on is not in the result; merge it
    ");
}

/// Verdict over evidence with a fault.
fn faulty(change: impl FnOnce(&mut Evidence)) -> String {
    let mut evidence = good();
    change(&mut evidence);
    judge(&aftermath(Ended::Exited { code: 0 }, None, ImportOutcome::Commits(Box::new(evidence))))
        .words()
}

#[test]
fn every_fault_of_commits() {
    let one = |word: &str| vec![word.to_owned()];
    let all = [
        faulty(|it| it.base_reachable = false),
        faulty(|it| it.foreign_identities = one("Eve <eve@example.com>")),
        faulty(|it| it.links_leaving = one("link")),
        faulty(|it| it.gitlinks_made = one("vendor/lib")),
        faulty(|it| it.markers_left = one("src/a.rs")),
        faulty(|it| it.oversize = one("movie.mkv")),
        faulty(|it| it.links_broken = one("loop")),
        faulty(|it| it.submodules_changed = one("lib: https://evil.example")),
        faulty(|it| it.odd_modes = one("100664 a")),
        faulty(|it| it.sensitive = vec![hook()]),
        faulty(|it| {
            it.links_leaving = one("link");
            it.oversize = one("movie.mkv");
        }),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    not to be published: history that others built on is not in the result; merge it
    not to be published: not by the box's own identity: Eve <eve@example.com>
    not to be published: a link leads out of the tree: link
    not to be published: a link to another repository: vendor/lib
    not to be published: conflict markers: src/a.rs
    not to be published: too large: movie.mkv
    not to be published: a link cannot be followed: loop
    not to be published: address of a submodule: lib: https://evil.example
    not to be published: odd mode: 100664 a
    not to be published: waits for a person (allow_paths in the manifest): .husky/pre-push (git hook)
    not to be published: a link leads out of the tree: link; too large: movie.mkv
    ");
}

fn hook() -> SensitiveChange {
    SensitiveChange { path: ".husky/pre-push".to_owned(), kind: SensitiveKind::GitHook }
}

#[test]
fn what_acts_by_itself_is_published_once_the_manifest_allows_it() {
    let allowed = [".husky".to_owned()];
    let changed = [b".husky/pre-push".to_vec()];
    let evidence = Evidence { sensitive: vec![hook()], ..good() };
    let import = ImportOutcome::Commits(Box::new(evidence));
    let after = aftermath(Ended::Exited { code: 0 }, None, import);
    let after = AgentWork { protected: &allowed, changed: &changed, ..after };
    let refused = judge(&after).words();
    assert_eq!(refused, "not to be published: protected path: .husky/pre-push");
    assert_eq!(judge(&AgentWork { allowed: &allowed, ..after }).words(), "the work holds");
}

/// Verdict over a changed path with these protected patterns.
fn touched(path: &[u8], protected: &[&str]) -> String {
    let protected: Vec<String> = protected.iter().map(|it| (*it).to_owned()).collect();
    let changed = [path.to_vec()];
    let after =
        aftermath(Ended::Exited { code: 0 }, None, ImportOutcome::Commits(Box::new(good())));
    judge(&AgentWork { protected: &protected, changed: &changed, ..after }).words()
}

#[test]
fn protected_paths() {
    let usual = [".github/workflows", "*.lock", "/deploy"];
    let paths: [&[u8]; 7] = [
        b".github/workflows/ci.yml",
        b".github/CODEOWNERS",
        b"Cargo.lock",
        b"sub/Cargo.lock",
        b"deploy/prod.sh",
        b"sub/deploy/prod.sh",
        b"src/a\nb.rs",
    ];
    let line = |path: &&[u8]| {
        format!("{}: {}", String::from_utf8_lossy(path).escape_debug(), touched(path, &usual))
    };
    let lines: Vec<String> = paths.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    .github/workflows/ci.yml: not to be published: protected path: .github/workflows/ci.yml
    .github/CODEOWNERS: the work holds
    Cargo.lock: not to be published: protected path: Cargo.lock
    sub/Cargo.lock: not to be published: protected path: sub/Cargo.lock
    deploy/prod.sh: not to be published: protected path: deploy/prod.sh
    sub/deploy/prod.sh: the work holds
    src/a\nb.rs: the work holds
    ");
}

/// Verdict over a scan's outcome.
fn scanned(engine: &str, status: ScanOutcome) -> String {
    let report =
        ScanReport { engine: engine.to_owned(), version: None, program_sha256: None, status };
    let after =
        aftermath(Ended::Exited { code: 0 }, None, ImportOutcome::Commits(Box::new(good())));
    judge(&AgentWork { scans: &[report], ..after }).words()
}

#[test]
fn every_outcome_of_a_scan() {
    let listed = vec!["a1: key = ***".to_owned()];
    let all = [
        scanned("built-in", ScanOutcome::Clean),
        scanned("built-in", ScanOutcome::Findings { count: 2, listed }),
        scanned("gitleaks", ScanOutcome::Findings { count: 1, listed: Vec::new() }),
        scanned("gitleaks", ScanOutcome::Error { reason: "it ended with status 1".to_owned() }),
        scanned("gitleaks", ScanOutcome::NotRun { reason: "not installed".to_owned() }),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    the work holds
    not to be published: built-in found 2 secrets: a1: key = ***
    not to be published: gitleaks found 1 secret
    not to be published: gitleaks could not look at everything: it ended with status 1
    the work holds
    ");
}
