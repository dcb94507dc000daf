"""A server of the official MCP package, FastMCP of 1.x or MCPServer of 2.x: python mcp_counter.py stdio|streamable-http|sse [PORT]."""

import os
import signal
import sys
import time
from importlib.metadata import version

if int(version("mcp").split(".")[0]) == 1:
    from mcp.server.fastmcp import Context, FastMCP, Image
    from mcp.types import CallToolResult, TextContent

    def result(text, meta):
        return CallToolResult(content=[TextContent(type="text", text=text)], _meta=meta)

    def server(name, instructions, **settings):
        return FastMCP(name, instructions=instructions, **settings)
else:
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp_types import CallToolResult, TextContent

    def result(text, meta):
        return CallToolResult(content=[TextContent(type="text", text=text)], _meta=meta)

    def server(name, instructions, **settings):
        return MCPServer(name, instructions=instructions)


kind = sys.argv[1]
port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
counter = server("counter", "Count to three.", **({"host": "127.0.0.1", "port": port} if port else {}))
counts = {}


@counter.tool()
def add(by: int, ctx: Context) -> CallToolResult:
    """Adds"""
    # The session's object is one a request in 2.x: what tells sessions apart is how their requests are addressed.
    request = getattr(ctx.request_context, "request", None)
    session = request and (request.headers.get("mcp-session-id") or request.query_params["session_id"])
    count = counts[session] = counts.get(session, 0) + by
    return result(str(count), {"palestra/reward": float(count == 3), "palestra/finished": count >= 3})


@counter.tool()
def dot() -> Image:
    """A picture"""
    return Image(data=b"\x89PNG", format="png")


@counter.tool()
def total(a: int, b: int) -> int:
    """Adds two numbers"""
    return a + b


@counter.tool()
def fail() -> str:
    """Raises"""
    raise ValueError("no luck")


@counter.tool()
def die() -> str:
    """Ends the process in the middle of the call"""
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@counter.prompt()
def other() -> str:
    return "Not the task."


if kind == "stdio":
    counter.run("stdio")
elif int(version("mcp").split(".")[0]) == 1:
    counter.run(kind)
else:
    counter.run(kind, host="127.0.0.1", port=port)
