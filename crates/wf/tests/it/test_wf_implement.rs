//! IMPLEMENT: the agent works on a copy, git judges, the host moves the branch.

use std::os::unix::fs::PermissionsExt;

use crate::play::{APPROVE, GOOD, PROFILE, person, person_with_one};
use crate::support::{ONE, Person, read, result, write};

/// An agent that runs a line in the workspace and claims success.
fn agent(line: &str) -> String {
    format!(
        "[[step]]\nrun = '''\n{line}\n'''\n[[step]]\nprint = '''{{\"status\": \"success\"}}\n'''\n"
    )
}

/// Runs the agent and expects it to be refused in IMPLEMENT with these words, the branch untouched.
#[track_caller]
fn refused(person: &Person, line: &str, words: &str) {
    let before = person.worktree("tf").head();
    person.cast(&agent(line), APPROVE);
    person.run_once(4);
    let result = result(&person.last_run());
    assert_eq!(result["failed_stage"], "implement");
    let notes = result["notes"].as_str().expect("notes").to_owned();
    assert!(notes.contains(words), "{words:?} is not in {notes}");
    assert_eq!(person.worktree("tf").head(), before);
    assert_eq!(person.meta("tf", "STATUS"), "implement");
}

/// As in most products: the results are ignored, and the agent has run the tests.
#[test]
fn ignored_test_results_do_not_keep_the_rest_from_being_committed() {
    let Some(person) = person_with_one() else { return };
    let line = "mkdir -p mk test-results/app && echo a > mk/a && echo b > test-results/app/b";
    person.cast(&agent(&format!("{line} && echo /test-results/ > .gitignore")), APPROVE);
    person.run_once(0);
    let files = person.worktree("tf").git(&["ls-files"]);
    assert!(files.contains("mk/a") && !files.contains("test-results"), "{files}");
}

#[test]
fn what_the_agent_commits_is_the_users_with_the_agent_as_co_author() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").git(&["config", "user.name", "Ada"]);
    person.worktree("tf").git(&["config", "user.email", "ada@example.org"]);
    let commit = "git commit -qm 'COMMIT-TF-001: Add test harness'";
    person
        .cast(&agent(&format!("mkdir -p mk && echo a > mk/a && git add -A && {commit}")), APPROVE);
    person.run_once(0);
    let worktree = person.worktree("tf");
    assert_eq!(
        worktree.git(&["log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B"]).trim(),
        "Ada <ada@example.org>\nAda <ada@example.org>\nCOMMIT-TF-001: Add test harness\n\n\
         Co-authored-by: scripted (Bottleworks agent) <agent@bottle.invalid>"
    );
    assert_eq!(worktree.git(&["status", "--porcelain"]).trim(), "");
}

#[test]
fn what_the_agent_leaves_uncommitted_is_committed_but_for_test_results() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").git(&["config", "user.name", "Ada"]);
    person.worktree("tf").git(&["config", "user.email", "ada@example.org"]);
    person.cast(
        &agent("mkdir -p mk test-results/app && echo a > mk/a && echo b > test-results/app/b"),
        APPROVE,
    );
    person.run_once(0);
    assert_eq!(person.subjects()[0], "COMMIT-TF-001: Add test harness");
    let worktree = person.worktree("tf");
    assert_eq!(worktree.git(&["log", "-1", "--format=%an <%ae>"]).trim(), "Ada <ada@example.org>");
    assert_eq!(worktree.git(&["show", "--name-only", "--format=", "HEAD"]).trim(), "mk/a");
    assert_eq!(worktree.git(&["status", "--porcelain"]).trim(), "");
}

#[test]
fn a_file_that_acts_by_itself_is_accepted_once_a_person_names_it() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}ALLOWED_PATHS=.husky/\n"));
    person.cast(&agent("mkdir .husky && echo x > .husky/pre-commit"), APPROVE);
    person.run_once(0);
    assert_eq!(person.subjects()[0], "COMMIT-TF-001: Add test harness");
}

