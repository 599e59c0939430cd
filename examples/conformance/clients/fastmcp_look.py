"""FastMCP's client looks at servers."""
import asyncio, os, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from looking import look

MODE = "auto" if sys.argv[1] >= "2026" else "legacy"


def connect(server):
    if "url" in server:
        return Client(StreamableHttpTransport(server["url"], auth=os.environ["MCP_TOKEN"]), mode=MODE)
    return Client(StdioTransport(**server["command"]), mode=MODE)


async def names(client):
    return [it.name for it in await client.list_tools()]


async def call(client, tool, arguments):
    content = (await client.call_tool(tool, arguments, raise_on_error=False)).content
    return content[0].text if content else None


asyncio.run(look(connect, names, call))
