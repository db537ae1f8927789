//! `wf interview`: registers a project and writes its profile, by questions or by flags.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use inquire::{Select, Text};
use model::env_file::EnvFile;
use model::id::ProjectName;
use serde_json::json;

use super::App;
use super::project::{
    FoundRepo, ProjectSettings, Registration, check_prefix, choose_branch, choose_workflow,
    default_ops, find_repo,
};
use crate::disk::project_dirs::{PROFILE_ENV, PROFILE_PAGE, observe_agents};
use crate::disk::{DiskError, Workflow, load_env, make_dir, names_in, read_optional, save};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::rules::build_system::{
    RootFiles, choose_target, parse_targets, setup_command, test_command,
};
use crate::rules::profile::{is_inside, parse_known};
use crate::rules::project::Project;

const MODES: [&str; 4] = ["strict", "stage-only", "exceptions", "off"];

/// Register a project and describe how it is built and tested
///
/// Asks one question after the other; every question has a flag.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InterviewArgs {
    /// Ask nothing; take flags and defaults
    #[arg(long)]
    non_interactive: bool,
    /// The project's name [default: that of the repository's folder]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The product repository [default: that of the current directory]
    #[arg(long, value_name = "DIR")]
    repo_path: Option<PathBuf>,
    #[command(flatten)]
    settings: ProjectSettings,
    /// The Makefile, relative to the repository; empty if there is none
    #[arg(long, value_name = "PATH")]
    makefile_path: Option<String>,
    /// The target of the unit tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    make_target_unit: Option<String>,
    /// The target of the integration tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    make_target_integration: Option<String>,
    /// The target of the smoke tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    make_target_smoke: Option<String>,
    /// The target of the end-to-end tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    make_target_e2e: Option<String>,
    /// The command of the unit tests, instead of a target
    #[arg(long, value_name = "COMMAND")]
    test_cmd_unit: Option<String>,
    /// The documentation, relative to the repository
    #[arg(long, value_name = "PATH")]
    docs_path: Option<String>,
    /// When people are asked: strict, stage-only, exceptions or off
    #[arg(long, value_name = "MODE")]
    hitl_mode: Option<String>,
    /// Where raw requirements are, separated by blanks
    #[arg(long, value_name = "PATHS")]
    raw_requirements_paths: Option<String>,
}

impl InterviewArgs {
    /// No questions: what is there, and defaults.
    pub(super) fn of_init(name: Option<String>) -> Self {
        Self { non_interactive: true, name, ..Self::default() }
    }
}

/// Asks, checks everything, then writes the files.
pub(crate) async fn cmd_interview(app: &App, args: &InterviewArgs) -> Outcome {
    prepare_interview(app, args).await?.write(app)
}

/// Answers of an interview: checked, and not yet written.
#[derive(Debug)]
pub(super) struct PreparedProject {
    registration: Registration,
    profile: EnvFile,
}

impl PreparedProject {
    /// Names the agent of all stages, where an earlier profile names none.
    pub(super) fn set_agent(&mut self, agent: &str) -> WfResult<()> {
        let path = self.registration.dir().join(PROFILE_ENV);
        for key in ["AGENT_IMPLEMENT", "AGENT_REVIEW"] {
            if self.profile.get(key).is_none() {
                self.profile.set(key, agent).map_err(DiskError::in_file(&path))?;
            }
        }
        check_profile(&self.profile, &path)
    }

    /// Writes the profile, then registers the project: one that is registered has a profile, also after a kill in between.
    pub(super) fn write(&self, app: &App) -> Outcome {
        let (dir, project) = (self.registration.dir(), &self.registration.project);
        make_dir(&dir)?;
        save(&dir.join(PROFILE_ENV), self.profile.to_string().as_bytes())?;
        app.ui.status("Writing project_profile.env... done");
        save(&dir.join(PROFILE_PAGE), render_page(project, &self.profile).as_bytes())?;
        app.ui.status("Writing project_profile.md... done");
        self.registration.write(app)?;
        app.ui.line("Project configured successfully!");
        app.ui.status(&format!(
            "Next: wf --project {} new <id> \"<title>\" \"<paths>\"",
            project.name
        ));
        app.ui.document(&json!({"project": project, "directory": dir}));
        Ok(WfExit::Success)
    }
}

fn check_profile(profile: &EnvFile, path: &Path) -> WfResult<()> {
    let agents = observe_agents(profile)?;
    parse_known(profile, &agents).map_err(DiskError::in_file(path))?;
    Ok(())
}

