"""The client of MCP's Python SDK looks at servers."""
import asyncio, os, sys
from looking import look
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

MODE = "auto" if sys.argv[1] >= "2026" else "legacy"


def connect(server):
    if "url" in server:
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"})
        return Client(streamable_http_client(server["url"], http_client=http), mode=MODE)
    return Client(StdioServerParameters(**server["command"]), mode=MODE)


async def names(client):
    return [it.name for it in (await client.list_tools()).tools]


async def call(client, tool, arguments):
    content = (await client.call_tool(tool, arguments)).content
    return content[0].text if content else None


asyncio.run(look(connect, names, call))
