"""A real OpenEnv server with the tools of OpenEnv's own echo environment, which the shared probe expects; written anew."""

import os
from uuid import uuid4

from fastmcp import FastMCP
from openenv.core.env_server import MCPEnvironment, Observation, State, create_app
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation


class EchoEnvironment(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("echo")

        @mcp.tool
        def echo_message(message: str) -> str:
            """Say the message again."""
            return message

        @mcp.tool
        def echo_with_length(message: str) -> dict:
            """Say the message again, and how long it is."""
            return {"message": message, "length": len(message)}

        super().__init__(mcp)
        self._state = State(episode_id=str(uuid4()))

    def reset(self, seed=None, episode_id=None, **_):
        self._state = State(episode_id=episode_id or str(uuid4()))
        return Observation(reward=0.0, metadata={"status": "ready"})

    async def step_async(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        return await super().step_async(action, timeout_s=timeout_s, **kwargs)

    def _step_impl(self, action, timeout_s=None, **_):
        raise ValueError("only list_tools and call_tool are supported")

    @property
    def state(self):
        return self._state


app = create_app(
    EchoEnvironment,
    CallToolAction,
    CallToolObservation,
    env_name="echo_env",
    max_concurrent_envs=int(os.environ.get("MAX_CONCURRENT_ENVS", "64")),
)
