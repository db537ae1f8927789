//! `bot-bottle` as people and orchestrators meet it: the real binary, real git, a real box, the scripted agent, a fake
//! Gitea.

mod abuse;
mod agents;
mod chunks;
mod crash;
mod docker;
mod goals;
mod lifecycle;
mod manifest;
mod publish;
mod readme;
mod rehydrate;
mod secrecy;
mod sidecar_death;
mod support;
mod terminal;
