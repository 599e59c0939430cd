// The story as both generations of the TypeScript SDK go through it.
import { NOT_IN_VERSION, PIPE, fails, restart, same, sleep, tell, until } from "./telling.mjs";

export const [version, transport] = process.argv.slice(2);
export const isModern = version >= "2026";

const FORMS = { username: "alice", email: "alice@example.com", name: "Alice" };

/** What the client says when it is asked. */
export function elicit({ params }) {
    const fields = Object.keys(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(fields.map((it) => [it, FORMS[it]])) };
}

export function sample({ params }) {
    same(params.maxTokens, 100);
    return { role: "assistant", content: { type: "text", text: "Paris" }, model: "model" };
}

export const roots = () => ({ roots: [{ uri: "file:///project" }] });

/** The steps for a client that is connected; the rest is where the generations differ. */
export function story(client, { call, connect, heard, subscribe, listening, missing, skills }) {
    const text = async (name, args = {}, options = {}) => {
        const result = await call({ name, arguments: args }, options);
        same(result.isError ?? false, false);
        return result.content[0].text;
    };
    const read = async (uri) => (await client.readResource({ uri })).contents[0];
    // An answer that takes longer than proxies like, while everything else goes on.
    const long = transport === "http" ? text("slow_compute", { seconds: 6, label: "it" }) : undefined;
    const elicitation = async () => {
        const answer = await text("test_elicitation", { message: "Please register" });
        const { username, email } = FORMS;
        same(JSON.parse(answer.replace("User response: ", "")), { username, email });
        same(await text("test_input_required_result_elicitation"), "Hello, Alice!");
    };
    return tell({
        "list tools": async () => {
            const { tools } = await client.listTools();
            const slow = tools.find((it) => it.name === "slow_compute");
            same(slow.inputSchema.properties.seconds.maximum, 60);
        },
        "plain result": async () => {
            same(await text("test_simple_text"), "This is a simple text response for testing.");
            const { content } = await call({ name: "test_multiple_content_types" });
            same(content.map((it) => it.type), ["text", "image", "resource"]);
        },
        "structured result": version < "2025-06" ? NOT_IN_VERSION : async () => {
            const shipped = await connect(process.env.MCP_TOKEN, "MCP_SHIPPED");
            await shipped.listTools();
            const result = await shipped.callTool({ name: "count_lines", arguments: { path: "three.txt" } });
            same(result.structuredContent.lines, 3);
            await shipped.close();
        },
        "failed result": async () => {
            const { isError, content } = await call({ name: "test_error_handling" });
            same([isError, content[0].text], [true, "This tool intentionally returns an error for testing"]);
        },
        "arguments in headers": async () => {
            same(await text("test_custom_header", { value: "Grüße ", count: 42 }), "Grüße  Some(42)");
        },
        "progress": async () => {
            const seen = [];
            await text("test_tool_with_progress", {}, { onprogress: (it) => seen.push(it) });
            // Messages came with 2025-03-26.
            same(seen.map((it) => [it.progress, it.total]), [[0, 100], [50, 100], [100, 100]]);
        },
        "elicitation": version < "2025-06" ? NOT_IN_VERSION : elicitation,
        "sampling": async () => {
            same(await text("test_sampling", { prompt: "The capital of France?" }), "LLM response: Paris");
            same(await text("test_input_required_result_sampling"), "The model says: Paris");
        },
        "roots": async () => {
            same(await text("test_input_required_result_list_roots"), "The client has 1 roots");
        },
        "cancel": async () => {
            const stop = new AbortController();
            const slow = fails(text("slow_compute", { seconds: 30 }, { signal: stop.signal }));
            await sleep(500);
            stop.abort();
            await slow;
            same(await text("greet", { name: "Bob" }), "Hello, Bob!");
        },
        "resources": async () => {
            const { resources } = await client.listResources();
            const uris = resources.map((it) => it.uri).filter((it) => it.startsWith("test://"));
            same(uris, ["test://static-text", "test://static-binary", "test://watched-resource"]);
            const { resourceTemplates } = await client.listResourceTemplates();
            same(resourceTemplates[0].uriTemplate, "test://template/{id}/data");
            same((await read("test://static-text")).text, "This is the content of the static text resource.");
            const { mimeType, blob } = await read("test://static-binary");
            same([mimeType, Buffer.from(blob, "base64").toString("latin1", 1, 4)], ["image/png", "PNG"]);
            same(JSON.parse((await read("test://template/7/data")).text).data, "Data for ID: 7");
        },
        "missing resource": async () => {
            const { code, data } = await fails(read("test://missing"));
            same([code, data.uri], [missing, "test://missing"]);
        },
        "subscribe": subscribe,
        "changes": async () => {
            const stop = await listening();
            await text("test_trigger_tool_change");
            await until(() => heard.length > 0);
            await stop();
        },
        "prompts": async () => {
            const { prompts } = await client.listPrompts();
            same(prompts[0].name, "test_simple_prompt");
            const given = { name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } };
            const { messages } = await client.getPrompt(given);
            same(messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
        },
        "skills": skills,
        "many calls": async () => {
            const names = Array.from({ length: 40 }, (_, it) => `client ${it}`);
            const greetings = await Promise.all(names.map((name) => text("greet", { name })));
            same(greetings, names.map((it) => `Hello, ${it}!`));
        },
        "long answer": transport === "stdio" ? PIPE : async () => {
            same(await long, "Computed it for 6 seconds");
        },
        "restart": transport === "stdio" ? PIPE : async () => {
            await restart();
            same(await text("greet", { name: "Carol" }), "Hello, Carol!");
            same(await text("test_sampling", { prompt: "Once more" }), "LLM response: Paris");
            heard.length = 0;
            while (!isModern && heard.length === 0) {
                // Its stream for news comes back when the client has waited a little.
                await text("test_trigger_tool_change");
                await sleep(300);
            }
        },
        "wrong token": transport === "stdio" ? PIPE : async () => {
            const { message } = await fails(connect("wrong"));
            same(/the token is unknown or revoked|HTTP 401/.test(message), true);
        },
    });
}

/** Subscribes to a resource in a session, and takes it back. */
export async function inSession(client) {
    await client.subscribeResource({ uri: "test://watched-resource" });
    await client.unsubscribeResource({ uri: "test://watched-resource" });
}
