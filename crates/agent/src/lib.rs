//! Agents: the command that starts one in a box, and the meaning of the event lines that it prints.
//!
//! Every agent is a module with two halves. One turns an [`AgentRequest`] into an [`AgentCommand`]; the other
//! parses the lines that the agent prints, through one [`EventReader`] for all. Everything here is pure. The
//! engine starts the command, and the host checks the agent's claims: a report made from event lines is never
//! evidence.
//!
//! `provider.rs` has the differences between agents, and the steps to add one.

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
mod tool_use;

pub use field::snippet;
pub use program::{Cpu, Program, Runtime};
pub use provider::{AgentCommand, ModelUse, Provider, RequiredSetting, UnknownProvider};
pub use reader::{EventReader, Progress, ToolEnd};
pub use report::{AgentOutcome, AgentReport, DeniedTool, QuotaReset, ToolCall, Usage};
pub use request::{
    AgentError, AgentRequest, Interaction, McpServer, ModelEndpoint, Price, SessionRequest,
    Transport, WireApi,
};
pub use tool_use::ToolKind;
