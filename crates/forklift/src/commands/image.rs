//! `forklift image`: make the image that boxes on a container engine come from, and see whether it has what it should.

use clap::{Args, Subcommand};
use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommand;
use engine::launch::Launcher;
use engine::workspace::make_harness_state;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use model::id::{BoxName, ProjectName, RunId};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::docker::{ContextFile, Engine, ImageBuild};
use sandbox::spec::{BoxLimits, BoxUser, MountAccess, Root};
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;

use super::block_on;
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::image::{Tool, judge_tools, parse_tools, tools_script};

/// The recipe, as it stands in `docker/kitchen-sink`.
const FILES: [ContextFile<'static>; 5] = [
    file("Dockerfile", 0o644, include_bytes!("../../../../docker/kitchen-sink/Dockerfile")),
    file(
        "build/packages.sh",
        0o755,
        include_bytes!("../../../../docker/kitchen-sink/build/packages.sh"),
    ),
    file("build/user.sh", 0o755, include_bytes!("../../../../docker/kitchen-sink/build/user.sh")),
    file(
        "build/runtime.sh",
        0o755,
        include_bytes!("../../../../docker/kitchen-sink/build/runtime.sh"),
    ),
    file("harness/run.sh", 0o755, include_bytes!("../../../../docker/kitchen-sink/harness/run.sh")),
];

/// Which recipe an image was made with, and what it was to hold.
const LABEL_RECIPE: &str = "forklift.recipe";
const LABEL_RUNTIMES: &str = "forklift.runtimes";

/// Seconds that an image has to show its tools.
const CHECK_SECS: u64 = 60;

const fn file(path: &'static str, mode: u32, bytes: &'static [u8]) -> ContextFile<'static> {
    ContextFile { path, mode, bytes }
}

/// Build or check the image.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    Build(ImageBuildArgs),
    /// Look into an image from a sealed box: every tool, and whether this version of forklift made it
    Check {
        /// The image
        #[arg(value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
        image: String,
    },
}

/// Build the image on the engine that answers
#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// The name of the image
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    tag: String,
    /// The image to start from
    #[arg(long, value_name = "IMAGE", default_value = "ubuntu:24.04")]
    base: String,
    /// Language runtimes, which come from the open internet: any of rust, node, bun and pyenv, or none
    #[arg(long, value_name = "LIST", default_value = "rust node bun pyenv")]
    runtimes: String,
}

pub(crate) fn cmd_image(ui: &Ui, command: &ImageCommand) -> Outcome {
    match command {
        ImageCommand::Build(args) => build(ui, args),
        ImageCommand::Check { image } => check(ui, image),
    }
}

fn build(ui: &Ui, args: &ImageBuildArgs) -> Outcome {
    let recipe = recipe();
    let runtimes = if args.runtimes == "none" { "" } else { &args.runtimes };
    block_on(async {
        let engine = Engine::find().await.or_usage()?;
        ui.phase("build", &format!("building {} from {}", args.tag, args.base));
        let build = ImageBuild {
            tag: &args.tag,
            files: &FILES,
            args: &[("BASE", &args.base), ("RUNTIMES", runtimes)],
            labels: &[(LABEL_RECIPE, &recipe), (LABEL_RUNTIMES, runtimes)],
        };
        let built = engine.build_image(build, |line| {
            if line.starts_with("Step ") { ui.note(line) } else { ui.progress("build", line) }
        });
        built.await.or_machine()
    })?;
    ui.result("image", &args.tag);
    ui.event("image", &json!({"image": args.tag, "recipe": recipe, "runtimes": runtimes}));
    Ok(ForkliftExit::Success)
}

/// Looks into an image the way an agent would: from inside a sealed box.
fn check(ui: &Ui, image: &str) -> Outcome {
    let (labels, tools) = block_on(async {
        let engine = Engine::find().await.or_usage()?;
        let Some(labels) = engine.image_labels(image).await else {
            return Err(Failure::usage(format!(
                "the engine has no image {image}; make it with: forklift image build --tag {image}"
            )));
        };
        ui.phase("check", &format!("looking into {image} from a sealed box"));
        Ok((labels, look_inside(image).await?))
    })?;
    let runtimes = labels.get(LABEL_RUNTIMES).map_or("", String::as_str);
    let missing = judge_tools(&tools, runtimes);
    let current = labels.get(LABEL_RECIPE) == Some(&recipe());
    for tool in &tools {
        ui.result(&tool.name, tool.version.as_deref().unwrap_or("not there"));
    }
    ui.result(
        "recipe",
        if current { "this version's" } else { "another version's; build it anew" },
    );
    ui.event(
        "image",
        &json!({"image": image, "current": current, "tools": tools, "missing": missing}),
    );
    if missing.is_empty() {
        return Ok(ForkliftExit::Success);
    }
    Err(Failure::usage(format!("{image} lacks {}", missing.join(", "))))
}

async fn look_inside(image: &str) -> Result<Vec<Tool>, Failure> {
    let cancel = cancel_on_signals().or_machine()?;
    let folder = tempfile::tempdir().or_machine()?;
    let user = BoxUser::of_caller();
    let (workspace, state) = (folder.path().join("workspace"), folder.path().join("state"));
    std::fs::create_dir(&workspace).or_machine()?;
    engine::workspace::give(&workspace, user).or_machine()?;
    make_harness_state(&state, user).or_machine()?;
    let project = ProjectName::from_folder("image");
    let stamp = host::clock::stamp_utc(host::clock::now());
    let site = BoxLayout {
        run: RunId::new(&project, &stamp, 1).or_exit(ForkliftExit::Internal)?,
        name: BoxName::parse("look").or_exit(ForkliftExit::Internal)?,
        box_dir: folder.path().join("box"),
        root: Root::Image(image.to_owned()),
        workspace,
        access: MountAccess::ReadOnly,
        harness_state: state,
        user,
        limits: BoxLimits::default(),
        deadline_secs: CHECK_SECS,
    };
    let launcher = Launcher::of_this_program(BackendKind::Docker, Vec::new()).or_machine()?;
    let end =
        BoxCommand::shell(site, &tools_script()).run(&launcher, &cancel).await.or_machine()?;
    if end.record.ended != (Ended::Exited { code: 0 }) {
        let words = format!("{image} could not be looked into: {}", end.tail().trim());
        return Err(Failure::new(ForkliftExit::Machine, words));
    }
    let output = std::fs::read_to_string(&end.stdout).or_machine()?;
    Ok(parse_tools(&output))
}

/// Names the recipe by what is in it.
fn recipe() -> String {
    let parts = FILES.iter().flat_map(|file| [file.path.as_bytes(), file.bytes]);
    model::digest::short_sha256(&parts.collect::<Vec<_>>().concat(), 8)
}
