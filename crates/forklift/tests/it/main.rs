//! `forklift` as people meet it: the real binary, real git, a real box, the scripted agent.

mod again;
mod agents;
mod crash;
mod hostile;
mod outcome;
mod packages;
mod publish;
mod readme;
mod rules;
mod support;
mod target;
mod usage;
