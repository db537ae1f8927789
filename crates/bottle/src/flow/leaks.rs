//! Scans outgoing commits for secrets: with the built-in scan always, with gitleaks where it is installed.

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

/// Largest change that is scanned; a larger one is not published.
const PATCH_CAP: usize = 32 << 20;
/// Scanned part of a binary file.
const BLOB_CAP: usize = 16 << 20;
const MODE_GITLINK: u32 = 0o160_000;
const COMMITS_MAX: usize = 2000;
const MERGES_MAX: usize = 50;
const GITLEAKS: &str = "gitleaks";
/// Exit status of gitleaks with findings.
const FOUND: i32 = 77;
const GITLEAKS_LIMIT: Duration = Duration::from_secs(300);
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// New content that would be published.
#[derive(Default)]
struct Outgoing {
    /// In the order of the files: a private key spans lines.
    candidates: Vec<AddedLine>,
    /// Reason if some of it is missing.
    incomplete: Option<String>,
}

impl Outgoing {
    fn add(&mut self, place: &str, lines: impl IntoIterator<Item = Vec<u8>>) {
        let added = |line| AddedLine { place: place.to_owned(), line };
        self.candidates.extend(lines.into_iter().map(added));
    }

    fn add_text(&mut self, place: &str, text: &[u8]) {
        self.add(place, text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    }

    fn miss(&mut self, why: String) {
        self.incomplete.get_or_insert(why);
    }
}

/// Scans the commits up to `tip` that others do not have. `folder` is for the report of gitleaks.
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
    Ok(vec![own, run_gitleaks(&outgoing, folder).await?])
}

/// Gathers each commit by itself, because history is published with its detours; merges against both sides, because the
/// lines of either side are not new; names and binary files; and every header and message.
async fn gather(repo: &SealedRepo, pins: &BottlePins, tip: &Sha) -> Result<Outgoing, Failure> {
    let known = [pins.start.clone(), pins.base.clone()];
    let commits = repo.new_commits(tip, &known, COMMITS_MAX + 1).await.or_general()?;
    let mut outgoing = Outgoing::default();
    if commits.len() > COMMITS_MAX {
        outgoing.miss(format!("more than {COMMITS_MAX} commits"));
    }
    let (merges, plain): (Vec<_>, Vec<_>) = commits.iter().partition(|it| it.parents.len() > 1);
    let plain: Vec<Sha> = plain.into_iter().map(|it| it.sha.clone()).collect();
    let patches = repo.commit_patches(&plain, PATCH_CAP).await.or_general()?;
    if patches.len() < plain.len() {
        outgoing.miss(format!("more than {PATCH_CAP} bytes of changes"));
    }
    for patch in patches {
        outgoing.add(patch.sha.short(), patch.added);
    }
    if merges.len() > MERGES_MAX {
        outgoing.miss(format!("more than {MERGES_MAX} merges"));
    }
    for merge in merges.into_iter().map(|it| &it.sha).take(MERGES_MAX).chain([tip]) {
        let ours = repo.diff(&pins.start, merge, PATCH_CAP).await.or_general()?;
        let theirs = repo.diff(&pins.base, merge, PATCH_CAP).await.or_general()?;
        if ours.truncated || theirs.truncated {
            outgoing.miss(format!("more than {PATCH_CAP} bytes of changes"));
        }
        let (ours, theirs) = (added_lines(&ours.bytes), added_lines(&theirs.bytes));
        outgoing.add(merge.short(), ours.intersection(&theirs).cloned());
    }
    add_entries(repo, &commits, &mut outgoing).await?;
    for commit in &commits {
        // Headers too: git accepts any, and no patch shows them.
        let bytes = repo.commit_bytes(&commit.sha).await.or_general()?;
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
        let (headers, message) = bytes.split_at(end);
        outgoing.add_text(&format!("{} header", commit.sha.short()), headers);
        outgoing.add_text(&format!("{} message", commit.sha.short()), message);
    }
    Ok(outgoing)
}

/// Adds the names of files, and files with a zero byte: git shows no lines of them, so that byte would hide a secret from
/// every patch.
async fn add_entries(
    repo: &SealedRepo,
    commits: &[CommitFacts],
    outgoing: &mut Outgoing,
) -> Result<(), Failure> {
    let mut places = BTreeMap::new();
    for commit in commits {
        for parent in &commit.parents {
            let entries = repo.changed_entries(parent, &commit.sha).await.or_general()?;
            let place = format!("{} name", commit.sha.short());
            let made = entries.iter().filter(|entry| entry.new_mode != 0);
            outgoing.add(&place, made.map(|entry| entry.path.clone()));
            let files = entries.into_iter().filter(|entry| entry.new_mode != MODE_GITLINK);
            let blobs = files.filter_map(|entry| entry.new);
            places.extend(blobs.map(|blob| (blob, commit.sha.short().to_owned())));
        }
    }
    let ids: Vec<Sha> = places.keys().cloned().collect();
    for (id, blob) in ids.iter().zip(repo.read_blobs(&ids, BLOB_CAP).await.or_general()?) {
        let Some(blob) = blob.filter(|blob| blob.bytes.contains(&0)) else { continue };
        if blob.size > BLOB_CAP as u64 {
            outgoing.miss(format!("a binary file of {} bytes", blob.size));
        }
        outgoing.add_text(&format!("{} binary", places[id]), &blob.bytes);
    }
    Ok(())
}

/// Gives gitleaks the same lines on its standard input: it reads no repository, starts no git and sees no token.
async fn run_gitleaks(outgoing: &Outgoing, folder: &Path) -> Result<ScanReport, Failure> {
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
    // It gets no settings and finds none in its folder, so its rules are those in the program.
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
            // The agent must not be able to exempt its own lines.
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
