//! Gathers the facts for verifying the statements about a run: the key, the log, the files beside them and the chain of
//! the home. Offline, and without changing anything.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use attest::bottle_run::EventLog;
use attest::bundle::{BUNDLE_FILE, Bundle, VerifiedBundle};
use attest::host_chain::RunChain;
use attest::keyring::load_public;
use attest::rotation::TrustedKeys;
use attest::statement::Resource;
use host::digest::sha256_file;
use model::exit::BottleExit;
use run_store::operation_log;
use run_store::run_dir::RunDir;

use super::attestation::{load_bundle, parse_bundle};
use super::bottle::{Bottle, find_run};
use super::home::Home;
use crate::exit::{Failure, OrExit, OrGeneral, if_found};
use crate::rules::verification::{
    HomeFacts, LinkedRun, VerificationCheck, VerificationReport, judge_events, judge_files,
    judge_host_chain, judge_signature, no_key, not_checked,
};

struct Found {
    bundle: Bundle,
    /// The run directory around them, if they are in one.
    dir: Option<RunDir>,
}

/// Verifies the statements of a file, of a bottle's newest run, or of a run.
pub(crate) fn verify(
    home: &Home,
    name: &str,
    key: Option<&Path>,
) -> Result<VerificationReport, Failure> {
    let found = find(home, name)?;
    let pinned = key.map(load_public).transpose().or_exit(BottleExit::Usage)?;
    // Those of the bundle lead forwards from a key that was pinned long ago, those of this home back from a new one.
    let mut rotations = found.bundle.rotations.clone();
    rotations.extend(home.keyring().rotations().or_general()?);
    let trust = match pinned {
        Some(key) => Ok((TrustedKeys::from_root(key, &rotations), "the one that was named")),
        None => home.keyring().trust().map(|trust| (trust, "this home's")),
    };
    let mut report =
        VerificationReport { run: found.bundle.run.clone(), keyid: None, checks: Vec::new() };
    let (trust, whose) = match trust {
        Ok(trust) => trust,
        // A missing signature shows without a key.
        Err(error) => {
            let unsigned = found.bundle.envelopes.iter().all(|it| it.signatures.is_empty());
            report.checks.push(match unsigned {
                true => judge_signature(&Err(found.bundle.pending_fault()), ""),
                false => no_key(&model::error_chain(&error)),
            });
            return Ok(report);
        }
    };
    let verified = found.bundle.verify(&trust);
    report.checks.push(judge_signature(&verified, whose));
    if let Ok(verified) = verified {
        report.keyid = Some(verified.keyid.to_string());
        report.checks.extend(check_records(home, found.dir.as_ref(), &verified)?);
    }
    Ok(report)
}

fn check_records(
    home: &Home,
    dir: Option<&RunDir>,
    verified: &VerifiedBundle,
) -> Result<[VerificationCheck; 3], Failure> {
    let Some(dir) = dir else {
        let why = "the file is not in a run directory";
        return Ok(["events", "files", "host chain"].map(|name| not_checked(name, why)));
    };
    let run = &verified.run.predicate;
    let log = match dir.id().as_str() == run.run {
        true => operation_log::verify(&dir.operations(), dir.id())
            .map(|end| EventLog { file: run.events.file.clone(), head: end.head, count: end.seq })
            .map_err(|fault| fault.to_string()),
        false => Err(format!("the directory is the one of {}", dir.id())),
    };
    let files = signed_files(verified);
    let digests = observe_digests(dir, &files)?;
    let is_at_home = is_at_home(home, dir);
    let host_chain = match is_at_home {
        true => check_host_chain(home, verified)?,
        false => not_checked("host chain", "the run is not in this home"),
    };
    Ok([judge_events(&run.events, &log), judge_files(&files, &digests, is_at_home), host_chain])
}

/// Everything with a digest by SHA-256 that is a file of the run.
fn signed_files(verified: &VerifiedBundle) -> Vec<Resource> {
    let mut files = verified.provenance.predicate.run_details.byproducts.clone();
    let in_file = |it: &Resource| {
        let file = it.annotations.get("file")?.as_str()?.to_owned();
        Some(Resource { name: Some(file), ..it.clone() })
    };
    files.extend(verified.run.subject.iter().filter_map(in_file));
    files
}

