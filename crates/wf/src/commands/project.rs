//! `wf project`: registering projects and looking at them.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use host::git::{GitError, UserRepo, WorktreeRepo};
use model::env_file::EnvFile;
use model::error_chain;
use model::id::{BranchName, ProjectName};
use serde_json::json;

use super::App;
use crate::commands::complete::project_names;
use crate::disk::workflow::PROJECT_ENV;
use crate::disk::{DiskError, ProjectDirs, Workflow, load_env, make_dir, move_dir, save};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::rules::choose::NoProject;
use crate::rules::meta::stamp;
use crate::rules::project::{Project, branch_of, write_project};

/// Projects of the workflow repository.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    Add(ProjectAddArgs),
    /// List projects
    List,
    /// Show a project and its profile
    Show {
        /// The project [default: the current one]
        #[arg(add = ArgValueCandidates::new(project_names))]
        name: Option<String>,
    },
    /// Unregister a project without open workstreams and move its files aside
    Remove {
        /// The project
        #[arg(add = ArgValueCandidates::new(project_names))]
        name: String,
    },
}

/// Register a project, with a profile of defaults
#[derive(Debug, Clone, Args)]
pub(crate) struct ProjectAddArgs {
    /// The project's name
    name: String,
    /// The product repository
    #[arg(long, value_name = "DIR")]
    repo_path: PathBuf,
    #[command(flatten)]
    settings: ProjectSettings,
}

/// Settings of a project, which the interview asks for too.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProjectSettings {
    /// Where worktrees, runs and locks go [default: <repository>.ops]
    #[arg(long, value_name = "DIR")]
    pub(crate) ops_path: Option<PathBuf>,
    /// The workflow repository [default: the one that is found, or <ops>/workflow]
    #[arg(long, value_name = "DIR")]
    pub(crate) workflow_repo: Option<PathBuf>,
    /// The branch that workstreams start from and are merged into [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) default_branch: Option<String>,
    /// What branches of workstreams start with [default: feat]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) branch_prefix: Option<String>,
}

pub(crate) async fn cmd_project(app: &App, command: &ProjectCommand) -> Outcome {
    match command {
        ProjectCommand::Add(args) => add(app, args).await,
        ProjectCommand::List => list(app),
        ProjectCommand::Show { name } => show(app, name.as_deref()),
        ProjectCommand::Remove { name } => remove(app, name).await,
    }
}

async fn add(app: &App, args: &ProjectAddArgs) -> Outcome {
    let ProjectSettings { ops_path, workflow_repo, default_branch, branch_prefix } = &args.settings;
    let repo = find_repo(&args.repo_path, &app.here).await?;
    let ops = ops_path.as_ref().map(|path| app.here.join(path));
    let ops = ops.unwrap_or_else(|| default_ops(&repo.path));
    let workflow = choose_workflow(app, workflow_repo.as_deref(), &ops)?;
    let project = Project {
        name: ProjectName::parse(&args.name).or_exit(WfExit::Config)?,
        ops: Some(ops),
        default_branch: choose_branch(&repo, default_branch.as_deref()).await?,
        branch_prefix: check_prefix(branch_prefix.as_deref().unwrap_or("feat"))?,
        repo: repo.path,
    };
    let registration = Registration::prepare(project, workflow)?;
    registration.write(app)?;
    let (project, dir) = (&registration.project, registration.dir());
    app.ui.line(&format!("Registered {} in {}", project.name, dir.display()));
    app.ui.document(project);
    Ok(WfExit::Success)
}

/// Moves the files of a project out of the workflow repository, so that nothing is lost.
async fn remove(app: &App, name: &str) -> Outcome {
    let dirs = ProjectDirs::resolve(Some(name), &app.here)?;
    let _lock = dirs.lock_global(&format!("remove the project {name}")).await?;
    let open = dirs.workstream_names()?;
    if !open.is_empty() {
        return Err(Failure::usage(format!(
            "{name} has open workstreams: {}; close or delete them first",
            open.join(", ")
        )));
    }
    let now = stamp(host::clock::now()).replace(':', "-");
    let removed = dirs.ops.join("removed").join(format!("{name}-{now}"));
    make_dir(&dirs.ops.join("removed"))?;
    move_dir(&dirs.dir, &removed)?;
    app.ui.line(&format!("Unregistered {name}; its files are in {}", removed.display()));
    app.ui.document(&json!({"project": name, "moved_to": removed}));
    Ok(WfExit::Success)
}

#[derive(Debug)]
pub(crate) struct FoundRepo {
    pub(crate) path: PathBuf,
    pub(crate) product: WorktreeRepo,
}

