//! `bot-bottle` as people and orchestrators meet it: the real binary, real git, a real box, the scripted agent, a fake
//! Gitea.

mod abuse;
mod agents;
mod chaos;
mod checkout;
mod chunks;
mod crash;
mod demo;
mod docker;
mod environments;
mod examples;
mod folder_forge;
mod goals;
mod hooks;
mod lifecycle;
mod manifest;
mod older_version;
#[cfg(feature = "otlp")]
mod otlp;
mod prune;
mod publish;
mod readme;
mod rehydrate;
mod secrecy;
mod serve;
mod serving;
mod shell;
mod show;
mod sidecar_death;
mod snapshots;
mod statements;
mod support;
mod terminal;
mod web;
mod wrong_invocations;
