//! Progress of steps that may take longer than a second: beside the spinner on a terminal, as lines elsewhere.

use std::cell::Cell;
use std::pin::pin;
use std::time::{Duration, Instant};

use shell::Ui;

/// Time before the first line.
const FIRST: Duration = Duration::from_secs(1);

/// Longest time between two lines.
const LONGEST: Duration = Duration::from_secs(60);

/// Awaits a step and tells how long it takes already, at growing distances.
pub(crate) async fn with_ticks<T>(ui: &Ui, what: &str, work: impl Future<Output = T>) -> T {
    let (mut work, mut pause, started) = (pin!(work), FIRST, Instant::now());
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(pause) => {
                let seconds = started.elapsed().as_secs();
                ui.progress_line("step", &format!("still {what}, {seconds} s so far"));
                pause = (pause * 2).min(LONGEST);
            }
        }
    }
}

/// Count of a step whose length is known.
pub(crate) struct Counter<'a> {
    ui: &'a Ui,
    what: &'a str,
    due: Cell<Instant>,
    pause: Cell<Duration>,
}

impl<'a> Counter<'a> {
    /// Begins a step; `what` stands before the count.
    pub(crate) fn new(ui: &'a Ui, what: &'a str) -> Self {
        Self { ui, what, due: Cell::new(Instant::now() + FIRST), pause: Cell::new(FIRST) }
    }

    pub(crate) fn show(&self, done: usize, of: usize, noun: &str) {
        let message = format!("{}: {done} of {of} {noun}", self.what);
        let now = Instant::now();
        if now >= self.due.get() {
            self.ui.progress_line("count", &message);
            self.pause.set((self.pause.get() * 2).min(LONGEST));
            self.due.set(now + self.pause.get());
        } else if !self.ui.is_json() {
            self.ui.progress("count", &message);
        }
    }
}
