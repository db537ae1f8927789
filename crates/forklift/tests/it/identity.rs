//! The people of published commits: the user as author and committer, the agent as co-author.

use testkit::repo::Fork;

use crate::support::{MERGE, Person};

const ADA: &str = "Ada <ada@example.org>";

/// A fork whose user has told git their name.
fn ada(make: impl FnOnce(Fork) -> Fork) -> Option<Person> {
    let person = Person::with(|hermetic| make(Fork::new(hermetic)))?;
    person.fork.checkout.git(&["config", "user.name", "Ada"]);
    person.fork.checkout.git(&["config", "user.email", "ada@example.org"]);
    Some(person)
}

/// Author, committer and message of the published commit.
fn published_commit(person: &Person) -> String {
    let branch = person.published().pop().expect("a branch");
    person.fork.origin.git(&["log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B", &branch])
}

#[test]
fn a_merge_by_git_alone_is_the_users() {
    let Some(person) = ada(Fork::clean_merge) else { return };
    let output = person.hermetic.run(&mut person.alone(&["--sign-off"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let commit = published_commit(&person);
    assert!(commit.starts_with(&format!("{ADA}\n{ADA}\nMerge upstream/main")), "{commit}");
    assert!(commit.trim_end().ends_with(&format!("\nSigned-off-by: {ADA}")), "{commit}");
    assert!(!commit.contains("Co-authored-by"), "{commit}");
}

#[test]
fn a_commit_of_the_agent_is_the_users_with_the_agent_as_co_author() {
    let Some(person) = ada(Fork::clean_merge) else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let commit = published_commit(&person);
    assert!(commit.starts_with(&format!("{ADA}\n{ADA}\n")), "{commit}");
    let trailer = "Co-authored-by: scripted (Bottleworks agent) <agent@bottle.invalid>";
    assert!(commit.trim_end().ends_with(trailer), "{commit}");
    assert_eq!(person.metadata("/evidence/foreign_count"), 0);
    assert!(!output.stderr.contains("identity"), "{}", output.stderr);
}

#[test]
fn the_configuration_outranks_git_and_can_leave_the_agent_out() {
    let Some(person) = ada(Fork::clean_merge) else { return };
    for (key, value) in [
        ("identity.name", "Release Team"),
        ("identity.email", "release@example.org"),
        ("identity.agent_trailer", "false"),
        ("identity.sign_off", "true"),
    ] {
        let set = person.hermetic.run(&mut person.forklift(&["config", "set", key, value]));
        assert_eq!(set.status, Some(0), "{}", set.snapshot());
    }
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let team = "Release Team <release@example.org>";
    let commit = published_commit(&person);
    assert!(commit.starts_with(&format!("{team}\n{team}\n")), "{commit}");
    assert!(commit.contains(&format!("Signed-off-by: {team}")), "{commit}");
    assert!(!commit.contains("Co-authored-by"), "{commit}");
}

/// Neither a stranger's name nor the user's own may be used by the agent itself.
#[test]
fn an_agent_that_commits_under_another_name_is_refused() {
    for who in ["Eve <eve@example.org>", ADA] {
        let Some(person) = ada(Fork::clean_merge) else { return };
        let (name, email) = who.trim_end_matches('>').split_once(" <").expect("a person");
        let script = format!(
            "[[step]]\nrun = \"git -c user.name={name} -c user.email={email} merge --no-edit upstream/main\"\n"
        );
        let output = person.run(&script, &[]);
        assert_eq!(output.status, Some(3), "{}", output.snapshot());
        assert!(output.stdout.contains(&format!("by {who}")), "{}", output.stdout);
        assert_eq!(person.published(), [""; 0]);
    }
}

/// The fork's own commits keep their authors, and none of them is warned about.
#[test]
fn a_rebase_warns_of_no_commit_of_the_forks_own() {
    let Some(person) = ada(Fork::clean_merge) else { return };
    let script = "[[step]]\nrun = \"git rebase upstream/main\"\n";
    for output in [
        person.hermetic.run(&mut person.alone(&["--strategy", "rebase"])),
        person.run(script, &["--strategy", "rebase", "--again"]),
    ] {
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(!output.stderr.contains("identity"), "{}", output.stderr);
        let branch = person.published().pop().expect("a branch");
        let committer = person.fork.origin.git(&["log", "-1", "--format=%cn <%ce>", &branch]);
        assert_eq!(committer.trim(), ADA);
    }
}

#[test]
fn a_sign_off_without_a_name_is_refused_with_the_remedy() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.alone(&["--sign-off"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stderr.contains("hint: set them with: git config user.name"),
        "{}",
        output.stderr
    );
}
