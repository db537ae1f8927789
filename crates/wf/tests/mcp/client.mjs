// Speaks to `wf mcp` with the TypeScript SDK: creates a workstream, plans it, reads it back, and reads a refusal.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const transport = new StdioClientTransport({ command: process.argv[2], args: ['mcp'], env: { ...process.env } });
const client = new Client({ name: 'typescript', version: '1.0.0' });
await client.connect(transport);
assert.equal(client.getServerVersion().name, 'wf');
const names = (await client.listTools()).tools.map((tool) => tool.name);
assert.ok(names.includes('create') && !names.includes('merge'), names);
const call = (name, args) => client.callTool({ name, arguments: args });
const made = await call('create', { id: 'typescript', title: 'From TypeScript' });
assert.ok(!made.isError, JSON.stringify(made));
const added = await call('plan_add', { workstream: 'typescript', title: 'Add it' });
assert.equal(added.structuredContent.result.commit, 'COMMIT-TYPESCRIPT-001');
const shown = await call('show', { workstream: 'typescript' });
assert.equal(shown.structuredContent.result.meta.title, 'From TypeScript');
const refused = await call('show', { workstream: 'nope' });
assert.ok(refused.isError && refused.content[0].text.includes('wf list'), JSON.stringify(refused));
await client.close();
console.log('done');
