//! The common part of `doctor`: git, the backends, and a trial of each. An empty box is started as a run would start it,
//! makes a request through its proxy, and shows its limits; installed agents are asked for their version inside.

use std::path::Path;

use agent::Provider;
use engine::install;
use engine::trial::{BoxTrial, TrialReport, present_backends, try_backend};
use host::cgroup::MemoryControl;
use host::git::{GitError, GitVersion};
use model::error_chain;
use model::exit::ExitStatus;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, BackendChoice, BackendFacts, NoBackend};
use sandbox::remedy::find_remedy;
use sandbox::spec::{BoxLimits, MIB};
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::ui::Ui;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub name: String,
    pub text: String,
    pub state: FindingState,
    /// Commands and files that help, in lines.
    pub steps: Option<&'static str>,
}

/// A finding for scripts, the same in all programs. `what`, `ok`, `fatal` and `words` are what older versions had.
#[derive(Debug, Serialize)]
struct FindingRow<'a> {
    name: &'a str,
    state: FindingState,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a str>,
    what: &'a str,
    ok: bool,
    fatal: bool,
    words: &'a str,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { name, text, state, steps } = self;
        FindingRow {
            name,
            state: *state,
            message: text,
            steps: *steps,
            what: name,
            ok: *state == FindingState::Good,
            fatal: self.is_bad(),
            words: text,
        }
        .serialize(serializer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    Good,
    /// Worth knowing, but no run fails for it.
    #[serde(rename = "told")]
    Odd,
    /// Runs would fail.
    Bad,
}

impl Finding {
    pub fn good(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name, text, FindingState::Good)
    }

    pub fn odd(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name, text, FindingState::Odd)
    }

    pub fn bad(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name, text, FindingState::Bad)
    }

    fn new(name: impl Into<String>, text: impl Into<String>, state: FindingState) -> Self {
        let text = text.into();
        let steps = match state {
            FindingState::Good => None,
            FindingState::Odd | FindingState::Bad => {
                find_remedy(&text).and_then(|remedy| remedy.steps)
            }
        };
        Self { name: name.into(), text, state, steps }
    }

    pub fn is_bad(&self) -> bool {
        self.state == FindingState::Bad
    }
}

/// Shows findings, each with its state, and the steps that help.
pub fn show_findings(ui: &Ui, findings: &[Finding]) {
    for Finding { name, text, state, steps } in findings {
        let mark = match state {
            FindingState::Good => "ok",
            FindingState::Odd => "odd",
            FindingState::Bad => "BAD",
        };
        ui.result(name, &format!("{mark:<4} {text}"));
        steps.iter().flat_map(|steps| steps.lines()).for_each(|line| ui.item(line));
    }
}

/// Fails if a run would fail for one of the findings, with the first of them.
pub fn check_findings<S: ExitStatus>(findings: &[Finding]) -> Result<(), Failure<S>> {
    match findings.iter().find(|finding| finding.is_bad()) {
        None => Ok(()),
        Some(Finding { name, text, .. }) => {
            Err(Failure::usage(format!("a run would fail here: {name}: {text}")))
        }
    }
}

/// The way in which the memory limit of a box holds for this user, by a group that was made for trial.
fn memory_text(control: &Result<MemoryControl, MemoryControl>, has_engine: bool) -> String {
    let means = |control: &MemoryControl| match control {
        MemoryControl::SystemManager => "a systemd scope".to_owned(),
        MemoryControl::UserManager => "a user scope of systemd".to_owned(),
        MemoryControl::Delegated(path) => format!("control groups below {}", path.display()),
        MemoryControl::None => "a control group of version 2".to_owned(),
    };
    let counted = |reason: &str| {
        format!(
            "counted by the shim every 20 to 400 ms, because {reason}: a box that fills memory fast is ended a moment \
             after it has passed the limit"
        )
    };
    let bwrap = match control {
        Ok(MemoryControl::None) => {
            counted("this user has no control group of version 2 with a memory controller")
        }
        Ok(control) => format!("limited by the kernel, in {}", means(control)),
        Err(control) => counted(&format!("{} was tried and refused", means(control))),
    };
    let engines =
        if has_engine { "; engines: limited by the kernel, in their control groups" } else { "" };
    format!("bwrap: {bwrap}{engines}")
}