#[test]
fn every_bound_is_checked_by_git() {
    let Some(person) = person_with_one() else { return };
    let commit = |what: &str| format!("{what} && git add -A && git commit -qm 'COMMIT-TF-001: x'");
    refused(&person, "true", "no commit was created");
    refused(
        &person,
        "echo x > x && git add x && git commit -qm 'wip'",
        "does not start with COMMIT-TF-001:",
    );
    refused(&person, &commit("mkdir secrets && echo x > secrets/x"), "forbidden");
    refused(
        &person,
        &commit("for i in 1 2 3 4 5 6 7 8 9 10 11; do echo $i > f$i; done"),
        "11 files",
    );
    refused(&person, &commit("seq 1 201 > long"), "201 lines");
    refused(&person, &commit("ln -s /etc/passwd link"), "is a link out of the repository");
    refused(&person, &commit("ln -s a b; ln -s b a"), "is a link that cannot be followed");
    refused(&person, &commit("printf '<<<<<<< a\\nx\\n>>>>>>> b\\n' > m"), "has conflict markers");
    refused(
        &person,
        &format!("export GIT_AUTHOR_NAME=Eve; {}", commit("echo x > x")),
        "is neither the agent nor you",
    );
    refused(
        &person,
        &commit("mkdir .husky && echo x > .husky/pre-commit"),
        ".husky/pre-commit (git hook) was changed and waits for a person",
    );
    refused(&person, &commit("echo x > AGENTS.md"), "AGENTS.md (file that agents obey)");
    refused(
        &person,
        "git checkout -q --orphan other && git commit -qm 'COMMIT-TF-001: x'",
        "another branch",
    );
    refused(&person, "git commit -q --amend -m 'COMMIT-TF-001: mine'", "rewritten");
    refused(&person, "git checkout -q --detach && git branch -qD feat/tf", "another branch");
    person.profile(&format!("{PROFILE}ALLOWED_PATHS=docs/\n"));
    refused(&person, &commit("echo x > x"), "only docs/ is allowed");
}

#[test]
fn other_refs_and_settings_of_the_agent_stay_in_its_copy() {
    let Some(person) = person_with_one() else { return };
    let config = read(&person.repo.git_dir().join("config"));
    let refs = person.repo.git(&["for-each-ref", "refs/heads/main", "refs/tags"]);
    let sneaky = "git branch sneaky && git tag v1 && git config core.pager evil && git update-ref refs/heads/main HEAD && mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch /workspace/hooked\\n' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit && mkdir -p mk && echo x > mk/x";
    person.cast(&agent(sneaky), APPROVE);
    person.run_once(0);
    assert_eq!(read(&person.repo.git_dir().join("config")), config);
    assert_eq!(person.repo.git(&["for-each-ref", "refs/heads/main", "refs/tags"]), refs);
    assert!(!person.repo.git(&["branch", "--list", "sneaky"]).contains("sneaky"));
}

#[test]
fn answers_that_are_none_or_failures_are_failures() {
    let Some(person) = person_with_one() else { return };
    let say = |text: &str| format!("[[step]]\nprint = '''{text}\n'''\n");
    for (script, words) in [
        (say("all done!"), "no answer"),
        (say("{\"status\": \"failure\", \"notes\": \"too hard\"}"), "too hard"),
        (
            say("{\"status\": \"success\"} {\"status\": \"failure\", \"notes\": \"after all\"}"),
            "after all",
        ),
        ("[[step]]\nexit = 3\n".to_owned(), "status 3"),
        ("[[step]]\nsleep = 600\n".to_owned(), "out of time"),
    ] {
        let limit = if words == "out of time" { 3 } else { 600 };
        person.profile(&format!("{PROFILE}IMPLEMENT_TIMEOUT={limit}\n"));
        person.cast(&script, APPROVE);
        person.run_once(4);
        let result = result(&person.last_run());
        assert!(result["notes"].as_str().expect("notes").contains(words), "{words}: {result}");
    }
}

#[test]
fn questions_in_all_their_forms_block() {
    let forms = [
        r#"{"status": "clarification_needed", "question": "Which?", "options": ["a", "b"]}"#,
        r#"{"status": "success", "clarification_needed": {"question": "Which?", "options": [{"id": "x", "label": "X"}]}}"#,
        r#"{"action": "clarification_needed", "question": "Which?"}"#,
    ];
    let mut scripts: Vec<String> =
        forms.iter().map(|form| format!("[[step]]\nprint = '''{form}\n'''\n")).collect();
    scripts.push("[[step]]\nask = { question = \"Which?\", options = [\"a\"] }\n".to_owned());
    let Some(person) = person_with_one() else { return };
    for (at, script) in scripts.iter().enumerate() {
        let id = format!("CLQ-{:03}", at + 1);
        person.cast(script, APPROVE);
        person.run_once(8);
        assert_eq!(person.meta("tf", "STATUS"), "blocked:clarification");
        assert_eq!(person.meta("tf", "BLOCKED_BY"), id);
        assert_eq!(result(&person.last_run())["blocked_reason"], id.as_str());
        person.ok(&["clarify", "answer", &id, "take the second"]);
    }
    // Answers reach the next prompt.
    person.cast(&agent("cp /harness-state/run/harness/instructions.txt told.txt"), APPROVE);
    person.run_once(0);
    let told = person.worktree("tf").read("told.txt");
    assert_eq!(told.matches("take the second").count(), 4, "{told}");
}

