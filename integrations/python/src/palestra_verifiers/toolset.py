"""The tools of a rollout's session as an MCP server. One process serves all rollouts of an environment worker."""

from __future__ import annotations

from typing import Any, cast

import verifiers.v1 as vf
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent, Tool
from pydantic import Field

from palestra import Failure, PolicyFailure
from palestra.runs import client_of


class PalestraState(vf.State):
    """State of a rollout for the hooks of its task and for its tools. Verifiers never stores it.

    `api_key` is here because verifiers removes keys from the environment of tool servers, which may run on another machine.
    """

    url: str = ""
    api_key: str | None = None
    environment: str = ""
    variant: str | None = None
    session_id: str | None = None
    tools: list[dict[str, Any]] = Field(default_factory=list)
    """`name`, `description`, `input_schema` of the task's tools."""
    terminal: tuple[str, str | None] | None = None
    """Name and argument of the tool that gets the last message, if the environment has one."""
    finished: bool = False
    failure: dict[str, str] | None = None
    """`Failure.to_dict` of a failure that the policy did not cause."""


class PalestraToolset(vf.Toolset[vf.SharedToolsetConfig, PalestraState]):
    """Lists and calls the tools of the session that the rollout's task opened."""

    TOOL_PREFIX = None

    def register(self, mcp: MCPServer) -> None:
        # The tools differ from task to task, so the handlers are replaced instead of registering tools.
        server = cast(Any, mcp)
        server.list_tools = self._with_state(self.list_tools)
        server.call_tool = self._with_state(self.call_tool)

    async def list_tools(self) -> list[Tool]:
        empty = {"type": "object", "properties": {}}
        return [
            Tool(name=tool["name"], description=tool["description"] or None, input_schema=tool["input_schema"] or empty)
            for tool in self.state.tools
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> CallToolResult:
        state = self.state
        if state.finished or state.failure is not None or state.session_id is None:
            return _error("The episode has ended.")
        session = client_of(state.url, state.api_key).attach(state.environment, state.session_id, variant=state.variant)
        try:
            output = await session.call(name, arguments)
        except PolicyFailure as failure:
            return _error(failure.detail)
        except Failure as failure:
            state.failure = failure.to_dict()
            return _error("The environment is not available.")
        state.finished = output.finished
        return CallToolResult(content=[part for block in output.blocks for part in _content(block)], is_error=False)


def _error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _content(block: dict[str, Any]) -> list[TextContent | ImageContent]:
    if block.get("type") == "image":
        return [ImageContent(type="image", data=block["data"], mime_type=block["mimeType"])]
    return [TextContent(type="text", text=block["text"])] if block.get("type") == "text" else []


if __name__ == "__main__":
    PalestraToolset.run()
