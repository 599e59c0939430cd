// The MCP Inspector as a command: each step is a command of its own, and a client of its own to the server.
import { spawn } from "node:child_process";
import { NOT_OFFERED, PIPE, same, tell } from "./telling.mjs";

const [version, transport] = process.argv.slice(2);
const isModern = version >= "2026";
let [server, token] = ["MCP", process.env.MCP_TOKEN];

const launcher = import.meta.resolve("@modelcontextprotocol/inspector/package.json");
const program = new URL("clients/launcher/build/index.js", launcher).pathname;

/** Runs a command of the Inspector to its end: its result, or the error that it says there was. */
async function run(...given) {
    const { [`${server}_URL`]: url, [`${server}_COMMAND`]: start } = process.env;
    const options = ["--format", "json", "--protocol-era", isModern ? "modern" : "legacy"];
    if (transport === "http") {
        options.push("--transport", "http", "--server-url", url);
        options.push("--header", `Authorization: Bearer ${token}`);
    } else {
        const { command, args, env } = JSON.parse(start);
        options.push(...Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]));
        given.push("--", command, ...args);
    }
    const stdio = ["ignore", "pipe", "pipe"];
    const command = spawn(process.execPath, [program, "--cli", ...options, ...given], { stdio });
    let [out, errors] = ["", ""];
    command.stdout.on("data", (it) => (out += it));
    command.stderr.on("data", (it) => (errors += it));
    await new Promise((done) => command.on("close", done));
    const envelope = errors.split("\n").find((it) => it.startsWith('{"error"'));
    if (!out && !envelope) {
        throw new Error(errors);
    }
    return { ...(out && JSON.parse(out)), ...(envelope && JSON.parse(envelope)) };
}

const call = (tool, args = {}) =>
    run("--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args));

async function says(tool, args, text) {
    same((await call(tool, args)).result.content[0].text, text);
}

const read = (uri) => run("--method", "resources/read", "--uri", uri);

await tell({
    "list tools": async () => {
        const opened = await run("--method", "initialize");
        same(opened.result.protocolVersion, version);
        const { result } = await run("--method", "tools/list");
        const slow = result.tools.find((it) => it.name === "slow_compute");
        same(slow.inputSchema.properties.seconds.maximum, 60);
    },
    "plain result": async () => {
        await says("test_simple_text", {}, "This is a simple text response for testing.");
        const { result } = await call("test_multiple_content_types");
        same(result.content.map((it) => it.type), ["text", "image", "resource"]);
        // Without sessions this runs as a task, which the Inspector awaits.
        await says("slow_compute", { seconds: 0.5, label: "it" }, "Computed it for 0.5 seconds");
    },
    "structured result": async () => {
        server = "MCP_SHIPPED";
        const { result } = await call("count_lines", { path: "three.txt" }).finally(() => (server = "MCP"));
        same(result.structuredContent.lines, 3);
    },
    "failed result": async () => {
        const { result, error } = await call("test_error_handling");
        same([result.isError, error.code], [true, "tool_is_error"]);
    },
    "arguments in headers": () => says("test_custom_header", { value: "Grüße ", count: 42 }, "Grüße  Some(42)"),
    "progress": NOT_OFFERED,
    "elicitation": NOT_OFFERED,
    "sampling": NOT_OFFERED,
    "roots": NOT_OFFERED,
    "cancel": NOT_OFFERED,
    "resources": async () => {
        const { result } = await run("--method", "resources/list");
        const uris = result.resources.map((it) => it.uri).filter((it) => it.startsWith("test://"));
        same(uris, ["test://static-text", "test://static-binary", "test://watched-resource"]);
        const { result: { resourceTemplates } } = await run("--method", "resources/templates/list");
        same(resourceTemplates[0].uriTemplate, "test://template/{id}/data");
        const [text, binary, data] = await Promise.all(
            ["test://static-text", "test://static-binary", "test://template/7/data"].map(read),
        );
        same(text.result.contents[0].text, "This is the content of the static text resource.");
        same(binary.result.contents[0].blob.slice(0, 11), "iVBORw0KGgo");
        same(JSON.parse(data.result.contents[0].text).data, "Data for ID: 7");
    },
    "missing resource": async () => {
        same((await read("test://missing")).error.message, "there is no resource `test://missing`");
    },
    "subscribe": NOT_OFFERED,
    "changes": NOT_OFFERED,
    "prompts": async () => {
        const { result } = await run("--method", "prompts/list");
        same(result.prompts[0].name, "test_simple_prompt");
        const name = "test_prompt_with_arguments";
        const given = ["--prompt-name", name, "--prompt-args", "arg1=a", "arg2=b"];
        const prompt = await run("--method", "prompts/get", ...given);
        same(prompt.result.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
    },
    // It reads every file, and compares it with its size and digest.
    "skills": async () => {
        const { uri, outcome } = await run("--method", "skills/list", "--verify");
        same([uri, outcome], ["skill://incident-report/SKILL.md", "verified"]);
    },
    "many calls": async () => {
        const load = ["--load", "--load-requests", "100", "--load-concurrency", "20"];
        const { result } = await run("--method", "tools/call", "--tool-name", "test_simple_text", ...load);
        same([result.requests, result.ok], [100, 100]);
    },
    "long answer": transport === "stdio" ? PIPE : async () => {
        await says("slow_compute", { seconds: 6, label: "it" }, "Computed it for 6 seconds");
    },
    "restart": "every command is a client of its own",
    "wrong token": transport === "stdio" ? PIPE : async () => {
        token = "wrong";
        same((await run("--stored-auth-only", "--method", "tools/list")).error.code, "auth_required");
    },
});
