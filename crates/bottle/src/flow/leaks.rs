//! Looking for secrets in what is about to be published: the built-in scan always, gitleaks where it is installed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use host::git::{CommitFacts, SealedRepo};
use host::process::{RunLimits, run_with_input};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::id::Sha;
use model::redact::Redactor;

use super::run_record::BottlePins;
use crate::exit::{Failure, OrGeneral};
use crate::rules::leak::{AddedLine, ScanOutcome, ScanReport, added_lines, read_gitleaks, scan};

/// A change that is larger cannot be looked through and is not published.
const PATCH_CAP: usize = 32 << 20;
/// As much of a binary file as is looked through.
const BLOB_CAP: usize = 16 << 20;
const MODE_GITLINK: u32 = 0o160_000;
const COMMITS_MAX: usize = 2000;
const MERGES_MAX: usize = 50;
const GITLEAKS: &str = "gitleaks";
/// The status that gitleaks is asked to leave when it finds something.
const FOUND: i32 = 77;
const GITLEAKS_LIMIT: Duration = Duration::from_secs(300);
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// Everything that would be published and is not there yet.
struct Outgoing {
    /// In the order of the files: a private key runs over lines.
    candidates: Vec<AddedLine>,
    /// Why it is not all.
    incomplete: Option<String>,
}

/// Scans the way from what others have to `tip`. `folder` is for another scanner's report.
pub(crate) async fn scan_outgoing(
    repo: &SealedRepo,
    pins: &BottlePins,
    tip: &Sha,
    redactor: &Redactor,
    folder: &Path,
) -> Result<Vec<ScanReport>, Failure> {
    let outgoing = gather(repo, pins, tip).await?;
    let found = scan(&outgoing.candidates, redactor);
    let status = match (found, &outgoing.incomplete) {
        (ScanOutcome::Clean, Some(reason)) => ScanOutcome::Error { reason: reason.clone() },
        (found, _) => found,
    };
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    let own = ScanReport { engine: "built-in".to_owned(), version, program_sha256: None, status };
    Ok(vec![own, ask_gitleaks(&outgoing, folder).await?])
}

/// Each commit by itself, because history is published with its detours; merges against both sides, because what either
/// side has is not news; and every message.
async fn gather(repo: &SealedRepo, pins: &BottlePins, tip: &Sha) -> Result<Outgoing, Failure> {
    let known = [pins.start.clone(), pins.base.clone()];
    let commits = repo.new_commits(tip, &known, COMMITS_MAX + 1).await.or_general()?;
    let mut incomplete =
        (commits.len() > COMMITS_MAX).then(|| format!("more than {COMMITS_MAX} commits"));
    let mut candidates = Vec::new();
    let plain: Vec<Sha> =
        commits.iter().filter(|it| it.parents.len() < 2).map(|it| it.sha.clone()).collect();
    let patches = repo.commit_patches(&plain, PATCH_CAP).await.or_general()?;
    if patches.len() < plain.len() {
        incomplete.get_or_insert(format!("more than {PATCH_CAP} bytes of changes"));
    }
    for patch in patches {
        let place = patch.sha.short().to_owned();
        candidates
            .extend(patch.added.into_iter().map(|line| AddedLine { place: place.clone(), line }));
    }
    let merges: Vec<&Sha> =
        commits.iter().filter(|it| it.parents.len() > 1).map(|it| &it.sha).collect();
    if merges.len() > MERGES_MAX {
        incomplete.get_or_insert(format!("more than {MERGES_MAX} merges"));
    }
    for merge in merges.into_iter().take(MERGES_MAX).chain([tip]) {
        let ours = repo.diff(&pins.start, merge, PATCH_CAP).await.or_general()?;
        let theirs = repo.diff(&pins.base, merge, PATCH_CAP).await.or_general()?;
        if ours.truncated || theirs.truncated {
            incomplete.get_or_insert(format!("more than {PATCH_CAP} bytes of changes"));
        }
        let new = added_lines(&ours.bytes);
        let new = new.intersection(&added_lines(&theirs.bytes)).cloned().collect::<Vec<_>>();
        let place = merge.short().to_owned();
        candidates.extend(new.into_iter().map(|line| AddedLine { place: place.clone(), line }));
    }
    for (place, bytes) in binaries(repo, &commits, &mut incomplete).await? {
        let lines = bytes.split(|byte| *byte == b'\n');
        candidates
            .extend(lines.map(|line| AddedLine { place: place.clone(), line: line.to_vec() }));
    }
    for commit in &commits {
        let parts = repo.commit_parts(&commit.sha).await.or_general()?;
        let place = format!("{} message", commit.sha.short());
        let lines = parts.message.split(|byte| *byte == b'\n');
        candidates
            .extend(lines.map(|line| AddedLine { place: place.clone(), line: line.to_vec() }));
    }
    Ok(Outgoing { candidates, incomplete })
}

