"""Small environments for the OpenEnv servers of 0.2 to 0.5, which the fixtures of shared/conformance are too new for.

counter_app  action {"add": int, "wait": seconds}; the episode ends with reward 1.0 at 10 or more. reset(start=n) begins elsewhere.
             add > 100 is refused by a validator of the action class, which these servers answer by closing the socket.
toolbox_app  MCP tools double(n) and submit(answer); submit ends the episode, with reward 1.0 for "42".

MAX_CONCURRENT_ENVS: sessions, default 8.
"""

import os
import time
from typing import Any, Optional
from uuid import uuid4

from fastmcp import FastMCP
from openenv.core.env_server import Action, Environment, MCPEnvironment, Observation, State, create_app
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from pydantic import field_validator

SESSIONS = int(os.environ.get("MAX_CONCURRENT_ENVS", "8"))


class CounterAction(Action):
    add: int
    wait: float = 0.0

    @field_validator("add")
    @classmethod
    def _small(cls, value):
        if value > 100:
            raise ValueError("too much at once")
        return value


class CounterObservation(Observation):
    total: int


class CounterEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State(episode_id=str(uuid4()))
        self._total = 0

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, start: int = 0, **_: Any):
        self._state = State(episode_id=episode_id or str(uuid4()))
        self._total = start
        return CounterObservation(total=start, reward=None)

    def step(self, action: CounterAction, timeout_s: Optional[float] = None, **_: Any):
        time.sleep(action.wait)
        self._state.step_count += 1
        if action.add < 0:
            raise RuntimeError("only upwards")
        self._total += action.add
        done = self._total >= 10
        return CounterObservation(total=self._total, reward=1.0 if done else 0, done=done)

    @property
    def state(self):
        return self._state


class ToolboxEnvironment(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("toolbox")
        self._state = State(episode_id=str(uuid4()))
        self._outcome = None

        @mcp.tool
        def double(n: int) -> int:
            """Twice the number."""
            return 2 * n

        @mcp.tool
        def submit(answer: str) -> str:
            """Submit the final answer. The right one is 42."""
            self._outcome = 1.0 if answer == "42" else 0.0
            return "submitted"

        super().__init__(mcp)

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **_: Any):
        self._state = State(episode_id=episode_id or str(uuid4()))
        self._outcome = None
        return Observation(reward=None)

    def step(self, action, timeout_s: Optional[float] = None, **kwargs: Any):
        return self._rated(action, super().step(action, timeout_s=timeout_s, **kwargs))

    # Servers from 0.3 call this one over sockets.
    async def step_async(self, action, timeout_s: Optional[float] = None, **kwargs: Any):
        return self._rated(action, await super().step_async(action, timeout_s=timeout_s, **kwargs))

    def _rated(self, action, observation):
        if isinstance(action, CallToolAction):
            self._state.step_count += 1
            if self._outcome is not None:
                observation.reward, observation.done = self._outcome, True
        return observation

    def _step_impl(self, action, timeout_s: Optional[float] = None, **kwargs: Any):
        raise ValueError("only list_tools and call_tool are supported")

    @property
    def state(self):
        return self._state


counter_app = create_app(
    CounterEnvironment, CounterAction, CounterObservation, env_name="counter", max_concurrent_envs=SESSIONS
)
toolbox_app = create_app(
    ToolboxEnvironment, CallToolAction, CallToolObservation, env_name="toolbox", max_concurrent_envs=SESSIONS
)
