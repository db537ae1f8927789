//! Statements about closed runs: made from their records, linked into the chain of the host, signed. A note marks a run
//! from just before it is closed until its statements are signed; a failure in between does not affect the run, and the
//! next command that can signs them.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use attest::bottle_run::{EventLog, HostPlace};
use attest::bundle::{BUNDLE_FILE, Bundle, BundleFault};
use attest::host_chain::HostChain;
use attest::statement::Resource;
use host::digest::sha256_file;
use model::exit::BottleExit;
use run_store::operation_log::{OPERATIONS, verify};
use run_store::run_dir::RunDir;
use serde_json::{Value, json};
use shell::Ui;

use super::bottle::Bottle;
use super::home::Home;
use super::run_record::{BottleRunRecord, load_run};
use crate::exit::{Failure, OrExit, OrGeneral, if_found};
use crate::rules::attestation::{Witness, render_statements};
use crate::rules::provenance::{OperationChain, render_provenance};

/// Records and logs of a run; a run may lack some.
const BYPRODUCTS: [&str; 11] = [
    OPERATIONS,
    "metadata.json",
    "commands.log",
    "env_snapshot.txt",
    "plan.json",
    "gitleaks.json",
    "boxes/agent/order.json",
    "boxes/agent/exit.json",
    "boxes/agent/egress.jsonl",
    "boxes/agent/stdout.log",
    "boxes/agent/stderr.log",
];

const WAITING: &str = "it waits for its signature";
const UNSIGNED: u32 = 0o600;
const SIGNED: u32 = 0o444;

/// Writes the note that the statements of a run are not signed yet. A failure is reported and stops nothing.
pub(crate) fn mark_unsigned(ui: &Ui, home: &Home, bottle: &Bottle, dir: &RunDir) {
    let note = home.unsigned.join(dir.id().as_str());
    let folder = DirBuilder::new().recursive(true).mode(0o700).create(&home.unsigned).or_general();
    let written = folder.and_then(|()| {
        host::file::write_atomic(&note, bottle.slug().as_str().as_bytes(), UNSIGNED).or_general()
    });
    if let Err(failure) = written {
        ui.note(&format!("the statements about {} will not be signed: {failure}", dir.id()));
    }
}

/// Makes and signs all statements that have a note. It never fails: a statement that cannot be signed keeps its note.
pub(crate) fn sign_statements(ui: &Ui, home: &Home) {
    let Ok(entries) = fs::read_dir(&home.unsigned) else { return };
    let mut notes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // An incomplete note of a crash begins with a dot, as no run does; its run is not closed.
    notes.retain(|note| !name_of(note).starts_with('.'));
    notes.sort();
    for note in notes {
        let state = match sign_run(home, &note) {
            Ok(SigningState::Signed | SigningState::Open) => continue,
            Ok(SigningState::Pending(reason)) => format!("not signed yet: {reason}"),
            Err(failure) => format!("not made yet: {failure}"),
        };
        ui.note(&format!("the statements about {} are {state}", name_of(&note)));
    }
}

enum SigningState {
    Signed,
    /// The run is not closed.
    Open,
    Pending(String),
}

fn sign_run(home: &Home, note: &Path) -> Result<SigningState, Failure> {
    let slug = fs::read_to_string(note).or_general()?;
    let dir = home.bottles.join(slug.trim()).join("runs").join(name_of(note));
    let dir = RunDir::open(&dir).or_general()?;
    if !dir.is_closed() {
        return Ok(SigningState::Open);
    }
    // Held to the end: two commands sign the same run one after the other.
    let mut chain = HostChain::open(&home.host_chain, host::clock::now()).or_general()?;
    let mut bundle = link(&dir, &mut chain)?;
    let state = sign_bundle(home, &dir, &mut bundle)?;
    drop(chain);
    if let SigningState::Signed = state {
        host::failpoint::hit("signed");
        if_found(fs::remove_file(note))?;
    }
    Ok(state)
}

