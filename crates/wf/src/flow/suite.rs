//! Running test suites and collecting their artifacts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::test_count::{TestCount, parse_junit, parse_test_output};
use host::process::{Leftovers, RunLimits, run};
use model::command::{CommandExit, CommandRecord, CommandSpec};

use super::artifact::{ArtifactCopy, SameTick, append_log, fs_now};
use super::stage::{StageContext, StageResult, StageRunError};
use crate::disk::secrets::pick_secrets;
use crate::disk::{make_dir, names_in, read_optional};
use crate::rules::manifest::{Artifacts, Stats, SuiteResult, SuiteStatus};
use crate::rules::profile::{Suite, SuiteRunner, TestIn};
use crate::rules::qa::{TestEvidence, parse_summary};
use crate::rules::test_env::is_passed;

const LOG_CAP: usize = 4 << 20;
pub(super) const OUT_OF_TIME: i32 = 124;

#[derive(Debug)]
pub(crate) struct SuiteJob<'a> {
    pub(crate) name: &'a str,
    pub(crate) argv: Vec<String>,
    /// The folder of its artifacts in the workspace, and the folder that they are copied to.
    pub(crate) left: String,
    pub(crate) results: PathBuf,
    pub(crate) timeout: Duration,
}

impl SuiteJob<'_> {
    pub(crate) fn log(&self) -> PathBuf {
        self.results.join("output.log")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SuiteExit {
    /// 124 when it ran out of time.
    pub(crate) exit_code: i32,
    pub(crate) duration: Duration,
}

/// Name of the build among the suites.
const BUILD: &str = "build";

/// Runs the build that the profile names. Returns its result only if it failed: a build is not a test.
pub(crate) async fn run_build(context: StageContext<'_>) -> StageResult<Option<SuiteResult>> {
    let command = context.profile.setup.build.clone();
    if command.is_empty() {
        return Ok(None);
    }
    let build = Suite { name: BUILD, how: SuiteRunner::Command(command) };
    let result = run_suite(context, &build).await?;
    Ok(Some(result).filter(|result| result.status == SuiteStatus::Failed))
}

pub(crate) async fn run_suite(
    context: StageContext<'_>,
    suite: &Suite,
) -> StageResult<SuiteResult> {
    let argv = match &suite.how {
        SuiteRunner::Skip(why) => return Ok(SuiteResult::skipped(suite.name, why)),
        SuiteRunner::Command(argv) => argv.clone(),
        // The makefile is named, and the target separated so that it cannot be parsed as an option.
        SuiteRunner::Make(target) => {
            let makefile = context.profile.makefile.as_deref().unwrap_or("Makefile");
            ["make", "-f", makefile, "--", target].map(str::to_owned).to_vec()
        }
    };
    let job = SuiteJob {
        name: suite.name,
        argv,
        left: format!("test-results/{}/{}", context.runner.dirs.project.name, suite.name),
        results: context.run_dir.join("tests").join(suite.name),
        timeout: match suite.name {
            BUILD => context.profile.setup.build_timeout,
            _ => context.profile.test_timeout,
        },
    };
    make_dir(&job.results)?;
    let end = match context.profile.test_in {
        // Tests that the worktree does not have cannot fail.
        TestIn::Host if !context.workstream.meta.sparse.is_empty() => {
            return Err(StageRunError::Config(
                "TEST_IN=host tests what the worktree has, and this one is sparse; set TEST_IN=box"
                    .to_owned(),
            ));
        }
        TestIn::Host => {
            context.set_up_on_host().await?;
            run_on_host(context, &job).await?
        }
        TestIn::Box => context.run_in_box(&job).await?,
    };
    let text = read_optional(&job.log()).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if let SuiteRunner::Make(target) = &suite.how
        && matches!(end.exit_code, 0 | 2)
        && is_absent(&text, target)
    {
        return Ok(SuiteResult::skipped(suite.name, &format!("Target '{target}' not in Makefile")));
    }
    let mut result = result_of(suite.name, &end, &job.results);
    result.tests_seen = count_tests(result.stats, &job.results, &text);
    Ok(result)
}

/// Counts the tests that ran, from the first source that has any: the summary, the JUnit file, the output. A group of tests
/// without a number, such as a Go package, counts as one.
fn count_tests(stats: Option<Stats>, results: &Path, output: &str) -> Option<u64> {
    let of_summary = stats.map(|stats| stats.passed + stats.failed);
    let of_junit =
        || fs::read(results.join("junit.xml")).ok().and_then(|bytes| parse_junit(&bytes));
    let of_runner = |count: TestCount| count.ran() + count.groups;
    of_summary
        .filter(|count| *count > 0)
        .or_else(|| of_junit().map(of_runner).filter(|count| *count > 0))
        .or_else(|| parse_test_output(output).map(of_runner).filter(|count| *count > 0))
}

/// Reports whether make found no rule for the target, or nothing to do for it: in both cases no test ran.
fn is_absent(output: &str, target: &str) -> bool {
    let no_rule = format!("*** No rule to make target '{target}'.  Stop.");
    let nothing = format!("make: Nothing to be done for '{target}'.");
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.iter().any(|line| line.ends_with(&no_rule)) || lines == [nothing.as_str()]
}

/// Runs the suite as the user who runs wf, with a time limit; its whole process group ends with it.
async fn run_on_host(context: StageContext<'_>, job: &SuiteJob<'_>) -> StageResult<SuiteExit> {
    let worktree = &context.workstream.meta.worktree;
    let spec = host_command(context, &job.argv)?;
    let limits = RunLimits {
        timeout: Some(job.timeout),
        stdout_cap: LOG_CAP,
        stderr_cap: LOG_CAP,
        grace: Duration::from_secs(2),
        leftovers: Leftovers::Kill,
    };
    let started = fs_now(&job.results);
    let started_at = host::clock::now();
    let output = run(&spec, &limits, context.cancel).await?;
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (context.log)(CommandRecord {
        started_at,
        cwd: worktree.clone(),
        command: job.argv.join(" "),
        exit: output.exit,
        duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
        stdout: output.stdout,
        stderr: output.stderr,
        dropped_bytes: 0,
    });
    append_log(&job.log(), &context.redactor.redact_bytes(&text))?;
    if let Some(reason) = output.cancelled {
        return Err(StageRunError::Stopped(reason.to_string()));
    }
    let artifacts = ArtifactCopy {
        workspace: worktree,
        from: &job.left,
        to: &job.results,
        started,
        same_tick: SameTick::Copy,
        redactor: context.redactor,
    };
    artifacts.run()?;
    Ok(SuiteExit { exit_code: code_of(output.exit), duration: output.duration })
}

pub(super) fn host_command(context: StageContext<'_>, argv: &[String]) -> StageResult<CommandSpec> {
    let (profile, worktree) = (context.profile, &context.workstream.meta.worktree);
    let program = argv.first().cloned().unwrap_or_default();
    let program = match program.contains('/') {
        true => worktree.join(&program),
        false => host::tool::which(&program)
            .ok_or_else(|| StageRunError::Failed(format!("{program} was not found; install it")))?,
    };
    let mut spec = CommandSpec::new(program).args(argv.iter().skip(1)).cwd(worktree);
    // Login variables are not passed on, nor the flags that an outer make exports to the project's make.
    spec.env = host::env::vars_os();
    spec.env
        .retain(|(name, _)| name.to_str().is_some_and(|name| is_passed(name, &profile.test_env)));
    let mut spec = spec.env("LC_ALL", "C");
    let secrets = pick_secrets(&context.runner.dirs, &profile.secrets_test);
    for (name, secret) in secrets.map_err(|failure| StageRunError::Config(failure.to_string()))? {
        spec = spec.env(name, secret.expose());
    }
    Ok(spec)
}

fn code_of(exit: CommandExit) -> i32 {
    match exit {
        CommandExit::Exited(code) => code,
        CommandExit::Signalled(signal) => 128 + signal,
        CommandExit::TimedOut => OUT_OF_TIME,
        CommandExit::NotStarted => 127,
    }
}

/// Builds the manifest entry of a suite that ran. Paths are relative to the run directory.
fn result_of(name: &str, end: &SuiteExit, kept: &Path) -> SuiteResult {
    let found = |file: &str| kept.join(file).is_file().then(|| format!("tests/{name}/{file}"));
    let summary = fs::read(kept.join("summary.json")).ok().map(|bytes| parse_summary(&bytes));
    let stats: Option<Stats> = match summary {
        Some(TestEvidence::Found(stats)) => Some(stats),
        Some(TestEvidence::Absent | TestEvidence::Broken(_)) | None => None,
    };
    let shots = names_in(&kept.join("screenshots")).unwrap_or_default().into_iter();
    SuiteResult {
        name: name.to_owned(),
        status: if end.exit_code == 0 { SuiteStatus::Passed } else { SuiteStatus::Failed },
        reason: (end.exit_code == OUT_OF_TIME).then(|| "out of time".to_owned()),
        exit_code: Some(end.exit_code),
        duration_seconds: Some(end.duration.as_secs_f64()),
        artifacts: Artifacts {
            summary_json: found("summary.json"),
            junit_xml: found("junit.xml"),
            coverage: kept.join("coverage").is_dir().then(|| format!("tests/{name}/coverage")),
            log: found("output.log"),
            screenshots: shots.map(|shot| format!("tests/{name}/screenshots/{shot}")).collect(),
        },
        stats,
        tests_seen: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_target_itself_can_be_absent() {
        let absent = |text: &str| is_absent(text, "test-e2e");
        assert!(absent("make: *** No rule to make target 'test-e2e'.  Stop.\n"));
        assert!(absent("make: Nothing to be done for 'test-e2e'.\n"));
        assert!(!absent("make: *** No rule to make target 'x', needed by 'test-e2e'.  Stop.\n"));
        assert!(!absent("Makefile:1: *** missing separator.  Stop.\n"));
        assert!(!absent(
            "make: Makefile: No such file or directory\nmake: *** No rule to make target 'Makefile'.  Stop.\n"
        ));
        assert!(!absent("running\nmake: Nothing to be done for 'test-e2e'.\n"));
    }
}
