// The client of MCP's TypeScript SDK, second generation.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { same } from "./telling.mjs";
import { elicit, inSession, isModern, roots, sample, story, transport, version } from "./typescript.mjs";

const heard = [];

async function connect(token, name = "MCP") {
    const client = new Client({ name: "typescript2", version: "1.0.0" }, {
        capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
        versionNegotiation: { mode: isModern ? "auto" : "legacy" },
        ...(isModern ? {} : { supportedProtocolVersions: [version] }),
    });
    client.setRequestHandler("elicitation/create", elicit);
    client.setRequestHandler("sampling/createMessage", sample);
    client.setRequestHandler("roots/list", roots);
    client.setNotificationHandler("notifications/tools/list_changed", (it) => void heard.push(it));
    const { [`${name}_URL`]: url, [`${name}_COMMAND`]: command } = process.env;
    const headers = { Authorization: `Bearer ${token}` };
    const server = transport === "http"
        ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
        : new StdioClientTransport(JSON.parse(command));
    await client.connect(server);
    return client;
}

const client = await connect(process.env.MCP_TOKEN);
same(client.getNegotiatedProtocolVersion(), version);

/** Listens without a session; the function that comes of it ends that. */
async function listen(filter) {
    const subscription = await client.listen(filter);
    return () => subscription.close();
}

await story(client, {
    call: (params, options) => client.callTool(params, options),
    connect,
    heard,
    subscribe: async () => {
        if (isModern) {
            await (await listen({ resourceSubscriptions: ["test://watched-resource"] }))();
        } else {
            await inSession(client);
        }
    },
    listening: async () => (isModern ? listen({ toolsListChanged: true }) : async () => {}),
    // It makes the code of later versions out of -32002.
    missing: -32602,
    skills: async () => {
        const reader = new SkillsClient(client);
        const { skills } = await reader.list();
        same(skills.map((it) => it.uri), ["skill://incident-report/SKILL.md"]);
        // Every file is compared with its size and digest.
        const files = skills.flatMap((skill) => skill.resources.map(({ uri }) => reader.read(skill, uri)));
        same((await Promise.all(files)).every((it) => it.verified), true);
    },
});
await client.close();
