//! `forklift security`: security fixes of upstream that the fork lacks, and landing one of them alone.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use host::git::UserRepo;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;

use super::run::cmd_run;
use super::{ForkliftDirs, block_on_stoppable};
use crate::commands::run_args::{LookArgs, RunArgs};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::SyncNotes;
use crate::flow::observe::{find_repo, fork_directory};
use crate::flow::security::source::read_words;
use crate::flow::security::survey::{SurveyOptions, survey};
use crate::rules::security::advisory::AdvisoryId;
use crate::rules::security::finding::{
    APPLIES_ALONE, APPLIES_CLEANLY, FindingSource, FixFinding, Report,
};
use crate::rules::security::fix::FixRequest;
use crate::rules::security::openvex::render_openvex;
use crate::rules::security::presence::{Applies, State, Sureness};
use crate::rules::security::sarif::render_sarif;
use crate::rules::security::severity::Severity;
use crate::rules::words::counted;

/// List upstream's security fixes that the fork lacks, or land one of them
///
/// Fixes are known from advisories (OSV files as JSON or YAML, in a folder or a git repository) and, as a weaker source, from
/// the words of upstream's own commits and tags. Each is missing, unclear, present or not affected, with the reason: whether
/// the fork's history has the commit, whether a commit of the fork makes the same change, and how many of its lines the
/// fork's files have. `applies` says whether it could be picked alone, which is tried in memory. Nothing is changed.
///
/// Words about what the lines of files show begin with "likely", because lines may be switched off; they stay in the list.
///
/// The status is 10 if a fix is missing, 2 if an advisory could not be read, and 0 otherwise, so that a timer can act on it.
/// What is unclear or likely does not change the status.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SecurityArgs {
    #[command(subcommand)]
    command: Option<SecurityCommand>,
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    sources: SourceArgs,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    format: Format,
    /// List what is certainly present or does not affect the fork too
    #[arg(long)]
    all: bool,
    /// Leave out what is less severe, also from the status; what has no severity that is understood, as a CVSS vector of
    /// another version than 3, stays
    #[arg(long, value_name = "SEVERITY", value_enum)]
    min_severity: Option<LeastSeverity>,
}

#[derive(Debug, Subcommand)]
enum SecurityCommand {
    Land(LandArgs),
}

