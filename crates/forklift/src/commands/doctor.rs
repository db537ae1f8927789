//! `forklift doctor`: what this machine offers, which backend would be used and why.

use model::exit::ForkliftExit;
use sandbox::choice::{self, Found};
use serde_json::json;

use super::{Places, block_on};
use crate::exit::{OrExit, Outcome};
use crate::ui::Ui;

/// Looks around and tells.
pub(crate) fn run(ui: &Ui, image: &str) -> Outcome {
    let places = Places::from_env()?;
    let (found, git) = block_on(async {
        let git = host::git::check_version().await;
        Ok((choice::observe(None, image).await, git))
    })?;
    let chosen = choice::choose(None, &found, image);
    let git_words = match &git {
        Ok(version) => version.to_string(),
        Err(error) => error.to_string(),
    };
    let backend = match &chosen {
        Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
        Err(error) => error.to_string(),
    };
    ui.result("git", &git_words);
    ui.result("bwrap", &bwrap_words(&found));
    ui.result("engine", &engine_words(&found, image));
    ui.result("backend", &backend);
    ui.result("runs", &places.runs.display().to_string());
    ui.event(
        "doctor",
        &json!({
            "git": git_words, "bwrap": found.bwrap, "engine": found.engine.as_ref().map(|engine| &engine.version),
            "image": found.has_image, "backend": chosen.as_ref().ok().map(|choice| choice.kind),
            "reason": backend, "runs": places.runs,
        }),
    );
    git.or_exit(ForkliftExit::Usage)?;
    chosen.or_exit(ForkliftExit::Usage)?;
    Ok(ForkliftExit::Success)
}

fn bwrap_words(found: &Found) -> String {
    match &found.bwrap {
        Some(path) => path.display().to_string(),
        None => "not found (Debian: apt-get install bubblewrap)".to_owned(),
    }
}

fn engine_words(found: &Found, image: &str) -> String {
    match (&found.engine, found.has_image) {
        (None, _) => "none answers".to_owned(),
        (Some(engine), true) => format!("{} at {}, with {image}", engine.version, engine.address),
        (Some(engine), false) => {
            format!("{} at {}, without the image {image}", engine.version, engine.address)
        }
    }
}
