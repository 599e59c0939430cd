"""Looks at servers in a Python client's way, and tells what is there (see run.py)."""
import asyncio, json, os
from telling import say, whole


async def look(connect, names, call):
    """`connect` makes a client of a server's address or command, `names` lists its tools, `call` calls one."""
    for server in json.loads(os.environ["MCP_LOOK"]):
        try:
            async with asyncio.timeout(60):
                async with connect(server) as client:
                    listed = await names(client)
                    texts = [await call(client, tool, arguments) for tool, arguments in server.get("calls", [])]
            say(server["name"], {"tools": listed, "texts": texts})
        except (Exception, asyncio.CancelledError) as error:  # Whatever is wrong is the outcome, and the next server may be right.
            say(server["name"], f"failed: {whole(error)}"[:600])
