//! The methods as MCP tools, called by the official client on the socket.

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, UnixSocketHttpClient};
use serde_json::{Value, json};
use sidecar::{ForgeMethod, load_events};

use crate::world::World;

async fn connect(world: &World) -> RunningService<RoleClient, ()> {
    let uri = "http://127.0.0.1:3129/mcp";
    let socket = world.socket();
    let client = UnixSocketHttpClient::new(socket.to_str().unwrap(), uri);
    let config = StreamableHttpClientTransportConfig::with_uri(uri);
    ().serve(StreamableHttpClientTransport::with_client(client, config)).await.unwrap()
}

async fn call(
    client: &RunningService<RoleClient, ()>,
    name: &str,
    params: Value,
) -> CallToolResult {
    let Value::Object(arguments) = params else { panic!("an object") };
    let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
    client.call_tool(request).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    match &result.content[0] {
        ContentBlock::Text(text) => &text.text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_tools_are_the_methods() {
    let world = World::new().await;
    let client = connect(&world).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ForgeMethod::ALL.map(ForgeMethod::name));
    assert!(tools.iter().all(|tool| tool.input_schema["additionalProperties"] == false));
}

#[tokio::test]
async fn a_tool_does_what_its_method_does() {
    let world = World::new().await;
    let client = connect(&world).await;
    let issue = call(&client, "read_issue", json!({ "number": 1 })).await;
    assert!(text(&issue).contains("\"title\": \"Do it\""), "{issue:?}");
    call(&client, "post_comment", json!({ "number": 1, "body": "On it." })).await;
    let refused = call(&client, "post_comment", json!({ "number": 9, "body": "x" })).await;
    assert_eq!(refused.is_error, Some(true));
    assert_eq!(text(&refused), "refused comment to #9: out of scope");
    let bad = call(&client, "read_issue", json!({ "number": 1, "repo": "x" })).await;
    assert!(text(&bad).contains("unknown field `repo`"), "{bad:?}");
    call(&client, "signal_done", json!({ "status": "success", "summary": "ok" })).await;
    assert_eq!(load_events(&world.dir.path().join("queue")).unwrap().len(), 1);
    assert_eq!(
        world.sentences(),
        [
            "read issue #1",
            "posted comment to #1",
            "refused comment to #9: out of scope",
            "refused read_issue to #1: unknown field `repo`, expected `number` (repo=\"x\")",
            "signalled done: success",
        ]
    );
}

#[tokio::test]
async fn large_and_wild_requests_are_turned_away_there_too() {
    let world = World::new().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "x": "y".repeat(300_000) } });
    assert_eq!(world.post("/mcp", body.to_string()).await.0, 413);
    let (status, _) = world.post("/mcp", "{").await;
    assert!(status >= 400);
    let odd = format!("refused POST /mcp: status {status}");
    assert_eq!(world.sentences(), ["refused request: more than 262144 bytes", &odd]);
}
