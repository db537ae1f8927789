//! A fuzzer that has read the API's document asks the real server everything that the document allows and forbids.

use testkit::part::require_setting;

use super::client::ask;
use super::real::run_of;
use super::{TOKEN, serving};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG};

#[test]
fn schemathesis_finds_nothing() {
    let remedy =
        "python3 -m venv DIR && DIR/bin/pip install schemathesis, then name DIR/bin/schemathesis";
    let Some(program) = require_setting("schemathesis", "BOTTLEWORKS_TEST_SCHEMATHESIS", remedy)
    else {
        return;
    };
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    serving.label();
    serving.wait("frozen");
    // Names as they come to a fuzzer's mind, and then those that are there, so that it gets further.
    fuzz(&program, &serving, "");
    let there = format!("[parameters]\nslug = \"{SLUG}\"\nrun = \"{}\"\n", run_of(&serving));
    fuzz(&program, &serving, &there);
    let actions = serving.count("SELECT count(*) FROM delivery WHERE source = 'page'");
    assert!(actions > 0, "it got as far as an action that was stored");
    assert_eq!(ask(serving.address, "GET", "/readyz", "").status, 200, "it still stands");
}

fn fuzz(program: &str, serving: &Serving, config: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("schemathesis.toml"), config).expect("written");
    let address = serving.address;
    let hermetic = &serving.scene.person.hermetic;
    let output = hermetic
        .command(program)
        .current_dir(&folder)
        .args(["run", &format!("http://{address}/api/v1/openapi.json")])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .args(["--checks", "all", "--mode", "all", "--max-examples", "40", "--seed", "7"])
        .args(["--no-shrink", "--suppress-health-check", "all"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" generated, "), "it asked nothing: {said}");
}
