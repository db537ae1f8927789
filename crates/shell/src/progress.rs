//! Progress of a fetch: its count beside the spinner on a terminal, and as lines elsewhere.

use std::pin::pin;
use std::time::{Duration, Instant};

use host::git::FetchProgress;

use crate::ui::Ui;

/// Time before a fetch is shown.
const FIRST: Duration = Duration::from_secs(1);
/// Time between two looks at the counts.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Awaits fetches. After a second it shows how far each of them is, by the name of its remote.
pub async fn while_fetching<T>(
    ui: &Ui,
    fetches: &[(&str, &FetchProgress)],
    work: impl Future<Output = T>,
) -> T {
    let (mut work, started) = (pin!(work), Instant::now());
    let (mut pause, mut due) = (FIRST, started + FIRST);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(pause) => {
                let message = render_counts(fetches, started.elapsed());
                let now = Instant::now();
                if now >= due {
                    due = now + LINE;
                    ui.progress_line("fetch", &message);
                } else if !ui.is_json() {
                    ui.progress("fetch", &message);
                }
                pause = LOOK;
            }
        }
    }
}

fn render_counts(fetches: &[(&str, &FetchProgress)], so_far: Duration) -> String {
    let render = |(remote, progress): &(&str, &FetchProgress)| match progress.latest() {
        Some(count) => format!("{remote}: {count}"),
        None => format!("{remote}: no answer yet"),
    };
    let counts: Vec<String> = fetches.iter().map(render).collect();
    format!("fetching {}, {} s so far", counts.join("; "), so_far.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_that_has_not_answered_is_named() {
        let (origin, upstream) = Default::default();
        let shown = render_counts(&[("origin", &origin), ("upstream", &upstream)], LINE);
        assert_eq!(shown, "fetching origin: no answer yet; upstream: no answer yet, 5 s so far");
    }
}