pub(crate) async fn find_repo(path: &Path, here: &Path) -> WfResult<FoundRepo> {
    let path = here.join(path);
    if !path.is_dir() {
        return Err(Failure::usage(format!("{} does not exist", path.display())));
    }
    let product = match WorktreeRepo::discover(&path).await {
        Err(GitError::NotARepository { dir }) => {
            return Err(Failure::usage(format!(
                "{} is not inside a git repository; run wf in a checkout of your product, or make one: git init",
                dir.display()
            )));
        }
        other => other.or_exit(WfExit::Config)?,
    };
    let root = product.user().toplevel().map(Path::to_path_buf);
    let root = root.ok_or_else(|| no_checkout(product.user()))?;
    // Found here and not when the file is written, so that the message can name the folder.
    EnvFile::default().set("REPO_PATH", &root.display().to_string()).map_err(|error| {
        Failure::usage(format!(
            "{error} from the folder's name, {}: rename the folder",
            root.display()
        ))
    })?;
    Ok(FoundRepo { path: root, product })
}

/// The branch that was named, or the one that is checked out; it must exist.
pub(crate) async fn choose_branch(repo: &FoundRepo, named: Option<&str>) -> WfResult<BranchName> {
    let branch = match named {
        Some(name) => BranchName::parse(name).or_exit(WfExit::Config)?,
        None => {
            let current = repo.product.current_branch(&repo.path).await.or_exit(WfExit::General)?;
            current.ok_or_else(|| {
                Failure::usage("HEAD is detached; say which branch: --default-branch")
            })?
        }
    };
    match repo.product.branch_tip(&branch).await.or_exit(WfExit::General)? {
        Some(_) => Ok(branch),
        None => Err(no_commit(repo, &branch).await?),
    }
}

/// A branch without a commit is the one that is checked out in a new repository, or it does not exist.
async fn no_commit(repo: &FoundRepo, branch: &BranchName) -> WfResult<Failure> {
    let current = repo.product.current_branch(&repo.path).await.or_exit(WfExit::General)?;
    let path = repo.path.display();
    Ok(Failure::usage(match current {
        Some(current) if current == *branch => format!(
            "the branch '{branch}' of {path} has no commit yet; make the first one: git commit --allow-empty -m start"
        ),
        _ => format!("{path} has no branch '{branch}'; name another: --default-branch BRANCH"),
    }))
}

pub(crate) fn check_prefix(prefix: &str) -> WfResult<String> {
    branch_of(prefix, "x").or_exit(WfExit::Config)?;
    Ok(prefix.strip_suffix('/').unwrap_or(prefix).to_owned())
}

/// `<repository>.ops`, as the specification's examples have it.
pub(crate) fn default_ops(repo: &Path) -> PathBuf {
    let name = repo.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    repo.with_file_name(format!("{name}.ops"))
}

/// A repository without a checkout is bare, or the path is inside its `.git`.
fn no_checkout(repo: &UserRepo) -> Failure {
    let dir = repo.common_dir();
    let shown = dir.display();
    Failure::usage(match dir.parent().filter(|_| !repo.is_bare()) {
        Some(checkout) => format!("{shown} is not the checkout; run wf in {}", checkout.display()),
        None => format!(
            "{shown} is a bare repository, and wf needs a checkout; make one: git clone {shown}, and run wf in it"
        ),
    })
}

/// The workflow repository that was named, that is found, or that is to be made.
pub(crate) fn choose_workflow(app: &App, named: Option<&Path>, ops: &Path) -> WfResult<Workflow> {
    if let Some(path) = named {
        return Ok(Workflow::at(app.here.join(path)));
    }
    let found = Workflow::find(&app.here)?;
    Ok(found.unwrap_or_else(|| Workflow::at(ops.join("workflow"))))
}

/// project.env of a project: checked, and not yet written.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) project: Project,
    workflow: Workflow,
    /// The file as it is to be, with whatever else is in it.
    file: EnvFile,
}

impl Registration {
    /// Refuses a name that belongs to another repository, a second name for one, and values that the file cannot hold.
    pub(crate) fn prepare(project: Project, workflow: Workflow) -> WfResult<Self> {
        let path = workflow.project_dir(project.name.as_str()).join(PROJECT_ENV);
        let mut file: EnvFile = load_env(&path)?.unwrap_or_default();
        refuse_other_repo(&file, &project)?;
        refuse_second_name(&workflow, &project)?;
        write_project(&mut file, &project).map_err(DiskError::in_file(&path))?;
        Ok(Self { project, workflow, file })
    }

