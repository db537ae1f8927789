//! The process of a run's sidecar: holds the token, serves the socket in the box's folder and writes
//! every call into the run's operation log.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::launch::{self, BoxStatus};
use engine::lease_file::LeaseFile;
use forge::{Scope, ScopedForge};
use guest::FORGE_SOCKET_FILE;
use host::file::write_atomic;
use host::lock::FileLock;
use host::process::{ProcessHandle, become_session_leader};
use host::signal::cancel_on_signals;
use model::exit::BottleExit;
use model::redact::Redactor;
use model::secret::Secret;
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use run_store::run_dir::RunDir;
use serde_json::json;
use sidecar::{CallLimits, CallLog, CallLogError, CallOutcome, CallRecord, Dispatcher, DoneQueue};

use super::access::open_forge;
use super::bottle::agent_box;
use super::run_record::load_run;
use super::sidecar::SidecarPlace;
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::forge_env::{TOKEN_VARIABLE, parse_forge_env};

const PAUSE: Duration = Duration::from_millis(500);

/// Time for the box to start; after that the process that was to start it is gone.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The run's operation log as the record of the sidecar's calls.
struct OperationCallLog(OperationLog);

impl CallLog for OperationCallLog {
    fn record(&self, entry: &CallRecord) -> Result<(), CallLogError> {
        let outcome = match entry.outcome {
            CallOutcome::Intended => OperationOutcome::Intended,
            CallOutcome::Done => OperationOutcome::Done,
            CallOutcome::Refused => OperationOutcome::Refused,
            CallOutcome::Failed => OperationOutcome::Failed,
        };
        let operation = Operation::new(format!("forge.{}", entry.method), &*entry.target, outcome)
            .with_detail(match &entry.text_sha256 {
                Some(digest) => json!({ "sentence": entry.sentence, "text_sha256": digest }),
                None => json!({ "sentence": entry.sentence }),
            });
        self.0.append(&operation)?;
        Ok(())
    }
}

/// Serves the run in this directory until its box has ended or a signal. Standard input is its locked lock file.
pub(crate) fn run(path: &Path) -> Result<(), Failure> {
    become_session_leader().or_general()?;
    let dir = RunDir::open(path).or_general()?;
    let place = SidecarPlace::of(&dir)?;
    let inherited = File::from(io::stdin().as_fd().try_clone_to_owned().or_general()?);
    let lock = FileLock::from_inherited(inherited, &place.lock, "sidecar").or_general()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().or_general()?;
    runtime.block_on(serve(&dir, &place))?;
    write_atomic(&place.stopped, b"", 0o600).or_general()?;
    runtime.shutdown_background();
    drop(lock);
    Ok(())
}

async fn serve(dir: &RunDir, place: &SidecarPlace) -> Result<(), Failure> {
    let env = parse_forge_env(host::env::var).or_exit(BottleExit::Usage)?;
    let token = match host::env::var(TOKEN_VARIABLE) {
        Some(token) => Secret::new(token),
        None if env.kind.needs_token() => {
            return Err(Failure::usage("the sidecar was given no token"));
        }
        None => Secret::new(""),
    };
    let redactor = Arc::new(Redactor::new([token.clone()]));
    let forge = open_forge(&env, &token, None).await?;
    let scope = Scope { issue: env.issue, pulls: BTreeSet::from_iter(env.pull) };
    let attachments = load_run(dir)?.attachments.clone();
    let scoped = ScopedForge::new(forge, scope, Arc::clone(&redactor));
    let scoped = Arc::new(scoped.with_attachments(attachments));
    let log = open_log(dir, &redactor)?;
    let queue = DoneQueue::open(&place.queue, dir.id().as_str()).or_general()?;
    let limits = CallLimits::default();
    let dispatcher =
        Dispatcher::new(scoped, Arc::new(OperationCallLog(log)), queue, redactor, limits);
    let listener = bind(&place.guest).or_general()?;
    let cancel = cancel_on_signals().or_general()?;
    let me = ProcessHandle::current().or_general()?;
    let me = serde_json::to_vec(&me).or_exit(BottleExit::Internal)?;
    write_atomic(&place.ready, &me, 0o600).or_general()?;
    let stop = async {
        tokio::select! {
            _reason = cancel.cancelled() => {}
            () = box_ended(dir) => {}
            () = lease_ended(dir) => {}
        }
    };
    sidecar::serve(listener, Arc::new(dispatcher), stop).await.or_general()
}

pub(crate) fn open_log(dir: &RunDir, redactor: &Arc<Redactor>) -> Result<OperationLog, Failure> {
    OperationLog::open_or_create(dir, Arc::clone(redactor)).or_general()
}

/// Waits until the lease of the run is over; for ever if its boxes do not end with it.
async fn lease_ended(dir: &RunDir) {
    match LeaseFile::find(dir.path()) {
        Some(lease) => lease.ended().await,
        None => std::future::pending().await,
    }
}

async fn box_ended(dir: &RunDir) {
    let Ok(place) = agent_box(dir) else { return };
    let begun = host::clock::boottime();
    loop {
        tokio::time::sleep(PAUSE).await;
        let waited = host::clock::boottime().saturating_sub(begun);
        match launch::box_status(&place) {
            Ok(BoxStatus::Running) => {}
            Ok(BoxStatus::NeverStarted) if waited < START_LIMIT => {}
            // A failed check may succeed in a moment.
            Err(_) if waited < START_LIMIT => {}
            Ok(BoxStatus::NeverStarted | BoxStatus::Ended(_) | BoxStatus::Orphaned) | Err(_) => {
                return;
            }
        }
    }
}

/// The path of a run may be longer than a socket's address allows, so the folder is named by its descriptor.
fn bind(folder: &Path) -> io::Result<UnixListener> {
    let held = File::open(folder)?;
    let path = folder.join(FORGE_SOCKET_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener =
        UnixListener::bind(format!("/proc/self/fd/{}/{FORGE_SOCKET_FILE}", held.as_raw_fd()))?;
    // The box's user must be able to connect, and only that box sees the folder.
    fs::set_permissions(&path, Permissions::from_mode(0o666))?;
    Ok(listener)
}
