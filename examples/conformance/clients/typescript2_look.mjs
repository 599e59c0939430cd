// The client of MCP's TypeScript SDK, second generation, looks at servers (see run.py).
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { say } from "./telling.mjs";

const version = process.argv[2];
const isModern = version >= "2026";
const headers = { Authorization: `Bearer ${process.env.MCP_TOKEN}` };

async function look({ url, command, calls = [] }) {
    const client = new Client({ name: "typescript2", version: "1.0.0" }, {
        versionNegotiation: { mode: isModern ? "auto" : "legacy" },
        ...(isModern ? {} : { supportedProtocolVersions: [version] }),
    });
    await client.connect(
        url ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) : new StdioClientTransport(command),
    );
    try {
        const { tools } = await client.listTools();
        const texts = [];
        for (const [name, args] of calls) {
            const { content } = await client.callTool({ name, arguments: args });
            texts.push(content[0]?.text ?? null);
        }
        return { tools: tools.map((it) => it.name), texts };
    } finally {
        await client.close();
    }
}

for (const server of JSON.parse(process.env.MCP_LOOK)) {
    try {
        say(server.name, await look(server));
    } catch (error) {
        // Whatever is wrong is the outcome, and the next server may be right.
        say(server.name, `failed: ${error.stack}`.slice(0, 600));
    }
}
