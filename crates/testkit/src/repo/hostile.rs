//! A work tree in which almost every git command runs code of the agent's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::forgery::{Forgery, forge_merge, upstream_refs};
use super::{MAIN, Repo};

/// Every hook that git knows.
pub const HOOKS: [&str; 26] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "post-index-change",
    "fsmonitor-watchman",
    "p4-pre-submit",
    "p4-changelist",
];

/// Configuration that names a program: the name of the payload, the section, the key, what stands before the path,
/// and what the program does besides leaving its mark.
const PROGRAMS: [(&str, &str, &str, Call, &str); 25] = [
    ("fsmonitor", "core", "fsmonitor", Call::Shell, "exit 1"),
    ("ssh-command", "core", "sshCommand", Call::Shell, "exit 1"),
    ("pager", "core", "pager", Call::Shell, "cat"),
    ("editor", "core", "editor", Call::Shell, "exit 0"),
    ("ask-pass", "core", "askPass", Call::Program, "echo"),
    ("git-proxy", "core", "gitProxy", Call::Program, "exit 1"),
    ("alternate-refs", "core", "alternateRefsCommand", Call::Shell, "exit 0"),
    ("sequence-editor", "sequence", "editor", Call::Shell, "exit 0"),
    ("diff-external", "diff", "external", Call::Shell, "exit 0"),
    ("textconv", "diff \"hostile\"", "textconv", Call::Shell, "cat \"$1\""),
    ("clean", "filter \"hostile\"", "clean", Call::Shell, "cat"),
    ("smudge", "filter \"hostile\"", "smudge", Call::Shell, "cat"),
    ("process", "filter \"hostile-process\"", "process", Call::Shell, FILTER_PROCESS),
    ("merge-driver", "merge \"hostile\"", "driver", Call::Shell, "exit 1"),
    ("gpg", "gpg", "program", Call::Program, "exit 1"),
    ("gpg-ssh", "gpg \"ssh\"", "program", Call::Program, "exit 1"),
    ("credential-helper", "credential", "helper", Call::Bang, "exit 0"),
    ("diff-filter", "interactive", "diffFilter", Call::Shell, "cat"),
    ("browser", "web", "browser", Call::Program, "exit 0"),
    ("alias", "alias", "co", Call::Bang, "exit 0"),
    ("pack-hook", "uploadpack", "packObjectsHook", Call::Shell, "exec \"$@\""),
    ("upload-pack", "remote \"hostile\"", "uploadpack", Call::Shell, "exit 1"),
    ("receive-pack", "remote \"hostile\"", "receivepack", Call::Shell, "exit 1"),
    ("mergetool", "mergetool \"hostile\"", "cmd", Call::Shell, "exit 1"),
    ("trailer", "trailer \"hostile\"", "command", Call::Shell, "exit 0"),
];

/// Says hello as a filter that can do nothing, in git's packet lines, and reads on; to hang up would be fatal to git.
const FILTER_PROCESS: &str =
    "printf '0016git-filter-server\\n000eversion=2\\n00000000'; cat > /dev/null";

/// Way in which git starts a program that the configuration names.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// As a line for the shell.
    Shell,
    /// As a line for the shell that is marked by `!`.
    Bang,
    /// As a program, found by its path.
    Program,
}

/// Settings without a program, by which the programs above get their turn.
const SETTINGS: &str = "\
[log]\n\tshowSignature = true\n\
[commit]\n\tgpgSign = false\n\
[merge]\n\ttool = hostile\n\
[protocol \"ext\"]\n\tallow = always\n\
[protocol \"file\"]\n\tallow = always\n";

const ATTRIBUTES: &str = "\
*.txt filter=hostile diff=hostile merge=hostile\n\
*.md filter=hostile-process diff=hostile merge=hostile\n";

/// Turns a work tree into what an agent with bad intentions leaves behind: programs behind every setting, all hooks,
/// filters with their attributes, an `ext::` remote, and, where upstream has refs, forged merges.
///
/// Each program creates the file `<marker_dir>/<name>` when it is executed; the names are returned, sorted. None of
/// them is executed by this function.
pub fn hostile_workspace(path: &Path, marker_dir: &Path) -> Vec<String> {
    let repo = Repo::open(path);
    let git_dir = repo.git_dir();
    fs::create_dir_all(marker_dir).expect("the folder of markers");
    plant_signature(&repo);
    forge_merges(&repo);

    let payloads = git_dir.join("payload");
    let hooks = git_dir.join("hooks");
    fs::create_dir_all(&payloads).expect("the folder of payloads");
    fs::create_dir_all(&hooks).expect("the folder of hooks");
    let mut names = Vec::new();
    let mut config = String::new();
    for (name, section, key, call, ending) in PROGRAMS {
        let file = payloads.join(name);
        write_program(&file, marker_dir, name, ending);
        let value = match call {
            Call::Shell => shell_word(&file.to_string_lossy()),
            Call::Bang => format!("!{}", shell_word(&file.to_string_lossy())),
            Call::Program => file.to_string_lossy().into_owned(),
        };
        config.push_str(&format!("[{section}]\n\t{key} = {}\n", config_value(&value)));
        names.push(name.to_owned());
    }
    for hook in HOOKS {
        let name = format!("hook-{hook}");
        write_program(&hooks.join(hook), marker_dir, &name, "exit 0");
        names.push(name);
    }
    let ext = payloads.join("ext-remote");
    write_program(&ext, marker_dir, "ext-remote", "exit 1");
    // `ext::` splits at spaces by its own rules, in which `% ` is a space.
    let url = format!("ext::{}", ext.to_string_lossy().replace(' ', "% "));
    config.push_str(&format!("[remote \"ext\"]\n\turl = {}\n", config_value(&url)));
    config.push_str(&format!(
        "[remote \"hostile\"]\n\turl = {}\n",
        config_value(&git_dir.to_string_lossy())
    ));
    names.push("ext-remote".to_owned());

    repo.write(".gitattributes", ATTRIBUTES);
    fs::create_dir_all(git_dir.join("info")).expect("the info folder");
    fs::write(git_dir.join("info/attributes"), ATTRIBUTES).expect("the attributes");
    // Last, because from here on git in this repository is not ours any more.
    let before = fs::read_to_string(git_dir.join("config")).expect("a configuration");
    fs::write(git_dir.join("config"), format!("{before}{SETTINGS}{config}"))
        .expect("the configuration");
    names.sort();
    names
}

