//! The terminal of a box: the command's own, joined with whoever sits outside and with nobody else.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use guest::TERMINAL_SOCKET_FILE;
use guest::terminal::{TerminalInput, TerminalSize};
use model::verdict::Ended;

use crate::support::{Rig, Running, on_every_backend};

on_every_backend! {
    keys_and_sizes_go_in_and_what_is_shown_is_logged,
    a_key_that_is_a_signal_reaches_the_command,
    a_hang_up_outside_is_one_inside,
    a_box_whose_terminal_is_nobodys_is_never_started,
}

const SIZE: TerminalSize = TerminalSize { rows: 24, cols: 80 };

/// Somebody who sits at a box.
struct AttachedTerminal(UnixStream);

impl AttachedTerminal {
    fn keys(&mut self, keys: &str) {
        self.0
            .write_all(&TerminalInput::Keys(keys.as_bytes().to_vec()).render())
            .expect("it listens");
    }

    /// Waits until the screen has shown this; all that came until then.
    fn shows(&mut self, words: &str) -> String {
        let mut shown = String::new();
        let mut buffer = [0; 1024];
        while !shown.contains(words) {
            match self.0.read(&mut buffer) {
                Ok(count @ 1..) => shown += &String::from_utf8_lossy(&buffer[..count]),
                _ => panic!("{words:?} does not come: {shown:?}"),
            }
        }
        shown
    }
}

/// Starts a script at a terminal and sits down at it.
async fn sit<'a>(rig: &'a Rig, script: &str) -> (Running<'a>, AttachedTerminal) {
    let sh = rig.sh(script).with(|spec| spec.terminal = Some(SIZE));
    let folder = sh.spec.box_dir.join("guest");
    fs::create_dir_all(&folder).expect("the box's folder");
    let socket = folder.join(TERMINAL_SOCKET_FILE);
    let listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("open to the box");
    let running = sh.launch();
    let accepted = tokio::task::spawn_blocking(move || listener.accept());
    let (stream, _) = accepted.await.expect("a thread").expect("the guest");
    (running, AttachedTerminal(stream))
}

async fn keys_and_sizes_go_in_and_what_is_shown_is_logged(rig: &Rig) {
    let script = "stty size; read first; echo got $first; stty size; exit 7";
    let (running, mut seat) = sit(rig, script).await;
    seat.shows("24 80");
    let size = TerminalSize { rows: 50, cols: 132 };
    seat.0.write_all(&TerminalInput::Size(size).render()).expect("it listens");
    seat.keys("hello\r");
    let shown = seat.shows("50 132");
    assert!(shown.contains("got hello"), "{shown}");
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 7 }, "{ran:#?}");
    assert!(ran.stdout.contains("24 80") && ran.stdout.contains("got hello"), "{ran:#?}");
}

async fn a_key_that_is_a_signal_reaches_the_command(rig: &Rig) {
    let (running, mut seat) = sit(rig, "trap 'echo caught; exit 3' INT; echo up; sleep 50").await;
    seat.shows("up");
    seat.keys("\x03");
    seat.shows("caught");
    assert_eq!(running.end().await.record.ended, Ended::Exited { code: 3 });
}

async fn a_hang_up_outside_is_one_inside(rig: &Rig) {
    let (running, mut seat) =
        sit(rig, "trap 'echo gone > gone; exit 4' HUP; echo up; while :; do sleep 0.1; done").await;
    seat.shows("up");
    drop(seat);
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 4 }, "{ran:#?}");
    assert!(rig.workspace().join("gone").exists());
}

async fn a_box_whose_terminal_is_nobodys_is_never_started(rig: &Rig) {
    let ran = rig.sh("echo ran > ran").with(|spec| spec.terminal = Some(SIZE)).run().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    assert!(reason.contains("nobody sits at the terminal"), "{reason}");
    assert!(!rig.workspace().join("ran").exists());
}
