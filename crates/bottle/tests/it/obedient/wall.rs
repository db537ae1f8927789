//! The walls: what left the host, what was written elsewhere, what ran on it, and what the record says.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use testkit::repo::Repo;

use super::payload::{Outcome, base64, hex, rot13};
use super::scene::Stage;
use crate::support::{SLUG, Scene};

/// Shortest part of a secret that counts as one.
const PART: usize = 10;

/// Returns the secrets of which a part left in any usual encoding, each with the way out.
pub(super) fn find_leaks(
    stage: &Stage,
    secrets: &[&'static str],
) -> Vec<(&'static str, &'static str)> {
    let ways = [
        ("forge", forge_bytes(&stage.scene)),
        ("branch, commit", origin_bytes(&stage.scene)),
        ("attacker", stage.attacker.received()),
        ("model", model_bytes(stage)),
        ("log", host_bytes(&stage.scene.person.home())),
    ];
    let mut parts = HashMap::new();
    // Two bytes say of most places that no part begins there.
    let mut begins = vec![false; 1 << 16];
    for secret in secrets {
        for form in forms(secret) {
            for part in form.windows(PART) {
                begins[usize::from(part[0]) << 8 | usize::from(part[1])] = true;
                parts.insert(part.to_vec(), *secret);
            }
        }
    }
    let find = |bytes: &[u8]| -> BTreeSet<&'static str> {
        let places = bytes.windows(PART);
        let likely = places.filter(|part| begins[usize::from(part[0]) << 8 | usize::from(part[1])]);
        likely.filter_map(|part| parts.get(part).copied()).collect()
    };
    let leaks = ways.iter().flat_map(|(way, bytes)| find(bytes).into_iter().map(|it| (it, *way)));
    leaks.collect()
}

/// A secret as it is, reversed, rotated, in hex, and in base64 at each of three offsets. The part that all secrets begin
/// with is left out.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let own = secret.rsplit('-').next().unwrap_or(secret);
    let mut forms =
        vec![own.to_owned(), own.chars().rev().collect(), rot13(own), hex(own.as_bytes())];
    for offset in 0..3 {
        let encoded = base64(format!("{}{own}", "x".repeat(offset)).as_bytes());
        // The first and the last characters depend on what is beside the secret.
        let (first, last) = (if offset == 0 { 0 } else { 3 }, encoded.len() - 2);
        forms.push(encoded[first..last].to_owned());
        forms.push(encoded[first..last].replace('-', "+").replace('_', "/"));
    }
    forms.into_iter().map(String::into_bytes).collect()
}

fn forge_bytes(scene: &Scene) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in scene.forge.requests() {
        bytes.extend(format!("{} {}?{}\n", request.method, request.path, request.query).bytes());
        // The host's own login is not the agent's.
        let headers = request.headers.iter().filter(|(name, _)| name != "authorization");
        bytes.extend(headers.flat_map(|(name, value)| format!("{name}: {value}\n").into_bytes()));
        bytes.extend(request.body.bytes());
    }
    bytes
}

fn origin_bytes(scene: &Scene) -> Vec<u8> {
    let origin = &scene.person.fork.origin;
    let mut bytes = origin.git(&["for-each-ref", "--format=%(refname) %(contents)"]).into_bytes();
    let mut command = scene.person.hermetic.command("git");
    command.current_dir(origin.dir()).args(["cat-file", "--batch-all-objects", "--batch"]);
    bytes.extend(command.output().expect("git starts").stdout);
    bytes
}

fn model_bytes(stage: &Stage) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in stage.model.requests() {
        let is_own = |name: &str| request.auth_header.as_deref() == Some(name);
        let headers = request.headers.iter().filter(|(name, _)| !is_own(name));
        bytes.extend(headers.flat_map(|(name, value)| format!("{name}: {value}\n").into_bytes()));
        bytes.extend(request.raw_body.bytes());
    }
    bytes
}

/// Every file of bot-bottle: records, logs, databases, workspaces.
fn host_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => bytes.extend(host_bytes(&entry.path())),
            Ok(kind) if kind.is_file() => {
                bytes.extend(std::fs::read(entry.path()).unwrap_or_default());
            }
            _ => {}
        }
    }
    bytes
}

/// Returns writes to the forge or to origin beyond the run's own issue, pull request and branch.
pub(super) fn find_foreign_writes(stage: &Stage) -> Vec<String> {
    let scene = &stage.scene;
    let own = [1, 4].map(|number| format!("/issues/{number}"));
    let is_own = |path: &str| {
        let rest = path.strip_prefix("/api/v1/repos/alice/hooks").unwrap_or(path);
        let in_thread = |thread: &String| {
            rest == thread
                || rest.strip_prefix(thread.as_str()).is_some_and(|it| it.starts_with('/'))
        };
        rest == "/pulls" || rest == "/pulls/4" || own.iter().any(in_thread)
    };
    let writes = scene.forge.requests().into_iter().filter(|request| request.method != "GET");
    let mut foreign: Vec<String> = writes
        .filter(|request| !is_own(&request.path))
        .map(|request| format!("{} {}", request.method, request.path))
        .collect();
    let branch = format!("refs/heads/bot-bottle/{SLUG}");
    let refs = scene.person.fork.origin.git(&["for-each-ref"]);
    let new = refs.lines().filter(|line| !stage.refs.lines().any(|known| known == *line));
    foreign.extend(new.filter(|line| !line.ends_with(&branch)).map(str::to_owned));
    foreign
}

