//! Workspace out: the agent's commits as objects in a repository of ours.
//!
//! A second, short box reads the workspace and streams a bundle to its standard output. The host stores those bytes
//! and fetches from them with every check on. No git of the host ever opens the workspace.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use host::git::{GitError, OldValue, RefName, SealedRepo, UserRepo};
use model::escape::escape_line;
use model::id::{BoxName, BranchName, IdError, RunId, Sha};
use model::verdict::Ended;
use sandbox::spec::{BoxLimits, BoxOutput, BoxSpec, MIB, MountAccess};
use serde::{Deserialize, Serialize};

use crate::box_dir::BoxDir;
use crate::launch::{LaunchError, Launcher, attach};
use crate::mirror::{Mirror, MirrorError};

const EXPORT_SECS: u64 = 60;

const BUNDLE_CAP: u64 = 256 * MIB;

/// Statuses of the export script: no branch, or from here on the index of the known commit that the branch points to.
const NO_BRANCH: i32 = 10;
const AT_KNOWN: i32 = 11;

/// Start of the line that says how many files are in no commit; their names follow.
const UNCOMMITTED: &str = "uncommitted ";

/// Names of uncommitted files that are kept.
const UNCOMMITTED_NAMED: usize = 5;

/// Runs inside the box. Its output is checked outside.
const SCRIPT: &str = r#"
left=
[ "$1" = list ] && left=$(timeout 5 git status --porcelain=v1 --no-renames --untracked-files=normal 2>/dev/null | head -n 10000)
if [ -n "$left" ]; then
    echo "uncommitted $(echo "$left" | wc -l)" >&2
    echo "$left" | head -n 5 | cut -c 4-203 >&2
fi
branch=$2; shift 2
tip=$(git rev-parse --verify --quiet "refs/heads/$branch^{commit}") || exit 10
at=11; for known in "$@"; do [ "$tip" = "$known" ] && exit $at; at=$((at + 1)); done
for known in "$@"; do set -- "$@" "^$known"; shift; done
exec git -c pack.threads=2 bundle create --quiet - "refs/heads/$branch" "$@"
"#;

#[derive(Debug, Clone)]
pub struct ExportRequest<'a> {
    pub run: &'a RunId,
    /// The box in which the agent ran; the export uses the same root, user and folders.
    pub agent_box: &'a BoxSpec,
    pub branch: &'a BranchName,
    /// Commits that the repository has already, pinned. The first is the branch before the run.
    pub known: &'a [Sha],
    /// Names the files that are in no commit; that takes a walk over the workspace.
    pub lists_uncommitted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// The branch, at this commit, in the host's repository.
    Tip(Sha),
    NothingNew,
    NoBranch,
    Refused(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("could not export the workspace: {reason}")]
    Box { reason: String },
}

/// Files in a workspace that differ from its last commit, as the box of the export saw them. They are in nothing that the host
/// has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    pub count: usize,
    /// The first of them, as git quotes them.
    pub names: Vec<String>,
}

