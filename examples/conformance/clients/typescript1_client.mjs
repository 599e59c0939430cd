// The client of MCP's TypeScript SDK, first generation.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";
import { NOT_OFFERED, same } from "./telling.mjs";
import { elicit, inSession, roots, sample, story, transport, version } from "./typescript.mjs";

const heard = [];
let agreed;

/** The client tells its transport which version was agreed on, and nobody else. */
function overhear(server) {
    const told = server.setProtocolVersion?.bind(server);
    server.setProtocolVersion = (it) => ((agreed = it), told?.(it));
    return server;
}

async function connect(token, name = "MCP") {
    const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
    const client = new Client({ name: "typescript1", version: "1.0.0" }, { capabilities });
    client.setRequestHandler(types.ElicitRequestSchema, elicit);
    client.setRequestHandler(types.CreateMessageRequestSchema, sample);
    client.setRequestHandler(types.ListRootsRequestSchema, roots);
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, (it) => void heard.push(it));
    const { [`${name}_URL`]: url, [`${name}_COMMAND`]: command } = process.env;
    const headers = { Authorization: `Bearer ${token}` };
    const server = transport === "http"
        ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
        : new StdioClientTransport(JSON.parse(command));
    await client.connect(overhear(server));
    return client;
}

const client = await connect(process.env.MCP_TOKEN);
same(agreed, version);
await story(client, {
    call: (params, options) => client.callTool(params, undefined, options),
    connect,
    heard,
    subscribe: () => inSession(client),
    listening: async () => async () => {},
    missing: -32002,
    skills: NOT_OFFERED,
});
await client.close();
