//! The token for the forge is found nowhere: not in the box, not in the run, not in a log, not in the list of processes. Every
//! search is shown to find something that is there.

use std::path::PathBuf;

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::tree::holding;
use testkit::wait::wait_until;

use crate::support::{MERGE, Person};

const NOWHERE: [PathBuf; 0] = [];

/// A word that is put where the searches look, so that a search that finds nothing has looked.
const CONTROL: &str = "control-that-is-there-to-be-found";

/// What the agent can see: every process's words and variables, its own folders, and everything else that it may read. The
/// first characters of the token are cut off the pattern by brackets, so that the search does not find itself.
const SEARCH: &str = r#"
look() { { cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; env; } 2>/dev/null | tr '\0' '\n' | grep -q "$1" ||
  grep -rqs "$1" /workspace /harness-state /tmp /run /opt /etc; }
echo 'control-that-is-there-to-be-''found' > /tmp/control
look '[0]123456789abcdef0123456789abcdef' && echo TOKEN FOUND || echo token absent
look 'control-that-is-there-to-be-[f]ound' && echo control found || echo CONTROL ABSENT
"#;

/// The command lines of all processes of this machine that hold a text.
fn command_lines_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let line = |entry: std::fs::DirEntry| {
        let bytes = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
    };
    processes.filter_map(line).filter(|line| line.contains(text)).collect()
}

/// Processes whose command line names a folder, and of those the ones with a text among their variables.
fn processes_of(folder: &str, text: &str) -> (usize, Vec<u32>) {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let read = |entry: &std::fs::DirEntry, file: &str| {
        let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let own: Vec<_> = processes.filter(|entry| read(entry, "cmdline").contains(folder)).collect();
    let holding = own.iter().filter(|entry| read(entry, "environ").contains(text));
    let ids = holding.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    (own.len(), ids.collect())
}

#[test]
fn the_token_is_nowhere_while_the_agent_works_and_nowhere_after() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let script = format!(
        "[[step]]\nrun = '''{SEARCH}'''\n[[step]]\nrun = \"touch /harness-state/searched; until [ -e /harness-state/go ]; do sleep 0.05; done; echo {CONTROL} > /harness-state/control\"\n{MERGE}"
    );
    let mut command = person.command(&script, &["--forge-url", &forge.remote_url()]);
    command.env("FORKLIFT_TOKEN", TOKEN);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    person.wait_for_box(&mut child);
    let run = person.only_run();
    wait_until("the search", || {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended too early");
        run.join("harness-state/searched").exists()
    });
    // The script is a file and not on a command line, but the step that sleeps is one.
    assert!(!command_lines_with("/harness-state/searched").is_empty(), "the search finds nothing");
    assert_eq!(command_lines_with(TOKEN), Vec::<String>::new());
    // Only forklift itself was given the token: the shim and what it starts outlive it.
    let (own, holding_it) = processes_of(&run.display().to_string(), TOKEN);
    assert!(own > 0, "the shim names the run's folder");
    assert!(holding_it.iter().all(|id| *id == child.id()), "{holding_it:?}");
    person.open_gate(&run);
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    assert_eq!(forge.pulls().len(), 1, "the token was used");
    assert!(!said.contains(TOKEN), "{said}");
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    let log = person.hermetic.run(&mut person.forklift(&["log", &name])).stdout;
    assert!(log.contains("token absent") && log.contains("control found"), "{log}");
    assert!(!holding(&run, CONTROL).is_empty(), "the search finds nothing");
    assert_eq!(holding(&run, TOKEN), NOWHERE);
    assert_eq!(holding(&person.hermetic.home(), TOKEN), NOWHERE, "beside the run");
}

#[test]
fn a_token_from_the_file_is_in_that_file_alone() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let file = person.hermetic.home().join(".config/forklift/forge-token");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("written");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("set");
    let output = person.run(MERGE, &["--forge-url", &forge.remote_url()]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 1);
    assert_eq!(holding(&person.hermetic.home(), TOKEN), [file.as_path()]);
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(holding(person.hermetic.root(), TOKEN), NOWHERE);
}
