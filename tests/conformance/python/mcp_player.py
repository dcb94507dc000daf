"""The official MCP client, 1.x or 2.x, plays an environment of Palestra: python mcp_player.py URL KEY. Prints what it saw as JSON."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from importlib.metadata import version

MAJOR = int(version("mcp").split(".")[0])


@asynccontextmanager
async def connected(url, headers):
    """A session, and the answer of its `initialize`. 2.x in its automatic mode, which asks `server/discover` first."""
    if MAJOR == 1:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(url, headers=headers) as (read, write, _):
            async with ClientSession(read, write) as session:
                yield session, await session.initialize()
    else:
        import httpx2
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                assert client.session.discover_result is None
                yield client, client.session.initialize_result


def plain(thing):
    return thing.model_dump(mode="json", by_alias=True, exclude_none=True)


async def play(url, key):
    seen = {"version": version("mcp")}
    async with connected(url, {"Authorization": f"Bearer {key}"}) as (session, opened):
        opened = plain(opened)
        seen["protocol"] = opened["protocolVersion"]
        seen["instructions"] = opened["instructions"]
        seen["task"] = opened["_meta"]
        seen["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
        seen["prompt"] = [plain(message)["content"]["type"] for message in (await session.get_prompt("task")).messages]
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        seen["look"] = plain(await session.call_tool("look", {"at": 2}))
        seen["unknown"] = plain(await session.call_tool("nothing", {}))
        seen["misused"] = plain(await session.call_tool("say", {}))
        seen["raised"] = plain(await session.call_tool("raise", {}))
        large = plain(await session.call_tool("paint", {"bytes": 3_000_000}))
        seen["large"] = len(large["content"][0]["data"])
        seen["last"] = plain(await session.call_tool("say", {"answer": "a pixel"}))
        seen["after"] = plain(await session.call_tool("look", {}))
    return seen


async def refused(url, key):
    """How the client learns that it may not, or that there is nothing: not by waiting."""
    try:
        async with asyncio.timeout(20):
            async with connected(url, {"Authorization": f"Bearer {key}"}):
                return "connected"
    except TimeoutError:
        return "waited"
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return f"{type(error).__name__}: {error}"


async def main():
    url, key = sys.argv[1:]
    seen = await play(url, key)
    seen["wrong_key"] = await refused(url, "or_wrong")
    seen["no_environment"] = await refused(url.split("?")[0] + "-not-there", key)
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main())
