"""FastMCP's client."""
import asyncio, base64, json, os, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from fastmcp.skills import SkillsClientExtension
from mcp import MCPError
from telling import NOT_OFFERED, PIPE, restart, same, tell, until, whole

VERSION, TRANSPORT = sys.argv[1:]
IS_MODERN = VERSION >= "2026"
FORMS = {"username": "alice", "email": "alice@example.com", "name": "Alice"}


async def elicit(_message, _form, params, _context):
    return {field: FORMS[field] for field in params.requested_schema["properties"]}


async def sample(_messages, params, _context):
    same(params.max_tokens, 100)
    return "Paris"


async def main():
    heard = []

    async def hear(message):
        heard.append(type(message).__name__)

    def connect(token, server="MCP"):
        if TRANSPORT == "http":
            server = StreamableHttpTransport(os.environ[f"{server}_URL"], auth=token)
        else:
            server = StdioTransport(**json.loads(os.environ[f"{server}_COMMAND"]))
        return Client(
            server, mode="auto" if IS_MODERN else "legacy", elicitation_handler=elicit, sampling_handler=sample,
            roots=["file:///project"], message_handler=hear,
            extensions=[SkillsClientExtension()],
        )

    async with connect(os.environ.get("MCP_TOKEN")) as client:
        same(client.protocol_version, VERSION)

        async def text_of(tool, arguments=None, **options):
            return (await client.call_tool(tool, arguments, **options)).content[0].text

        async def list_tools():
            tools = {it.name: it for it in await client.list_tools()}
            same(tools["slow_compute"].input_schema["properties"]["seconds"]["maximum"], 60.0)

        async def plain():
            same(await text_of("test_simple_text"), "This is a simple text response for testing.")
            result = await client.call_tool("test_multiple_content_types")
            same([it.type for it in result.content], ["text", "image", "resource"])

        async def structured():
            async with connect(os.environ.get("MCP_TOKEN"), "MCP_SHIPPED") as shipped:
                result = await shipped.call_tool("count_lines", {"path": "three.txt"})
                same((result.structured_content["lines"], result.data.lines), (3, 3))

        async def failed():
            try:
                await client.call_tool("test_error_handling")
            except ToolError as error:
                same(str(error), "This tool intentionally returns an error for testing")
                return
            raise AssertionError("it didn't fail")

        async def headers():
            same(await text_of("test_custom_header", {"value": "Grüße ", "count": 42}), "Grüße  Some(42)")

        async def progress():
            seen = []

            async def note(done, total, message):
                seen.append((done, total, message))

            await text_of("test_tool_with_progress", progress_handler=note)
            same(seen, [(it, 100, f"Completed step {it} of 100") for it in (0, 50, 100)])

        async def elicitation():
            answer = await text_of("test_elicitation", {"message": "Please register"})
            same(json.loads(answer.removeprefix("User response: ")), {"username": "alice", "email": "alice@example.com"})
            same(await text_of("test_input_required_result_elicitation"), "Hello, Alice!")

        async def sampling():
            same(await text_of("test_sampling", {"prompt": "The capital of France?"}), "LLM response: Paris")
            same(await text_of("test_input_required_result_sampling"), "The model says: Paris")

        async def list_roots():
            same(await text_of("test_input_required_result_list_roots"), "The client has 1 roots")

        async def cancel():
            call = asyncio.create_task(client.call_tool("slow_compute", {"seconds": 30}))
            await asyncio.sleep(0.5)
            call.cancel()
            try:
                await call
            except asyncio.CancelledError:
                pass
            same(await text_of("greet", {"name": "Bob"}), "Hello, Bob!")

        async def resources():
            listed = [str(it.uri) for it in await client.list_resources()]
            ours = [it for it in listed if it.startswith("test://")]
            same(ours, ["test://static-text", "test://static-binary", "test://watched-resource"])
            same((await client.list_resource_templates())[0].uri_template, "test://template/{id}/data")
            read = (await client.read_resource("test://static-text"))[0]
            same(read.text, "This is the content of the static text resource.")
            read = (await client.read_resource("test://static-binary"))[0]
            same((read.mime_type, base64.b64decode(read.blob)[1:4]), ("image/png", b"PNG"))
            read = (await client.read_resource("test://template/7/data"))[0]
            same(json.loads(read.text)["data"], "Data for ID: 7")

        async def missing():
            try:
                await client.read_resource("test://missing")
            except MCPError as error:
                same((error.code, error.data["uri"]), (-32602 if IS_MODERN else -32002, "test://missing"))
                return
            raise AssertionError("it was read")

        async def changes():
            await text_of("test_trigger_tool_change")
            await until(lambda: "ToolListChangedNotification" in heard)

        async def prompts():
            same((await client.list_prompts())[0].name, "test_simple_prompt")
            prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
            same(prompt.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'")

        async def skills():
            listed = [it.uri for it in await client.list_skills()]
            same(listed, ["skill://incident-report/SKILL.md"])
            # Every file is compared with its size and digest.
            skill = await client.read_skill(listed[0])
            same(skill.name, "incident-report")

        async def many():
            names = [f"client {it}" for it in range(40)]
            greetings = await asyncio.gather(*(text_of("greet", {"name": it}) for it in names))
            same(greetings, [f"Hello, {it}!" for it in names])

        # An answer that takes longer than proxies like, while everything else goes on.
        slow = {"seconds": 6 if TRANSPORT == "http" else 0, "label": "it"}
        long = asyncio.create_task(text_of("slow_compute", slow))

        async def long_answer():
            same(await long, "Computed it for 6 seconds")

        async def survive():
            await restart()
            same(await text_of("greet", {"name": "Carol"}), "Hello, Carol!")
            answer = await text_of("test_elicitation", {"message": "Once more"})
            same(answer.startswith("User response: "), True)
            heard.clear()
            while not IS_MODERN and "ToolListChangedNotification" not in heard:
                # Its stream for news comes back when the client has waited a little.
                await text_of("test_trigger_tool_change")
                await asyncio.sleep(0.3)

        async def refused():
            try:
                async with connect("wrong"):
                    pass
            except Exception as error:
                same("the token is unknown or revoked" in whole(error), True)
                return
            raise AssertionError("it was let in")

        await tell({
            "list tools": list_tools, "plain result": plain, "structured result": structured, "failed result": failed,
            "arguments in headers": headers, "progress": progress, "elicitation": elicitation, "sampling": sampling,
            "roots": list_roots, "cancel": cancel, "resources": resources, "missing resource": missing,
            "subscribe": NOT_OFFERED, "changes": NOT_OFFERED if IS_MODERN else changes, "prompts": prompts,
            "skills": skills if IS_MODERN else NOT_OFFERED, "many calls": many,
            "long answer": long_answer if TRANSPORT == "http" else PIPE,
            "restart": survive if TRANSPORT == "http" else PIPE,
            "wrong token": refused if TRANSPORT == "http" else PIPE,
        })


asyncio.run(main())
