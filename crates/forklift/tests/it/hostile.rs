//! Agents that mean harm: the host neither runs what they left nor believes what they claim.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::repo::Fork;

use crate::support::Person;

/// Plants programs in every place from which git may start one; each would leave a mark on the host.
fn planting(marks: &str) -> String {
    let body = format!(
        r#"set -e
for name in fsmonitor filter external textconv pager ssh gpg helper; do
  printf '#!/bin/sh\ntouch {marks}/%s\ncat\n' $name > .git/$name.sh; chmod +x .git/$name.sh
done
git config core.fsmonitor "$PWD/.git/fsmonitor.sh"
git config filter.x.clean "$PWD/.git/filter.sh"
git config filter.x.smudge "$PWD/.git/filter.sh"
git config diff.external "$PWD/.git/external.sh"
git config diff.x.textconv "$PWD/.git/textconv.sh"
git config core.pager "$PWD/.git/pager.sh"
git config core.sshCommand "$PWD/.git/ssh.sh"
git config gpg.program "$PWD/.git/gpg.sh"
git config credential.helper "$PWD/.git/helper.sh"
mkdir -p .git/info .git/hooks
echo '* filter=x diff=x' > .git/info/attributes
for hook in pre-push post-checkout reference-transaction post-merge pre-commit; do
  printf '#!/bin/sh\ntouch {marks}/hook\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook
done
"#
    );
    format!("[[step]]\nrun = '''{body}'''\n")
}

#[test]
fn p01_what_an_agent_plants_in_its_repository_never_runs_on_the_host() {
    let Some(person) = Person::new() else { return };
    let marks = person.hermetic.root().join("marks");
    std::fs::create_dir(&marks).expect("made");
    std::fs::set_permissions(&marks, PermissionsExt::from_mode(0o777)).expect("set");
    let merge = "[[step]]\nrun = \"git merge --no-edit upstream/main\"\n";
    let script = format!("{merge}{}", planting(marks.to_str().expect("UTF-8")));
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let left: Vec<_> = std::fs::read_dir(&marks).expect("there").flatten().collect();
    assert!(left.is_empty(), "ran on the host: {left:?}");
}

/// The agent makes its own repository say that upstream was merged; the host says otherwise.
fn fools_nobody(act: &str) {
    let Some(person) = Person::new() else { return };
    let proof = "git merge-base --is-ancestor upstream/main HEAD";
    let script = format!("[[step]]\nrun = '''{act} && {proof}'''\n");
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "not-integrated");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn p02_a_moved_upstream_ref_fools_nobody() {
    fools_nobody("git update-ref refs/remotes/upstream/main HEAD && git commit --allow-empty -m x");
}

#[test]
fn p02_a_replaced_commit_fools_nobody() {
    fools_nobody("git commit --allow-empty -m x && git replace --graft HEAD HEAD~1 upstream/main");
}

#[test]
fn p02_a_graft_fools_nobody() {
    fools_nobody(
        "git commit --allow-empty -m x && mkdir -p .git/info && \
         git rev-parse HEAD HEAD~1 upstream/main | tr '\\n' ' ' > .git/info/grafts",
    );
}