/// The names of the programs that were executed, sorted.
pub fn markers(marker_dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(marker_dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Every forgery that leaves the others standing; a commit-graph would not be read beside the rest.
fn forge_merges(repo: &Repo) {
    if upstream_refs(repo).is_empty() {
        return;
    }
    for how in [Forgery::Replace, Forgery::Graft, Forgery::MovedRef] {
        forge_merge(repo.dir(), how);
    }
}

/// Signs the tip of a branch of its own with nonsense, so that showing it has something to verify.
fn plant_signature(repo: &Repo) {
    let Ok(commit) = repo.try_git(&["cat-file", "commit", "HEAD"]) else { return };
    let (head, message) = commit.split_once("\n\n").unwrap_or((&commit, ""));
    let signature =
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n bm9uc2Vuc2U=\n -----END PGP SIGNATURE-----";
    let scratch = repo.git_dir().join("signed-commit");
    fs::write(&scratch, format!("{head}\n{signature}\n\n{message}\n")).expect("a commit");
    let signed = repo.git(&["hash-object", "-t", "commit", "-w", &scratch.to_string_lossy()]);
    fs::remove_file(scratch).expect("the scratch file goes");
    repo.git(&["update-ref", &format!("refs/heads/{MAIN}-signed"), &signed]);
}

fn write_program(file: &Path, marker_dir: &Path, name: &str, ending: &str) {
    let marker = shell_word(&marker_dir.join(name).to_string_lossy());
    fs::write(file, format!("#!/bin/sh\n: > {marker}\n{ending}\n")).expect("a payload");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("an executable payload");
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn config_value(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hermetic::Hermetic;
    use crate::repo::Fork;

    #[test]
    fn planting_executes_nothing() {
        let hermetic = Hermetic::new();
        let marker_dir = hermetic.root().join("markers");
        let names = hostile_workspace(Fork::new(&hermetic).checkout.dir(), &marker_dir);
        assert!(names.len() > 45 && names.is_sorted(), "{names:?}");
        assert!(markers(&marker_dir).is_empty());
    }

    #[test]
    fn ordinary_commands_execute_what_was_planted() {
        let hermetic = Hermetic::new();
        let fork = Fork::named(&hermetic, "a fork + 'more'").clean_merge();
        let marker_dir = hermetic.root().join("markers here");
        let repo = &fork.checkout;
        let names = hostile_workspace(repo.dir(), &marker_dir);
        check(repo, &marker_dir, &["status"], &["fsmonitor", "hook-post-index-change"]);
        repo.write("upstream.txt", "changed\n").write("FORK.md", "changed\n");
        check(repo, &marker_dir, &["diff"], &["clean", "diff-external", "fsmonitor"]);
        check(
            repo,
            &marker_dir,
            &["log", "-p", "--max-count=1", "main-signed"],
            &["gpg", "textconv"],
        );
        check(repo, &marker_dir, &["add", "upstream.txt", "FORK.md"], &["clean", "process"]);
        check(
            repo,
            &marker_dir,
            &["commit", "-m", "x"],
            &["hook-pre-commit", "hook-reference-transaction"],
        );
        check(
            repo,
            &marker_dir,
            &["checkout", "--force", "HEAD~1"],
            &["hook-post-checkout", "smudge"],
        );
        check(repo, &marker_dir, &["fetch", "ext"], &["ext-remote"]);
        check(repo, &marker_dir, &["fetch", "hostile"], &["upload-pack"]);
        check(repo, &marker_dir, &["push", "hostile", "main"], &["receive-pack"]);
        check(repo, &marker_dir, &["fetch", "ssh://example.invalid/x"], &["ssh-command"]);
        check(repo, &marker_dir, &["co"], &["alias"]);
        check(repo, &marker_dir, &["commit", "--amend", "--allow-empty"], &["editor"]);
        for name in markers(&marker_dir) {
            assert!(names.contains(&name), "{name}");
        }
    }

    /// The planted repository also lies about upstream.
    #[test]
    fn the_workspace_claims_a_merge() {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic).clean_merge();
        fork.checkout.git(&["fetch", "--quiet", "upstream"]);
        let upstream = fork.upstream.sha(MAIN);
        hostile_workspace(fork.checkout.dir(), &hermetic.root().join("markers"));
        fork.checkout.git(&["merge-base", "--is-ancestor", &upstream, "HEAD"]);
        fork.checkout.git(&["merge-base", "--is-ancestor", "upstream/main", "HEAD"]);
    }

    fn check(repo: &Repo, marker_dir: &Path, args: &[&str], expected: &[&str]) {
        for name in markers(marker_dir) {
            fs::remove_file(marker_dir.join(name)).unwrap();
        }
        let result = repo.try_git(args);
        let seen = markers(marker_dir);
        for name in expected {
            assert!(
                seen.iter().any(|marker| marker == name),
                "{args:?}: {name} not in {seen:?}; {result:?}"
            );
        }
    }
}
