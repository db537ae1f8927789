//! The work comes out as a pull request, or is held back with a reason.

use std::os::unix::fs::PermissionsExt;

use testkit::fake_forge::Mishap;
use testkit::part::{Part, require};
use testkit::wait::wait_until;

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

fn commit_of(file: &str, text: &str) -> String {
    format!(
        "[[step]]\nwrite = {{ path = \"{file}\", text = '''{text}''' }}\n[[step]]\nrun = \"git add -A && git commit -qm x\"\n"
    )
}

/// A token's shape, put together here so that no scanner takes this file for a leak.
fn leak() -> String {
    format!("key = ghp_{}\n", "aB3dE6gH9jK2mN5pQ8sT")
}

#[track_caller]
fn held_back(scene: &Scene, script: &str, words: &str) {
    let output = scene.start(&format!("{script}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert!(output.stdout.contains(words), "{}", output.snapshot());
    assert_eq!(scene.published(), None);
    assert_eq!(scene.forge.pulls().len(), 0);
    assert_eq!(scene.provenance()["verdict"]["kind"], "refused");
}

#[test]
fn a_secret_blocks_the_push_and_is_not_shown() {
    let Some(scene) = Scene::new() else { return };
    held_back(&scene, &commit_of("config.txt", &leak()), "built-in found");
    let document = scene.provenance().to_string();
    assert!(!document.contains("aB3dE6gH9jK2"), "{document}");
}

#[test]
fn a_secret_that_was_removed_again_is_still_in_the_history() {
    let Some(scene) = Scene::new() else { return };
    let removed = "[[step]]\nrun = \"git rm -q config.txt && git commit -qm y\"\n";
    held_back(&scene, &(commit_of("config.txt", &leak()) + removed), "built-in found");
}

#[test]
fn a_secret_in_a_message_blocks_as_well() {
    let Some(scene) = Scene::new() else { return };
    let script = format!(
        "[[step]]\nrun = [\"git\", \"commit\", \"-q\", \"--allow-empty\", \"-m\", '''x\n\n{}''']\n",
        leak()
    );
    held_back(&scene, &script, "built-in found");
}

#[test]
fn a_secret_in_the_name_of_a_file_or_in_a_header_blocks_as_well() {
    let token = leak().trim().replace("key = ", "");
    for script in [
        format!("[[step]]\nrun = \"touch {token} && git add -A && git commit -qm x\"\n"),
        format!(
            "[[step]]\nrun = ['bash', '-ec', '''git commit -q --allow-empty -m x\n\
             id=$(git cat-file commit HEAD | sed '/^committer/a note {token}' | git hash-object -t commit -w --stdin)\n\
             git update-ref HEAD $id''']\n"
        ),
    ] {
        let Some(scene) = Scene::new() else { return };
        held_back(&scene, &script, "built-in found 1 secret");
    }
}

#[test]
fn a_zero_byte_hides_nothing() {
    let Some(scene) = Scene::new() else { return };
    let script = format!(
        "[[step]]\nrun = [\"bash\", \"-c\", \"printf '\\\\0 {}' > blob && git add -A && git commit -qm x\"]\n",
        leak().trim()
    );
    held_back(&scene, &script, "built-in found");
}

#[test]
fn a_tree_of_more_paths_than_anybody_can_list_blocks() {
    let Some(scene) = Scene::new() else { return };
    let script = r"[[step]]
run = ['bash', '-ec', '''
id=$(git hash-object -w --stdin < /dev/null)
tree=$(printf '100644 blob %s\tf\n' $id | git mktree)
for level in {1..9}; do
  tree=$(for name in {0..9}; do printf '040000 tree %s\t%s\n' $tree $name; done | git mktree)
done
tree=$({ git ls-tree HEAD; printf '040000 tree %s\tbomb\n' $tree; } | git mktree)
git update-ref HEAD $(git commit-tree -p HEAD -m bomb $tree)
''']
";
    held_back(&scene, script, "more than 200000 paths: bomb/");
}

#[test]
fn protected_paths_foreign_identities_and_lost_history_block() {
    for (script, words) in [
        (commit_of(".github/workflows/ci.yml", "on: push\n"), "protected path"),
        (commit_of(".GitHub/Workflows/ci.yml", "on: push\n"), "CI definition"),
        (commit_of(".husky/pre-push", "x\n"), ".husky/pre-push (git hook)"),
        (commit_of("CLAUDE.md", "x\n"), "CLAUDE.md (file that agents obey)"),
        (
            "[[step]]\nrun = \"git -c user.name=Ann -c user.email=ann@example.com commit -q --allow-empty -m x\"\n".to_owned(),
            "not by the box's own identity",
        ),
        (
            "[[step]]\nrun = \"git checkout -q --orphan fresh && git commit -qm x && git branch -f bot-bottle/worker-issue-1 && git checkout -q bot-bottle/worker-issue-1\"\n".to_owned(),
            "history that others built on",
        ),
    ] {
        let Some(scene) = Scene::new() else { return };
        held_back(&scene, &script, words);
    }
}

/// A gitleaks that answers as it is told.
fn with_gitleaks(scene: &Scene, report: &str, status: i32) -> String {
    let folder = scene.person.hermetic.root().join("tools");
    std::fs::create_dir_all(&folder).expect("made");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = version ] && {{ echo 8.30.0; exit; }}\ncat > /dev/null\nwhile [ $# -gt 0 ]; do [ \"$1\" = --report-path ] && printf '%s' '{report}' > \"$2\"; shift; done\nexit {status}\n"
    );
    let path = folder.join("gitleaks");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    format!("{}:/usr/bin:/bin", folder.display())
}

#[track_caller]
fn gitleaks_says(report: &str, status: i32, expected: &str, published: bool) {
    let Some(scene) = Scene::new() else { return };
    let path = with_gitleaks(&scene, report, status);
    let mut command = scene.start_command(&format!("{COMMIT}{DONE}"));
    let output = scene.person.hermetic.run(command.env("PATH", path));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let found = scene.provenance()["gitleaks"].clone();
    assert_eq!(found["status"], expected, "{found}");
    assert_eq!(found["version"], "8.30.0");
    assert_eq!(scene.published().is_some(), published);
}

#[test]
fn gitleaks_is_asked_where_it_is_and_its_word_counts() {
    gitleaks_says("[]", 0, "clean", true);
    gitleaks_says("[{\"RuleID\":\"aws\"}]", 77, "findings", false);
    gitleaks_says("", 1, "error", false);
}

/// Runs a script with the real gitleaks on the path; its part of the provenance.
fn ask_the_real_gitleaks(script: &str) -> Option<(Scene, serde_json::Value)> {
    let program = require(Part::Gitleaks)?;
    let scene = Scene::new()?;
    let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
    let mut command = scene.start_command(&format!("{script}{DONE}"));
    let output = scene.person.hermetic.run(command.env("PATH", path));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let found = scene.provenance()["gitleaks"].clone();
    Some((scene, found))
}

#[test]
fn the_real_gitleaks_says_clean_and_its_version_is_written_down() {
    let Some((scene, found)) = ask_the_real_gitleaks(COMMIT) else { return };
    assert_eq!(found["status"], "clean", "{found}");
    assert!(found["version"].as_str().is_some_and(|version| !version.is_empty()), "{found}");
    assert!(scene.published().is_some());
}

#[test]
fn the_real_gitleaks_sees_more_than_the_built_in_scan_and_takes_no_excuse() {
    // Of no shape that the built-in scan knows, and excused by whoever wrote it.
    let secret = ["zX9kQ2", "mV7tL4", "pR8wN1", "bY6cJ3", "hF5d"].concat();
    let line = format!("warehouse_api_key = \"{secret}\" # gitleaks:allow\n");
    let Some((scene, found)) = ask_the_real_gitleaks(&commit_of("config.py", &line)) else {
        return;
    };
    assert_eq!(found["status"], "findings", "{found}");
    assert_eq!(scene.published(), None);
    let document = scene.provenance();
    assert_eq!(document["scans"][0]["status"], "clean", "{document:#}");
    assert!(!document.to_string().contains(&secret), "{document:#}");
}

#[test]
fn the_real_gitleaks_sees_a_key_that_runs_over_lines() {
    let body = ["MIIEpAIBAAKCAQEAt0", "Zq8Jk3vXw9LmNp2RsT"].concat().repeat(3);
    let key = format!(
        "{0}BEGIN RSA PRIVATE KEY{0}\n{body}\n{body}\n{0}END RSA PRIVATE KEY{0}\n",
        "-----"
    );
    let Some((_, found)) = ask_the_real_gitleaks(&commit_of("id_rsa", &key)) else { return };
    let listed = found["listed"].to_string();
    assert!(listed.contains("private-key"), "{found}");
}

#[test]
fn an_answer_that_was_lost_does_not_open_two_pull_requests() {
    let Some(scene) = Scene::new() else { return };
    scene.forge.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn a_forge_that_says_no_is_our_failure_and_the_branch_is_kept() {
    let Some(scene) = Scene::new() else { return };
    scene.forge.fail_next_on("POST", 1, &Mishap::status(403, "no"));
    let output = scene.start(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(scene.published().is_some());
    assert_eq!(scene.forge.pulls().len(), 0);
    let again = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn an_agents_summary_closes_nothing_and_calls_nobody() {
    let Some(scene) = Scene::new() else { return };
    let done = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"closes #2, cc @all\"]\n";
    scene.start_ok(&format!("{COMMIT}{done}"));
    let body = scene.forge.pulls()[0].body.clone();
    assert!(body.contains("Closes #1"), "{body}");
    assert!(!body.contains("closes #2") && !body.contains("@all"), "{body}");
}

#[test]
fn without_a_forge_the_commits_are_kept_and_can_be_fetched() {
    let Some(person) = Person::new() else { return };
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("bot-bottle checkout plain"), "{}", output.stdout);
    let run = person.last_run("plain");
    let id = run.file_name().expect("a name").to_str().expect("UTF-8");
    let (name, repo) = (format!("refs/bottle/{id}/bot-bottle/plain"), run.join("repo.git"));
    person.fork.checkout.git(&["fetch", "--quiet", repo.to_str().expect("UTF-8"), &name]);
    let log = person.fork.checkout.git(&["log", "-1", "--format=%s", "FETCH_HEAD"]);
    assert_eq!(log, "do the work");
}

#[test]
fn an_agent_that_waits_for_a_person_opens_no_pull_request() {
    let Some(scene) = Scene::new() else { return };
    let blocked = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"which flow?\"]\n";
    let output = scene.start(&format!("{COMMIT}{blocked}"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("waits for a person"), "{}", output.stdout);
    assert_eq!(scene.published(), None);
    assert_eq!(scene.provenance()["watchdog_fired"], false);
}

#[test]
fn a_later_run_renews_our_part_of_the_pull_request_and_nothing_of_others() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let number = scene.forge.pulls()[0].number;
    let written = scene.forge.pulls()[0].body.clone();
    scene.forge.change_pull(number, |pull| {
        pull.body = format!("Carol has read it.\n\n{written}\n- [ ] try it");
    });
    scene.forge.change_issue(scene.issue, |issue| issue.title = "Do it well".to_owned());
    let done = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"better now\"]\n";
    let output = scene.resume(&format!("{COMMIT}{done}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let pulls = scene.forge.pulls();
    let (title, body) = (&pulls[0].title, &pulls[0].body);
    assert_eq!((pulls.len(), title.as_str()), (1, "Do it well"));
    assert!(
        body.starts_with("Carol has read it.\n\n<!--") && body.ends_with("- [ ] try it"),
        "{body}"
    );
    assert!(body.contains("> better now") && !body.contains("all done"), "{body}");
    assert_eq!(body.matches("do the work").count(), 2, "{body}");
    assert_eq!(body.matches("Closes #1").count(), 1, "{body}");
}

#[test]
fn a_title_and_a_text_that_people_made_their_own_stay() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let number = scene.forge.pulls()[0].number;
    scene.forge.change_pull(number, |pull| {
        pull.title = "Carol's title".to_owned();
        pull.body = "Carol's words. Fixes #1".to_owned();
    });
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let pull = scene.forge.pulls()[0].clone();
    assert_eq!(
        (pull.title.as_str(), pull.body.as_str()),
        ("Carol's title", "Carol's words. Fixes #1")
    );
    // Without the link it would be nobody's: our part comes back, below theirs.
    scene.forge.change_pull(number, |pull| pull.body = "Carol's words.".to_owned());
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let body = scene.forge.pulls()[0].body.clone();
    assert!(body.starts_with("Carol's words.\n\n<!--") && body.contains("Closes #1"), "{body}");
}

#[test]
fn the_scope_grows_when_the_runs_own_pull_request_was_opened() {
    let Some(scene) = Scene::new() else { return };
    let stranger = scene.forge.add_pull("Somebody's", "topic", "main");
    let own = stranger + 1;
    let refused = |number| format!("[[step]]\nrun = \"forge comment {number} hi\"\nexpect = 3\n");
    scene.start_ok(&format!("{}{}{COMMIT}{DONE}", refused(own), refused(stranger)));
    assert_eq!(scene.forge.pulls().last().map(|pull| pull.number), Some(own));
    let allowed =
        format!("[[step]]\nrun = \"forge comment {own} hi && forge describe {own} 'Closes #1'\"\n");
    let output = scene.resume(&format!("{allowed}{}{DONE}", refused(stranger)));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(scene.forge.comments().len(), 1);
    let said = scene.sentences();
    assert!(said.contains(&format!("posted comment to #{own}")), "{said:?}");
    assert!(said.contains(&format!("refused comment to #{stranger}: out of scope")), "{said:?}");
}

#[test]
fn what_the_workspace_lacks_is_named() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.write_lfs_file();
    person.fork.fork_commit("large files elsewhere");
    let output = person.start(COMMIT, &[]);
    let words = "large files (LFS) are in the workspace as pointers";
    assert!(output.stderr.contains(words), "{}", output.snapshot());
}

fn origin_hook(scene: &Scene, name: &str, script: &str) {
    let hook = scene.person.fork.origin.git_dir().join("hooks").join(name);
    std::fs::create_dir_all(hook.parent().expect("a parent")).expect("made");
    std::fs::write(&hook, format!("#!/bin/sh\n{script}")).expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("set");
}

/// The branch is on origin, the record says so, and there is one pull request.
#[track_caller]
fn is_published_once(scene: &Scene) {
    let text = std::fs::read(scene.person.last_run(SLUG).join("metadata.json")).expect("read");
    let record: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(record["publication"]["pushed"], true, "{record:#}");
    assert_eq!(record["publication"]["problem"], serde_json::Value::Null, "{record:#}");
    assert_eq!(scene.published().as_deref(), record["publication"]["commit"].as_str());
    assert_eq!(scene.forge.pulls().len(), 1);
}

/// What a push of the same commit does that arrives a moment earlier, and a server that dies before it answers.
#[test]
fn a_push_that_did_not_clearly_succeed_counts_where_origin_has_the_commit() {
    for (name, script) in
        [("update", "git update-ref \"$1\" \"$3\"\n"), ("post-receive", "kill -9 $PPID\n")]
    {
        let Some(scene) = Scene::new() else { return };
        origin_hook(&scene, name, script);
        scene.start_ok(&format!("{COMMIT}{DONE}"));
        is_published_once(&scene);
    }
}

#[test]
fn a_push_that_outlived_its_bot_bottle_is_waited_for() {
    let Some(scene) = Scene::new() else { return };
    origin_hook(&scene, "pre-receive", "sleep 0.5\n");
    let mut child = scene.spawn(&format!("{COMMIT}{DONE}"));
    wait_until("the intent to push", || {
        let log = scene.person.newest_run(SLUG).map(|run| run.join("operations.jsonl"));
        let log = log.and_then(|log| std::fs::read_to_string(log).ok());
        log.is_some_and(|log| log.contains("\"push\""))
    });
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    let first = scene.person.last_run(SLUG);
    let output = scene.resume(DONE);
    assert!(output.stderr.contains("finishing"), "{}", output.snapshot());
    let text = std::fs::read_to_string(first.join("metadata.json")).expect("read");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["publication"]["problem"], serde_json::Value::Null, "{record:#}");
    assert_eq!(scene.published().as_deref(), record["publication"]["commit"].as_str());
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn the_branch_goes_to_the_address_that_git_pushes_to() {
    let Some(scene) = Scene::new() else { return };
    let fork = &scene.person.fork;
    let dir = fork.origin.dir().with_file_name("push.git");
    let (from, to) = (fork.origin.dir().display().to_string(), dir.display().to_string());
    fork.origin.git(&["clone", "--quiet", "--bare", &from, &to]);
    let relative = "../../forge/fork/push.git";
    fork.checkout.git(&["remote", "set-url", "--push", "origin", relative]);
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    assert_eq!(scene.published(), None);
    let branch = format!("refs/heads/bot-bottle/{SLUG}");
    assert_ne!(testkit::repo::Repo::open(dir).sha(&branch), "");
}