/// Backend, image and folders that a run on this machine would use.
#[derive(Debug, Clone, Copy)]
pub struct DoctorOptions<'a> {
    /// The backend that is asked for by name.
    pub backend: Option<BackendKind>,
    pub image: &'a str,
    /// The folder of runs, which need not exist.
    pub runs: &'a Path,
    /// The folder of installed agents.
    pub agents: &'a Path,
    /// The agents that runs here use. Another one that is installed and does not start keeps no run from working.
    pub used: &'a [Provider],
    /// The free space that a box leaves, in bytes; `None` for the usual.
    pub free_floor_bytes: Option<u64>,
}

/// Git, the backends and the image on this machine, and the trials of the backends.
#[derive(Debug)]
pub struct MachineReport {
    pub git: Result<GitVersion, GitError>,
    pub found: BackendFacts,
    pub chosen: Result<BackendChoice, NoBackend>,
    image: String,
    trials: Vec<(BackendKind, Result<TrialReport, String>)>,
    agents: Vec<Finding>,
    disk: Finding,
    /// The way in which the memory limit of a box holds.
    pub memory: String,
}

impl MachineReport {
    pub async fn observe(options: DoctorOptions<'_>) -> Self {
        let DoctorOptions { backend, image, runs, agents, used, free_floor_bytes } = options;
        let git = host::git::check_version().await;
        let mut found = choice::observe(backend, image).await;
        let (mut trials, mut boxes) = (Vec::new(), Vec::new());
        for kind in present_backends(&found) {
            let tried = try_backend(kind, image, runs).await;
            let tried = tried.map_err(|error| error_chain(&error));
            let fault = tried.as_ref().err().cloned();
            match kind {
                BackendKind::Docker => found.engine_fault = fault,
                BackendKind::Bwrap => found.bwrap_fault = fault,
            }
            trials.push((
                kind,
                tried.map(|(trial, report)| {
                    boxes.push((kind, trial));
                    report
                }),
            ));
        }
        let chosen = choice::choose(backend, &found, image);
        let kind = chosen.as_ref().ok().map(|choice| choice.kind);
        let usable = boxes.iter().find(|(tried, _)| Some(*tried) == kind).map(|(_, trial)| trial);
        let agents = match usable {
            Some(trial) => ask_agents(trial, agents, used).await,
            None => Vec::new(),
        };
        let image = image.to_owned();
        let disk = observe_disk(runs, free_floor_bytes);
        let control = host::cgroup::confirm_memory_control().await;
        let memory = memory_text(&control, found.engine.is_some());
        Self { git, found, chosen, image, trials, agents, disk, memory }
    }

    /// Git's version, or the reason why it cannot be used.
    pub fn git_text(&self) -> String {
        self.git.as_ref().map_or_else(|error| error_chain(error), ToString::to_string)
    }

    pub fn engine_text(&self) -> String {
        let Some(engine) = &self.found.engine else { return "none answers".to_owned() };
        let image = if self.found.has_image { "with" } else { "without the image" };
        format!("{} at {}, {image} {}", engine.version, engine.address, self.image)
    }

    pub fn backend_text(&self) -> String {
        match &self.chosen {
            Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
            Err(error) => error.to_string(),
        }
    }

    /// Everything that was found, in the order of a run.
    pub fn findings(&self) -> Vec<Finding> {
        let git = match &self.git {
            Ok(version) => Finding::good("git", version.to_string()),
            Err(_) => Finding::bad("git", self.git_text()),
        };
        let bwrap = match &self.found.bwrap {
            Some(path) => Finding::good("bwrap", path.display().to_string()),
            None => Finding::odd("bwrap", "not found (Debian: apt-get install bubblewrap)"),
        };
        let mut findings = vec![git, bwrap, Finding::good("engine", self.engine_text())];
        let chosen = self.chosen.as_ref().ok().map(|choice| choice.kind);
        for (kind, tried) in &self.trials {
            findings.extend(trial_findings(*kind, tried, chosen));
        }
        let has_bad_box = findings.iter().any(|found| found.name == "box" && found.is_bad());
        findings.push(match &self.chosen {
            Ok(_) => Finding::good("backend", self.backend_text()),
            Err(_) if has_bad_box => Finding::bad("backend", "none that can start a box"),
            Err(_) => Finding::bad("backend", self.backend_text()),
        });
        findings.push(Finding::good("memory", self.memory.as_str()));
        findings.push(self.disk.clone());
        findings.extend(self.agents.iter().cloned());
        findings
    }
}

