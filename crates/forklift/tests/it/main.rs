//! `forklift` as people meet it: the real binary, real git, a real box, the scripted agent.

mod again;
mod agents;
mod crash;
mod hostile;
mod image;
mod outcome;
mod packages;
mod publish;
mod publish_elsewhere;
mod readme;
mod rules;
mod support;
mod target;
mod usage;
