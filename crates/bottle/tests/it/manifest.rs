//! Manifests at the command line: made, listed, shown, checked, and refused with a reason.

use std::os::unix::net::UnixListener;

use crate::support::Person;

#[test]
fn manifests_are_made_listed_shown_and_checked() {
    let Some(person) = Person::new() else { return };
    for kind in ["agent", "bottle"] {
        let output = person.run(&[kind, "new", "fresh"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert_eq!(person.run(&[kind, "new", "fresh"]).status, Some(2), "never over an old one");
        assert!(person.run(&[kind, "list"]).stdout.contains("fresh"));
        assert_eq!(person.run(&[kind, "show", "fresh"]).status, Some(0));
        assert!(person.json(&[kind, "show", "fresh"]).is_object());
    }
    assert_eq!(person.run(&["bottle", "check", "fresh"]).status, Some(0));
    person.script("");
    assert_eq!(person.run(&["agent", "check", "worker"]).status, Some(0));
    let output = person.run(&["agent", "check", "fresh"]);
    assert_eq!(output.status, Some(2), "claude is not installed here: {}", output.snapshot());
}

#[test]
fn a_mistake_is_named_with_its_file_and_line() {
    let Some(person) = Person::new() else { return };
    person.manifest("agents", "odd", "provider = \"claude\"\nmodle = \"x\"\n");
    let output = person.run(&["agent", "check", "odd"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stderr.contains("odd.toml: line 2") && output.stderr.contains("modle"),
        "{}",
        output.stderr
    );
    assert_eq!(person.run(&["agent", "show", "../odd"]).status, Some(2));
}

#[test]
fn mounts_that_hold_secrets_or_sockets_are_refused() {
    let Some(person) = Person::new() else { return };
    let data = person.hermetic.root().join("data");
    std::fs::create_dir_all(data.join("deep")).expect("made");
    std::fs::write(data.join("deep/words.txt"), "plain").expect("written");
    let mount = format!("[[mount]]\nhost = \"{}\"\ninside = \"/opt/data\"\n", data.display());
    person.manifest("bottles", "lend", &mount);
    assert_eq!(person.run(&["bottle", "check", "lend"]).status, Some(0));
    let output = person.start(
        "[[step]]\nrun = \"grep plain /opt/data/deep/words.txt && ! touch /opt/data/x\"\n",
        &["--bottle", "lend"],
    );
    assert_eq!(output.status, Some(0), "{}", output.snapshot());

    let refused = |words: &str| {
        let output = person.run(&["bottle", "check", "lend"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
    };
    let key = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT");
    std::fs::write(data.join("deep/config"), key).expect("written");
    refused("holds a secret");
    std::fs::remove_file(data.join("deep/config")).expect("removed");
    let socket = UnixListener::bind(data.join("deep/s.sock")).expect("bound");
    refused("is a socket");
    drop(socket);
    person.manifest("bottles", "lend", "[[mount]]\nhost = \"/etc\"\ninside = \"/opt/data\"\n");
    refused("system's own");
}

#[test]
fn a_bottle_names_what_its_box_lacks_and_runs_its_setup_once() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "lacks", "packages = [\"no-such-program\"]\n");
    let output = person.start("", &["--bottle", "lacks"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stdout.contains("missing in the box: no-such-program"), "{}", output.snapshot());

    person.manifest(
        "bottles",
        "ready",
        "packages = [\"git\"]\nsetup = \"echo once >> setup.log\"\n",
    );
    let script = "[[step]]\nrun = \"test $(wc -l < setup.log) = 1\"\n";
    let output = person.start(script, &["--bottle", "ready", "--label", "ready"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.resume("ready", script).status, Some(0));
}