fn observe_digests(
    dir: &RunDir,
    files: &[Resource],
) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let mut digests = BTreeMap::new();
    for name in files.iter().filter_map(|file| file.name.clone()) {
        let plain = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
        let found = plain.then(|| if_found(sha256_file(&dir.path().join(&name)))).transpose()?;
        digests.insert(name, found.flatten().map(|(digest, _)| digest));
    }
    Ok(digests)
}

fn is_at_home(home: &Home, dir: &RunDir) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    matches!((real(dir.path()), real(&home.bottles)), (Some(dir), Some(bottles)) if dir.starts_with(&bottles))
}

fn check_host_chain(home: &Home, verified: &VerifiedBundle) -> Result<VerificationCheck, Failure> {
    let chain = RunChain::load(&home.host_chain).map_err(|error| model::error_chain(&error));
    let links = chain.as_ref().ok().and_then(Option::as_ref).map(|chain| chain.links.clone());
    let links = links.unwrap_or_default();
    let kept = links
        .iter()
        .map(|link| observe_kept(&home.bottles.join(&link.bottle).join("runs").join(&link.run)))
        .collect();
    let (mut missing, mut unlinked) = (Vec::new(), Vec::new());
    for (_, opened) in Bottle::all(home)? {
        // The chain names the runs of a bottle whose record cannot be read.
        let Ok((bottle, record)) = opened else { continue };
        for run in record.runs {
            match observe_kept(&bottle.runs().join(run.as_str())) {
                LinkedRun::Gone => missing.push(run.to_string()),
                LinkedRun::Statements(_) if !links.iter().any(|link| link.run == run.as_str()) => {
                    unlinked.push(run.to_string());
                }
                LinkedRun::Statements(_) | LinkedRun::NoStatements => {}
            }
        }
    }
    Ok(judge_host_chain(verified, &chain, &HomeFacts { kept, missing, unlinked }))
}

fn observe_kept(path: &Path) -> LinkedRun {
    let Ok(dir) = RunDir::open(path) else { return LinkedRun::Gone };
    let digests = load_bundle(&dir).ok().flatten().and_then(|it| it.payload_digests().ok());
    digests.map_or(LinkedRun::NoStatements, LinkedRun::Statements)
}

fn find(home: &Home, name: &str) -> Result<Found, Failure> {
    let path = Path::new(name);
    if name.contains('/') || path.is_file() {
        return find_file(&if path.is_dir() { path.join(BUNDLE_FILE) } else { path.to_path_buf() });
    }
    let dir = run_of(home, name)?;
    let bundle = load_bundle(&dir)?.ok_or_else(|| {
        let closed = match dir.is_closed() {
            true => "an older bot-bottle closed it, nothing that could sign has run since, or the file was removed",
            false => "the run is not closed",
        };
        Failure::not_found(format!("{} has no {BUNDLE_FILE}: {closed}", dir.id()))
    })?;
    Ok(Found { bundle, dir: Some(dir) })
}

fn find_file(path: &Path) -> Result<Found, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::not_found(format!("could not read {}: {error}", path.display()))
    })?;
    let folder: Option<PathBuf> =
        path.canonicalize().ok().and_then(|it| Some(it.parent()?.to_owned()));
    let dir = folder.and_then(|folder| RunDir::open(&folder).ok());
    Ok(Found { bundle: parse_bundle(&bytes, path)?, dir })
}

pub(crate) fn run_of(home: &Home, name: &str) -> Result<RunDir, Failure> {
    let dir = match Bottle::open(home, name) {
        Ok((bottle, record)) => bottle.last_run(&record)?,
        Err(_) => find_run(home, name)?,
    };
    dir.ok_or_else(|| {
        Failure::not_found(format!("there is no bottle and no run '{name}'; see: bot-bottle list"))
    })
}