/// Asks and checks everything. Writes nothing.
pub(super) async fn prepare_interview(
    app: &App,
    args: &InterviewArgs,
) -> WfResult<PreparedProject> {
    let asker = Asker::new(args)?;
    asker.greet(app);
    let path = args.repo_path.as_deref().unwrap_or(&app.here);
    if path.to_str().is_none() {
        let message = format!("the path {} is not UTF-8; move the repository", path.display());
        return Err(Failure::usage(message));
    }
    let here = app.here.display().to_string();
    let typed = args.repo_path.as_ref().map(|path| path.display().to_string());
    let repo = asker.ask("Product repository path", typed.as_deref(), &here)?;
    let repo = find_repo(repo.as_ref(), &app.here).await?;
    if args.repo_path.is_none() && app.here != repo.path {
        let (root, here) = (repo.path.display(), app.here.display());
        app.ui.status(&format!("The project is the whole of {root}; {here} is a folder in it"));
    }
    let (project, workflow) = ask_project(app, args, asker, &repo).await?;
    let registration = Registration::prepare(project, workflow)?;
    let path = registration.dir().join(PROFILE_ENV);
    let mut profile = load_env(&path)?.unwrap_or_default();
    for (key, value) in ask_profile(args, asker, &repo, &profile)? {
        profile.set(key, &value).map_err(DiskError::in_file(&path))?;
    }
    check_profile(&profile, &path)?;
    Ok(PreparedProject { registration, profile })
}

async fn ask_project(
    app: &App,
    args: &InterviewArgs,
    asker: Asker,
    repo: &FoundRepo,
) -> WfResult<(Project, Workflow)> {
    let ProjectSettings { ops_path, workflow_repo, default_branch, branch_prefix } = &args.settings;
    let folder = repo.path.file_name().unwrap_or_default().to_string_lossy();
    let name = ProjectName::from_folder(&folder);
    let name = asker.ask("Project name", args.name.as_deref(), name.as_str())?;
    let current = repo.product.current_branch(&repo.path).await.or_exit(WfExit::General)?;
    let current = current.map_or_else(|| "main".to_owned(), |branch| branch.to_string());
    let branch = asker.ask("Default branch name", default_branch.as_deref(), &current)?;
    let prefix = asker.ask("Prefix of workstream branches", branch_prefix.as_deref(), "feat")?;
    let ops = ops_path.as_ref().map(|path| app.here.join(path).display().to_string());
    let default = default_ops(&repo.path).display().to_string();
    let ops = app.here.join(asker.ask("Ops directory", ops.as_deref(), &default)?);
    let workflow = choose_workflow(app, workflow_repo.as_deref(), &ops)?;
    let project = Project {
        name: ProjectName::parse(&name).or_exit(WfExit::Config)?,
        repo: repo.path.clone(),
        ops: Some(ops),
        default_branch: choose_branch(repo, Some(&branch)).await?,
        branch_prefix: check_prefix(&prefix)?,
    };
    Ok((project, workflow))
}

fn ask_profile(
    args: &InterviewArgs,
    asker: Asker,
    repo: &FoundRepo,
    before: &EnvFile,
) -> WfResult<Vec<(&'static str, String)>> {
    let files = observe_root(repo)?;
    let targets = files.makefile.as_deref().map(parse_targets);
    let target = |suite| choose_target(targets.as_ref(), suite);
    let [unit, integration, smoke, e2e] = ["unit", "integration", "smoke", "e2e"].map(target);
    let questions = [
        (
            "MAKEFILE_PATH",
            "Makefile location (relative to repo root, blank for none)",
            &args.makefile_path,
            if files.makefile.is_some() { "Makefile" } else { "" },
        ),
        ("MAKE_TARGET_UNIT", "Unit tests target", &args.make_target_unit, &unit),
        (
            "MAKE_TARGET_INTEGRATION",
            "Integration tests target",
            &args.make_target_integration,
            &integration,
        ),
        ("MAKE_TARGET_SMOKE", "Smoke tests target", &args.make_target_smoke, &smoke),
        ("MAKE_TARGET_E2E", "E2E tests target", &args.make_target_e2e, &e2e),
        ("DOCS_PATH", "Documentation path (relative to repo root)", &args.docs_path, "docs"),
    ];
    let mut entries = Vec::new();
    for (key, label, typed, default) in questions {
        let answer = asker.ask(label, typed.as_deref(), before.get(key).unwrap_or(default))?;
        if key.ends_with("_PATH") {
            check_inside(key, &answer)?;
        }
        if key == "MAKEFILE_PATH" && !answer.is_empty() && !repo.path.join(&answer).is_file() {
            let repo = repo.path.display();
            return Err(Failure::usage(format!("{key}: {answer} does not exist in {repo}")));
        }
        entries.push((key, answer));
    }
    let command = test_command(&files).unwrap_or_default();
    let command = before.get("TEST_CMD_UNIT").unwrap_or(command);
    let is_made = |key| entries.iter().any(|(known, value)| *known == key && !value.is_empty());
    let has_target = is_made("MAKEFILE_PATH") && is_made("MAKE_TARGET_UNIT");
    if !has_target || args.test_cmd_unit.is_some() {
        let answer = asker.ask("Unit tests command", args.test_cmd_unit.as_deref(), command)?;
        entries.extend(Some(("TEST_CMD_UNIT", answer)).filter(|(_, answer)| !answer.is_empty()));
    }
    if let Some((command, keep)) = setup_command(&files)
        && before.get("SETUP_CMD").is_none()
    {
        entries.extend([("SETUP_CMD", command.to_owned()), ("SETUP_KEEP", keep.to_owned())]);
    }
    let mode = before.get("HITL_MODE").and_then(|mode| MODES.iter().position(|it| *it == mode));
    let mode = asker.choose("HITL mode", args.hitl_mode.as_deref(), &MODES, mode.unwrap_or(0))?;
    entries.push(("HITL_MODE", mode));
    let raw = asker.ask(
        "Raw requirements paths (space-separated)",
        args.raw_requirements_paths.as_deref(),
        before.get("RAW_REQUIREMENTS_PATHS").unwrap_or("requirements/raw"),
    )?;
    // Both separators are in use.
    let raw: Vec<&str> = raw.split([' ', ',']).filter(|path| !path.is_empty()).collect();
    raw.iter().try_for_each(|path| check_inside("RAW_REQUIREMENTS_PATHS", path))?;
    entries.push(("RAW_REQUIREMENTS_PATHS", raw.join(" ")));
    Ok(entries)
}

