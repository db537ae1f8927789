//! The methods as MCP tools, for agents that call tools natively.
//!
//! No session is kept, so nothing grows however often an agent connects.

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use crate::call::ForgeMethod;
use crate::dispatcher::{CallErrorKind, Dispatcher};

/// Description of the tools as a whole, for the agent.
const INSTRUCTIONS: &str = "The forge of this task: read issues, pull requests and comments for context, comment on the \
    assigned issue and its pull request, and call signal_done once when the work is complete.";

/// The tools of one bottle.
#[derive(Clone)]
pub(crate) struct Tools {
    dispatcher: Arc<Dispatcher>,
}

/// An HTTP service that speaks MCP.
pub(crate) fn service(
    dispatcher: &Arc<Dispatcher>,
) -> StreamableHttpService<Tools, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(dispatcher.limits().body_max_bytes)
        // Only processes in the box reach the socket, by any host name.
        .disable_allowed_hosts();
    let tools = Tools { dispatcher: Arc::clone(dispatcher) };
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config)
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("forge", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(ForgeMethod::ALL.map(tool).to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ForgeMethod::parse(name).map(tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params = Value::Object(request.arguments.unwrap_or_default());
        match self.dispatcher.call(&request.name, params).await {
            Ok(result) => Ok(CallToolResult::success(content_of(result)).into()),
            Err(error) if error.kind == CallErrorKind::UnknownMethod => {
                Err(ErrorData::invalid_params(error.message, None))
            }
            // A refusal is for the agent to read, and clients hide protocol errors from it.
            Err(error) => Ok(CallToolResult::error(vec![ContentBlock::text(error.message)]).into()),
        }
    }
}

/// Content of a result: an image is shown as one, everything else is JSON.
fn content_of(mut result: Value) -> Vec<ContentBlock> {
    let kind = result["media_type"].as_str().filter(|kind| kind.starts_with("image/"));
    let image = kind.map(str::to_owned).and_then(|kind| match result["content_base64"].take() {
        Value::String(data) => Some(ContentBlock::image(data, kind)),
        _ => None,
    });
    if image.is_some()
        && let Some(fields) = result.as_object_mut()
    {
        fields.remove("content_base64");
    }
    let text = serde_json::to_string_pretty(&result).unwrap_or_default();
    [Some(ContentBlock::text(text)), image].into_iter().flatten().collect()
}

fn tool(method: ForgeMethod) -> Tool {
    let schema = match method.schema() {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    Tool::new(method.name(), method.description(), schema)
}
