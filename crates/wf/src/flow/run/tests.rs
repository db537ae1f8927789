//! Whole cycles with a workshop that plays agents: the golden scenarios of section 10, and crashes after acceptance.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

use host::git::ProductRepo;
use host::signal::{Cancel, CancelReason};
use model::id::{BranchName, MicroCommitId, ProjectName, Sha, WorkstreamId};
use model::verdict::WfStatus;
use serde_json::Value;
use testkit::repo::Repo;

use super::{RunOrder, run};
use crate::cli::OutputArgs;
use crate::disk::journal::{Journal, OpenRun};
use crate::disk::site::Site;
use crate::disk::workstream::Workstream;
use crate::flow::create::{Wish, create};
use crate::flow::stage::{
    AgentEnd, ImplementOrder, ReviewOrder, StageError, SuiteEnd, SuiteOrder, Workshop,
};
use crate::rules::pipeline::{Report, Rounds, Stage};
use crate::rules::project::Project;
use crate::rules::schema::Schema;
use crate::ui::Ui;

const APPROVE: &str = r#"{"version": 1, "decision": "approve"}"#;
const CHANGES: &str = r#"```json
{"version": 1, "decision": "request_changes", "blockers": [{"file": "a", "issue": "no"}]}
```"#;
const SUCCESS: &str = r#"Done. {"status": "success"}"#;

/// What the implementer does in the worktree.
type Act = Box<dyn Fn(&Repo, &MicroCommitId)>;

/// Plays agents: what the implementer does and says, what the reviewer says.
struct Play {
    act: Act,
    reply: &'static str,
    reviews: RefCell<VecDeque<&'static str>>,
    seen: RefCell<Vec<String>>,
}

impl Play {
    fn new(reply: &'static str, reviews: &[&'static str]) -> Self {
        let act = |worktree: &Repo, id: &MicroCommitId| {
            worktree.write(&format!("mk/{id}"), "x\n").commit(&format!("{id}: made"));
        };
        let reviews = RefCell::new(reviews.iter().copied().collect());
        Self { act: Box::new(act), reply, reviews, seen: RefCell::default() }
    }
}

impl Workshop for Play {
    async fn implement(&self, order: ImplementOrder<'_>) -> Result<AgentEnd, StageError> {
        assert!(order.block.contains(order.commit.id.as_str()) && order.scene.run_dir.is_dir());
        self.seen.borrow_mut().extend(order.history.iter().cloned());
        let worktree = Repo::open(&order.scene.workstream.meta.worktree);
        assert_eq!(worktree.head(), order.head.as_str());
        (self.act)(&worktree, &order.commit.id);
        Ok(AgentEnd { text: self.reply.to_owned() })
    }

    async fn review(&self, order: ReviewOrder<'_>) -> Result<AgentEnd, StageError> {
        assert!(
            order.scene.cancel.reason().is_none() && order.block.contains(order.commit.id.as_str())
        );
        self.seen.borrow_mut().push(fs::read_to_string(order.diff).expect("the diff"));
        let text = self.reviews.borrow_mut().pop_front().unwrap_or(APPROVE);
        Ok(AgentEnd { text: text.to_owned() })
    }

    async fn suite(&self, order: SuiteOrder<'_>) -> Result<SuiteEnd, StageError> {
        panic!("the tests run on the host, not {} in a box", order.name);
    }
}

/// A project with one workstream, `tf`.
struct World {
    temp: tempfile::TempDir,
    site: Site,
    product: Repo,
}

impl World {
    async fn new(commits: usize, makefile: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let product = Repo::init(temp.path().join("app"));
        product.write("Makefile", makefile).commit("start");
        let ops = temp.path().canonicalize().unwrap().join("app.ops");
        let site = Site {
            project: Project {
                name: ProjectName::parse("app").unwrap(),
                repo: product.dir().to_path_buf(),
                ops: Some(ops.clone()),
                default_branch: BranchName::parse("main").unwrap(),
                branch_prefix: "feat".to_owned(),
            },
            dir: ops.join("workflow/projects/app"),
            ops,
            warnings: Vec::new(),
        };
        fs::create_dir_all(&site.dir).unwrap();
        fs::write(site.dir.join("project_profile.env"), "TEST_IN=host\n").unwrap();
        let handle = ProductRepo::discover(product.dir()).await.unwrap();
        let wish = Wish { id: "tf", title: "Test framework", expected: "mk/", prefix: None };
        create(&site, &handle, &wish).await.unwrap();
        let blocks = (1..=commits).map(|n| format!("### COMMIT-TF-{n:03}: Step {n}\nDone: [ ]\n"));
        let world = Self { temp, site, product };
        fs::write(world.dir().join("plan.md"), blocks.collect::<String>()).unwrap();
        world
    }

    fn dir(&self) -> PathBuf {
        self.site.workstreams_dir().join("tf")
    }

    async fn run(&self, play: &Play, rounds: Rounds) -> WfStatus {
        self.run_until(play, rounds, &Cancel::new()).await
    }

    async fn run_until(&self, play: &Play, rounds: Rounds, cancel: &Cancel) -> WfStatus {
        let id = WorkstreamId::parse("tf").unwrap();
        let ui = Ui::new(OutputArgs { json: false, quiet: true });
        let order = RunOrder { site: &self.site, id: &id, rounds, workshop: play, cancel, ui };
        run(&order).await.unwrap()
    }

    fn meta(&self) -> crate::rules::meta::Meta {
        Workstream::load_dir(&self.dir()).unwrap().meta
    }

    fn plan(&self) -> String {
        fs::read_to_string(self.dir().join("plan.md")).unwrap()
    }

    fn worktree(&self) -> Repo {
        Repo::open(self.site.worktrees_dir().join("tf"))
    }

    /// The last run's directory and its result, which must keep the schema.
    fn last(&self) -> (PathBuf, Value) {
        let run = self.site.runs_dir().join(self.meta().last_run_id.unwrap());
        let result: Value =
            serde_json::from_slice(&fs::read(run.join("result.json")).unwrap()).unwrap();
        assert_eq!(Schema::Result.check(&result), Ok(()));
        (run, result)
    }

    fn runs(&self) -> usize {
        fs::read_dir(self.site.runs_dir()).unwrap().count()
    }
}

const GOOD: &str = "test-unit:\n\t@echo fine\n";
const BAD: &str = "test-unit:\n\t@echo broken; exit 1\n";

#[tokio::test]
async fn golden_10_1_one_micro_commit_goes_all_the_way() {
    let world = World::new(1, GOOD).await;
    let play = Play::new(SUCCESS, &[APPROVE]);
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Success);
    let (run, result) = world.last();
    assert!(run.to_string_lossy().ends_with("_app_tf_COMMIT-TF-001"));
    for file in [
        "result.json",
        "run_summary.md",
        "commands.log",
        "env_snapshot.txt",
        "diff.patch",
        "claude_review.json",
        "test_manifest.json",
        "implement.log",
        "run.jsonl",
    ] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert_eq!(
        (result["status"].as_str(), result["touched_files_count"].as_u64()),
        (Some("passed"), Some(1))
    );
    assert_eq!(result["stages"].as_object().unwrap().len(), 11, "{result}");
    let head = world.worktree().head();
    assert_eq!(result["commit_sha"], head);
    assert!(world.worktree().git(&["log", "-1", "--format=%s"]).starts_with("COMMIT-TF-001:"));
    assert!(world.plan().contains("Done: [x]"));
    let meta = world.meta();
    assert_eq!(meta.last_commit_sha.unwrap().as_str(), head);
    // D90: the completing cycle passes and asks for acceptance.
    assert_eq!((meta.status.word(), meta.blocked_by), ("uat:pending", vec!["UAT-001".to_owned()]));
    assert_eq!(
        fs::read_to_string(world.dir().join("touched_files.txt")).unwrap(),
        "mk/COMMIT-TF-001\n"
    );
    let manifest: Value =
        serde_json::from_slice(&fs::read(run.join("test_manifest.json")).unwrap()).unwrap();
    assert_eq!(Schema::TestManifest.check(&manifest), Ok(()));
    assert_eq!(manifest["suites"][0]["status"], "passed");
    assert_eq!(manifest["suites"][3]["status"], "skipped");
    assert!(
        world.temp.path().exists() && world.product.git(&["log", "--format=%s", "main"]) == "start"
    );
}

#[tokio::test]
async fn golden_10_2_failing_tests() {
    let world = World::new(1, BAD).await;
    let play = Play::new(SUCCESS, &[]);
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Test);
    let (run, result) = world.last();
    assert_eq!(
        (result["status"].as_str(), result["failed_stage"].as_str()),
        (Some("failed"), Some("test"))
    );
    assert!(world.plan().contains("Done: [ ]"));
    assert_eq!(world.meta().status.word(), "blocked:test");
    assert!(!run.join("claude_review.json").exists());
    // D81, D82: the commit stays, and the next try hears about the failure.
    world.worktree().write("Makefile", GOOD).commit("COMMIT-TF-001: fix the tests");
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Success);
    assert!(play.seen.borrow().iter().any(|words| words.contains("broken")), "{:?}", play.seen);
}

#[tokio::test]
async fn golden_10_3_changes_requested_then_approved() {
    let world = World::new(1, GOOD).await;
    let mut play = Play::new(SUCCESS, &[CHANGES]);
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Review);
    let (run, result) = world.last();
    assert_eq!(
        (result["status"].as_str(), result["failed_stage"].as_str()),
        (Some("failed"), Some("review"))
    );
    assert!(fs::read_to_string(run.join("claude_review.json")).unwrap().contains("blockers"));
    assert_eq!(world.meta().status.word(), "blocked:review");
    // D77: an agent that does nothing does not pass on the strength of the old commit.
    play.act = Box::new(|_, _| {});
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Implement);
    assert!(play.seen.borrow().iter().any(|words| words.contains("The reviewer demands: a: no")));
    play.act = Box::new(|worktree, id| {
        worktree.write("mk/more", "y\n").commit(&format!("{id}: better"));
    });
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Success);
    // D86: the diff begins at the last accepted commit, so both commits of this micro-commit are in it.
    let seen = play.seen.borrow();
    let diff = seen.last().unwrap();
    assert!(diff.contains("mk/more") && diff.contains("mk/COMMIT-TF-001"), "{diff}");
}

#[tokio::test]
async fn an_invalid_review_leaves_its_words_and_no_file_d88() {
    let world = World::new(1, GOOD).await;
    assert_eq!(world.run(&Play::new(SUCCESS, &["LGTM"]), Rounds::Once).await, WfStatus::Review);
    let (run, _) = world.last();
    assert!(!run.join("claude_review.json").exists());
    assert_eq!(fs::read_to_string(run.join("review.log")).unwrap(), "LGTM");
    assert_eq!(world.meta().status.word(), "implement");
}

#[tokio::test]
async fn a_question_of_the_agent_blocks_d76() {
    let world = World::new(1, GOOD).await;
    let play = Play::new(
        r#"{"status": "clarification_needed", "question": "Which?", "options": ["a"]}"#,
        &[],
    );
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Blocked);
    let meta = world.meta();
    assert_eq!(
        (meta.status.word(), meta.blocked_by),
        ("blocked:clarification", vec!["CLQ-001".to_owned()])
    );
    assert_eq!(world.last().1["blocked_reason"], "CLQ-001");
    assert!(world.dir().join("clarifications/pending/CLQ-001.json").is_file());
}

#[tokio::test]
async fn silence_failure_and_wandering_are_failures_of_implement_d79_d80() {
    let world = World::new(1, GOOD).await;
    for reply in ["no JSON", r#"{"status": "failure", "notes": "cannot"}"#] {
        assert_eq!(world.run(&Play::new(reply, &[]), Rounds::Once).await, WfStatus::Implement);
    }
    let mut play = Play::new(SUCCESS, &[]);
    play.act = Box::new(|worktree, id| {
        worktree.write("secrets/key", "x").commit(&format!("{id}: x"));
    });
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Implement);
    assert!(world.last().1["notes"].as_str().unwrap().contains("forbidden"));
    play.act = Box::new(|worktree, id| {
        worktree.git(&["branch", "sneaky"]);
        worktree.write("mk/a", "x").commit(&format!("{id}: x"));
    });
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Implement);
    assert!(world.last().1["notes"].as_str().unwrap().contains("refs/heads/sneaky"));
    assert_eq!(world.meta().status.word(), "implement");
}

#[tokio::test]
async fn golden_10_6_a_loop_goes_on_to_acceptance() {
    let world = World::new(3, GOOD).await;
    let play = Play::new(SUCCESS, &[]);
    assert_eq!(world.run(&play, Rounds::Loop).await, WfStatus::Blocked);
    assert_eq!(world.runs(), 4, "three cycles, and the one that waits for acceptance (D127)");
    assert_eq!(world.plan().matches("[x]").count(), 3);
    assert_eq!(world.meta().status.word(), "uat:pending");
    let seen = play.seen.borrow();
    assert!(
        seen.iter().all(|diff| diff.matches("diff --git").count() == 1),
        "each review sees its own commit (D86)"
    );
}

#[tokio::test]
async fn supervision_stops_a_loop_after_each_commit_d41() {
    let world = World::new(2, GOOD).await;
    fs::write(world.site.dir.join("project_profile.env"), "TEST_IN=host\nHITL_MODE=strict\n")
        .unwrap();
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Loop).await, WfStatus::Success);
    assert_eq!((world.runs(), world.plan().matches("[x]").count()), (1, 1));
}

#[tokio::test]
async fn a_loop_stops_at_the_first_failure() {
    let world = World::new(3, GOOD).await;
    let play = Play::new(SUCCESS, &[APPROVE, CHANGES]);
    assert_eq!(world.run(&play, Rounds::Loop).await, WfStatus::Review);
    assert_eq!((world.runs(), world.plan().matches("[x]").count()), (2, 1));
}

#[tokio::test]
async fn a_broken_makefile_is_a_failure_and_a_missing_target_is_not_d84() {
    let world = World::new(1, "test-unit:\nbroken line\n").await;
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Test);
    let world = World::new(1, "other:\n\ttrue\n").await;
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Success);
    assert!(world.last().1["notes"].as_str().unwrap().contains("no test suite ran"));
    let world = World::new(1, "other:\n\ttrue\n").await;
    fs::write(world.site.dir.join("project_profile.env"), "TEST_IN=host\nQA_STRICT=true\n")
        .unwrap();
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Qa);
}

#[tokio::test]
async fn tests_out_of_time_fail_with_124_d85() {
    let world = World::new(1, "test-unit:\n\tsleep 600\n").await;
    fs::write(world.site.dir.join("project_profile.env"), "TEST_IN=host\nTEST_TIMEOUT=1\n")
        .unwrap();
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Test);
    let manifest = fs::read_to_string(world.last().0.join("test_manifest.json")).unwrap();
    assert!(manifest.contains("\"exit_code\": 124"), "{manifest}");
}

#[tokio::test]
async fn only_fresh_evidence_counts_d56_d89() {
    let makefile = "test-unit:\n\tmkdir -p test-results/app/unit\n\techo '{\"failed\": 1}' > test-results/app/unit/summary.json\n";
    let world = World::new(1, makefile).await;
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Qa);
    assert!(world.last().0.join("tests/unit/summary.json").is_file());
    let world = World::new(1, GOOD).await;
    world.worktree().write("test-results/app/unit/summary.json", "{\"failed\": 1}");
    assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Success);
}

#[tokio::test]
async fn who_is_told_to_stop_stops_and_writes_it_down_d66() {
    let world = World::new(1, GOOD).await;
    let cancel = Cancel::new();
    let wish = cancel.clone();
    let mut play = Play::new(SUCCESS, &[]);
    play.act = Box::new(move |worktree, id| {
        worktree.write("mk/a", "x").commit(&format!("{id}: x"));
        wish.cancel(CancelReason::Asked("a test".into()));
    });
    assert_eq!(world.run_until(&play, Rounds::Once, &cancel).await, WfStatus::General);
    let (_, result) = world.last();
    assert_eq!(
        (result["failed_stage"].as_str(), result["exit_code"].as_u64()),
        (Some("implement"), Some(1))
    );
    assert!(
        !host::lock::is_held(&world.site.workstream_lock(&WorkstreamId::parse("tf").unwrap()))
            .unwrap()
    );
}

#[test]
fn a_stop_after_acceptance_does_not_take_it_back_d66() {
    let passed = super::heed(&stopped(), Stage::UpdateState, Report::Passed);
    assert_eq!(passed, Report::Passed);
    assert!(matches!(super::heed(&stopped(), Stage::Docs, Report::Passed), Report::Stopped { .. }));
}

fn stopped() -> Cancel {
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Asked("a test".into()));
    cancel
}

#[tokio::test]
async fn a_panic_in_a_stage_is_an_ending_too_d118() {
    let world = World::new(1, GOOD).await;
    let mut play = Play::new(SUCCESS, &[]);
    play.act = Box::new(|_, _| panic!("on purpose"));
    assert_eq!(world.run(&play, Rounds::Once).await, WfStatus::Internal);
    assert_eq!(world.last().1["exit_code"], 9);
}

/// A run that died after every gate had passed is finished forward, at whatever point it died (D98).
#[tokio::test]
async fn what_was_accepted_before_a_crash_stays_accepted_d98() {
    for marked in [false, true] {
        let world = World::new(2, GOOD).await;
        let id = MicroCommitId::parse("COMMIT-TF-001").unwrap();
        world.worktree().write("mk/a", "x").commit("COMMIT-TF-001: a");
        let accepted = Sha::parse(&world.worktree().head()).unwrap();
        let name = "20250115-120000_app_tf_COMMIT-TF-001";
        fs::create_dir_all(world.site.runs_dir().join(name)).unwrap();
        let journal = Journal::of(&world.site, &WorkstreamId::parse("tf").unwrap()).unwrap();
        journal
            .save(&OpenRun {
                stem: "20250115-120000_app_tf".to_owned(),
                directory: name.to_owned(),
                stage: "update_state".to_owned(),
                started: host::clock::now(),
                micro_commit: Some(id.clone()),
                accepted: Some(accepted.clone()),
            })
            .unwrap();
        if marked {
            fs::write(world.dir().join("plan.md"), world.plan().replacen("[ ]", "[x]", 1)).unwrap();
        }
        assert_eq!(world.run(&Play::new(SUCCESS, &[]), Rounds::Once).await, WfStatus::Success);
        assert_eq!(world.plan().matches("[x]").count(), 2, "the first was not done again");
        assert_eq!(world.worktree().git(&["log", "--format=%s", "main..HEAD"]).lines().count(), 2);
        let old: Value = serde_json::from_slice(
            &fs::read(world.site.runs_dir().join(name).join("result.json")).unwrap(),
        )
        .unwrap();
        assert_eq!((Schema::Result.check(&old), old["status"].as_str()), (Ok(()), Some("passed")));
    }
}
