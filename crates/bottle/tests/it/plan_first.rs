//! Plan first, where it is wanted: a plan as a comment, an approval or a correction, then the work.

use testkit::fake_forge::{Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour, Room};
use testkit::wait::wait_for;

use crate::kinds::KindServing;
use crate::support::{COMMIT, DONE, SLUG};

const PLANNED: &[&str] = &["bot-bottle:worker", "bot-bottle:plan"];
const PLAN: &str = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"1. sort, closes #99\"]\n";
/// Work before the approval: it fails, and the step only passes if it did.
const EARLY: &str = "[[step]]\nrun = '''{ echo early > early; git add early; git commit -qm early; } 2>/dev/null; test ! -e early'''\n";
const MARK: &str = "<!-- bot-bottle: plan for this issue";

fn proposed<F: Flavour>(kind: &'static str) -> Option<KindServing<F>> {
    let mut serving = KindServing::<F>::new(kind, PLANNED)?;
    serving.person.script(PLAN);
    serving.serve("");
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("its plan waits for an approval"), "{reason}");
    assert!(serving.last_prompt().contains("change nothing and commit nothing"));
    Some(serving)
}

fn plans(serving: &KindServing<impl Flavour>) -> Vec<String> {
    let comments = serving.forge.comments().into_iter().map(|comment| comment.body);
    comments.filter(|body| body.starts_with(MARK)).collect()
}

/// A plan is a comment, outsiders change nothing, and a member's approval starts the work.
#[track_caller]
fn approved<F: Flavour>(kind: &'static str, approve: impl Fn(&KindServing<F>)) {
    let Some(serving) = proposed::<F>(kind) else { return };
    assert_eq!((plans(&serving).len(), serving.forge.pulls().len()), (1, 0));
    assert!(plans(&serving)[0].contains("1. sort") && !plans(&serving)[0].contains("#99"));
    serving.forge.add_comment(Room::Issue, serving.issue, "carol", "/approve");
    serving.forge.add_thumbs_up("**Plan**", "carol");
    let seen = serving.forge.requests().len();
    wait_for("a few looks", || (serving.forge.requests().len() > seen + 12).then_some(()));
    assert_eq!(serving.runs(), 1, "an outsider approves nothing");
    serving.person.script(&format!("{COMMIT}{DONE}"));
    approve(&serving);
    serving.wait_runs(2, "frozen");
    assert!(serving.last_prompt().contains("Your plan is approved"), "{}", serving.last_prompt());
    assert_eq!((serving.runs(), serving.forge.pulls().len(), plans(&serving).len()), (2, 1, 1));
    let said = serving.forge.comments().into_iter().map(|comment| comment.body);
    let answers: Vec<String> = said.filter(|body| body.contains("no plan that waits")).collect();
    assert_eq!(answers, [""; 0], "an approval that counts is not called void");
}

fn say<F: Flavour>(words: &'static str) -> impl Fn(&KindServing<F>) {
    move |serving| serving.forge.add_comment(Room::Issue, serving.issue, "alice", words)
}

#[test]
fn a_plan_is_approved_by_a_command_on_gitea() {
    approved::<GiteaFlavour>("gitea", say("/approve"));
}

#[test]
fn a_plan_is_approved_by_a_thumbs_up_on_gitea() {
    approved::<GiteaFlavour>("gitea", |serving| serving.forge.add_thumbs_up("**Plan**", "alice"));
}

#[test]
fn a_plan_is_approved_by_a_thumbs_up_on_github() {
    approved::<GithubFlavour>("github", |serving| serving.forge.add_thumbs_up("**Plan**", "alice"));
}

#[test]
fn a_plan_is_approved_by_a_thumbs_up_on_gitlab() {
    approved::<GitlabFlavour>("gitlab", |serving| serving.forge.add_thumbs_up("**Plan**", "alice"));
}

#[test]
fn a_plan_is_approved_in_words() {
    approved::<GiteaFlavour>("gitea", say("Go ahead!"));
}

#[test]
fn other_words_correct_the_plan_and_nothing_is_done_before_it_is_approved() {
    let Some(serving) = proposed::<GiteaFlavour>("gitea") else { return };
    let better = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"1. sort by age\"]\n";
    serving.person.script(&format!("{EARLY}{better}"));
    say::<GiteaFlavour>("Sort by age, please.")(&serving);
    wait_for("the new plan", || plans(&serving)[0].contains("sort by age").then_some(()));
    serving.wait_runs(2, "needs-attention");
    assert_eq!((plans(&serving).len(), serving.forge.pulls().len()), (1, 0), "one comment, edited");
    let workspace = serving.person.bottle(SLUG).join("workspace");
    assert!(workspace.join("README.md").exists() && !workspace.join("early").exists());
    serving.person.script(&format!("{COMMIT}{DONE}"));
    say::<GiteaFlavour>("/approve")(&serving);
    serving.wait_runs(3, "frozen");
    assert_eq!(serving.forge.pulls().len(), 1);
}

#[test]
fn killed_around_its_plan_there_is_one_comment_and_one_approval() {
    let Some(mut serving) = KindServing::<GiteaFlavour>::new("gitea", PLANNED) else { return };
    serving.person.script(PLAN);
    serving.serve("");
    serving.wait("needs-attention");
    // As if it had died after the comment was posted and before its number was stored.
    let path = serving.person.bottle(SLUG).join("record.json");
    let text = std::fs::read_to_string(&path).expect("a record");
    let mut record: serde_json::Value = serde_json::from_str(&text).expect("a record");
    record["plan"] = serde_json::json!({ "stage": "wanted" });
    serving.restart_to_die_at("claimed");
    std::fs::write(&path, record.to_string()).expect("written");
    say::<GiteaFlavour>("Shorter, please.")(&serving);
    serving.wait_for_death();
    serving.restart();
    serving.wait_runs(2, "needs-attention");
    assert_eq!(plans(&serving).len(), 1);
    serving.person.script(&format!("{COMMIT}{DONE}"));
    serving.restart_to_die_at("claimed");
    say::<GiteaFlavour>("/approve")(&serving);
    serving.wait_for_death();
    serving.restart();
    serving.wait_runs(3, "frozen");
    assert_eq!((serving.runs(), serving.forge.pulls().len()), (3, 1));
}
