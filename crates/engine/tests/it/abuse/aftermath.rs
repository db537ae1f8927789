//! After an attempt the host looks at what was left behind, and comes to no harm by looking.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use host::safe_read::{SafeFile, SafeReadError, read_beneath};
use model::escape::{escape_line, escape_terminal};
use sandbox::spec::MIB;
use testkit::abuse::{Attempt, SECRET_MARK};

use super::scene::Scene;
use crate::support::Ran;

/// The agent's note, and how much of it is read.
const NOTE: &str = "STUCK.md";
const NOTE_CAP: usize = 64 * 1024;

/// What the host has to check for this attempt, if anything.
pub(super) async fn check(scene: &Scene<'_>, attempt: &Attempt, ran: &Ran) {
    match attempt.name {
        "daemons" => the_daemons_are_silent(scene).await,
        "own-suid" => the_bit_is_there_to_be_seen(scene),
        "stuck-link" => {
            let note = read_note(scene);
            assert!(matches!(note, Err(SafeReadError::Symlink { .. })), "{note:?}");
        }
        "stuck-fifo" | "stuck-folder" => {
            let note = read_note(scene);
            assert!(matches!(note, Err(SafeReadError::NotRegular { .. })), "{note:?}");
        }
        "stuck-sparse" => {
            let note = read_note(scene).expect("a note").expect("a note");
            assert_eq!((note.bytes.len(), note.truncated), (NOTE_CAP, true));
        }
        "traversal-names" => no_name_leads_out(scene),
        "log-flood" => the_log_is_cut(ran),
        "escape-sequences" => the_log_is_harmless_when_shown(ran),
        "invalid-output" => {
            the_log_is_cut(ran);
            the_log_is_harmless_when_shown(ran);
            assert!(
                ran.bytes.windows(4).any(|bytes| bytes == b"\xff\xfe\xc0\x80"),
                "kept as it came"
            );
        }
        "poisoned-state" => a_rehydrated_box_starts_as_told(scene).await,
        _ => {}
    }
}

async fn the_daemons_are_silent(scene: &Scene<'_>) {
    let beats = || -> Vec<String> {
        let files = (1..=5).map(|n| scene.rig.workspace().join(format!("heartbeat-{n}")));
        files.map(|file| fs::read_to_string(file).unwrap_or_default()).collect()
    };
    let before = beats();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(beats(), before);
}

fn the_bit_is_there_to_be_seen(scene: &Scene<'_>) {
    let file = fs::metadata(scene.rig.workspace().join("suid-id")).expect("the file");
    assert_eq!(file.permissions().mode() & 0o7777, 0o6755);
}

fn read_note(scene: &Scene<'_>) -> Result<Option<SafeFile>, SafeReadError> {
    read_beneath(&scene.rig.workspace(), NOTE, NOTE_CAP)
}

/// Links are refused wherever they stand on the way; the rest is content, and never a file of the host.
fn no_name_leads_out(scene: &Scene<'_>) {
    let state = scene.rig.harness_state();
    let read = |name: &str| read_beneath(&state, name, NOTE_CAP);
    let canary = scene.canaries.env()[testkit::abuse::variable::CANARY_PATH].clone();
    let through = [format!("queue/root{canary}"), format!("up{canary}")];
    let links = ["clarification.json", "answer.json", "queue/root", "up"].map(str::to_owned);
    for name in links.iter().chain(&through) {
        let refused = read(name);
        assert!(matches!(refused, Err(SafeReadError::Symlink { .. })), "{name}: {refused:?}");
    }
    for entry in fs::read_dir(state.join("queue")).expect("the queue") {
        let name = format!("queue/{}", entry.expect("an entry").file_name().to_string_lossy());
        if let Ok(Some(file)) = read(&name) {
            let text = String::from_utf8_lossy(&file.bytes).into_owned();
            assert!(!text.contains(SECRET_MARK), "{name}");
        }
    }
    assert!(!scene.rig.dir().join("pwned").exists() && !state.join("pwned").exists());
}

fn the_log_is_cut(ran: &Ran) {
    assert!(ran.record.dropped_bytes > 0, "{ran:#?}");
    let whole = ran.record.output_bytes - ran.record.dropped_bytes;
    assert_eq!(whole, MIB, "{ran:#?}");
    let line = format!(
        "\n[{} bytes are left out here: this log is limited to {MIB} bytes]\n",
        ran.record.dropped_bytes
    );
    assert!(ran.stdout.contains(&line), "{ran:#?}");
    assert_eq!(ran.bytes.len() as u64, MIB + line.len() as u64);
}

/// It is kept as it came, and shown as what cannot act.
fn the_log_is_harmless_when_shown(ran: &Ran) {
    let shown = escape_terminal(&ran.stdout);
    assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{ran:#?}");
    assert!(!shown.contains(['\u{202e}', '\u{2066}', '\u{9b}']), "{ran:#?}");
    assert!(!escape_line(&ran.stdout).contains('\n'));
}

/// The home is the agent's, but what is started, and with what, is ours. No shell reads its profile, and the host reads
/// none of it.
async fn a_rehydrated_box_starts_as_told(scene: &Scene<'_>) {
    let sh = scene.sh("").with(|spec| spec.argv = ["env", "-0"].map(str::to_owned).to_vec());
    let given = sh.spec.env.clone();
    let ran = sh.run_ok().await;
    let seen =
        ran.stdout.split_terminator('\0').map(|line| line.split_once('=').expect("a variable"));
    let seen = seen.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(given, seen);
    let ran = scene.sh("command -v git; ls /harness-state/home/bin").run_ok().await;
    assert_eq!(ran.stdout, "/usr/bin/git\ngit\n");
}
