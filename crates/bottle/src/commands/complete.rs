//! Names that a shell completes.

use clap_complete::engine::CompletionCandidate;

use crate::flow::bottle::{Bottle, NamedBottle};
use crate::flow::home::{Home, ManifestKind};

/// Bottles, with their states.
pub(crate) fn bottle_names() -> Vec<CompletionCandidate> {
    let Ok(home) = Home::from_env() else { return Vec::new() };
    let bottles = Bottle::all(&home).unwrap_or_default();
    let candidate = |(name, opened): NamedBottle| {
        let state = opened.ok().map(|(_, record)| record.state.name());
        CompletionCandidate::new(name).help(state.map(Into::into))
    };
    bottles.into_iter().map(candidate).collect()
}

/// Agents that have a manifest.
pub(crate) fn agent_names() -> Vec<CompletionCandidate> {
    names(ManifestKind::Agents)
}

/// Bottles that have a manifest.
pub(crate) fn manifest_bottle_names() -> Vec<CompletionCandidate> {
    names(ManifestKind::Bottles)
}

/// Manifests of both kinds: their commands share their arguments.
pub(crate) fn manifest_names() -> Vec<CompletionCandidate> {
    [ManifestKind::Agents, ManifestKind::Bottles].into_iter().flat_map(names).collect()
}

fn names(kind: ManifestKind) -> Vec<CompletionCandidate> {
    let names = Home::from_env().and_then(|home| home.names(kind)).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}
