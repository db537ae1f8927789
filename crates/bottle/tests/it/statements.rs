//! The signed statements about a run: made by the real thing, verified offline, and refused after every kind of change.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use attest::bundle::Bundle;
use attest::dsse::{Envelope, IN_TOTO, pae};
use attest::key::SecretKey;
use serde_json::{Value, json};
use testkit::hermetic::Output;
use testkit::part::{Part, require};

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// A run that ended well, without a forge.
fn person_with_run() -> Option<Person> {
    let person = Person::new()?;
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

fn bundle_file(person: &Person, slug: &str) -> PathBuf {
    person.last_run(slug).join("provenance.json")
}

fn load(path: &Path) -> Bundle {
    serde_json::from_slice(&fs::read(path).expect("statements")).expect("a bundle")
}

/// Writes over a record, whatever its mode says.
fn overwrite(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::remove_file(path).expect("removed");
    fs::write(path, bytes).expect("written");
}

#[track_caller]
fn verifies(person: &Person, name: &str) -> Value {
    person.json(&["provenance", "verify", name])
}

/// The one check that fails says these words.
#[track_caller]
fn refuses(output: &Output, name: &str, words: &str) {
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    let failed: Vec<&str> =
        output.stdout.lines().filter(|line| line.contains("FAILED: ")).collect();
    assert!(
        failed.iter().any(|line| line.starts_with(name) && line.contains(words)),
        "{name}: {words}\n{}",
        output.stdout
    );
    assert!(output.stdout.lines().any(|line| line.starts_with("verified") && line.ends_with("no")));
}

fn verify(person: &Person, name: &str) -> Output {
    person.run(&["provenance", "verify", name])
}

#[test]
fn a_run_on_a_forge_ends_with_statements_that_verify_and_nothing_is_posted() {
    let Some(scene) = Scene::new() else { return };
    let script = format!("[[step]]\nrun = \"forge comment 2 no\"\nexpect = 3\n{COMMIT}{DONE}");
    scene.start_ok(&script);
    let report = verifies(&scene.person, SLUG);
    assert_eq!(report["verified"], true, "{report:#}");
    assert!(
        report["checks"].as_array().expect("checks").iter().all(|it| it["outcome"] == "passed")
    );
    let bundle = load(&bundle_file(&scene.person, SLUG));
    let key = SecretKey::parse_pem(&read_key(&scene.person)).expect("a key");
    let trust = attest::rotation::TrustedKeys::from_root(key.public(), &[]);
    let verified = bundle.verify(&trust).expect("it verifies");
    let tip = scene.published().expect("published");
    assert_eq!(verified.run.subject[0].digest["gitCommit"], tip);
    assert!(verified.run.subject[1].sha256().is_some());
    let slsa = &verified.provenance.predicate;
    let asked = &slsa.build_definition.external_parameters;
    assert_eq!(asked["issue"], 1);
    assert_eq!(asked["pull"], scene.forge.pulls()[0].number);
    assert_eq!(asked["delivery"], Value::Null);
    let held = &slsa.build_definition.internal_parameters;
    for name in ["profile_sha256", "seccomp_sha256"] {
        assert_eq!(held[name].as_str().map(str::len), Some(64), "{name}");
    }
    assert_eq!(held["egress_policy_sha256"], Value::Null, "the scripted agent reaches nothing");
    let names: Vec<&str> =
        slsa.run_details.byproducts.iter().filter_map(|it| it.name.as_deref()).collect();
    for name in ["operations.jsonl", "metadata.json", "boxes/agent/stdout.log"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let run = &verified.run.predicate;
    assert_eq!(run.signal_done.as_ref().map(|it| it.status.as_str()), Some("success"));
    assert!(run.forge_ops.iter().any(|op| !op.allowed && op.reason.contains("out of scope")));
    assert!(run.complete, "{:?}", run.reasons);
    assert_eq!(scene.forge.comments().len(), 0);
    assert!(!scene.forge.pulls()[0].body.contains(verified.keyid.as_str()));
}

#[test]
fn the_statement_about_a_run_fits_the_published_schema() {
    let Some(person) = person_with_run() else { return };
    let bundle = load(&bundle_file(&person, "plain"));
    let bytes = bundle.envelopes[1].claimed_bytes().expect("bytes");
    let statement: Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = include_str!("../../../../schemas/bottle-run.v1.schema.json");
    let schema = serde_json::from_str(text).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator
        .iter_errors(&statement["predicate"])
        .map(|fault| format!("{}: {fault}", fault.instance_path))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn what_a_person_sees_names_what_was_checked() {
    let Some(person) = person_with_run() else { return };
    let output = verify(&person, "plain");
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for line in [
        "signature   ok: both statements",
        "events      ok: ",
        "files       ok: ",
        "host chain  ok: run 1 of 1",
        "verified    yes",
    ] {
        assert!(output.stdout.contains(line), "{line}\n{}", output.stdout);
    }
    let shown = person.provenance("plain");
    assert_eq!(shown["signature"]["state"], "signed");
    let mode = fs::metadata(bundle_file(&person, "plain")).expect("there").mode() & 0o777;
    assert_eq!(mode, 0o444);
}

#[test]
fn a_changed_byte_of_a_payload_is_refused() {
    let Some(person) = person_with_run() else { return };
    let path = bundle_file(&person, "plain");
    let mut bundle = load(&path);
    let mut bytes = bundle.envelopes[0].claimed_bytes().expect("bytes");
    let at = bytes.iter().position(|byte| *byte == b'0').expect("a zero");
    bytes[at] = b'1';
    bundle.envelopes[0].payload = Envelope::unsigned(&bytes).payload;
    overwrite(&path, serde_json::to_vec(&bundle).expect("JSON"));
    refuses(&verify(&person, "plain"), "signature", "the payload or its type was changed");
    assert_eq!(person.provenance("plain")["signature"]["state"], "broken");
}

#[test]
fn a_statement_of_another_type_is_refused() {
    let Some(person) = person_with_run() else { return };
    let path = bundle_file(&person, "plain");
    let good = load(&path);
    let mut bundle = good.clone();
    bundle.envelopes[0].payload_type = "application/json".to_owned();
    overwrite(&path, serde_json::to_vec(&bundle).expect("JSON"));
    refuses(&verify(&person, "plain"), "signature", "its payload is 'application/json'");
    let mut bundle = good;
    bundle.envelopes.swap(0, 1);
    overwrite(&path, serde_json::to_vec(&bundle).expect("JSON"));
    refuses(
        &verify(&person, "plain"),
        "signature",
        "not a 'https://in-toto.io/Statement/v1' about",
    );
}

#[test]
fn statements_signed_by_another_key_are_refused() {
    let Some(person) = person_with_run() else { return };
    let path = bundle_file(&person, "plain");
    let mut bundle = load(&path);
    let stranger = SecretKey::generate().expect("a key");
    bundle.sign(&stranger, Vec::new()).expect("signed");
    overwrite(&path, serde_json::to_vec(&bundle).expect("JSON"));
    refuses(&verify(&person, "plain"), "signature", "no key that counts here");
    // Whoever names that key gets what he asked for.
    let pem = person.hermetic.root().join("stranger.pem");
    fs::write(&pem, stranger.public().pem().expect("PEM")).expect("written");
    let pem = pem.to_str().expect("UTF-8");
    let output = person.run(&["provenance", "verify", "plain", "--key", pem]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_line_removed_from_the_log_and_a_cut_end_are_told_apart() {
    let Some(person) = person_with_run() else { return };
    let path = person.last_run("plain").join("operations.jsonl");
    let text = fs::read_to_string(&path).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 1, "{text}");
    overwrite(&path, lines[1..].join("\n") + "\n");
    refuses(&verify(&person, "plain"), "events", "line 1: it has number 2");
    overwrite(&path, lines[..lines.len() - 1].join("\n") + "\n");
    refuses(&verify(&person, "plain"), "events", "its end was cut off");
    fs::remove_file(&path).expect("removed");
    refuses(&verify(&person, "plain"), "events", "the log cannot be read");
}

#[test]
fn a_changed_record_or_agent_log_is_named() {
    let Some(person) = person_with_run() else { return };
    let path = person.last_run("plain").join("boxes/agent/stdout.log");
    overwrite(&path, "I did nothing wrong.\n");
    refuses(&verify(&person, "plain"), "files", "boxes/agent/stdout.log");
}

#[test]
fn a_run_that_was_deleted_is_missed_with_its_line_and_without() {
    let Some(person) = person_with_run() else { return };
    let deleted = person.last_run("plain");
    for _ in 0..2 {
        let output = person.resume("plain", COMMIT);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    }
    assert_eq!(verifies(&person, "plain")["verified"], true);
    fs::remove_dir_all(&deleted).expect("deleted");
    refuses(&verify(&person, "plain"), "host chain", "was deleted");
    let chain = person.home().join("attest/runs.jsonl");
    let text = fs::read_to_string(&chain).expect("a chain");
    let name = deleted.file_name().expect("a name").to_string_lossy().into_owned();
    let rest: Vec<&str> = text.lines().filter(|line| !line.contains(&name)).collect();
    overwrite(&chain, rest.join("\n") + "\n");
    refuses(&verify(&person, "plain"), "host chain", "lines were removed");
}

#[test]
fn a_chain_whose_end_was_cut_off_does_not_hide_the_last_run() {
    let Some(person) = person_with_run() else { return };
    let first =
        person.last_run("plain").file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(person.resume("plain", COMMIT).status, Some(0));
    let last = person.last_run("plain");
    let chain = person.home().join("attest/runs.jsonl");
    let text = fs::read_to_string(&chain).expect("a chain");
    let lines: Vec<&str> = text.lines().collect();
    overwrite(&chain, lines[..lines.len() - 1].join("\n") + "\n");
    refuses(&verify(&person, "plain"), "host chain", "is not in it");
    refuses(&verify(&person, &first), "host chain", "has no line in the chain");
    fs::remove_dir_all(last).expect("deleted");
    refuses(&verify(&person, &first), "host chain", "was deleted, and its line too");
}

#[test]
fn a_file_is_verified_elsewhere_with_a_pinned_key_also_after_a_rotation() {
    let Some(person) = person_with_run() else { return };
    let pem = person.json(&["key", "show"])["pem"].as_str().expect("PEM").to_owned();
    assert_eq!(person.run(&["key", "rotate"]).status, Some(0));
    assert_eq!(person.resume("plain", COMMIT).status, Some(0));
    let elsewhere = person.hermetic.root().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    fs::write(elsewhere.join("first.pem"), pem).expect("written");
    fs::copy(bundle_file(&person, "plain"), elsewhere.join("it.json")).expect("copied");
    fs::rename(person.home(), person.hermetic.root().join("gone")).expect("moved");
    let path = |name: &str| elsewhere.join(name).to_string_lossy().into_owned();
    let output =
        person.run(&["provenance", "verify", &path("it.json"), "--key", &path("first.pem")]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("host chain  not checked"), "{}", output.stdout);
    let output = person.run(&["provenance", "verify", &path("it.json")]);
    refuses(&output, "signature", "or name one with --key");
}

#[test]
fn after_a_rotation_old_runs_verify_and_new_ones_are_signed_by_the_new_key() {
    let Some(person) = person_with_run() else { return };
    let first =
        person.last_run("plain").file_name().expect("a name").to_string_lossy().into_owned();
    let before = verifies(&person, &first)["keyid"].clone();
    assert_eq!(person.run(&["key", "rotate"]).status, Some(0));
    assert_eq!(verifies(&person, &first)["keyid"], before);
    let pem = person.hermetic.root().join("new.pem");
    let shown = person.json(&["key", "show"]);
    fs::write(&pem, shown["pem"].as_str().expect("PEM")).expect("written");
    let pinned = ["provenance", "verify", &first, "--key", pem.to_str().expect("UTF-8")];
    assert_eq!(person.run(&pinned).status, Some(0), "the new key leads back to the old one");
    assert_eq!(person.resume("plain", COMMIT).status, Some(0));
    let after = verifies(&person, "plain")["keyid"].clone();
    assert_eq!(after, person.json(&["key", "show"])["keyid"]);
    assert_ne!(after, before);
}

fn read_key(person: &Person) -> String {
    fs::read_to_string(person.home().join("attest/signing-key.pem")).expect("a key")
}

#[test]
fn row_24_a_key_that_is_unreadable_or_gone_leaves_the_run_pending_and_it_is_signed_later() {
    let Some(person) = person_with_run() else { return };
    let key = person.home().join("attest/signing-key.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("set");
    let output = person.resume("plain", COMMIT);
    assert_eq!(output.status, Some(0), "the run is kept: {}", output.snapshot());
    assert!(
        output.stderr.contains("not signed yet") && output.stderr.contains("chmod 600"),
        "{}",
        output.stderr
    );
    assert_eq!(person.provenance("plain")["signature"]["state"], "unchecked");
    refuses(&verify(&person, "plain"), "signature", "it is not signed yet");
    fs::rename(&key, key.with_extension("away")).expect("moved");
    let output = person.resume("plain", COMMIT);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    refuses(&verify(&person, "plain"), "signature", "is gone");
    fs::rename(key.with_extension("away"), &key).expect("moved");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("set");
    assert_eq!(person.provenance("plain")["signature"]["state"], "pending");
    assert_eq!(person.run(&["key", "show"]).status, Some(0));
    assert_eq!(verifies(&person, "plain")["verified"], true);
    let owed = fs::read_dir(person.home().join("attest/pending")).expect("a folder").count();
    assert_eq!(owed, 0);
}

#[test]
fn a_record_that_changed_while_it_waited_for_its_signature_is_not_signed() {
    let Some(person) = person_with_run() else { return };
    let key = person.home().join("attest/signing-key.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("set");
    assert_eq!(person.resume("plain", COMMIT).status, Some(0));
    let log = person.last_run("plain").join("operations.jsonl");
    let text = fs::read_to_string(&log).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    overwrite(&log, lines[..lines.len() - 1].join("\n") + "\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("set");
    let output = person.run(&["key", "show"]);
    assert!(output.stderr.contains("has changed since the run was closed"), "{}", output.stderr);
    refuses(&verify(&person, "plain"), "signature", "has changed since");
}

#[test]
fn killed_between_closing_and_signing_the_next_command_signs() {
    for moment in ["closed", "signed"] {
        let Some(scene) = Scene::new() else { return };
        let mut command = scene.start_command(&format!("{COMMIT}{DONE}"));
        let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", moment));
        assert_eq!(output.signal, Some(9), "not killed at {moment}: {}", output.snapshot());
        let first = scene.person.last_run(SLUG).file_name().expect("a name").to_owned();
        let first = first.to_string_lossy().into_owned();
        let output = scene.resume(&format!("{COMMIT}{DONE}"));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        for name in [first.as_str(), SLUG] {
            let report = verifies(&scene.person, name);
            assert_eq!(report["verified"], true, "after {moment}: {report:#}");
        }
        let chain = scene.person.home().join("attest/runs.jsonl");
        assert_eq!(fs::read_to_string(chain).expect("a chain").lines().count(), 3, "{moment}");
    }
}

#[test]
fn the_runs_before_a_run_are_its_lineage() {
    let Some(person) = person_with_run() else { return };
    let first =
        person.last_run("plain").file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(person.resume("plain", COMMIT).status, Some(0));
    let run = load(&bundle_file(&person, "plain")).claimed_run().expect("a run");
    assert_eq!(json!(run.predicate.lineage), json!([first]));
}

#[test]
fn a_key_is_made_shown_and_never_replaced_by_accident() {
    let Some(person) = Person::new() else { return };
    let none = person.run(&["key", "show"]);
    assert_eq!(none.status, Some(3), "{}", none.snapshot());
    assert!(none.stderr.contains("bot-bottle key create"), "{}", none.stderr);
    let made = person.run(&["key", "create"]);
    assert_eq!(made.status, Some(0), "{}", made.snapshot());
    assert!(made.stdout.contains("-----BEGIN PUBLIC KEY-----"), "{}", made.stdout);
    let again = person.run(&["key", "create"]);
    assert_eq!(again.status, Some(3), "{}", again.snapshot());
    assert!(again.stderr.contains("bot-bottle key rotate"), "{}", again.stderr);
    assert!(!made.stdout.contains("PRIVATE"), "{}", made.stdout);
}

/// The payload of an exported statement, after openssl has verified its signature.
fn verified_by_openssl(person: &Person, program: &Path, envelope: &Value) -> Value {
    let envelope: Envelope = serde_json::from_value(envelope.clone()).expect("an envelope");
    let payload = envelope.claimed_bytes().expect("Base64");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pem = person.json(&["key", "show"])["pem"].as_str().expect("a key").to_owned();
    fs::write(path("key.pem"), pem).expect("written");
    fs::write(path("message"), pae(IN_TOTO, &payload)).expect("written");
    fs::write(path("signature.txt"), &envelope.signatures[0].sig).expect("written");
    let openssl = |args: &[&str]| {
        let output = person.hermetic.run(person.hermetic.command(program).args(args));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    };
    let (text, signature) = (path("signature.txt"), path("signature"));
    openssl(&["base64", "-d", "-A", "-in", &text, "-out", &signature]);
    let (key, message) = (path("key.pem"), path("message"));
    let verify = ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", &key];
    openssl(&[&verify[..], &["-in", &message, "-sigfile", &signature]].concat());
    serde_json::from_slice(&payload).expect("a statement")
}

#[test]
fn a_summary_for_policy_engines_says_passed_and_openssl_verifies_it() {
    let Some(openssl) = require(Part::Openssl) else { return };
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let envelope = scene.person.json(&["provenance", "export", SLUG, "--as", "vsa"]);
    let statement = verified_by_openssl(&scene.person, &openssl, &envelope);
    assert_eq!(statement["predicateType"], "https://slsa.dev/verification_summary/v1");
    let tip = scene.published().expect("published");
    assert_eq!(statement["subject"][0]["digest"]["gitCommit"], tip.as_str());
    let summary = &statement["predicate"];
    assert_eq!(summary["verificationResult"], "PASSED", "{summary:#}");
    assert_eq!(
        summary["verifiedLevels"],
        json!(["SLSA_BUILD_LEVEL_1", "BOTTLEWORKS_SEALED_RUN_V1"])
    );
    let uri = summary["resourceUri"].as_str().expect("an address");
    assert!(
        uri.starts_with("git+http") && uri.ends_with(&format!("@refs/heads/bot-bottle/{SLUG}"))
    );
    let bytes = fs::read(bundle_file(&scene.person, SLUG)).expect("statements");
    let input = &summary["inputAttestations"][0]["digest"]["sha256"];
    assert_eq!(*input, model::digest::sha256(&bytes));
}

#[test]
fn a_summary_says_failed_where_a_record_changed_or_the_work_was_not_found_good() {
    let Some(openssl) = require(Part::Openssl) else { return };
    let Some(person) = person_with_run() else { return };
    let summary = |slug: &str| {
        let envelope = person.json(&["provenance", "export", slug, "--as", "vsa"]);
        verified_by_openssl(&person, &openssl, &envelope)["predicate"].clone()
    };
    let failed = |summary: &Value| -> Vec<String> {
        let checks =
            summary["https://bottleworks.dev/policy/checks/v1"].as_array().expect("checks");
        let failed = checks.iter().filter(|check| check["passed"] == false);
        failed.map(|check| check["name"].as_str().expect("a name").to_owned()).collect()
    };
    overwrite(&person.last_run("plain").join("commands.log"), "nothing\n");
    let changed = summary("plain");
    assert_eq!(changed["verificationResult"], "FAILED");
    assert_eq!(changed["verifiedLevels"], json!(["FAILED"]));
    assert_eq!(failed(&changed), ["files"]);
    let refused = person.run(&["provenance", "export", "plain", "--as", "agent-commit"]);
    assert_eq!(refused.status, Some(1), "{}", refused.snapshot());
    assert!(refused.stderr.contains("do not hold"), "{}", refused.stderr);
    assert!(refused.stderr.contains("bot-bottle provenance verify "), "{}", refused.stderr);
    let output = person.start(DONE, &["--label", "idle"]);
    let idle = summary("idle");
    assert_eq!(idle["verificationResult"], "FAILED", "{}", output.snapshot());
    assert!(failed(&idle).contains(&"result".to_owned()), "{idle:#}");
}

#[test]
fn a_run_is_told_in_the_shared_words_for_commits_of_agents() {
    let Some(openssl) = require(Part::Openssl) else { return };
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let envelope = scene.person.json(&["provenance", "export", SLUG, "--as", "agent-commit"]);
    let statement = verified_by_openssl(&scene.person, &openssl, &envelope);
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let tip = scene.published().expect("published");
    assert_eq!(statement["subject"][0]["digest"]["gitCommit"], tip.as_str());
    let build = &statement["predicate"]["buildDefinition"];
    assert_eq!(build["buildType"], "https://refs.arewm.com/agent-commit/v0.3");
    let external = &build["externalParameters"];
    // What the published description requires.
    for pointer in [
        "/task/uri",
        "/task/content/digest/sha256",
        "/target/repository",
        "/target/baseRef",
        "/target/baseCommit",
    ] {
        let text = external.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(!text.is_empty(), "{pointer}: {external:#}");
    }
    assert!(external["task"]["uri"].as_str().is_some_and(|uri| uri.ends_with("/issues/1")));
    assert_eq!(external["target"]["baseRef"], "refs/heads/main");
    let internal = &build["internalParameters"];
    assert_eq!(internal["agent"]["runtime"]["name"], "scripted", "{internal:#}");
    assert_eq!(internal["agent"]["tools"][0]["name"], "forge");
    assert_eq!(internal["sandboxPolicy"]["network"]["mode"], "none");
    let source = &build["resolvedDependencies"][0];
    assert_eq!(source["digest"]["gitCommit"], external["target"]["baseCommit"]);
    let details = &statement["predicate"]["runDetails"];
    for name in ["invocationId", "startedOn", "finishedOn"] {
        assert!(details["metadata"][name].is_string(), "{details:#}");
    }
    assert_eq!(details["byproducts"][0]["name"], "observed-network");
    assert_eq!(details["byproducts"][0]["mediaType"], "application/vnd.runtime-observations+json");
}