/// Returns the bundle of a run, linked into the chain. The bundle is written before its line: one without a line is made
/// again, because its place in the chain may be taken.
fn link(dir: &RunDir, chain: &mut HostChain) -> Result<Bundle, Failure> {
    let run = dir.id().as_str();
    let broken = |what: &str| Failure::new(BottleExit::General, format!("{run}: {what}"));
    if let Some(link) = chain.chain().find(run) {
        let bundle = load_bundle(dir)?
            .ok_or_else(|| broken("its statements were removed after they were linked"))?;
        return match bundle.payload_digests().or_general()? == link.statements {
            true => Ok(bundle),
            false => Err(broken("its statements are not the ones that were linked")),
        };
    }
    let meta = load_run(dir)?;
    let (bundle, events) = make_bundle(dir, &meta, chain.next_place())?;
    save_bundle(dir, &bundle, UNSIGNED)?;
    let statements = bundle.payload_digests().or_general()?;
    chain.append(host::clock::now(), (meta.slug.as_str(), run), events, statements).or_general()?;
    Ok(bundle)
}

fn make_bundle(
    dir: &RunDir,
    meta: &BottleRunRecord,
    place: HostPlace,
) -> Result<(Bundle, EventLog), Failure> {
    let end = verify(&dir.operations(), dir.id()).or_general()?;
    if meta.operations_head.as_ref() != Some(&end.head) {
        let message =
            format!("the end of {}'s operation log is not the one that was written down", dir.id());
        return Err(Failure::new(BottleExit::General, message));
    }
    let events = EventLog { file: OPERATIONS.to_owned(), head: end.head, count: end.seq };
    let (provenance, run) = render_statements(&Witness {
        meta,
        operations: &load_operations(dir)?,
        events: events.clone(),
        place,
        byproducts: observe_byproducts(dir)?,
        bundle: observe_git_bundle(dir)?,
    });
    let bundle = Bundle::new(&provenance, &run, WAITING).or_exit(BottleExit::Internal)?;
    Ok((bundle, events))
}

/// Signs a bundle, unless it is signed already. The reason of a failure is written into it.
fn sign_bundle(home: &Home, dir: &RunDir, bundle: &mut Bundle) -> Result<SigningState, Failure> {
    if bundle.envelopes.iter().all(|envelope| !envelope.signatures.is_empty()) {
        return Ok(SigningState::Signed);
    }
    let ring = home.keyring();
    let ready = unchanged(dir, bundle)
        .and_then(|()| Ok((ring.load_or_create().or_general()?, ring.rotations().or_general()?)));
    let (key, rotations) = match ready {
        Ok(ready) => ready,
        Err(failure) => {
            let reason = failure.to_string();
            if bundle.pending.as_ref() != Some(&reason) {
                bundle.pending = Some(reason.clone());
                save_bundle(dir, bundle, UNSIGNED)?;
            }
            return Ok(SigningState::Pending(reason));
        }
    };
    bundle.sign(&key, rotations).or_exit(BottleExit::Internal)?;
    save_bundle(dir, bundle, SIGNED)?;
    Ok(SigningState::Signed)
}

/// Refuses to sign records that changed since the run was closed.
fn unchanged(dir: &RunDir, bundle: &Bundle) -> Result<(), Failure> {
    let changed = |what: String| Failure::new(BottleExit::General, what);
    let claimed =
        bundle.claimed_run().ok_or_else(|| changed("its statements cannot be read".to_owned()))?;
    let end = verify(&dir.operations(), dir.id()).or_general()?;
    match (&end.head, end.seq) == (&claimed.predicate.events.head, claimed.predicate.events.count) {
        true => Ok(()),
        false => Err(changed("its operation log has changed since the run was closed".to_owned())),
    }
}

pub(crate) fn load_bundle(dir: &RunDir) -> Result<Option<Bundle>, Failure> {
    let path = dir.path().join(BUNDLE_FILE);
    if_found(fs::read(&path))?.map(|bytes| parse_bundle(&bytes, &path)).transpose()
}