/// What git shows no lines of, because a zero byte is in it: one such byte would hide a secret from every patch.
async fn binaries(
    repo: &SealedRepo,
    commits: &[CommitFacts],
    incomplete: &mut Option<String>,
) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut places = BTreeMap::new();
    for commit in commits {
        for parent in &commit.parents {
            let entries = repo.changed_entries(parent, &commit.sha).await.or_general()?;
            let files = entries.into_iter().filter(|entry| entry.new_mode != MODE_GITLINK);
            let blobs = files.filter_map(|entry| entry.new);
            places.extend(blobs.map(|blob| (blob, commit.sha.short().to_owned())));
        }
    }
    let ids: Vec<Sha> = places.keys().cloned().collect();
    let mut found = Vec::new();
    for (id, blob) in ids.iter().zip(repo.read_blobs(&ids, BLOB_CAP).await.or_general()?) {
        let Some(blob) = blob.filter(|blob| blob.bytes.contains(&0)) else { continue };
        if blob.size > BLOB_CAP as u64 {
            incomplete.get_or_insert(format!("a binary file of {} bytes", blob.size));
        }
        found.push((format!("{} binary", places[id]), blob.bytes));
    }
    Ok(found)
}

/// Gives gitleaks the same lines on its standard input: it reads no repository, starts no git and sees no token.
async fn ask_gitleaks(outgoing: &Outgoing, folder: &Path) -> Result<ScanReport, Failure> {
    let report = |version, program_sha256, status| ScanReport {
        engine: GITLEAKS.to_owned(),
        version,
        program_sha256,
        status,
    };
    let Some(program) = host::tool::which(GITLEAKS) else {
        let reason = "not installed".to_owned();
        return Ok(report(None, None, ScanOutcome::NotRun { reason }));
    };
    // No settings are given and none can be found from where it stands, so its rules are those in the program.
    let digest = host::digest::sha256_file(&program).ok().map(|(digest, _)| digest);
    let version = host::tool::tool_version(GITLEAKS, &["version"], VERSION_LIMIT).await;
    let path = folder.join("gitleaks.json");
    let exit_code = FOUND.to_string();
    let spec = CommandSpec::new(program)
        .args([
            "stdin",
            "--no-banner",
            "--no-color",
            "--redact",
            // A comment by which the agent excuses its own line is no excuse.
            "--ignore-gitleaks-allow",
            "--report-format",
            "json",
            "--exit-code",
            &exit_code,
        ])
        .arg("--report-path")
        .arg(&path)
        .cwd(folder);
    let mut input = Vec::new();
    for candidate in &outgoing.candidates {
        input.extend_from_slice(&candidate.line);
        input.push(b'\n');
    }
    let limits = RunLimits { timeout: Some(GITLEAKS_LIMIT), ..RunLimits::default() };
    let ended = run_with_input(&spec, &input, &limits, &Cancel::new()).await;
    let status = match ended {
        Ok(output) => {
            let exit = match output.exit {
                CommandExit::Exited(code) => Some(code),
                _ => None,
            };
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            read_gitleaks(exit, FOUND, &text)
        }
        Err(error) => ScanOutcome::Error { reason: error.to_string() },
    };
    Ok(report(version, digest, status))
}