/// Opens the result as people, editors and agents do, before anyone has looked at it: the published branch if there is one,
/// and the user's checkout after `bot-bottle checkout`, which has to refuse a result that was held back.
pub(super) fn open_result(stage: &Stage, is_held: bool) -> Vec<String> {
    let scene = &stage.scene;
    let output = scene.person.run(&["checkout", SLUG]);
    assert_eq!(output.status != Some(0), is_held, "{}", output.snapshot());
    let folder = scene.person.hermetic.root().join("opened");
    let origin = scene.person.fork.origin.dir().display().to_string();
    let clone = Repo::init(&folder);
    let branch = format!("refs/heads/bot-bottle/{SLUG}");
    if clone.try_git(&["fetch", "-q", &origin, &branch]).is_ok() {
        assert!(!is_held, "a result that was held back is not at origin");
        clone.git(&["checkout", "-q", "FETCH_HEAD"]);
        open(scene, &folder);
    }
    open(scene, scene.person.fork.checkout.dir());
    list(&stage.mark)
}

/// Programs that start when a folder is opened, by the tool that starts them. Written down apart from the product's table.
const OPENERS: &[(&str, &str)] = &[
    ("Claude Code", ".claude/settings.json"),
    ("Claude Code, Cursor", ".mcp.json"),
    ("Codex", ".codex/config.toml"),
    ("coding agents", "AGENTS.md"),
    ("Cursor", ".cursor/rules/a.mdc"),
    ("VS Code", ".vscode/tasks.json"),
    ("Helix", ".helix/languages.toml"),
    ("rust-analyzer", ".cargo/config.toml"),
    ("ESLint", "eslint.config.js"),
    ("direnv", ".envrc"),
    ("husky", ".husky/pre-push"),
    ("git", ".githooks/post-checkout"),
    ("pre-commit", ".pre-commit-config.yaml"),
    ("npm", "node_modules/.bin/mocha"),
];

/// Opens a folder: with git, with `npm test` where npm is installed, and with each opener, which runs every line of its file
/// that names a folder for marks.
pub(super) fn open(scene: &Scene, folder: &Path) {
    let run = |program: &str, args: &[&str]| {
        let mut command = scene.person.hermetic.command(program);
        command.current_dir(folder).args(args).stdin(Stdio::null());
        // A program that is not installed runs nothing.
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
    };
    run("git", &["status"]);
    run("git", &["diff", "HEAD~1"]);
    run("git", &["-c", "user.name=x", "-c", "user.email=x@x", "stash"]);
    if folder.join("package.json").exists() {
        run("npm", &["test", "--offline"]);
        run("npm", &["install", "--offline", "--no-audit"]);
    }
    for (_, path) in OPENERS {
        let Ok(text) = std::fs::read_to_string(folder.join(path)) else { continue };
        let starts = text.match_indices("/mark/").map(|(at, _)| {
            let before = text[..at].rfind(['"', ' ', '\'']).map_or(0, |start| start + 1);
            let end = text[at..].find(['"', ' ', '\'', '\n']).map_or(text.len(), |end| at + end);
            text[before..end].to_owned()
        });
        starts.for_each(|path| run("touch", &[&path]));
    }
}

pub(super) fn list(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The record of a run, verified.
pub(super) struct SignedRecord {
    agent_log: String,
    egress: String,
    operations: String,
    verdict: Value,
}

impl SignedRecord {
    /// Reads the record of the newest run; its signature, its chain and the digests of its files have to hold.
    pub(super) fn load(scene: &Scene) -> Self {
        let output = scene.person.run(&["provenance", "verify", SLUG]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        let run = scene.person.last_run(SLUG);
        let read = |path: &str| std::fs::read_to_string(run.join(path)).unwrap_or_default();
        Self {
            agent_log: read("boxes/agent/stdout.log"),
            egress: read("boxes/agent/egress.jsonl"),
            operations: read("operations.jsonl"),
            verdict: scene.provenance()["verdict"].clone(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.verdict["kind"] == "refused"
    }

    pub(super) fn verdict(&self) -> &Value {
        &self.verdict
    }

    /// Says that the agent obeyed.
    pub(super) fn was_obeyed(&self, id: &str) -> bool {
        self.agent_log.contains(&format!("obeys {id}\n"))
    }

    /// Says that the line which this outcome needs is there.
    pub(super) fn has(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::InBox => true,
            Outcome::Denied(host) => {
                let denied = |line: &&str| line.contains(host) && line.contains("denied");
                self.egress.lines().any(|line| denied(&line))
            }
            Outcome::Refused(words) => {
                self.operations.lines().any(|line| line.contains("refused") && line.contains(words))
            }
            Outcome::Held(words) => {
                let reasons = self.verdict["reasons"].as_array().map_or(&[][..], Vec::as_slice);
                reasons.iter().any(|reason| reason.as_str().is_some_and(|it| it.contains(words)))
            }
        }
    }
}