/// Land one of upstream's fixes alone: merge, check, verify, publish
///
/// Makes a run as `forklift` does, but of the fix alone: git or the resolver applies it, an agent is started only for a
/// conflict that is left or a check that fails, the host verifies the result, and one commit on top of the fork's branch is
/// published with a pull request. A run that was killed is finished with `forklift attach`.
#[derive(Debug, Args)]
struct LandArgs {
    /// Identifier of the fix: that of its advisory or one of its aliases, such as CVE-2024-1234
    #[arg(value_name = "ID", value_parser = AdvisoryId::parse)]
    id: AdvisoryId,
    /// Land this commit of upstream instead of the one that the advisory names (repeatable)
    #[arg(long, value_name = "COMMIT", value_parser = parse_commit)]
    commit: Vec<String>,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Sources of advisories, and upstream's names in them.
#[derive(Debug, Clone, Default, Args)]
struct SourceArgs {
    /// A folder with OSV files, a git repository with such files, or the https address of one; with #REF another branch than
    /// its default (repeatable) [default: those of the configuration and of FORK.md]
    #[arg(long, value_name = "SOURCE")]
    advisories: Vec<String>,
    /// Another name of upstream in advisories: the address of its repository, or a package such as crates.io/tokio
    /// (repeatable) [default: the address of the remote]
    #[arg(long, value_name = "NAME")]
    project: Vec<String>,
    /// Fetch the sources that have an address first
    #[arg(long)]
    update: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    /// SARIF 2.1.0
    Sarif,
    /// OpenVEX 0.2.0
    Openvex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LeastSeverity {
    Low,
    Medium,
    High,
    Critical,
}

impl LeastSeverity {
    fn admits(self, severity: Severity) -> bool {
        let least = match self {
            Self::Low => Severity::Low,
            Self::Medium => Severity::Medium,
            Self::High => Severity::High,
            Self::Critical => Severity::Critical,
        };
        // What is not rated may be the worst.
        severity == Severity::Unknown || severity <= least
    }
}

fn parse_commit(text: &str) -> Result<String, String> {
    let is_id = (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_id {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("give the id of a commit, with at least 7 digits".to_owned()),
    }
}

pub(crate) fn cmd_security(ui: &Ui, args: SecurityArgs, directory: Option<&Path>) -> Outcome {
    match args.command {
        Some(SecurityCommand::Land(args)) => cmd_land(ui, args, directory),
        None => cmd_list(ui, &args, directory),
    }
}

fn cmd_list(ui: &Ui, args: &SecurityArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    // A document is the whole output.
    let quiet = ui.without_events();
    let shown = if args.format == Format::Table { ui } else { &quiet };
    let mut report = block_on_stoppable(async {
        let repo = find_repo(&fork_directory(directory)?).await?;
        survey(shown, repo, &places, args.sources.options(&args.look)).await
    })?;
    if let Some(least) = args.min_severity {
        report.findings.retain(|finding| least.admits(finding.severity));
    }
    match args.format {
        Format::Table => show(ui, &report, args.all),
        Format::Sarif => ui.json(&render_sarif(&report, env!("CARGO_PKG_VERSION"))),
        Format::Openvex => ui.json(&render_openvex(&report, &report.author)),
    }
    let is_named = !args.sources.advisories.is_empty();
    warn_without_advisories(ui, &report, is_named);
    let problems = report.problems();
    for problem in &problems {
        ui.warn(problem);
    }
    Ok(match report.count(State::Missing) {
        0 if !problems.is_empty() => ForkliftExit::Usage,
        0 if is_named && !report.has_matches() => ForkliftExit::Usage,
        0 => ForkliftExit::Success,
        _ => ForkliftExit::FixesMissing,
    })
}

/// Warns where no advisory says anything about upstream, so that an empty list does not pass for a good one.
fn warn_without_advisories(ui: &Ui, report: &Report, is_named: bool) {
    if report.has_matches() {
        return;
    }
    let text = match (report.databases.is_empty(), is_named) {
        (true, _) => {
            "no source of advisories is set, so only upstream's own words were read; name one with --advisories"
        }
        (false, _) => {
            "none of the advisories is about upstream; name it as they do with --project, or look for another source"
        }
    };
    ui.warn(text);
}

impl SourceArgs {
    fn options<'a>(&'a self, look: &'a LookArgs) -> SurveyOptions<'a> {
        SurveyOptions {
            look,
            sources: &self.advisories,
            projects: &self.project,
            update: self.update,
        }
    }
}

fn show(ui: &Ui, report: &Report, all: bool) {
    ui.event("security", &json!({ "report": report }));
    ui.result("fork", &format!("{} at {}", report.branch, report.base.short()));
    let target = format!(
        "{} ({}), {} ahead",
        report.target_name,
        report.target.short(),
        counted(report.behind, "commit")
    );
    ui.result("upstream", &target);
    match report.databases.is_empty() {
        true => ui.result("advisories", "none: name a source with --advisories"),
        false => ui.result("advisories", &read_words(&report.databases)),
    }
    let counts = report.state_counts().into_iter();
    let counts: Vec<String> = counts.map(|(words, count)| format!("{count} {words}")).collect();
    ui.result("fixes", &counts.join(", "));
    let shown = report.findings.iter().filter(|it| all || it.is_listed());
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    if !rows.is_empty() {
        ui.line("");
        ui.table(
            &["STATE", "ID", "SEVERITY", "APPLIES", "SOURCE", "FIX", "SUMMARY AND REASON"],
            rows,
        );
    }
    let missing = || report.findings.iter().filter(|it| it.state == State::Missing);
    let clean = missing().find(|it| it.applies_words() == APPLIES_CLEANLY);
    let next = clean.or_else(|| missing().next());
    if let Some(next) = next {
        ui.line("");
        let which = if next.applies_words() == APPLIES_ALONE { " --commit COMMIT" } else { "" };
        ui.result("next", &format!("forklift security land {}{which}", next.id));
    }
}

fn row(finding: &FixFinding) -> Vec<String> {
    let fix = match finding.fixes.as_slice() {
        [] => match finding.fixed_in.as_slice() {
            [] => "-".to_owned(),
            names => format!("in {}", names.join(" and ")),
        },
        [one] => one.commit.short().to_owned(),
        [first, rest @ ..] => format!("{} +{}", first.commit.short(), rest.len()),
    };
    vec![
        finding.state_words(),
        finding.id.to_string(),
        finding.severity.to_string(),
        finding.applies_words(),
        finding.source.word().to_owned(),
        fix,
        format!("{} [{}]", finding.summary, finding.why),
    ]
}

fn cmd_land(ui: &Ui, args: LandArgs, directory: Option<&Path>) -> Outcome {
    if args.run.target.is_some() || args.run.strategy.is_some() {
        let text = "a fix is landed alone, so --target and --strategy have no meaning here";
        return Err(Failure::usage(text));
    }
    let places = ForkliftDirs::from_env()?;
    let look = LookArgs { target: None, names: args.run.names.clone() };
    let request = block_on_stoppable(async {
        let repo = find_repo(&fork_directory(directory)?).await?;
        if !args.commit.is_empty() {
            return named_request(&repo, &args).await.map(Some);
        }
        let report = survey(ui, repo, &places, args.sources.options(&look)).await?;
        request_of(ui, &report, &args.id)
    })?;
    let Some(fix) = request else { return Ok(ForkliftExit::Success) };
    let run = RunArgs { directory: directory.map(Path::to_path_buf), fix: Some(fix), ..args.run };
    // A fix that is landed alone is no sync, so nothing is recorded of it.
    cmd_run(ui, &run, &places, None, &SyncNotes::default())
}

/// The request for commits that the user names. That they are upstream's is checked when the run is pinned.
async fn named_request(repo: &UserRepo, args: &LandArgs) -> Result<FixRequest, Failure> {
    let mut commits: Vec<Sha> = Vec::new();
    for text in &args.commit {
        let commit = repo.resolve_commit(text).await.or_machine()?;
        commits.push(commit.ok_or_else(|| {
            Failure::usage(format!("the repository has no commit {text}; fetch it first"))
        })?);
    }
    Ok(FixRequest {
        id: args.id.clone(),
        aliases: Vec::new(),
        summary: String::new(),
        severity: Severity::Unknown,
        source: "commits named by the user".to_owned(),
        commits,
    })
}

/// Refuses a fix whose commits cannot be landed together, or of which nothing applies.
fn refuse_unfit(finding: &FixFinding) -> Result<(), Failure> {
    let open = || finding.fixes.iter().filter(|fix| fix.state == State::Missing);
    if open().any(|fix| fix.applies == Some(Applies::Excludes)) {
        let ways: Vec<String> = open()
            .map(|fix| {
                let (id, commit) = (&finding.id, fix.commit.short());
                format!("forklift security land {id} --commit {commit} ({})", fix.subject)
            })
            .collect();
        let text = format!(
            "the {} of the fix of {} exclude each other, such as those of several branches",
            counted(finding.fixes.len(), "commit"),
            finding.id
        );
        return Err(Failure::usage(text).with_remedy(format!("land one: {}", ways.join(", or "))));
    }
    if open().all(|fix| fix.applies == Some(Applies::Nothing)) {
        let text = format!("the fix of {} applies nowhere: {}", finding.id, finding.why);
        let remedy = "its code stands in other files than upstream's: change them by hand";
        return Err(Failure::usage(text).with_remedy(remedy));
    }
    Ok(())
}

/// The request for a finding; `None` if the fork needs nothing.
fn request_of(ui: &Ui, report: &Report, id: &AdvisoryId) -> Result<Option<FixRequest>, Failure> {
    let Some(finding) = report.findings.iter().find(|it| it.is_called(id.as_str())) else {
        return Err(Failure::usage(format!("no fix is known as {id}")).with_remedy(
            "see all with: forklift security --all; or name its commit with --commit",
        ));
    };
    match finding.state {
        State::Missing => refuse_unfit(finding)?,
        State::Present | State::NotAffected if finding.sureness == Sureness::Certain => {
            ui.event(
                "land",
                &json!({"id": finding.id, "state": finding.state, "why": finding.why}),
            );
            ui.result(
                "land",
                &format!(
                    "nothing to do: {} is {}: {}",
                    finding.id,
                    finding.state_words(),
                    finding.why
                ),
            );
            return Ok(None);
        }
        State::Unclear | State::Present | State::NotAffected => {
            let text = match finding.state {
                State::Present | State::NotAffected => {
                    format!("{} is {}: {}", finding.id, finding.state_words(), finding.why)
                }
                State::Unclear | State::Missing => {
                    format!("it is unclear whether the fork needs {}: {}", finding.id, finding.why)
                }
            };
            let fixes = finding.fixes.iter();
            let commits: Vec<String> =
                fixes.map(|fix| format!("--commit {}", fix.commit.short())).collect();
            let remedy = format!(
                "look at it, and land it by its commit: forklift security land {} {}",
                finding.id,
                if commits.is_empty() { "--commit COMMIT".to_owned() } else { commits.join(" ") }
            );
            return Err(Failure::usage(text).with_remedy(remedy));
        }
    }
    let mut open: Vec<_> = finding.fixes.iter().filter(|fix| fix.state == State::Missing).collect();
    open.sort_by_key(|fix| fix.seconds);
    let source = match &finding.source {
        FindingSource::Advisory { database, file } if database.contains("://") => {
            format!("{file} of {database}")
        }
        // The pull request is public, and folders of this machine are not.
        FindingSource::Advisory { file, .. } => format!("the advisory {file}"),
        FindingSource::Message => "the message of upstream's commit".to_owned(),
        FindingSource::Tag { name } => format!("upstream's tag {name}"),
    };
    Ok(Some(FixRequest {
        id: finding.id.clone(),
        aliases: finding.aliases.clone(),
        summary: finding.summary.clone(),
        severity: finding.severity,
        source,
        commits: open.into_iter().map(|fix| fix.commit.clone()).collect(),
    }))
}
