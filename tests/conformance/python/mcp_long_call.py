"""The official MCP client, 1.x or 2.x, makes one long call: python mcp_long_call.py URL KEY MS. Prints `calling`, `heard` for each
notification of progress, then what it saw as JSON."""

import asyncio
import json
import sys

from mcp_player import connected, plain


async def main(url, key, ms):
    heard = []

    async def on_progress(progress, total, message):
        heard.append(progress)
        print("heard", flush=True)

    async with connected(url, {"Authorization": f"Bearer {key}"}) as (session, _):
        print("calling", flush=True)
        result = await session.call_tool("doze", {"ms": ms}, progress_callback=on_progress)
        print(json.dumps({"result": plain(result), "heard": heard}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