#[test]
fn a_note_that_is_a_link_to_a_file_of_the_host_tells_nothing() {
    let Some(person) = Person::new() else { return };
    let secret = person.hermetic.root().join("secret");
    std::fs::write(&secret, "canary-in-a-file\n").expect("written");
    let output =
        person.run(&format!("[[step]]\nrun = 'ln -s {} STUCK.md'\n", secret.display()), &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(!output.stdout.contains("canary"), "{}", output.stdout);
    assert!(output.stdout.contains("symbolic link"), "{}", output.stdout);
}

/// Something that must not reach a pull request, after an honest merge.
fn is_not_published(act: &str, word: &str) {
    let Some(person) = Person::new() else { return };
    let script = format!(
        "[[step]]\nrun = '''git merge --no-edit upstream/main && {act} && git commit -m more'''\n"
    );
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains(word), "{word}: {}", output.stdout);
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn p03_conflict_markers_are_not_published() {
    let act = r"printf '<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n' > m.txt && git add m.txt";
    is_not_published(act, "conflict markers");
}

#[test]
fn a_link_out_of_the_tree_is_not_published() {
    is_not_published("ln -s /etc/passwd out && git add out", "leads out of the tree");
}

#[test]
fn a_link_to_another_repository_is_not_published() {
    let act = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub";
    is_not_published(act, "another repository");
}

#[test]
fn the_name_of_somebody_else_on_a_commit_is_not_published() {
    let act =
        "git commit -q --allow-empty --author='Linus <l@k>' -m x && touch more && git add more";
    is_not_published(act, "Linus <l@k>");
}

/// Sends everything that an upstream can: attributes that name programs of the person's, odd names, swaps, many conflicts.
fn hostile_upstream(hermetic: &Hermetic, marks: &Path) -> Fork {
    let fork = Fork::new(hermetic);
    let odd = "new\nline \u{202e}gpj.exe";
    fork.upstream_commit("swap", "1\n", "a file of both");
    fork.upstream_commit(odd, "1\n", "an odd one");
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    fork.checkout.write("swap", "the fork's\n").write(odd, "the fork's\n");
    for number in 0..300 {
        fork.checkout.write(&format!("many/{number}"), "the fork's\n");
    }
    fork.fork_commit("the fork's way");
    fork.upstream_does("everything at once", |author| {
        author.write(odd, "upstream's\n");
        author.write(".gitattributes", "* merge=evil filter=evil diff=evil\n");
        for number in 0..300 {
            author.write(&format!("many/{number}"), "upstream's\n");
        }
        std::fs::remove_file(author.dir().join("swap")).expect("gone");
        std::os::unix::fs::symlink("/etc/passwd", author.dir().join("swap")).expect("a link");
    });
    // The person has such programs for their own use; upstream must not be able to start them.
    let touch = |name: &str| format!("touch {}/{name}", marks.display());
    let config = format!(
        "[merge \"evil\"]\n\tdriver = {}\n[filter \"evil\"]\n\tsmudge = {}\n\tclean = {}\n\trequired = true\n\
         [diff \"evil\"]\n\ttextconv = {}\n\tcommand = {}\n",
        touch("merge"),
        touch("smudge"),
        touch("clean"),
        touch("textconv"),
        touch("diff")
    );
    std::fs::write(hermetic.home().join(".gitconfig"), config).expect("written");
    fork
}

#[test]
fn a_hostile_upstream_runs_nothing_and_is_reported_by_name() {
    let mut marks = None;
    let person = Person::with(|hermetic| {
        let folder = hermetic.root().join("marks");
        std::fs::create_dir(&folder).expect("made");
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).expect("set");
        let fork = hostile_upstream(hermetic, &folder);
        marks = Some(folder);
        fork
    });
    let (Some(person), Some(marks)) = (person, marks) else { return };
    let script = "[[step]]\nexit = 3\n";
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, script).expect("the script");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    let output = person.hermetic.run(command.arg("--script").arg(path));
    assert_eq!(output.status, Some(6), "the agent gave up: {}", output.snapshot());
    let left: Vec<_> = std::fs::read_dir(&marks).expect("there").flatten().collect();
    assert!(left.is_empty(), "ran on the host: {left:?}");
    assert!(output.stderr.contains("conflicts (30"), "{}", output.stderr);
    assert!(output.stderr.contains("more"), "a list that nobody reads is cut: {}", output.stderr);
    let conflicts = person.metadata("/conflicts");
    let conflicts: Vec<&str> =
        conflicts.as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
    assert!(conflicts.len() > 300, "{}", conflicts.len());
    for name in ["new\\nline ", "swap"] {
        assert!(conflicts.iter().any(|line| line.starts_with(name)), "{name}: {conflicts:?}");
    }
    for text in [&output.stdout, &output.stderr] {
        assert!(!text.contains('\u{202e}'), "{text}");
    }
    let brief = person.only_run().join("harness-state/conflicts.md");
    let brief = std::fs::read_to_string(brief).expect("the briefs");
    assert!(!brief.contains('\u{202e}') && brief.contains("## swap"), "{brief}");
}
