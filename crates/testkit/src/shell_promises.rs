//! Promises that the three programs keep alike on a command line: exit statuses, panics, secrets, completions, the
//! manual page, JSON, colours. Each product's suite runs the same list over its own binary.

use std::fs::File;
use std::process::Command;

use serde_json::Value;

use crate::hermetic::{Hermetic, Output};
use crate::part::{Part, require};
use crate::screen::Screen;

/// A secret that no program knows by its shape.
const SECRET: &str = "correct-horse-battery";

/// A program whose command line is tried.
#[derive(Debug)]
pub struct Shell {
    hermetic: Hermetic,
    path: &'static str,
    name: &'static str,
}

impl Shell {
    /// The program at `path`, which is called `name`.
    pub fn new(path: &'static str, name: &'static str) -> Self {
        Self { hermetic: Hermetic::new(), path, name }
    }

    /// Tries every promise.
    pub fn keeps_its_promises(&self) {
        self.panics_end_with_9();
        self.panics_are_documents_for_scripts();
        self.usage_errors_are_one_line_and_end_with_2();
        self.failures_are_documents_for_scripts();
        self.secrets_are_struck_out_on_both_streams();
        self.hidden_words_are_refused();
        self.help_shows_the_exit_statuses();
        self.completions_are_answered();
        self.output_that_is_lost_is_a_failure();
        self.the_manual_page_is_rendered();
        self.nothing_is_coloured_without_a_terminal();
        self.errors_are_coloured_on_a_terminal();
        self.doctor_says_how_the_memory_limit_holds();
        self.doctor_tries_a_box();
        self.doctor_names_the_remedy_for_a_bubblewrap_that_is_refused();
        self.doctor_says_that_git_is_too_old_or_not_there();
    }

    /// A full disk, as under a script that keeps the output.
    fn output_that_is_lost_is_a_failure(&self) {
        for args in [&["--help"][..], &["completions", "bash"], &["man"]] {
            let full = File::options().write(true).open("/dev/full").expect("a full device");
            let ended = self.command(args).stdout(full).output().expect("a program");
            let stderr = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(1), "{args:?}: {stderr}");
            assert!(stderr.contains("No space left on device"), "{args:?}: {stderr}");
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(self.path);
        command.current_dir(self.hermetic.work()).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.hermetic.run(&mut self.command(args))
    }