    /// Folder of the project in the workflow repository.
    pub(crate) fn dir(&self) -> PathBuf {
        self.workflow.project_dir(self.project.name.as_str())
    }

    /// Writes project.env, which makes the project known, and remembers the workflow repository if nothing leads to it.
    pub(crate) fn write(&self, app: &App) -> WfResult<()> {
        let dir = self.dir();
        make_dir(&dir.join("workstreams"))?;
        save(&dir.join(PROJECT_ENV), self.file.to_string().as_bytes())?;
        let root = self.workflow.root();
        let is_found = Workflow::find(&app.here)?.is_some_and(|found| found.root() == root);
        if !is_found && let Some(config) = self.workflow.remember()? {
            app.ui.status(&format!(
                "Remembered {} as your workflow repository in {}",
                root.display(),
                config.display()
            ));
        }
        Ok(())
    }
}

/// Refuses a name that belongs to another repository: its paths would be lost. A repository that is gone has lost its
/// claim, so that one that was moved can be registered again.
fn refuse_other_repo(file: &EnvFile, project: &Project) -> WfResult<()> {
    let Some(known) = file.get("REPO_PATH").map(PathBuf::from) else { return Ok(()) };
    let (Ok(known), Ok(this)) = (known.canonicalize(), project.repo.canonicalize()) else {
        return Ok(());
    };
    match known == this {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the project name '{name}' belongs to {}; choose another name for {}: wf interview --name NAME",
            known.display(),
            this.display(),
            name = project.name,
        ))),
    }
}

/// Refuses a second name for a repository: its directory would no longer say which project is meant, and each would merge
/// into the other's base without knowing of it.
fn refuse_second_name(workflow: &Workflow, project: &Project) -> WfResult<()> {
    let Ok(this) = project.repo.canonicalize() else { return Ok(()) };
    for name in workflow.project_names()? {
        // One that cannot be read is named by `wf project list`.
        let Ok((other, _)) = workflow.load_project(&name) else { continue };
        let is_same = other.repo.canonicalize().is_ok_and(|path| path == this);
        if is_same && other.name != project.name {
            return Err(Failure::usage(format!(
                "{} is the project {name} already; use that: wf --project {name} list, or remove it: wf project remove {name}",
                this.display()
            )));
        }
    }
    Ok(())
}

fn list(app: &App) -> Outcome {
    let workflow = Workflow::find(&app.here)?
        .ok_or_else(|| Failure::usage(NoProject::NoneRegistered.to_string()))?;
    let (mut rows, mut values, mut status) = (Vec::new(), Vec::new(), WfExit::Success);
    for name in workflow.project_names()? {
        match workflow.load_project(&name) {
            Ok((project, _)) => {
                let (repo, branch) =
                    (project.repo.display().to_string(), project.default_branch.to_string());
                values.push(json!(project));
                rows.push(vec![name, repo, branch]);
            }
            Err(error) => {
                app.ui.warn(&error_chain(&error));
                status = WfExit::Config;
            }
        }
    }
    if app.ui.is_json() {
        app.ui.document(&values);
    } else {
        app.ui.table(&["PROJECT", "REPOSITORY", "BRANCH"], rows);
    }
    Ok(status)
}

fn show(app: &App, name: Option<&str>) -> Outcome {
    let dirs = match name {
        Some(name) => ProjectDirs::resolve(Some(name), &app.here)?,
        None => app.dirs()?,
    };
    let (profile, warnings) = dirs.load_profile()?;
    for warning in &warnings {
        app.ui.warn(warning);
    }
    let project = &dirs.project;
    app.ui.result("project", project.name.as_str());
    app.ui.result("repository", &project.repo.display().to_string());
    app.ui.result("ops", &dirs.ops.display().to_string());
    app.ui.result("files", &dirs.dir.display().to_string());
    app.ui.result(
        "branches",
        &format!("{}/<id> from {}", project.branch_prefix, project.default_branch),
    );
    app.ui.result("makefile", profile.makefile.as_deref().unwrap_or("not used"));
    for suite in &profile.suites {
        let how = suite.how.line().unwrap_or_else(str::to_owned);
        app.ui.result(&format!("tests {}", suite.name), &how);
    }
    app.ui.result(
        "agents",
        &format!("{} implements, {} reviews", profile.implement.provider, profile.review.provider),
    );
    app.ui.document(
        &json!({"project": project, "ops": dirs.ops, "directory": dirs.dir, "profile": profile}),
    );
    Ok(WfExit::Success)
}
