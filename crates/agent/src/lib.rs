//! Agents: what to start in the box, and what its event lines say afterwards.
//!
//! Every agent is a module with two halves. One turns an [`AgentRequest`] into an [`AgentCommand`]; the other reads
//! the lines that the agent prints, through one [`EventReader`] for all. Everything here is pure. Starting the
//! command is the engine's work, and whether the agent's claims are true is for the host to find out: a report made
//! from event lines is never evidence.

pub mod claude;
pub mod codex;
pub mod command;
mod draft;
mod field;
pub mod opencode;
pub mod pi;
pub mod program;
pub mod provider;
pub mod reader;
mod refusal;
pub mod report;
pub mod request;
pub mod scripted;

pub use program::{Cpu, Program, Runtime};
pub use provider::{
    AgentCommand, GuestFile, HomeFile, ModelUse, Provider, RequiredSetting, UnknownProvider,
};
pub use reader::{EventReader, Progress};
pub use report::{AgentOutcome, AgentReport, DeniedTool, QuotaReset, ToolCall, Usage};
pub use request::{
    AgentError, AgentRequest, Interaction, McpServer, ModelEndpoint, Price, SessionRequest,
    Transport, WireApi,
};
