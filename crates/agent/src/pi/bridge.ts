// Gives pi the tools of the MCP servers that are listed in mcp.json beside this file.
// A tool is called mcp__<server>__<tool>. A server that does not answer ends the start of pi.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const START_TIMEOUT_MS = 20_000;
const CALL_TIMEOUT_MS = 600_000;
const PROTOCOL = "2025-03-26";

type Json = any;
type Wire = { ask(message: Json, timeoutMs: number): Promise<Json>; tell(message: Json): Promise<void> };

function httpWire(server: Json): Wire {
  let session: string | undefined;
  async function post(message: Json, timeoutMs: number): Promise<Json> {
    const headers: Record<string, string> = {
      ...server.headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": PROTOCOL,
    };
    if (session) headers["mcp-session-id"] = session;
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(server.url, { method: "POST", headers, body: JSON.stringify(message), signal });
    session = response.headers.get("mcp-session-id") ?? session;
    const text = await response.text();
    if (!response.ok) throw new Error(`${server.url} answered ${response.status}: ${text.slice(0, 300)}`);
    if (message.id === undefined) return undefined;
    if (!response.headers.get("content-type")?.includes("text/event-stream")) return JSON.parse(text);
    const data = text.split(/\r?\n/).filter((line) => line.startsWith("data:"));
    return data.map((line) => JSON.parse(line.slice(5))).find((answer) => answer.id === message.id);
  }
  return { ask: post, tell: (message) => post(message, START_TIMEOUT_MS) };
}

function stdioWire(server: Json): Wire {
  const child = spawn(server.command, server.args, {
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, ...server.env },
  });
  const waiting = new Map<number, { done(answer: Json): void; fail(error: Error): void }>();
  const failAll = (error: Error) => {
    for (const one of waiting.values()) one.fail(error);
    waiting.clear();
  };
  child.on("error", failAll);
  child.on("exit", (code) => failAll(new Error(`${server.command} ended with status ${code}`)));
  child.stdin.on("error", failAll);
  // pi shall end although the server still listens.
  child.unref();
  (child.stdin as Json).unref?.();
  (child.stdout as Json).unref?.();
  createInterface({ input: child.stdout }).on("line", (line) => {
    try {
      const answer = JSON.parse(line);
      waiting.get(answer.id)?.done(answer);
      waiting.delete(answer.id);
    } catch {
      // A line that is no message is nothing to us.
    }
  });
  const write = (message: Json) => child.stdin.write(`${JSON.stringify(message)}\n`);
  return {
    tell: async (message) => void write(message),
    ask: (message, timeoutMs) =>
      new Promise((done, fail) => {
        const clock = setTimeout(() => fail(new Error(`${server.command} did not answer`)), timeoutMs);
        waiting.set(message.id, {
          done: (answer) => (clearTimeout(clock), done(answer)),
          fail: (error) => (clearTimeout(clock), fail(error)),
        });
        write(message);
      }),
  };
}

async function connect(name: string, server: Json) {
  const wire = server.type === "http" ? httpWire(server) : stdioWire(server);
  let lastId = 0;
  async function call(method: string, params: Json, timeoutMs: number): Promise<Json> {
    const answer = await wire.ask({ jsonrpc: "2.0", id: ++lastId, method, params }, timeoutMs);
    if (!answer) throw new Error(`${name} did not answer ${method}`);
    if (answer.error) throw new Error(answer.error.message);
    return answer.result;
  }
  const clientInfo = { name: "bottleworks", version: "1" };
  await call("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo }, START_TIMEOUT_MS);
  await wire.tell({ jsonrpc: "2.0", method: "notifications/initialized" });
  const tools: Json[] = [];
  let cursor: string | undefined;
  do {
    const page = await call("tools/list", cursor ? { cursor } : {}, START_TIMEOUT_MS);
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return { call, tools };
}

function asText(block: Json): Json {
  return block.type === "text" || block.type === "image" ? block : { type: "text", text: JSON.stringify(block) };
}

export default async function (pi: Json) {
  const folder = dirname(fileURLToPath(import.meta.url));
  const { mcpServers } = JSON.parse(readFileSync(join(folder, "mcp.json"), "utf8"));
  for (const [name, server] of Object.entries(mcpServers)) {
    const { call, tools } = await connect(name, server);
    for (const tool of tools) {
      pi.registerTool({
        name: `mcp__${name}__${tool.name}`,
        label: tool.title ?? tool.name,
        description: tool.description ?? tool.name,
        parameters: tool.inputSchema ?? { type: "object", properties: {} },
        async execute(_id: string, params: Json) {
          const result = await call("tools/call", { name: tool.name, arguments: params }, CALL_TIMEOUT_MS);
          const content = (result.content ?? []).map(asText);
          if (result.isError) throw new Error(content.map((block: Json) => block.text ?? "").join("\n"));
          return { content, details: {} };
        },
      });
    }
  }
}
