"""Speaks to `wf mcp` with the Python SDK: creates a workstream, plans it, reads it back, and reads a refusal."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.serverInfo.name == "wf", hello
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "create" in names and "merge" not in names, names
        made = await session.call_tool("create", {"id": "python", "title": "From Python"})
        assert not made.isError, made
        added = await session.call_tool("plan_add", {"workstream": "python", "title": "Add it"})
        assert added.structuredContent["result"]["commit"] == "COMMIT-PYTHON-001", added
        shown = await session.call_tool("show", {"workstream": "python"})
        assert shown.structuredContent["result"]["meta"]["title"] == "From Python", shown
        refused = await session.call_tool("show", {"workstream": "nope"})
        assert refused.isError and "wf list" in refused.content[0].text, refused
    print("done")


asyncio.run(main())
