"""The shape of rLLM: its types, its decorators and the engine's retries around an agent flow (rllm/engine/agentflow_engine.py)."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import policy
import shapes

from palestra import client_of, rows


@dataclass
class Task:
    id: str
    instruction: Any
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Trajectory:
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    name: str = "default_traj_name"
    task: Any = None
    steps: list[Any] = field(default_factory=list)
    reward: float | None = None
    output: Any = None
    signals: dict[str, float] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None


@dataclass
class Episode:
    id: str = ""
    task: Any = None
    termination_reason: Any = None
    is_correct: bool = False
    session_id: str | None = None
    trajectories: list[Trajectory] = field(default_factory=list)
    artifacts: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class AgentConfig:
    base_url: str
    model: str
    session_uid: str
    metadata: dict[str, Any] = field(default_factory=dict)
    is_validation: bool = False
    sampling_params: dict[str, Any] = field(default_factory=dict)


class AgentFlowFn:
    needs_env = False

    def __init__(self, fn: Callable[..., Any], *, name: str = "solver") -> None:
        assert inspect.iscoroutinefunction(fn)
        self._fn, self.name = fn, name

    async def arun(self, task: Task, config: AgentConfig) -> Episode:
        return await self._fn(task, config)


def rollout(fn: Callable[..., Any] | None = None, *, name: str = "solver", register: str | None = None) -> Any:
    return (lambda inner: AgentFlowFn(inner, name=name)) if fn is None else AgentFlowFn(fn, name=name)


def evaluator(fn: Callable[..., Any]) -> Any:
    return fn


types_of = {"AgentConfig": AgentConfig, "Episode": Episode, "Task": Task, "Trajectory": Trajectory}
shapes.install("rllm", "0.3.0.pre0", {"rllm": {"rollout": rollout, "evaluator": evaluator}, "rllm.types": types_of})

from palestra import rllm  # noqa: E402


async def process_task_with_retry(row: dict[str, Any], url: str, task_id: str, index: int, is_validation: bool = False) -> Episode:
    """Three attempts, then an episode without trajectories (`workflow.raise_on_error: false`)."""
    uid = f"{task_id}:{index}"
    for attempt in range(3):
        config = AgentConfig(f"{url}/sessions/{uid}/v1", "scripted", uid, is_validation=is_validation)
        try:
            episode = await rllm.rollout.arun(Task(task_id, row["question"], row), config)
        except Exception as error:
            if attempt == 2:
                return Episode(id=uid, termination_reason="error", metadata={"error": {"message": str(error)}})
            continue
        reward = rllm.evaluator(row, episode)
        for trajectory in episode.trajectories:
            trajectory.reward = reward if trajectory.reward is None else trajectory.reward
        return episode
    raise AssertionError


async def main(fragile: str) -> dict[str, Any]:
    tasks, broken = list(rows("palestra/whodunit", "rllm", stop=2)), list(rows(fragile, "rllm", stop=2))
    assert "id" not in tasks[0]
    with policy.endpoint() as address:
        url = address.removesuffix("/v1")
        groups = [str(uuid.uuid4()) for _ in tasks]
        played = [await process_task_with_retry(tasks[group], url, groups[group], sample) for group in range(2) for sample in range(2)]
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        os.environ["PALESTRA_RUN"] = "rllm-fragile"
        failed = [await process_task_with_retry(row, url, str(number), 0, is_validation=True) for number, row in enumerate(broken)]
    return {
        "rewards": [[trajectory.reward for trajectory in episode.trajectories] for episode in played],
        "names": sorted({trajectory.name for episode in played for trajectory in episode.trajectories}),
        "fragile": [[trajectory.reward for trajectory in episode.trajectories] for episode in failed],
        "error": failed[1].metadata.get("error"),
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
