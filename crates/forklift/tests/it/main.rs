//! `forklift` as people meet it: the real binary, real git, a real box, the scripted agent.

mod agents;
mod crash;
mod hostile;
mod outcome;
mod packages;
mod past;
mod publish;
mod readme;
mod support;
mod usage;