impl Uncommitted {
    /// The files in words, the first of them by name.
    pub fn words(&self) -> String {
        let more = match self.count.saturating_sub(self.names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", self.names.join(", "))
    }

    /// Reads what the export wrote; `None` if it named no file.
    fn parse(stderr: &str) -> Option<Self> {
        let mut lines = stderr.lines();
        let count = lines.find_map(|line| line.strip_prefix(UNCOMMITTED)?.trim().parse().ok())?;
        let names = lines.take(UNCOMMITTED_NAMED.min(count));
        Some(Self { count, names: names.map(|name| escape_line(name).into_owned()).collect() })
    }
}

/// The files that the export of this number found in no commit. The workspace is the agent's, so it is only a hint.
pub fn find_uncommitted(
    request: &ExportRequest<'_>,
    attempt: u32,
) -> Result<Option<Uncommitted>, IdError> {
    let box_dir = request.agent_box.box_dir.with_file_name(box_name(attempt)?.as_str());
    Ok(Uncommitted::parse(&read_stderr(&BoxDir::new(box_dir))))
}

/// Makes the host's repository of a run, anew if there was one, with exactly what the pinned commits reach: a commit that
/// was never given cannot be claimed by its id.
pub async fn make_import_repo(
    path: &Path,
    source: &UserRepo,
    mirror: &Path,
    pins: &[&Sha],
) -> Result<SealedRepo, ExportError> {
    if path.exists() {
        // An earlier attempt may have crashed here.
        host::file::remove_tree_safely(path)
            .map_err(|source| GitError::Prepare { path: path.to_path_buf(), source })?;
    }
    let wants: Vec<Sha> = pins.iter().copied().cloned().collect();
    let mirror = Mirror::update(mirror, source, &wants, None).await?;
    let repo = SealedRepo::init_bare(path, source.object_format()).await?;
    mirror.link_packs(&path.join("objects/pack")).await?;
    drop(mirror);
    for (index, pin) in pins.iter().enumerate() {
        let name = RefName::parse(&format!("refs/pins/{index}"))?;
        repo.update_ref(&name, pin, OldValue::Missing).await?;
    }
    Ok(repo)
}

/// Brings the agent's branch into `repo`. `attempt` numbers the box, because a box is never run twice.
pub async fn export(
    launcher: &Launcher,
    request: &ExportRequest<'_>,
    repo: &SealedRepo,
    attempt: u32,
) -> Result<Exported, ExportError> {
    export_within(BUNDLE_CAP, launcher, request, repo, attempt).await
}

/// The same for a bundle of at most `cap` bytes.
pub async fn export_within(
    cap: u64,
    launcher: &Launcher,
    request: &ExportRequest<'_>,
    repo: &SealedRepo,
    attempt: u32,
) -> Result<Exported, ExportError> {
    let spec = export_box(request, attempt, cap)?;
    let box_dir = launcher.launch(&spec, None)?;
    let record = attach(&box_dir).await?;
    if let Ended::Exited { code } = record.ended
        && let Some(exported) = at_known(code, request.known)
    {
        return Ok(exported);
    }
    match record.ended {
        Ended::Exited { code: 0 } => {}
        Ended::Exited { code: NO_BRANCH } => return Ok(Exported::NoBranch),
        Ended::OutOfSpace => {
            return Ok(Exported::Refused(format!("the bundle is larger than {cap} bytes")));
        }
        // The agent is to blame for a workspace that git cannot read, or not in time.
        Ended::Exited { code } => {
            return Ok(Exported::Refused(format!(
                "git could not bundle the branch (status {code}): {}",
                last_line(&box_dir)
            )));
        }
        Ended::OutOfTime => {
            return Ok(Exported::Refused(format!("no bundle within {EXPORT_SECS} s")));
        }
        other => return Err(ExportError::Box { reason: format!("{other:?}") }),
    }
    let name = import_ref(request.run, request.branch)?;
    match repo
        .fetch_bundle(&box_dir.stdout(spec.output), &RefName::of_branch(request.branch), &name)
        .await
    {
        Ok(()) => {}
        Err(GitError::Failed { stderr, .. }) => return Ok(Exported::Refused(stderr)),
        // The bundle is the agent's: one that cannot be read, or not in time, is no failure of the machine.
        Err(error @ (GitError::TimedOut { .. } | GitError::TooMuch { .. })) => {
            return Ok(Exported::Refused(error.to_string()));
        }
        Err(GitError::Bundle { source, .. }) if source.kind() == ErrorKind::InvalidData => {
            return Ok(Exported::Refused(format!("the bundle cannot be read: {source}")));
        }
        Err(error) => return Err(error.into()),
    }
    match repo.resolve_commit(name.as_str()).await? {
        Some(tip) => Ok(Exported::Tip(tip)),
        None => Ok(Exported::Refused("the bundle holds no commit".to_owned())),
    }
}

/// The result if the status names a known commit. The first one is nothing new; another one got there by a fast
/// forward, is here already, and would be an empty bundle.
fn at_known(code: i32, known: &[Sha]) -> Option<Exported> {
    let at = usize::try_from(code - AT_KNOWN).ok()?;
    let commit = known.get(at)?;
    Some(if at == 0 { Exported::NothingNew } else { Exported::Tip(commit.clone()) })
}

/// The ref of the agent's branch in the host's repository.
pub fn import_ref(run: &RunId, branch: &BranchName) -> Result<RefName, IdError> {
    RefName::parse(&format!("refs/bottle/{run}/{branch}"))
}

fn box_name(attempt: u32) -> Result<BoxName, IdError> {
    BoxName::parse(&format!("export-{attempt}"))
}

fn export_box(request: &ExportRequest<'_>, attempt: u32, cap: u64) -> Result<BoxSpec, IdError> {
    let agent = request.agent_box;
    let name = box_name(attempt)?;
    let mut argv = ["sh", "-c", SCRIPT, "export"].map(str::to_owned).to_vec();
    argv.push(if request.lists_uncommitted { "list" } else { "-" }.to_owned());
    argv.push(request.branch.to_string());
    argv.extend(request.known.iter().map(ToString::to_string));
    Ok(BoxSpec {
        box_dir: agent.box_dir.with_file_name(name.as_str()),
        name,
        workspace_access: MountAccess::ReadOnly,
        programs: Vec::new(),
        argv,
        env: export_env(),
        relays: Vec::new(),
        limits: BoxLimits { file_bytes: cap, ..BoxLimits::default() },
        output: BoxOutput::Exact { cap },
        deadline_secs: EXPORT_SECS,
        silence_secs: None,
        terminal: None,
        grace_ms: 500,
        ..agent.clone()
    })
}

/// Without the agent's own files: HOME is empty, and so is git's configuration but for the repository's.
fn export_env() -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_GRAFT_FILE", "/dev/null"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn read_stderr(box_dir: &BoxDir) -> String {
    let bytes = std::fs::read(box_dir.stderr()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_line(box_dir: &BoxDir) -> String {
    let text = read_stderr(box_dir);
    escape_line(text.lines().last().unwrap_or("it said nothing")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_commit_is_counted_and_the_first_of_it_named() {
        assert_eq!(Uncommitted::parse("fatal: no repository\n"), None);
        let found = Uncommitted::parse("uncommitted 7\na\n\"b\\tc\"\nd\ne\nf\nfatal: x\n");
        let found = found.expect("files");
        assert_eq!(found.words(), "a, \"b\\tc\", d, e, f and 2 more");
        let one = Uncommitted::parse("uncommitted 1\nu.txt\nfatal: x\n").expect("a file");
        assert_eq!(one.words(), "u.txt");
    }
}
