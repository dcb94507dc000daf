"""TRL's environment_factory as GRPOTrainer uses it, without torch, and TRL's own OpenRewardSpec against the service.

`play ENVIRONMENT`, `images -`, `fail ENVIRONMENT`, `leave ENVIRONMENT`, `raise ENVIRONMENT`, `openreward ENVIRONMENT`.
"""

from __future__ import annotations

import base64
import inspect
import io
import json
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import policy
from PIL import Image
from transformers.utils import get_json_schema
from trl.experimental.openreward import OpenRewardSpec

from palestra import client_of, rows
from palestra.messages import openai_messages
from palestra.trl import _content, _observation, environment_factory, record_rollouts

ARGS = SimpleNamespace(num_generations=2, num_generations_eval=None, learning_rate=1e-5, temperature=1.0, max_completion_length=4096)


class Trainer:
    """What GRPOTrainer (trl 1.16.0, grpo_trainer.py) does with environments: construct once, reset often, never close."""

    def __init__(self, factory: Any, record: Any) -> None:
        self.factory, self.record = factory, record
        self.pool = [factory()]
        self.state = SimpleNamespace(global_step=0)

    def tools(self) -> dict[str, Any]:
        names = [name for name, _ in inspect.getmembers(type(self.pool[0]), predicate=inspect.isfunction)]
        return {name: getattr(self.pool[0], name) for name in names if name not in ("reset", "get_reward") and not name.startswith("_")}

    def step(self, batch: list[dict[str, Any]]) -> list[float | None]:
        while len(self.pool) < len(batch):
            self.pool.append(self.factory())
        environments = self.pool[: len(batch)]
        completions = [self.rollout(environment, row) for environment, row in zip(environments, batch, strict=True)]
        columns = {name: [row[name] for row in batch] for name in batch[0] if name != "prompt"}
        columns |= {"environments": environments, "trainer_state": self.state}
        recorded = self.record(prompts=[], completions=completions, completion_ids=[[1]] * len(batch), **columns)
        assert recorded == [None] * len(batch)
        self.state.global_step += 1
        return [environment.get_reward() for environment in environments]

    def rollout(self, environment: Any, row: dict[str, Any]) -> list[dict[str, Any]]:
        observation = environment.reset(**row)
        prompt = list(row["prompt"])
        if observation is not None:
            prompt[-1] = {**prompt[-1], "content": prompt[-1]["content"] + observation}
        completion: list[dict[str, Any]] = []
        if prompt[-1]["content"] == "":  # Its session was not opened.
            return [{"role": "assistant", "content": "What is the task?"}]
        for _ in range(2):
            name, arguments = policy.next_call([*prompt, *completion])
            call = {"type": "function", "function": {"name": name, "arguments": arguments}}
            completion.append({"role": "assistant", "content": f"I {name} now.", "tool_calls": [call]})
            try:
                result = getattr(environment, name)(**arguments)
            except Exception as error:
                result = {"error": str(error)}
            completion.append({"role": "tool", "name": name, "content": str(result)})
        return completion


def batch_of(environment: str, indexes: list[int], *, with_prompt: bool) -> list[dict[str, Any]]:
    if with_prompt:
        known = list(rows(environment, "trl", stop=max(indexes) + 1))
        return [known[index] for index in indexes]
    return [{"prompt": [{"role": "user", "content": ""}], "task_index": index} for index in indexes]


def images() -> Any:
    """What reset and tools return for images: content parts as transformers reads them, each image opened."""
    file = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    asked = openai_messages([{"role": "user", "blocks": [{"type": "text", "text": "Look"}, {"type": "image", "data": data, "mimeType": "image/png"}]}])
    told = [_observation(asked, [{"role": "user", "content": content}]) for content in ("", "Look")]
    told.append(_content([{"type": "text", "text": "There"}, {"type": "image", "data": data, "mimeType": "image/png"}]))
    return [[part.get("text") or list(part["image"].size) for part in parts] for parts in told]


def main(mode: str, environment: str) -> Any:
    if mode == "images":
        return images()
    if mode == "openreward":
        return openreward(environment)
    if mode == "fail":
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
    factory = pickle.loads(pickle.dumps(environment_factory(environment)))
    trainer = Trainer(factory, pickle.loads(pickle.dumps(record_rollouts(ARGS, model_name="scripted"))))
    if mode == "play":
        schemas = [get_json_schema(tool)["function"] for tool in trainer.tools().values()]
        first = trainer.step(batch_of(environment, [0, 0, 1, 1], with_prompt=True))
        second = trainer.step(batch_of(environment, [1, 1, 0, 0], with_prompt=False))
        return {"rewards": [*first, *second], "pool": len(trainer.pool), "schemas": schemas, "column": factory._class.__name__}
    if mode == "fail":
        first = trainer.step(batch_of(environment, [0, 0, 1, 1], with_prompt=False))
        return {"rewards": [*first, *trainer.step(batch_of(environment, [0, 0], with_prompt=False))]}
    trainer.rollout(trainer.pool[0], batch_of(environment, [0], with_prompt=False)[0])
    trainer.pool[0].reset(**batch_of(environment, [1], with_prompt=False)[0])
    if mode == "raise":
        raise RuntimeError("the trainer fails")
    return {}


def openreward(environment: str) -> Any:
    spec = OpenRewardSpec(environment, num_tasks=2)
    one = spec.environment_factory()
    rewards = []
    for row in spec.train_dataset:
        prompt = [{"role": "user", "content": one.reset(**row)}]
        for _ in range(2):
            name, arguments = policy.next_call(prompt)
            prompt += [{"role": "assistant", "content": ""}, {"role": "tool", "content": getattr(one, name)(**arguments)}]
        rewards += spec.reward_funcs(environments=[one])
    one._close()
    return {"rewards": rewards, "columns": sorted(spec.train_dataset.column_names), "finished": one.finished}


print(json.dumps(main(*sys.argv[1:])))
