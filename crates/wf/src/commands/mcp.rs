//! `wf mcp`: the project's workstreams as MCP tools on standard input and output, for agents and editors.
//!
//! A call is the command of the same name with its output kept. Each runs on a thread of its own with its own runtime, so that
//! a run that a client waits for holds up no other call.

use std::sync::Arc;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};

use super::{App, KeptCall};
use crate::cli;
use crate::exit::{Failure, OrExit, Outcome, WfExit};
use crate::rules::mcp_tool::{McpTool, ToolEffect};

/// Serve workstreams to agents and editors over MCP, on standard input and output
///
/// Tools: list, show, create, plan_add, plan_draft, plan_accept, run, questions, answer, diff. Each is the command of that
/// name. Merging, deleting and accepting stay with people.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {}

/// Bytes of a diff that a client gets.
const DIFF_MAX_BYTES: usize = 200_000;

const INSTRUCTIONS: &str = "Workstreams of a software project: branches with a plan of micro-commits, which agents in sealed \
    boxes implement one by one with tests and a review. Create a workstream, plan it, run it, and answer the questions that \
    come up. People accept and merge.";

/// Serves until the client closes standard input, or a signal comes.
pub(crate) async fn cmd_mcp(app: &App) -> Outcome {
    // A wrong project is reported here, in the client's log, and not by every call.
    app.dirs()?;
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let server = WorkstreamServer { app: Arc::new(app.clone()) };
    let serving = async {
        let running = server.serve(rmcp::transport::io::stdio()).await;
        let running = running.map_err(|error| Failure::of(WfExit::General, error))?;
        let ended = running.waiting().await.map_err(|error| Failure::of(WfExit::General, error));
        ended.map(|_| WfExit::Success)
    };
    tokio::select! {
        outcome = serving => outcome,
        _ = cancel.cancelled() => Ok(WfExit::Success),
    }
}

#[derive(Clone)]
struct WorkstreamServer {
    app: Arc<App>,
}

impl ServerHandler for WorkstreamServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("wf", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(McpTool::ALL.map(describe).to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        McpTool::parse(name).map(describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = McpTool::parse(&request.name) else {
            let names: Vec<&str> = McpTool::ALL.iter().map(|tool| tool.name()).collect();
            let message =
                format!("there is no tool {}; there are: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let app = Arc::clone(&self.app);
        let called = tokio::task::spawn_blocking(move || call(&app, tool, arguments)).await;
        called
            .map(CallToolResponse::from)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

fn describe(tool: McpTool) -> Tool {
    let schema = tool.schema().as_object().cloned().unwrap_or_default();
    let hints = ToolAnnotations::new()
        .read_only(tool.effect() == ToolEffect::Reads)
        .destructive(false)
        .open_world(tool == McpTool::Run || tool == McpTool::PlanDraft);
    Tool::new(tool.name(), tool.description(), schema).with_annotations(hints)
}

/// Runs the command of a tool. A refusal is a result that the client's model can read, with its remedy.
fn call(app: &App, tool: McpTool, arguments: Value) -> CallToolResult {
    let argv = match tool.argv(arguments) {
        Ok(argv) => argv,
        Err(error) => return refusal(&json!({ "error": error.to_string() })),
    };
    let command = match cli::parse_words(&argv) {
        Ok(command) => command,
        Err(message) => return refusal(&json!({ "error": message })),
    };
    let (app, kept) = app.keeping(&argv);
    let outcome = shell::runtime::block_on(cli::execute(&app, command));
    let mut reply = render_reply(&kept, &outcome);
    cut_diff(&mut reply);
    match outcome {
        Ok(WfExit::Success) => CallToolResult::structured(Value::Object(reply)),
        _ => refusal(&Value::Object(reply)),
    }
}

fn refusal(reply: &Value) -> CallToolResult {
    CallToolResult::structured_error(reply.clone())
}

/// What the command printed, how it ended and what helps.
fn render_reply(kept: &KeptCall, outcome: &Outcome) -> Map<String, Value> {
    let mut reply = Map::new();
    let output = kept.take();
    let mut documents = output.documents;
    match documents.len() {
        0 => {}
        1 => drop(reply.insert("result".to_owned(), documents.remove(0))),
        _ => drop(reply.insert("results".to_owned(), Value::Array(documents))),
    }
    if !output.messages.is_empty() {
        reply.insert("messages".to_owned(), json!(output.messages));
    }
    let status = match outcome {
        Ok(status) => *status,
        Err(failure) => {
            reply.insert("error".to_owned(), json!(shell::Ui::redacted(&failure.to_string())));
            if let Some(remedy) = failure.remedy() {
                reply.insert("remedy".to_owned(), json!(remedy));
            }
            failure.status
        }
    };
    reply.insert("exit_status".to_owned(), json!(status.code()));
    if status != WfExit::Success {
        reply.insert("meaning".to_owned(), json!(status.meaning()));
    }
    reply
}

/// Cuts a diff that would fill the client's context.
fn cut_diff(reply: &mut Map<String, Value>) {
    let diff = reply.get_mut("result").and_then(|result| result.get_mut("diff"));
    if let Some(Value::String(diff)) = diff
        && diff.len() > DIFF_MAX_BYTES
    {
        let end = (0..=DIFF_MAX_BYTES).rev().find(|&at| diff.is_char_boundary(at)).unwrap_or(0);
        diff.truncate(end);
        let message = format!("the diff was cut after {end} bytes; read the rest with git");
        reply.insert("cut".to_owned(), json!(message));
    }
}