#[test]
fn the_persons_uncommitted_files_stay_theirs() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").write("mine.txt", "mine").write("README.md", "changed by me\n");
    person.run_once(0);
    let worktree = person.worktree("tf");
    assert_eq!(worktree.git(&["show", "--name-only", "--format=", "HEAD"]).trim(), "mk/test.mk");
    assert_eq!(
        (worktree.read("mine.txt"), worktree.read("README.md")),
        ("mine".into(), "changed by me\n".into())
    );
}

#[test]
fn a_file_of_the_persons_in_the_way_stops_the_commit_and_loses_neither() {
    let Some(person) = person_with_one() else { return };
    person.worktree("tf").write("mk/test.mk", "mine\n");
    let before = person.worktree("tf").head();
    person.run_once(4);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("mk/test.mk"));
    assert_eq!(person.worktree("tf").head(), before);
    assert_eq!(person.worktree("tf").read("mk/test.mk"), "mine\n");
    // The commit waits; once the way is free it needs no agent.
    std::fs::remove_file(person.worktree("tf").dir().join("mk/test.mk")).expect("removed");
    person.cast("[[step]]\nexit = 9\n", APPROVE);
    person.run_once(0);
    assert_eq!(person.worktree("tf").read("mk/test.mk"), "harness\n");
}

#[test]
fn the_products_hooks_are_honoured_inside_the_box() {
    let Some(person) = person_with_one() else { return };
    let hook = person.repo.git_dir().join("hooks/pre-commit");
    write(
        &hook,
        "#!/bin/sh\ntouch /tmp/hooked-on-the-host-by-wf 2>/dev/null\necho not today >&2\nexit 1\n",
    );
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("executable");
    refused(&person, "mkdir -p mk && echo a > mk/a", "not today");
    assert!(!std::path::Path::new("/tmp/hooked-on-the-host-by-wf").exists());
}

#[test]
fn a_program_of_ones_own_can_be_the_agent() {
    let Some(person) = person_with_one() else { return };
    let program = person.hermetic.root().join("my-agent");
    write(
        &program,
        "#!/bin/sh\ngrep -q COMMIT-TF-001 \"$1\" && mkdir -p mk && echo \"$2\" > mk/own && echo '{\"status\": \"success\"}'\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let profile = PROFILE.replace(
        "AGENT_IMPLEMENT=scripted\n",
        &format!(
            "AGENT_IMPLEMENT=command\nAGENT_IMPLEMENT_CMD=\"{} {{prompt_file}} own\"\n",
            program.display()
        ),
    );
    person.profile(&profile);
    person.run_once(0);
    assert_eq!(person.worktree("tf").read("mk/own"), "own\n");
}

#[test]
fn the_agents_own_files_are_kept_for_the_workstream() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nrun = \"echo remembered > $HOME/memory\"\n[[step]]\nprint = '''{\"status\": \"failure\", \"notes\": \"\"}\n'''\n", APPROVE);
    person.run_once(4);
    person.cast(&agent("mkdir -p mk && cp $HOME/memory mk/memory"), APPROVE);
    person.run_once(0);
    assert_eq!(person.worktree("tf").read("mk/memory"), "remembered\n");
}

#[test]
fn supervision_pauses_and_a_rejection_reaches_the_agent() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}SUPERVISED_MODE=true\n"));
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 1);
    person.ok(&["approve", "tf"]);
    assert_eq!(person.meta("tf", "APPROVED_SHA"), person.worktree("tf").head());
    person.refused(&["reject", "tf", "-m", " "], 2, &["give a reason"]);
    person.ok(&["reject", "tf", "-m", "wrong folder"]);
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [ ]"));
    assert_eq!(person.meta("tf", "STATUS"), "implement");
    person.cast(&agent("cp /harness-state/run/harness/instructions.txt mk/told.txt"), APPROVE);
    person.run_once(0);
    assert!(person.worktree("tf").read("mk/told.txt").contains("wrong folder"));
    person.refused(&["reject", "nope", "-m", "x"], 2, &["there is no workstream"]);
}