/// Parses a bundle without verifying it.
pub(crate) fn parse_bundle(bytes: &[u8], path: &Path) -> Result<Bundle, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("{} holds no statements of a run: {error}", path.display());
        Failure::new(BottleExit::General, message)
    })
}

fn save_bundle(dir: &RunDir, bundle: &Bundle, mode: u32) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(bundle).or_exit(BottleExit::Internal)?;
    host::file::write_atomic(&dir.path().join(BUNDLE_FILE), &bytes, mode).or_general()
}

/// State of the signatures of a run's statements, by the keys of this home.
pub(crate) fn signature_state(home: &Home, dir: &RunDir) -> Value {
    let bundle = match load_bundle(dir) {
        Ok(Some(bundle)) => bundle,
        Ok(None) => return json!({ "state": "absent" }),
        Err(failure) => return json!({ "state": "broken", "reason": failure.to_string() }),
    };
    let trust = match home.keyring().trust() {
        Ok(trust) => trust,
        Err(error) => {
            let signers = bundle.envelopes[0].signer_names();
            return json!({ "state": "unchecked", "keyid": signers, "reason": model::error_chain(&error) });
        }
    };
    match bundle.verify(&trust) {
        Ok(verified) => json!({ "state": "signed", "keyid": verified.keyid }),
        Err(BundleFault::Pending { reason }) => json!({ "state": "pending", "reason": reason }),
        Err(fault) => json!({ "state": "broken", "reason": fault.to_string() }),
    }
}

/// Renders the provenance of a run as one document, with the state of its signatures.
pub(crate) fn load_provenance(
    home: &Home,
    dir: &RunDir,
    meta: &BottleRunRecord,
) -> Result<Value, Failure> {
    let mut document = render_provenance(meta, &load_operations(dir)?, &check_chain(dir, meta));
    document["signature"] = signature_state(home, dir);
    Ok(document)
}

/// Compares the operation log with the head in the record.
fn check_chain(dir: &RunDir, meta: &BottleRunRecord) -> OperationChain {
    match (verify(&dir.operations(), dir.id()), &meta.operations_head) {
        (Err(fault), _) => OperationChain::Broken(fault.to_string()),
        (Ok(_), None) => OperationChain::Open,
        (Ok(end), Some(head)) if end.head == *head => OperationChain::Whole,
        (Ok(_), Some(_)) => {
            OperationChain::Broken("its end is not the one that was written down".to_owned())
        }
    }
}

/// Loads the lines of the operation log. A crash leaves an incomplete last line, which the check of the chain reports.
pub(crate) fn load_operations(dir: &RunDir) -> Result<Vec<Value>, Failure> {
    let text = if_found(fs::read_to_string(dir.operations()))?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn observe_byproducts(dir: &RunDir) -> Result<Vec<Resource>, Failure> {
    let found = BYPRODUCTS.iter().map(|name| observe_file(dir, name, name));
    found.filter_map(Result::transpose).collect()
}

/// The bundle that the last export box streamed, if there was one.
fn observe_git_bundle(dir: &RunDir) -> Result<Option<Resource>, Failure> {
    let place = |n: u32| format!("boxes/export-{n}");
    let there = |n: &u32| dir.path().join(place(*n)).is_dir();
    let Some(last) = (1..).take_while(there).last() else { return Ok(None) };
    let file = format!("{}/stdout.bin", place(last));
    let found = observe_file(dir, &file, "bundle")?;
    let found = found.filter(|bundle| bundle.annotations.get("size") != Some(&json!(0)));
    Ok(found.map(|bundle| bundle.with("file", json!(file))))
}

fn observe_file(dir: &RunDir, path: &str, name: &str) -> Result<Option<Resource>, Failure> {
    let found = if_found(sha256_file(&dir.path().join(path)))?;
    Ok(found.map(|(digest, size)| Resource::new(name, "sha256", &digest).with("size", json!(size))))
}

fn name_of(note: &Path) -> String {
    note.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
