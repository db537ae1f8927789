//! The statements of closed runs: made from their records, linked into the chain of the host, signed. Each run owes its
//! statements from just before it is closed until they are signed; whatever stands in the way, the run itself is kept, and
//! the next command that can signs them.

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

use super::bottle::Bottle;
use super::home::Home;
use super::run_record::BottleRunRecord;
use crate::exit::{Failure, OrExit};
use crate::rules::attestation::{Witness, render_statements};
use crate::ui::Ui;

/// The records and logs of a run, as far as it has them.
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

/// Notes that the statements of a run are owed. A note that cannot be written is told of and holds nothing up.
pub(crate) fn owe(ui: &Ui, home: &Home, bottle: &Bottle, dir: &RunDir) {
    let note = home.owed().join(dir.id().as_str());
    let folder = DirBuilder::new().recursive(true).mode(0o700).create(home.owed()).or_general();
    let written = folder.and_then(|()| {
        host::file::write_atomic(&note, bottle.slug().as_str().as_bytes(), UNSIGNED).or_general()
    });
    if let Err(failure) = written {
        ui.note(&format!("the statements about {} will not be signed: {failure}", dir.id()));
    }
}

/// Makes and signs every statement that is owed. Never fails: what could not be signed stays owed, and is told of.
pub(crate) fn settle_statements(ui: &Ui, home: &Home) {
    let Ok(entries) = fs::read_dir(home.owed()) else { return };
    let mut notes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Half a note that a crash left begins with a dot, as no run does; its run is not closed.
    notes.retain(|note| !name_of(note).starts_with('.'));
    notes.sort();
    for note in notes {
        match settle(home, &note) {
            Ok(Settled::Signed | Settled::NotYet) => {}
            Ok(Settled::Pending(reason)) => {
                ui.note(&format!(
                    "the statements about {} are not signed yet: {reason}",
                    name_of(&note)
                ));
            }
            Err(failure) => {
                ui.note(&format!(
                    "the statements about {} are not made yet: {failure}",
                    name_of(&note)
                ));
            }
        }
    }
}

/// How far the statements of a run came.
enum Settled {
    Signed,
    /// The run is not closed; whoever has it will see to it.
    NotYet,
    Pending(String),
}

fn settle(home: &Home, note: &Path) -> Result<Settled, Failure> {
    let slug = fs::read_to_string(note).or_general()?;
    let dir = home.bottles().join(slug.trim()).join("runs").join(name_of(note));
    let dir = RunDir::open(&dir).or_general()?;
    if !dir.is_closed() {
        return Ok(Settled::NotYet);
    }
    // Held to the end: two commands that settle the same run do so one after the other.
    let mut chain = HostChain::open(&home.host_chain(), host::clock::now()).or_general()?;
    let mut bundle = link(&dir, &mut chain)?;
    let settled = sign(home, &dir, &mut bundle)?;
    drop(chain);
    if let Settled::Signed = settled {
        host::failpoint::hit("signed");
        match fs::remove_file(note) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).or_general()?;
            }
            _ => {}
        }
    }
    Ok(settled)
}

/// The bundle of a run that has its place in the chain. The bundle is written before its line: one that has no line yet is
/// made anew, because the place that it names may be taken.
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
    let meta = BottleRunRecord::load(dir).or_general()?;
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
        let words =
            format!("the end of {}'s operation log is not the one that was written down", dir.id());
        return Err(Failure::new(BottleExit::General, words));
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

/// Signs a bundle, unless it is signed already. What keeps it from being signed is written into it.
fn sign(home: &Home, dir: &RunDir, bundle: &mut Bundle) -> Result<Settled, Failure> {
    if bundle.envelopes.iter().all(|envelope| !envelope.signatures.is_empty()) {
        return Ok(Settled::Signed);
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
            return Ok(Settled::Pending(reason));
        }
    };
    bundle.sign(&key, rotations).or_exit(BottleExit::Internal)?;
    save_bundle(dir, bundle, SIGNED)?;
    Ok(Settled::Signed)
}

/// What is signed late is signed only while the records still say the same.
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

/// The statements of a run, if they were made.
pub(crate) fn load_bundle(dir: &RunDir) -> Result<Option<Bundle>, Failure> {
    let path = dir.path().join(BUNDLE_FILE);
    match fs::read(&path) {
        Ok(bytes) => parse_bundle(&bytes, &path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).or_general(),
    }
}

/// Reads a bundle; whose it is comes later.
pub(crate) fn parse_bundle(bytes: &[u8], path: &Path) -> Result<Bundle, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let words = format!("{} holds no statements of a run: {error}", path.display());
        Failure::new(BottleExit::General, words)
    })
}

fn save_bundle(dir: &RunDir, bundle: &Bundle, mode: u32) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(bundle).or_exit(BottleExit::Internal)?;
    host::file::write_atomic(&dir.path().join(BUNDLE_FILE), &bytes, mode).or_general()
}

/// Whether a run's statements are signed, in few words, by the keys of this home.
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

/// The operation log line by line. Half a line at the end is what a crash leaves; the chain's check tells of it.
pub(crate) fn load_operations(dir: &RunDir) -> Result<Vec<Value>, Failure> {
    let text = match fs::read_to_string(dir.operations()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).or_general(),
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn observe_byproducts(dir: &RunDir) -> Result<Vec<Resource>, Failure> {
    let found = BYPRODUCTS.iter().map(|name| observe_file(dir, name, name));
    found.filter_map(Result::transpose).collect()
}

/// What the last export box streamed, if the commits came out by one.
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
    match sha256_file(&dir.path().join(path)) {
        Ok((digest, size)) => {
            Ok(Some(Resource::new(name, "sha256", &digest).with("size", json!(size))))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).or_general(),
    }
}

fn name_of(note: &Path) -> String {
    note.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