/// Reads the files that tell the build system.
fn observe_root(repo: &FoundRepo) -> WfResult<RootFiles> {
    let names = names_in(&repo.path)?;
    // A name may be that of a folder, which has nothing to tell.
    let read = |wanted: &[&str]| {
        let name = names.iter().find(|name| wanted.contains(&name.as_str()))?;
        let bytes = read_optional(&repo.path.join(name)).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(RootFiles {
        makefile: read(&["Makefile"]),
        justfile: read(&["justfile", "Justfile", ".justfile"]),
        package_json: read(&["package.json"]),
        pyproject: read(&["pyproject.toml"]),
        names: names.clone(),
    })
}

fn check_inside(key: &str, path: &str) -> WfResult<()> {
    if is_inside(path) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{key}: '{path}' must be relative to the repository and without '..'"
    )))
}

fn render_page(project: &Project, file: &EnvFile) -> String {
    let mut page = format!(
        "# Project profile: {}\n\n- Repository: {}\n- Default branch: {}\n\n| Key | Value |\n|---|---|\n",
        project.name,
        project.repo.display(),
        project.default_branch
    );
    for (key, value) in file.iter() {
        page.push_str(&format!("| {key} | {value} |\n"));
    }
    page
}

/// Source of the answers that no flag gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Person,
    Defaults,
}

impl Asker {
    fn new(args: &InterviewArgs) -> WfResult<Self> {
        if args.non_interactive {
            return Ok(Self::Defaults);
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage(
                "there is no terminal to ask on; use: wf interview --non-interactive",
            ));
        }
        Ok(Self::Person)
    }

    fn greet(self, app: &App) {
        if self == Self::Person {
            app.ui.status("=== AOS Project Interview ===");
            app.ui.status("This will configure your project for AOS. Press Ctrl+C to abort.");
        }
    }

    fn ask(self, label: &str, typed: Option<&str>, default: &str) -> WfResult<String> {
        match (typed, self) {
            (Some(typed), _) => Ok(typed.to_owned()),
            (None, Self::Defaults) => Ok(default.to_owned()),
            (None, Self::Person) => {
                Text::new(label).with_initial_value(default).prompt().or_exit(WfExit::General)
            }
        }
    }

    /// `default` is the place of the default among the choices.
    fn choose(
        self,
        label: &str,
        typed: Option<&str>,
        choices: &[&'static str],
        default: usize,
    ) -> WfResult<String> {
        let answer = match (typed, self) {
            (Some(typed), _) => {
                choices.iter().find(|choice| **choice == typed).ok_or_else(|| {
                    Failure::usage(format!(
                        "{label}: '{typed}' is not one of {}",
                        choices.join(", ")
                    ))
                })?
            }
            (None, Self::Defaults) => choices[default],
            (None, Self::Person) => {
                let select = Select::new(label, choices.to_vec()).with_starting_cursor(default);
                select.prompt().or_exit(WfExit::General)?
            }
        };
        Ok(answer.to_owned())
    }
}
