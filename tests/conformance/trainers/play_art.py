"""ART's own models, trajectories and gatherer, with palestra.art as the rollout."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import sys
import tempfile
import threading
import types
import urllib.request
from pathlib import Path
from typing import Any

import art
import policy

from palestra import client_of, rows, write_rows
from palestra.art import rollout, rollout_group


class Backend:
    """Of a trainable model: only its step, which a training moves on while an episode is played."""

    def __init__(self) -> None:
        self.steps = [7, 7, 8, 9]

    async def _get_step(self, _model: Any) -> int:
        return self.steps.pop(0)

    def _model_inference_name(self, model: Any, step: int | None = None) -> str:
        return f"{model.name}@{7 if step is None else step}"


def scripted(url: str, kind: type[art.Model] = art.Model, **fields: Any) -> Any:
    address = {"inference_api_key": "none", "inference_base_url": url, "inference_model_name": "scripted"}
    model = kind(name="scripted", project="contract", **fields)
    for name, value in address.items():
        setattr(model, name, value)
    return model


def told(group: art.TrajectoryGroup) -> dict[str, Any]:
    return {
        "rewards": [trajectory.reward for trajectory in group],
        "exceptions": [error.type for error in group.exceptions],
        "messages": [error.message for error in group.exceptions],
        "histories": [[len(one.messages) for one in trajectory.chat_completions_histories()] for trajectory in group],
        "metrics": [trajectory.metrics["num_turns"] for trajectory in group],
    }


async def cancelled(url: str, row: dict[str, Any]) -> str:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def silent(_body: dict[str, Any]) -> dict[str, Any]:
        loop.call_soon_threadsafe(asked.set)
        raise ConnectionAbortedError

    plain, policy.completion = policy.completion, silent
    task = asyncio.ensure_future(rollout(scripted(url), row, run="art-cancelled", phase="eval"))
    await asked.wait()
    task.cancel()
    ended = await asyncio.gather(task, return_exceptions=True)
    policy.completion = plain
    return type(ended[0]).__name__


def set_quota(sessions: int | None) -> None:
    """Of the organisation."""
    headers = {"x-api-key": os.environ["PALESTRA_API_KEY"], "content-type": "application/json"}
    body = json.dumps({"max_sessions": sessions}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{os.environ['PALESTRA_URL']}/v1/organisation", body, headers, method="PATCH")).close()


async def quota(url: str, row: dict[str, Any]) -> list[art.TrajectoryGroup]:
    """Two steps. In the middle of the first, when one of three samples has its session, the organisation's quota becomes one session."""
    started, others_ended = asyncio.Event(), threading.Event()
    loop, plain, left = asyncio.get_running_loop(), policy.completion, {1, 2}

    def held(body: dict[str, Any]) -> dict[str, Any]:
        loop.call_soon_threadsafe(started.set)
        others_ended.wait(100)
        return plain(body)

    async def sample(number: int) -> art.Trajectory:
        arguments = {"run": "art-quota", "step": 0, "group": "g0", "sample": number, "samples": 3}
        if number == 0:
            return await rollout(scripted(url), row, **arguments)
        await started.wait()
        set_quota(1)
        try:
            return await rollout(scripted(url), row, **arguments, timeout_s=5.0)
        finally:
            left.discard(number)
            if not left:
                others_ended.set()

    policy.completion = held
    first = await art.trajectory_group([sample(number) for number in range(3)], return_exceptions=True)
    policy.completion = plain
    set_quota(None)
    return [first, await rollout_group(scripted(url), row, samples=3, group="g1", step=1, run="art-quota")]


async def documented(model: Any, tasks: list[Any]) -> list[art.TrajectoryGroup]:
    """The program of docs/trainers/art.md."""
    page = (Path(__file__).parents[3] / "docs/trainers/art.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"model": model, "tasks": tasks}
    body = "".join(f"    {line}" for line in program.splitlines(keepends=True))
    exec(f"async def run(model, tasks):\n{body}\n    return groups", names)
    groups: list[art.TrajectoryGroup] = await names["run"](model, tasks)
    return groups


async def example(url: str, rows: list[Any]) -> list[Any]:
    """One step of the program of examples/art. Only its backend is replaced, which imports torch. Returns the rewards of each group."""
    trained: list[Any] = []

    class LocalBackend(Backend):
        async def register(self, model: Any) -> None:
            model.base_path = folder

        async def _prepare_backend_for_training(self, _model: Any, _config: Any) -> tuple[str, str]:
            return url, "none"

        async def _get_step(self, _model: Any) -> int:
            return len(trained)

        async def train(self, _model: Any, groups: Any, *, learning_rate: float) -> Any:
            trained.extend([trajectory.reward for trajectory in group] for group in groups)
            return art.LocalTrainResult(step=1, metrics={"loss": learning_rate})

        async def close(self) -> None:
            pass

    sys.modules["art.local"] = types.ModuleType("art.local")
    sys.modules["art.local"].LocalBackend = LocalBackend  # type: ignore[attr-defined]
    program = runpy.run_path(str(Path(__file__).parents[3] / "examples/art/train.py"))
    program["main"].__globals__.update(STEPS=1, TASKS_PER_STEP=2, SAMPLES=2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tasks.jsonl")
        write_rows(file, rows)
        await program["main"](str(file))
    return trained


async def main(fragile: str) -> dict[str, Any]:
    tasks = list(rows("palestra/whodunit", "messages", stop=2))
    broken = list(rows(fragile, "messages", stop=2))
    with policy.endpoint() as url:
        model = scripted(url)
        groups = await documented(model, tasks)
        trainable = scripted(url, art.TrainableModel, base_model="tiny", run_name="contract")
        object.__setattr__(trainable, "_backend", Backend())
        trained = [(await rollout(trainable, tasks[0], run="art-trained", group="g", sample=sample)).reward for sample in range(2)]
        os.environ["PALESTRA_RUN"] = "art-example"
        exemplary = await example(url, tasks)
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        failed = [await rollout_group(model, row, samples=2, step=0, run="art-fragile") for row in broken]
        return {
            "groups": [told(group) for group in groups],
            "trained": trained,
            "example": exemplary,
            "fragile": [told(group) for group in failed],
            "cancelled": await cancelled(url, tasks[0]),
            "quota": [told(group) for group in await quota(url, tasks[0])],
        }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
