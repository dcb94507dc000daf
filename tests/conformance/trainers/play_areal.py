"""AReaL's own workflow interface and workflow context (of the wheel, without torch), and the shape of its proxy, groups and engine client
(areal/experimental/openai, areal/infra/remote_inf_engine.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import sys
import types
from typing import Any

import policy
from areal_wheel import package

from palestra import client_of, rows


class ArealOpenAI:
    """An OpenAI client on AReaL's engine that keeps tokens of each completion."""

    def __init__(self, engine: Any, tokenizer: Any, tool_call_parser: str = "qwen", **_: Any) -> None:
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=self._create))
        self._kept: list[dict[str, Any]] = []

    async def _create(self, *, messages: list[dict[str, Any]], tools: Any = None, temperature: float | None = None) -> dict[str, Any]:
        completion = policy.completion({"messages": messages, "tools": tools, "model": "default"})
        self._kept.append({"reward": None})
        return completion

    def set_last_reward(self, reward: float) -> None:
        self._kept[-1]["reward"] = reward

    def apply_reward_discount(self, turn_discount: float = 1.0) -> None:
        following = 0.0
        for one in reversed(self._kept):
            one["reward"] = following = (one["reward"] or 0.0) + following * turn_discount

    def export_interactions(self, style: str = "individual") -> dict[str, Any]:
        return {str(number): one for number, one in enumerate(self._kept)}


for name in ("areal", "areal.infra", "areal.infra.utils", "areal.utils", "areal.experimental"):
    package(name)
for name, members in {
    "areal.utils.logging": {"getLogger": logging.getLogger},
    "areal.infra.utils.http": {"DEFAULT_REQUEST_TIMEOUT": 1, "create_httpx_client": None, "get_default_connector": None},
    "areal.experimental.openai": {"ArealOpenAI": ArealOpenAI},
    "areal.utils.hf_utils": {"load_hf_tokenizer": lambda path: path},
}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)
sys.modules["areal.utils"].logging = sys.modules["areal.utils.logging"]  # type: ignore[attr-defined]

from areal.api.workflow_api import RolloutWorkflow  # noqa: E402
from areal.infra import workflow_context  # noqa: E402

from palestra.areal import Agent, Workflow  # noqa: E402


class Proxied(RolloutWorkflow):
    """OpenAIProxyWorkflow in the mode `inline`: an exception of the agent rejects the trajectory."""

    def __init__(self, agent: Agent, url: str) -> None:
        assert asyncio.iscoroutinefunction(agent.run)
        self._agent, self._url = agent, url

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any] | None:
        reward = await self._agent.run(data, base_url=self._url, api_key="session-key", http_client=object())
        if not isinstance(reward, float):
            raise ValueError(f"Invalid reward type: {type(reward)}")
        return {"only": {"reward": reward}}


async def group(workflow: RolloutWorkflow, data: dict[str, Any], task_id: int, is_eval: bool = False) -> list[Any] | str:
    """GroupedRolloutWorkflow in the executor: two samples share a task id, None leaves one out, an exception rejects the whole group."""
    workflow_context.set(workflow_context.WorkflowContext(is_eval=is_eval, task_id=task_id))
    engine = types.SimpleNamespace(get_version=lambda: 11)
    try:
        results = await asyncio.gather(*[workflow.arun_episode(engine, data) for _ in range(2)])
    except Exception as error:
        return type(error).__name__
    return [[one["reward"] for one in result.values()] for result in results if result is not None]


async def main(fragile: str) -> dict[str, Any]:
    tasks, broken = list(rows("palestra/whodunit", "areal", stop=2)), list(rows(fragile, "areal", stop=2))
    with policy.endpoint() as url:
        agent = pickle.loads(pickle.dumps(Agent(sampling={"temperature": 1.0}, max_turns=4)))
        by_agent = [await group(Proxied(agent, url), tasks[number], number) for number in range(2)]
        os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="key")
        workflow_context.set(workflow_context.WorkflowContext())
        by_variables = await Agent(run="areal-subproc").run(tasks[0])
        workflow = Workflow("tokenizer", run="areal-workflow", sampling={"temperature": 1.0}, client={"tool_call_parser": "qwen25"})
        by_workflow = await group(workflow, tasks[0], 7, is_eval=True)
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        broken_workflow = Workflow("tokenizer", run="areal-fragile")
        rejected = [await group(broken_workflow, row, number) for number, row in enumerate(broken)]
        raised = await group(Proxied(Agent(run="areal-raised"), url), broken[0], 0)
    told = {"agent": by_agent, "variables": by_variables, "workflow": by_workflow, "fragile": rejected, "raised": raised}
    return {**told, "torch": "torch" in sys.modules}


print(json.dumps(asyncio.run(main(sys.argv[1]))))