#[test]
fn a_supervised_loop_waits_for_a_word_on_every_micro_commit() {
    let two = format!("{ONE}\n### COMMIT-TF-002: And more\n\nDone: [ ]\n");
    let Some(person) = person(&two) else { return };
    person.profile(&format!("{PROFILE}HITL_MODE=strict\n"));
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("Next: approve it: wf approve tf"), "{}", output.snapshot());
    assert!(output.stderr.contains("Paused after this micro-commit"), "{}", output.snapshot());

    // Nobody has said a word: nothing is made, and nothing about the workstream changes.
    person.refused(&["run", "tf", "--loop"], 8, &["waits for your approval", "wf approve tf"]);
    let blocked = result(&person.last_run());
    assert_eq!(
        (&blocked["status"], &blocked["blocked_reason"]),
        (&"blocked".into(), &"approval".into())
    );
    assert_eq!(person.meta("tf", "STATUS"), "implement");

    person.ok(&["approve", "tf"]);
    let second = GOOD.replace("COMMIT-TF-001", "COMMIT-TF-002");
    person.cast(&second, APPROVE);
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.subjects()[0].starts_with("COMMIT-TF-002:"));
}

#[test]
fn a_rejected_micro_commit_is_done_again_by_a_supervised_loop() {
    let two = format!("{ONE}\n### COMMIT-TF-002: And more\n\nDone: [ ]\n");
    let Some(person) = person(&two) else { return };
    person.profile(&format!("{PROFILE}SUPERVISED_MODE=true\n"));
    person.run_once(0);
    person.ok(&["reject", "tf", "-m", "wrong folder"]);
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let made = person.subjects().into_iter().filter(|line| line.starts_with("COMMIT-TF-001:"));
    assert_eq!(made.count(), 2);
}

#[test]
fn stages_alone_do_not_stop_a_loop() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}HITL_MODE=stage-only\n"));
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(8), "the acceptance test stops it: {}", output.snapshot());
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
}

#[test]
fn a_run_without_a_verdict_accepts_nothing_to_approve() {
    let Some(person) = person_with_one() else { return };
    person.refused(&["approve", "tf"], 2, &["accepted no micro-commit"]);
    person.cast("[[step]]\nexit = 1\n", GOOD);
    person.run_once(4);
    person.refused(&["approve", "tf"], 2, &["accepted no micro-commit"]);
}

#[test]
fn objects_that_git_itself_would_not_make_are_not_taken() {
    let Some(person) = person_with_one() else { return };
    let forged = "blob=$(echo x | git hash-object -w --stdin) && tree=$(printf '100644 blob %s\\t.git\\n' $blob | git mktree) && git update-ref refs/heads/feat/tf $(git commit-tree -p HEAD -m 'COMMIT-TF-001: x' $tree)";
    refused(&person, forged, "hasDotgit");
}

#[test]
fn settings_that_would_run_programs_run_them_in_the_box_alone() {
    let Some(person) = person_with_one() else { return };
    let marker = person.hermetic.root().join("marker");
    let touch = format!("touch {}", marker.display());
    let hostile = format!(
        "git config core.fsmonitor '{touch} #' && git config filter.evil.clean '{touch}; cat' && git config filter.evil.smudge '{touch}; cat' && git config core.sshCommand '{touch}' && git config gpg.program '{touch}' && git config commit.gpgSign true && echo '* filter=evil' > .gitattributes && mkdir -p mk && echo x > mk/x"
    );
    person.cast(&agent(&hostile), APPROVE);
    person.run_once(4);
    assert!(!marker.exists());
    person.profile(&format!("{PROFILE}ALLOWED_PATHS=\".gitattributes mk/\"\n"));
    person.run_once(0);
    assert!(!marker.exists());
    assert_eq!(person.worktree("tf").read(".gitattributes"), "* filter=evil\n");
}

#[test]
fn secrets_are_not_granted_to_agents() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}SECRETS_IMPLEMENT=TOKEN\n"));
    person.run_once(2);
}
