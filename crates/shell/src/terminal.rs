//! The two streams of the process. Every byte that a program prints passes the redactor here.
//!
//! There is one terminal for each process, so its state is global: the secrets to strike out, the spinner, which
//! has to step aside for each line, and the step that is reported where there is no spinner.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use model::redact::Redactor;
use model::secret::Secret;

/// Suffixes of variables with secrets.
const SECRET_NAMES: [&str; 5] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD"];

/// Bytes; a shorter value is more likely a word than a secret.
const SHORTEST_VALUE: usize = 8;

/// Time after which a step is reported where there is no spinner, and the longest time between two reports.
const FIRST_REPORT: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

static TERMINAL: LazyLock<Mutex<Terminal>> = LazyLock::new(|| {
    Mutex::new(Terminal {
        secrets: Vec::new(),
        redactor: Arc::new(Redactor::new([])),
        spinner: None,
        step: None,
        lost_output: None,
    })
});

/// The thread that reports steps; it is started with the first step.
static REPORTS: LazyLock<()> = LazyLock::new(|| {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(500));
            let line = Terminal::lock().step.as_mut().and_then(|step| step.report(Instant::now()));
            line.iter().for_each(|line| print_error(line));
        }
    });
});

/// A step that goes on.
struct Step {
    message: String,
    started: Instant,
    due: Instant,
    pause: Duration,
}

impl Step {
    fn new(message: &str, now: Instant) -> Self {
        let pause = FIRST_REPORT;
        Self { message: message.to_owned(), started: now, due: now + pause, pause }
    }

    /// The line about the step, if it is time for one. The distances grow.
    fn report(&mut self, now: Instant) -> Option<String> {
        if now < self.due {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.due = now + self.pause;
        Some(format!("  {}: {} s so far", self.message, (now - self.started).as_secs()))
    }
}

struct Terminal {
    secrets: Vec<Secret>,
    redactor: Arc<Redactor>,
    spinner: Option<ProgressBar>,
    step: Option<Step>,
    /// The first failure to write to standard output.
    lost_output: Option<io::Error>,
}

impl Terminal {
    fn lock() -> MutexGuard<'static, Self> {
        // A thread that panicked while it printed leaves nothing half done here.
        TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Strikes these secrets out of everything that is printed from now on.
pub fn hide(secrets: impl IntoIterator<Item = Secret>) {
    let mut terminal = Terminal::lock();
    let before = terminal.secrets.len();
    for secret in secrets {
        if !terminal.secrets.iter().any(|known| known.expose() == secret.expose()) {
            terminal.secrets.push(secret);
        }
    }
    if terminal.secrets.len() > before {
        terminal.redactor = Arc::new(Redactor::new(terminal.secrets.iter().cloned()));
    }
}

/// Strikes out the values of variables whose names say that they are secret: an error can quote one before the
/// program has read it.
pub(crate) fn hide_environment() {
    hide(host::env::vars_os().into_iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?.to_ascii_uppercase(), value.into_string().ok()?);
        is_secret(&name, &value).then(|| Secret::new(value))
    }));
}

/// A path or a text with spaces is a setting about a secret, not the secret itself.
fn is_secret(name: &str, value: &str) -> bool {
    SECRET_NAMES.iter().any(|end| name.ends_with(end))
        && value.len() >= SHORTEST_VALUE
        && !value.starts_with(['/', '.', '~'])
        && !value.contains(char::is_whitespace)
}

pub(crate) fn redactor() -> Arc<Redactor> {
    Terminal::lock().redactor.clone()
}

/// Columns of the screen that standard output is on; `None` where it is a file or a pipe.
pub(crate) fn width() -> Option<u16> {
    host::terminal::size().map(|(_, columns)| columns)
}

/// Writes to standard output. A reader that stopped reading is not an error; any other failure is told at the end.
pub(crate) fn print(text: &str) {
    let mut terminal = Terminal::lock();
    let redactor = Arc::clone(&terminal.redactor);
    let text = redactor.redact(text);
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    let written = match &terminal.spinner {
        Some(spinner) => spinner.suspend(write),
        None => write(),
    };
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        terminal.lost_output.get_or_insert(error);
    }
}

/// Takes the failure by which some of the output was lost.
pub(crate) fn take_lost_output() -> Option<io::Error> {
    Terminal::lock().lost_output.take()
}

/// Writes a line to standard error, above the spinner if there is one.
pub(crate) fn print_error(line: &str) {
    let terminal = Terminal::lock();
    let line = terminal.redactor.redact(line);
    let write = || drop(writeln!(io::stderr().lock(), "{line}"));
    match &terminal.spinner {
        Some(spinner) => spinner.suspend(write),
        None => write(),
    }
}

/// Shows a message beside a spinner, which starts if there is none.
pub(crate) fn spin(message: &str) {
    let mut terminal = Terminal::lock();
    let message = match terminal.redactor.redact(message) {
        Cow::Borrowed(_) => message.to_owned(),
        Cow::Owned(redacted) => redacted,
    };
    terminal.spinner.get_or_insert_with(new_spinner).set_message(message);
}

/// Reports a step in lines from now on, until the next one begins or the spinner would stop.
pub(crate) fn begin_step(message: &str) {
    LazyLock::force(&REPORTS);
    Terminal::lock().step = Some(Step::new(message, Instant::now()));
}

/// Leaves the reports to what the step itself prints.
pub(crate) fn hold_reports() {
    if let Some(step) = &mut Terminal::lock().step {
        step.due = Instant::now() + LONGEST_PAUSE;
    }
}

pub(crate) fn stop_spinner() {
    let mut terminal = Terminal::lock();
    terminal.step = None;
    if let Some(spinner) = terminal.spinner.take() {
        spinner.finish_and_clear();
    }
}

fn new_spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, expected: bool) {
        assert_eq!(is_secret(name, value), expected, "{name}={value}");
    }

    #[test]
    fn a_variable_is_secret_by_its_name_unless_its_value_is_none() {
        check("FORGE_TOKEN", "0123456789abcdef", true);
        check("OPENAI_API_KEY", "sk-0123456789", true);
        check("PGPASSWORD", "correct-horse", true);
        check("HOME", "0123456789abcdef", false);
        check("SSH_KEY", "/home/me/.ssh/id_ed25519", false);
        check("MY_KEY", "short", false);
        check("SIGNING_KEY", "ask me later", false);
    }

    #[test]
    fn a_step_is_reported_at_growing_distances() {
        let start = Instant::now();
        let mut step = Step::new("starting claude", start);
        let mut report = |secs| step.report(start + Duration::from_secs(secs));
        assert_eq!(report(2), None);
        assert_eq!(report(3).as_deref(), Some("  starting claude: 3 s so far"));
        assert_eq!(report(8), None);
        assert_eq!(report(9).as_deref(), Some("  starting claude: 9 s so far"));
        assert_eq!(report(1000).as_deref(), Some("  starting claude: 1000 s so far"));
    }

    #[test]
    fn a_secret_is_known_from_the_moment_it_is_hidden() {
        hide([Secret::new("hunter2hunter2"), Secret::new("hunter2hunter2")]);
        assert_eq!(redactor().redact("it is hunter2hunter2"), "it is ***");
    }
}
