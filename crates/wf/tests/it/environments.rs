//! Machines on which a stage does not work: the reason and the remedy are said.

use crate::play::person_with_one;
use crate::support::Person;

const REFUSED: &str = "bwrap: setting up uid map: Permission denied";

#[test]
fn the_verdict_has_the_words_of_a_bubblewrap_that_is_refused_and_the_remedy() {
    let Some(Person { hermetic, repo }) = person_with_one() else { return };
    let person = Person { hermetic: hermetic.with_refused_bwrap(REFUSED), repo };
    let output = person.wf(&["run", "tf", "--once"]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains(&format!("the box never got ready: {REFUSED}; ")), "{said}");
    person.refused(&["doctor"], 2, &[REFUSED, "user namespaces"]);
}

#[test]
fn doctor_fails_for_a_stage_whose_agent_cannot_be_started() {
    let Some(person) = person_with_one() else { return };
    person.ok(&["doctor"]);
    let agents = "AGENT_IMPLEMENT=command\nAGENT_IMPLEMENT_CMD=no-such-program\nAGENT_REVIEW=scripted\nAGENT_REVIEW_SCRIPT=review.toml\n";
    person.profile(&format!("BOX_BACKEND=bwrap\n{agents}"));
    person.refused(&["doctor"], 2, &["implement", "BAD", "no-such-program"]);
}