/// A failed trial is fatal if no other backend takes its place.
fn trial_findings(
    kind: BackendKind,
    tried: &Result<TrialReport, String>,
    chosen: Option<BackendKind>,
) -> Vec<Finding> {
    let report = match tried {
        Ok(report) => report,
        Err(fault) if chosen.is_some() => {
            return vec![Finding::odd("box", format!("{kind}: {fault}"))];
        }
        Err(fault) => return vec![Finding::bad("box", format!("{kind}: {fault}"))],
    };
    let TrialReport { ready_ms, limits, egress } = report;
    let ready = Finding::good("box", format!("{kind}: ready in {ready_ms} ms; {limits}"));
    let egress = match egress {
        Ok(answer) => Finding::good(
            "egress",
            format!("{kind}: the proxy answers and refuses a host that is not allowed ({answer})"),
        ),
        Err(fault) if chosen == Some(kind) => Finding::bad("egress", format!("{kind}: {fault}")),
        Err(fault) => Finding::odd("egress", format!("{kind}: {fault}")),
    };
    vec![ready, egress]
}

/// The version that each installed agent prints in a box.
async fn ask_agents(trial: &BoxTrial, agents: &Path, used: &[Provider]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for provider in Provider::all() {
        let Some(program) = provider.program() else { continue };
        let Some(installed) = install::find_any(agents, &program) else { continue };
        let name = provider.name();
        findings.push(match trial.agent_version(name, &installed).await {
            Ok(version) => Finding::good("agent", format!("{name}: {version}, in a box")),
            Err(error) => {
                let fault = error_chain(&error);
                let text = format!("{name}: does not start in a box: {fault}");
                match used.contains(&provider) {
                    true => Finding::bad("agent", text),
                    false => Finding::odd("agent", text),
                }
            }
        });
    }
    findings
}

/// The free space where runs are, which must be more than the floor that a box leaves free.
fn observe_disk(runs: &Path, free_floor_bytes: Option<u64>) -> Finding {
    let folder = runs.ancestors().find(|path| path.is_dir()).unwrap_or(runs);
    let needed = free_floor_bytes.unwrap_or(BoxLimits::default().free_floor_bytes) / MIB;
    match host::file::free_space(folder) {
        Ok(free) if free / MIB < needed => Finding::bad(
            "disk",
            format!("{} has {} MiB free, and a box needs {needed}", folder.display(), free / MIB),
        ),
        Ok(free) => {
            Finding::good("disk", format!("{} MiB free in {}", free / MIB, folder.display()))
        }
        Err(error) => Finding::odd("disk", error_chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_is_the_kernels_only_where_a_group_was_made() {
        let text = |control, has_engine| memory_text(&control, has_engine);
        assert_eq!(
            text(Ok(MemoryControl::UserManager), true),
            "bwrap: limited by the kernel, in a user scope of systemd; engines: limited by the kernel, in their control groups"
        );
        let refused = text(Err(MemoryControl::SystemManager), false);
        assert!(refused.contains("because a systemd scope was tried and refused"), "{refused}");
        assert!(!refused.contains("engines"), "{refused}");
        assert!(text(Ok(MemoryControl::None), false).contains("no control group of version 2"));
    }

    #[test]
    fn a_disk_is_judged_by_the_floor_that_is_configured() {
        let here = Path::new("/");
        assert!(observe_disk(here, Some(u64::MAX)).is_bad());
        assert!(!observe_disk(here, Some(0)).is_bad());
    }

    #[test]
    fn a_finding_has_the_keys_of_all_versions() {
        let row = serde_json::to_value(Finding::odd("disk", "low")).expect("a row");
        let expected = serde_json::json!({
            "name": "disk", "state": "told", "message": "low", "what": "disk", "ok": false, "fatal": false, "words": "low",
        });
        assert_eq!(row, expected);
    }
}
