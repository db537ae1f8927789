//! Choice of the backend of a run: the facts about this machine, and the rule.

use std::path::PathBuf;

use crate::backend::BackendKind;
use crate::bwrap::Bwrap;
use crate::docker::{Engine, EngineFacts};

/// Backends of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendFacts {
    pub bwrap: Option<PathBuf>,
    pub engine: Option<EngineFacts>,
    /// True if that engine holds the wanted image.
    pub has_image: bool,
    /// Reason why a box on that engine failed its trial; `None` too where none was made.
    pub engine_fault: Option<String>,
    /// The same for bubblewrap.
    pub bwrap_fault: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendChoice {
    pub kind: BackendKind,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoBackend(String);

/// Finds both backends and `image`, or only the backend that is `wanted`.
pub async fn observe(wanted: Option<BackendKind>, image: &str) -> BackendFacts {
    let bwrap = match wanted {
        Some(BackendKind::Docker) => None,
        _ => Bwrap::find().ok().map(|bwrap| bwrap.program().to_path_buf()),
    };
    let engine = match wanted {
        Some(BackendKind::Bwrap) => None,
        _ => Engine::find().await.ok(),
    };
    let has_image = match &engine {
        Some(engine) => engine.has_image(image).await,
        None => false,
    };
    let engine = engine.map(|engine| engine.facts().clone());
    BackendFacts { bwrap, engine, has_image, ..BackendFacts::default() }
}

/// Chooses the backend. A `wanted` one is used or refused, never replaced. Otherwise an engine that answers, holds the
/// image and has no fault comes first, because the kernel enforces its limits; bubblewrap comes next.
pub fn choose(
    wanted: Option<BackendKind>,
    found: &BackendFacts,
    image: &str,
) -> Result<BackendChoice, NoBackend> {
    let first = choose_present(wanted, found, image)?;
    let version = found.engine.as_ref().map_or("docker", |engine| engine.version.as_str());
    match (first.kind, &found.engine_fault, &found.bwrap_fault) {
        (BackendKind::Docker, None, _) | (BackendKind::Bwrap, _, None) => Ok(first),
        (BackendKind::Docker, Some(engine), None) if wanted.is_none() && found.bwrap.is_some() => {
            choice(BackendKind::Bwrap, format!("{version}: {engine}"))
        }
        (BackendKind::Docker, Some(engine), Some(bwrap)) if wanted.is_none() => {
            Err(NoBackend(format!("no box can be started: {version}: {engine}; bwrap: {bwrap}")))
        }
        (BackendKind::Docker, Some(engine), _) => {
            Err(NoBackend(format!("no box can be started: {version}: {engine}")))
        }
        (BackendKind::Bwrap, _, Some(bwrap)) => {
            Err(NoBackend(format!("no box can be started: bwrap: {bwrap}; {}", first.reason)))
        }
    }
}

fn choose_present(
    wanted: Option<BackendKind>,
    found: &BackendFacts,
    image: &str,
) -> Result<BackendChoice, NoBackend> {
    let engine = found.engine.as_ref().map(|engine| engine.version.as_str());
    match (wanted, engine, found.has_image, &found.bwrap) {
        (Some(BackendKind::Docker) | None, Some(version), true, _) => {
            choice(BackendKind::Docker, format!("{version} answers and holds {image}"))
        }
        (Some(BackendKind::Docker), Some(version), false, _) => Err(NoBackend(format!(
            "{version} answers but has no image '{image}'; build or load it, name another with --image, or use \
             --backend bwrap"
        ))),
        (Some(BackendKind::Docker), None, ..) => Err(NoBackend(
            "no container engine answers; start Docker or podman, set DOCKER_HOST, or use --backend bwrap"
                .to_owned(),
        )),
        (None, Some(version), false, Some(_)) => {
            choice(BackendKind::Bwrap, format!("{version} answers but has no image '{image}'"))
        }
        (None, None, _, Some(_)) => {
            choice(BackendKind::Bwrap, "no container engine answers".to_owned())
        }
        (Some(BackendKind::Bwrap), .., Some(_)) => {
            choice(BackendKind::Bwrap, "asked for by name".to_owned())
        }
        (Some(BackendKind::Bwrap), .., None) => Err(NoBackend(
            "bwrap was not found; install it (Debian: apt-get install bubblewrap)".to_owned(),
        )),
        (None, Some(version), false, None) => Err(NoBackend(format!(
            "{version} answers but has no image '{image}', and bwrap was not found; build the image or install \
             bubblewrap (Debian: apt-get install bubblewrap)"
        ))),
        (None, None, _, None) => Err(NoBackend(
            "neither a container engine nor bwrap was found; install bubblewrap (Debian: apt-get install \
             bubblewrap) or start Docker"
                .to_owned(),
        )),
    }
}

fn choice(kind: BackendKind, reason: String) -> Result<BackendChoice, NoBackend> {
    Ok(BackendChoice { kind, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docker::EngineFlavour;

    fn found(bwrap: bool, engine: bool, has_image: bool) -> BackendFacts {
        let facts = EngineFacts {
            address: "unix:///x".to_owned(),
            version: "Engine 1".to_owned(),
            flavour: EngineFlavour::Docker,
        };
        BackendFacts {
            bwrap: bwrap.then(|| "/usr/bin/bwrap".into()),
            engine: engine.then_some(facts),
            has_image,
            ..BackendFacts::default()
        }
    }

    #[test]
    fn a_backend_that_failed_its_trial_is_passed_over_with_its_reason() {
        let words = |wanted, engine: Option<&str>, bwrap: Option<&str>| {
            let facts = BackendFacts {
                engine_fault: engine.map(str::to_owned),
                bwrap_fault: bwrap.map(str::to_owned),
                ..found(true, true, true)
            };
            match choose(wanted, &facts, "image:tag") {
                Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
                Err(refusal) => format!("refused: {refusal}"),
            }
        };
        let (no_limit, no_map) = (Some("no limits"), Some("no uid map"));
        let table = [
            words(None, None, no_map),
            words(None, no_limit, None),
            words(None, no_limit, no_map),
            words(Some(BackendKind::Docker), no_limit, None),
            words(Some(BackendKind::Bwrap), no_limit, no_map),
        ];
        insta::assert_snapshot!(table.join("\n"), @r"
        docker: Engine 1 answers and holds image:tag
        bwrap: Engine 1: no limits
        refused: no box can be started: Engine 1: no limits; bwrap: no uid map
        refused: no box can be started: Engine 1: no limits
        refused: no box can be started: bwrap: no uid map; asked for by name
        ");
    }

    fn check(wanted: Option<BackendKind>, found: &BackendFacts, expected: Option<BackendKind>) {
        let chosen = choose(wanted, found, "image:tag").ok().map(|choice| choice.kind);
        assert_eq!(chosen, expected, "{wanted:?} {found:?}");
    }

    #[test]
    fn an_engine_with_the_image_comes_first_and_bubblewrap_next() {
        use BackendKind::{Bwrap, Docker};
        check(None, &found(true, true, true), Some(Docker));
        check(None, &found(true, true, false), Some(Bwrap));
        check(None, &found(true, false, false), Some(Bwrap));
        check(None, &found(false, true, false), None);
        check(None, &found(false, false, false), None);
    }

    #[test]
    fn every_decision_gives_its_reason_and_every_refusal_a_remedy() {
        use BackendKind::{Bwrap, Docker};
        let words = |wanted, found: &BackendFacts| match choose(wanted, found, "image:tag") {
            Ok(choice) => format!("{}: {}", choice.kind, choice.reason),
            Err(refusal) => format!("refused: {refusal}"),
        };
        let table = [
            words(None, &found(true, true, true)),
            words(None, &found(true, true, false)),
            words(None, &found(true, false, false)),
            words(Some(Bwrap), &found(true, false, false)),
            words(Some(Docker), &found(false, true, false)),
            words(Some(Docker), &found(true, false, false)),
            words(Some(Bwrap), &found(false, false, false)),
            words(None, &found(false, true, false)),
            words(None, &found(false, false, false)),
        ];
        insta::assert_snapshot!(table.join("\n"), @r"
        docker: Engine 1 answers and holds image:tag
        bwrap: Engine 1 answers but has no image 'image:tag'
        bwrap: no container engine answers
        bwrap: asked for by name
        refused: Engine 1 answers but has no image 'image:tag'; build or load it, name another with --image, or use --backend bwrap
        refused: no container engine answers; start Docker or podman, set DOCKER_HOST, or use --backend bwrap
        refused: bwrap was not found; install it (Debian: apt-get install bubblewrap)
        refused: Engine 1 answers but has no image 'image:tag', and bwrap was not found; build the image or install bubblewrap (Debian: apt-get install bubblewrap)
        refused: neither a container engine nor bwrap was found; install bubblewrap (Debian: apt-get install bubblewrap) or start Docker
        ");
    }

    #[test]
    fn what_was_asked_for_by_name_is_never_replaced() {
        use BackendKind::{Bwrap, Docker};
        check(Some(Docker), &found(true, false, false), None);
        check(Some(Docker), &found(true, true, false), None);
        check(Some(Bwrap), &found(true, true, true), Some(Bwrap));
        check(Some(Bwrap), &found(false, true, true), None);
    }
}
