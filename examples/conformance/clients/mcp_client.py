"""The client of MCP's Python SDK."""
import asyncio, base64, json, os, sys
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from telling import NOT_OFFERED, PIPE, restart, same, tell, until, whole

VERSION, TRANSPORT = sys.argv[1:]
IS_MODERN = VERSION >= "2026"
FORMS = {"username": "alice", "email": "alice@example.com", "name": "Alice"}


async def elicit(_, params):
    fields = params.requested_schema["properties"]
    return types.ElicitResult(action="accept", content={field: FORMS[field] for field in fields})


async def sample(_, params):
    same(params.max_tokens, 100)
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="model")


async def roots(_):
    return types.ListRootsResult(roots=[types.Root(uri="file:///project")])


async def main():
    heard = []

    async def hear(message):
        heard.append(type(message).__name__)

    def connect(token, server="MCP"):
        if TRANSPORT == "http":
            http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
            server = streamable_http_client(os.environ[f"{server}_URL"], http_client=http)
        else:
            server = StdioServerParameters(**json.loads(os.environ[f"{server}_COMMAND"]))
        return Client(
            server, mode="auto" if IS_MODERN else "legacy", elicitation_callback=elicit, sampling_callback=sample,
            list_roots_callback=roots, message_handler=hear,
        )

    async with connect(os.environ.get("MCP_TOKEN")) as client:
        same(client.protocol_version, VERSION)

        async def text_of(tool, arguments=None, **options):
            result = await client.call_tool(tool, arguments, **options)
            same(result.is_error, False)
            return result.content[0].text

        async def list_tools():
            tools = {it.name: it for it in (await client.list_tools()).tools}
            same(tools["slow_compute"].input_schema["properties"]["seconds"]["maximum"], 60.0)

        async def plain():
            same(await text_of("test_simple_text"), "This is a simple text response for testing.")
            result = await client.call_tool("test_multiple_content_types")
            same([it.type for it in result.content], ["text", "image", "resource"])

        async def structured():
            async with connect(os.environ.get("MCP_TOKEN"), "MCP_SHIPPED") as shipped:
                await shipped.list_tools()
                result = await shipped.call_tool("count_lines", {"path": "three.txt"})
                same(result.structured_content["lines"], 3)

        async def failed():
            result = await client.call_tool("test_error_handling")
            same((result.is_error, result.content[0].text), (True, "This tool intentionally returns an error for testing"))

        async def headers():
            same(await text_of("test_custom_header", {"value": "Grüße ", "count": 42}), "Grüße  Some(42)")

        async def progress():
            seen = []

            async def note(done, total, message):
                seen.append((done, total, message))

            await text_of("test_tool_with_progress", progress_callback=note)
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
            listed = [str(it.uri) for it in (await client.list_resources()).resources]
            ours = [it for it in listed if it.startswith("test://")]
            same(ours, ["test://static-text", "test://static-binary", "test://watched-resource"])
            same((await client.list_resource_templates()).resource_templates[0].uri_template, "test://template/{id}/data")
            read = (await client.read_resource("test://static-text")).contents[0]
            same(read.text, "This is the content of the static text resource.")
            read = (await client.read_resource("test://static-binary")).contents[0]
            same((read.mime_type, base64.b64decode(read.blob)[1:4]), ("image/png", b"PNG"))
            read = (await client.read_resource("test://template/7/data")).contents[0]
            same(json.loads(read.text)["data"], "Data for ID: 7")

        async def missing():
            try:
                await client.read_resource("test://missing")
            except MCPError as error:
                same((error.code, error.data["uri"]), (-32602 if IS_MODERN else -32002, "test://missing"))
                return
            raise AssertionError("it was read")

        async def subscribe():
            if IS_MODERN:
                async with client.listen(resource_subscriptions=["test://watched-resource"]) as subscription:
                    same(subscription.honored.resource_subscriptions, ["test://watched-resource"])
            else:
                await client.subscribe_resource("test://watched-resource")
                await client.unsubscribe_resource("test://watched-resource")

        async def changes():
            if IS_MODERN:
                async with client.listen(tools_list_changed=True) as subscription:
                    await text_of("test_trigger_tool_change")
                    same(type(await anext(subscription)).__name__, "ToolsListChanged")
            else:
                await text_of("test_trigger_tool_change")
                await until(lambda: "ToolListChangedNotification" in heard)

        async def prompts():
            same((await client.list_prompts()).prompts[0].name, "test_simple_prompt")
            prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
            same(prompt.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'")

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
            "subscribe": subscribe, "changes": changes, "prompts": prompts,
            "skills": NOT_OFFERED, "many calls": many,
            "long answer": long_answer if TRANSPORT == "http" else PIPE,
            "restart": survive if TRANSPORT == "http" else PIPE,
            "wrong token": refused if TRANSPORT == "http" else PIPE,
        })


asyncio.run(main())
