//! `forklift` as people meet it: the real binary, real git, a real box, the scripted agent.

mod agents;
mod all;
mod crash;
mod examples;
mod history;
mod hostile;
mod image;
mod ladder;
mod outcome;
mod packages;
mod pains;
mod preview;
mod programs;
mod prune;
mod publish;
mod publish_elsewhere;
mod readme;
mod resume;
mod rules;
mod secrets;
mod shell;
mod spec;
mod support;
mod target;
mod trouble;
mod usage;
