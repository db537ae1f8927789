//! Heartbeats: processes that do all they can to outlive their box, and leave a mark as long as they live.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::eventually;

/// Five daemons, forked twice, in sessions of their own, deaf to polite signals. `TOKEN` stands on their command
/// lines; each appends to `/workspace/beat-<number>`. The shell goes on when all have begun.
pub(crate) const DAEMONS: &str = r#"
beat='trap "" TERM HUP INT QUIT; while :; do echo >>"/workspace/beat-$1"; sleep 0.05; done'
for n in 1 2 3 4 5; do
    (setsid sh -c "$beat" TOKEN "$n" </dev/null >/dev/null 2>&1 &)
done
for n in 1 2 3 4 5; do
    until [ -s "/workspace/beat-$n" ]; do sleep 0.02; done
done
"#;

/// How often each of the five has beaten.
pub(crate) fn beats_of(workspace: &Path) -> Vec<u64> {
    let beat = |n| fs::metadata(workspace.join(format!("beat-{n}"))).map_or(0, |meta| meta.len());
    (1..=5).map(beat).collect()
}

/// Waits until one of them beats once more.
pub(crate) async fn assert_beating(workspace: &Path) {
    let before = beats_of(workspace);
    eventually("a heartbeat", || before != beats_of(workspace)).await;
}

/// Checks that none of them beats any more.
pub(crate) async fn assert_silent(workspace: &Path) {
    let before = beats_of(workspace);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(before, beats_of(workspace), "they beat on");
}
