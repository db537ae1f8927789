//! The forge's token is found nowhere inside the box, in no log, in no database and in no argument. Each search is shown
//! to find something that is there.

use testkit::fake_forge::TOKEN;
use testkit::wait::wait_for;

use crate::support::{COMMIT, DONE, SLUG, Scene};

/// Looks everywhere that can be read inside. Patterns are written so that they do not match themselves.
const SEARCH: &str = r#"
echo canary-control-1 > /tmp/control
look() { cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/environ 2>/dev/null | tr '\0' '\n' | grep -q "$1" ||
  grep -rqs "$1" /harness-state /tmp /workspace /opt /run /etc; }
look 'canary-contro[l]-1' || exit 21
look 'canary-contro[l]-2' || exit 22
look '0123456789abcdef012345678[9]abcdef01234567' && exit 23
env | grep -q '^FORGE_' && exit 24
exit 0
"#;

#[test]
fn the_token_is_nowhere_inside_the_box() {
    let Some(scene) = Scene::new() else { return };
    let search = format!(
        "[[step]]\nrun = [\"env\", \"X=canary-control-2\", \"bash\", \"-c\", '''{SEARCH}''']\n"
    );
    scene.start_ok(&format!("{search}{COMMIT}{DONE}"));
}

#[test]
fn the_token_is_in_no_file_of_ours() {
    let Some(scene) = Scene::new() else { return };
    let say = "[[step]]\nrun = \"forge comment 1 'a word'; forge read-issue 77; echo canary-of-the-log\"\nexpect = \"any\"\n";
    scene.start_ok(&format!("{say}{COMMIT}{DONE}"));
    let holds = |text: &str| {
        let mut command = scene.person.hermetic.command("grep");
        let found =
            scene.person.hermetic.run(command.args(["-rlaF", text]).arg(scene.person.home()));
        found.stdout
    };
    assert!(holds("canary-of-the-log").contains("stdout.log"), "the search finds what is there");
    assert!(holds(SLUG).contains("bot-bottle.db"), "the search reads databases");
    assert_eq!(holds(TOKEN), "");
}

#[test]
fn forge_env_reaches_the_sidecars_environment_and_no_argument() {
    let Some(scene) = Scene::new() else { return };
    let mut child = scene.spawn("[[step]]\nsleep = 600\n");
    let ready = wait_for("the sidecar", || {
        let runs = scene.person.bottle(SLUG).join("runs");
        let run = std::fs::read_dir(runs).ok()?.flatten().next()?.path();
        let text = std::fs::read(run.join("sidecar/ready.json")).ok()?;
        run.join("boxes/agent/shim.json").exists().then_some(())?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()
    });
    let pid = ready["pid"].as_i64().expect("a pid");
    let read = |name: &str| {
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{name}")).expect("readable"))
            .into_owned()
    };
    let (environ, argv) = (read("environ"), read("cmdline"));
    assert!(environ.contains(&format!("FORGE_TOKEN={TOKEN}")), "it is where it belongs");
    assert!(environ.contains("FORGE_ISSUE_NUMBER=1"));
    assert!(argv.contains("__sidecar") && !argv.contains(TOKEN), "{argv}");
    assert_eq!(scene.person.run(&["stop", SLUG]).status, Some(0));
    assert_eq!(child.wait().expect("ended").code(), Some(143));
}
