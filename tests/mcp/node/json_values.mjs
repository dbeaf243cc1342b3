// Sends every kind of JSON value through the tools and back, with the official TypeScript client.
// Usage: node json_values.mjs VALUES COMMAND [ARGUMENT...]. The command starts a server.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [values, command, ...args] = [JSON.parse(process.argv[2]), ...process.argv.slice(3)];
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
// The client validates each response against the schema of its tool, once it has the list of tools.
const { tools } = await client.listTools();

async function run(name, args) {
  const { structuredContent } = await client.callTool({ name, arguments: args });
  assert.ok(structuredContent.ok, JSON.stringify(structuredContent));
  return structuredContent.data;
}

await run("task_add", { queue: "work", bodies: values.map((value) => JSON.stringify(value)) });
const { tasks: listed } = await run("task_list", { queue: "work" });
const { tasks: claimed } = await run("task_claim", { queue: "work", count: 100 });
for (const [index, value] of values.entries()) {
  const { task } = await run("task_show", { task: claimed[index].id });
  for (const found of [listed[index], claimed[index], task]) {
    assert.deepEqual(found.body, value);
  }
  await run("state_set", { key: "key", value: JSON.stringify(value) });
  assert.deepEqual((await run("state_get", { key: "key" })).value, value);
}
// A request that is wrong gets an error at once, and does not wait for a timeout.
await assert.rejects(client.request({ method: "tools/call", params: "x" }, { parse: (it) => it }));
await client.close();
console.log(`${tools.length} tools, ${values.length} values`);