    fn panicking(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        self.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "panic:command"))
    }

    fn doctor_says_how_the_memory_limit_holds(&self) {
        let output = self.run(&["doctor"]);
        let line = output.stdout.lines().find(|line| line.starts_with("memory"));
        let line = line.unwrap_or_else(|| panic!("{}", output.snapshot()));
        assert!(line.contains("bwrap: "), "{line}");
        let engine = output.stdout.lines().find(|line| line.starts_with("engine"));
        let answers = engine.is_some_and(|line| !line.contains("none answers"));
        assert_eq!(line.contains("engines: "), answers, "{}", output.snapshot());
    }

    fn doctor_tries_a_box(&self) {
        if require(Part::Bwrap).is_none() {
            return;
        }
        let output = self.run(&["doctor"]);
        let line = |name: &str| {
            let found = output.stdout.lines().find(|line| line.starts_with(name));
            found.unwrap_or_else(|| panic!("{name}: {}", output.snapshot()))
        };
        let tried = line("box ");
        assert!(tried.contains(" ok ") && tried.contains("processes"), "{tried}");
        assert!(line("egress ").contains("403"), "{}", output.snapshot());
        assert!(line("disk ").contains("MiB free"), "{}", output.snapshot());
        for folder in
            [self.hermetic.work(), self.hermetic.home(), self.hermetic.home().join(".local/state")]
        {
            let entries = std::fs::read_dir(&folder).expect("a folder").flatten();
            let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            assert!(!names.any(|name| name.contains("trial")), "left in {}", folder.display());
        }
    }

    fn doctor_names_the_remedy_for_a_bubblewrap_that_is_refused(&self) {
        let sentence = "bwrap: setting up uid map: Permission denied";
        let hermetic = Hermetic::new().with_refused_bwrap(sentence);
        let doctor =
            |flags: &[&str]| hermetic.run(hermetic.command(self.path).arg("doctor").args(flags));
        let output = doctor(&[]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let line = output.stdout.lines().find(|line| line.starts_with("box "));
        let line = line.unwrap_or_else(|| panic!("{}", output.snapshot()));
        assert!(line.contains("BAD") && line.contains(sentence), "{line}");
        let switch = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        let is_on = std::fs::read_to_string(switch).is_ok_and(|value| value.trim() == "1");
        assert!(line.contains("user namespaces"), "{line}");
        assert_eq!(line.contains("AppArmor forbids"), is_on, "a cause that was not seen: {line}");
        let has_profile = output.stdout.contains("profile bwrap /usr/bin/bwrap");
        assert_eq!(has_profile, is_on, "{}", output.snapshot());
        let output = doctor(&["--json"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stdout.contains(sentence), "{}", output.snapshot());
    }

    fn doctor_says_that_git_is_too_old_or_not_there(&self) {
        let old = Hermetic::new().with_program("git", "echo git version 2.30.2\n");
        let output = old.run(old.command(self.path).arg("doctor"));
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let sentence = "BAD  git 2.30 is too old: 2.38 or newer is needed";
        assert!(output.stdout.contains(sentence), "{}", output.snapshot());
        let mut command = self.command(&["doctor"]);
        let output = self.hermetic.run(command.env("PATH", self.hermetic.root()));
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stdout.contains("git was not found on PATH"), "{}", output.snapshot());
    }

    fn panics_end_with_9(&self) {
        let output = self.panicking(&["doctor"]);
        assert_eq!(output.status, Some(9), "{}", output.snapshot());
        assert_eq!(output.stdout, "");
        let line = output.stderr.trim_end();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.starts_with("error: internal error at crates/"), "{line}");
        assert!(
            line.contains(": the failpoint command wants a panic; please report it: https://"),
            "{line}"
        );
    }

    fn panics_are_documents_for_scripts(&self) {
        let output = self.panicking(&["doctor", "--json"]);
        assert_eq!(output.status, Some(9), "{}", output.snapshot());
        check_failure(&output, 9, "internal", "the failpoint command wants a panic");
    }

    fn usage_errors_are_one_line_and_end_with_2(&self) {
        let name = self.name;
        for (words, line) in [
            (&["docter"][..], "unknown command 'docter'; did you mean 'doctor'? See: NAME --help"),
            (
                &["doctor", "--quite"],
                "unknown option '--quite'; did you mean '--quiet'? See: NAME doctor --help",
            ),
            (&["completions"], "<SHELL> is missing; see: NAME completions --help"),
            (&["doctor", "now"], "unexpected word 'now'; see: NAME doctor --help"),
        ] {
            let line = line.replace("NAME", name);
            let output = self.run(words);
            let expected = format!("status: 2\n--- stdout\n--- stderr\nerror: {line}\n");
            assert_eq!(output.snapshot(), expected);
            let (text, remedy) =
                line.split_once(" See: ").or(line.split_once("; see: ")).expect("a remedy");
            let output = self.run(&[words, &["--json"]].concat());
            check_failure(&output, 2, if name == "wf" { "config" } else { "usage" }, text);
            assert!(output.stdout.contains(&format!("see: {remedy}\"")), "{}", output.snapshot());
            assert_eq!(output.stderr, format!("error: {line}\n"));
        }
    }

    fn failures_are_documents_for_scripts(&self) {
        let output = self.run(&["completions", "tcsh", "--json"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let text = "the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh";
        let name = if self.name == "wf" { "config" } else { "usage" };
        check_failure(&output, 2, name, text);
        assert_eq!(output.stderr, format!("error: {text}\n"));
    }

    fn secrets_are_struck_out_on_both_streams(&self) {
        for args in [&["completions", SECRET, "--json"][..], &[SECRET], &["doctor", SECRET]] {
            let mut command = self.command(args);
            let output = self.hermetic.run(command.env("SOME_TOKEN", SECRET));
            assert_eq!(output.status, Some(2), "{}", output.snapshot());
            for stream in [&output.stdout, &output.stderr] {
                assert!(!stream.contains(SECRET), "{}", output.snapshot());
            }
            assert!(output.stderr.contains("***"), "{}", output.snapshot());
        }
        let mut command = self.command(&["completions", SECRET, "--json"]);
        let output = self.hermetic.run(command.env("SOME_TOKEN", SECRET));
        assert!(output.stdout.contains("***"), "{}", output.snapshot());
    }

    fn hidden_words_are_refused(&self) {
        let output = self.run(&["__shim"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert_eq!(
            output.stderr,
            format!("{name}: this word is for {name}'s own use\n", name = self.name)
        );
    }

    fn help_shows_the_exit_statuses(&self) {
        let output = self.run(&["--help"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        let table = output.stdout.split("Exit status:\n").nth(1).expect("a table").to_owned();
        assert!(table.contains("internal error; please report it"), "{table}");
        let version = self.run(&["--version"]);
        assert_eq!(version.status, Some(0));
        assert!(version.stdout.starts_with(&format!("{} ", self.name)), "{}", version.stdout);
    }

    fn completions_are_answered(&self) {
        for shell in ["bash", "zsh", "fish"] {
            let output = self.run(&["completions", shell]);
            assert_eq!(output.status, Some(0), "{}", output.snapshot());
            assert!(output.stdout.contains("COMPLETE"), "{}", output.stdout);
        }
        let mut command = self.command(&["--", self.name, "doct"]);
        let output = self.hermetic.run(command.env("COMPLETE", "fish"));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.starts_with("doctor\t"), "{}", output.stdout);
    }

    fn the_manual_page_is_rendered(&self) {
        let output = self.run(&["man"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.contains(&format!(".TH {}", self.name)), "{}", output.stdout);
        for heading in ["EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS"] {
            assert!(output.stdout.contains(heading), "{heading}: {}", output.stdout);
        }
        assert!(!output.stdout.contains("EXTRA"), "{}", output.stdout);
    }

    fn nothing_is_coloured_without_a_terminal(&self) {
        for args in [&["docter"][..], &["completions", "tcsh"], &["--help"]] {
            let output = self.run(args);
            let both = format!("{}{}", output.stdout, output.stderr);
            assert!(!both.contains('\u{1b}'), "{both:?}");
        }
    }

    fn errors_are_coloured_on_a_terminal(&self) {
        let script = format!("{} completions tcsh; exec cat", self.path);
        for (variable, coloured) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
            let words = [variable, "sh", "-c", &script];
            let Some(screen) = Screen::start(&self.hermetic, &self.hermetic.work(), &words) else {
                return;
            };
            screen.shows("is not one of");
            let text = screen.coloured_text();
            assert_eq!(text.contains("\u{1b}[31merror"), coloured, "{variable} {text:?}");
            screen.close();
        }
    }
}

/// The failure that scripts get: an event of its own, or the document.
#[track_caller]
fn check_failure(output: &Output, status: u64, name: &str, text: &str) {
    let parsed: Value = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", output.snapshot()));
    let failure = match &parsed["event"] {
        Value::Null => &parsed["error"],
        event => {
            assert_eq!(event, "error");
            &parsed
        }
    };
    let found = (failure["status"].as_u64(), failure["name"].as_str(), failure["text"].as_str());
    assert_eq!(found, (Some(status), Some(name), Some(text)), "{}", output.snapshot());
}
