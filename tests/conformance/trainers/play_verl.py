"""The worker of verl's v1 trainer with our agent loop and a scripted language model: `WHODUNIT FRAGILE`, two names of environments.

Real: configuration, data set, worker, building of tokens, advantages. Replaced: the queue between worker and trainer, by a dictionary. Each
mode is a run `verl-MODE`. Prints what the trainer saw of each.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import policy
import tiny_model
import torch
import transfer_queue as tq
from hydra import compose, initialize_config_module
from tensordict import TensorDict
from verl.protocol import DataProto
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.workers.rollout.replica import TokenOutput

import palestra

EXAMPLE = Path(__file__).parents[3] / "examples" / "verl"


class Queue:
    """What the worker hands to the trainer."""

    def __init__(self) -> None:
        self.statuses: dict[str, str] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.scored = asyncio.Event()

    async def put(self, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        self.statuses[key] = tag["status"]

    async def put_batch(self, keys: list[str], fields: TensorDict, tags: list[dict[str, Any]], partition_id: str) -> None:
        for number, key in enumerate(keys):
            row = {name: fields[name][number] for name in ("response_mask", "rm_scores", "responses", "rollout_log_probs")}
            self.rows[key] = {**row, "tag": tags[number], "partition": partition_id}
        self.scored.set()


class Server:
    """The language model: it reads the conversation from the tokens, and the policy goes on. `mode` as in `play`."""

    def __init__(self, tokenizer: Any, mode: str, queue: Queue) -> None:
        self.asked = asyncio.Event()
        self._tokenizer = tokenizer
        self._mode = mode
        self._queue = queue
        self._vanishing = 0

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> TokenOutput:
        self.asked.set()
        if self._mode == "model":
            raise RuntimeError("the inference server has died")
        if self._mode == "cancel":
            await asyncio.Event().wait()
        name, arguments = policy.next_call(tiny_model.conversation(self._tokenizer.decode(prompt_ids)))
        if name == "vanish":
            name = await self._one_of_two()
        text = f"I {name} now.\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call><|im_end|>"
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        versions = {"global_steps": 4, "min_global_steps": 4, "max_global_steps": 4}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=versions)

    async def _one_of_two(self) -> str:
        """The first sample finishes and has its reward before the server disappears under the second."""
        self._vanishing += 1
        if self._vanishing == 1:
            return "finish"
        await self._queue.scored.wait()
        return "vanish"


def configured(folder: str) -> Any:
    """The configuration of the example, read by verl's own parser, with a tiny model."""
    command = (EXAMPLE / "train.sh").read_text(encoding="utf-8")
    overrides = [found for found in re.findall(r"^  ([\w.]+=\S+?)(?: \\)?$", command, re.MULTILINE) if "$" not in found]
    tiny = [
        f"actor_rollout_ref.model.path={folder}",
        f"+data.cache_dir={folder}/cache",
        "+actor_rollout_ref.model.override_config.attn_implementation=eager",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={EXAMPLE / 'agent_loop.yaml'}",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.calculate_log_probs=true",
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", [*overrides, *tiny])


def batch_of(environment: str, indices: list[int], config: Any, tokenizer: Any, *, validate: bool = False) -> TensorDict:
    """A batch as the trainer makes it, from a file that verl's own data set reads."""
    rows = list(palestra.rows(environment, "verl", stop=max(indices) + 1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tasks.jsonl")
        palestra.write_rows(file, [rows[index] for index in indices])
        data = RLHFDataset(str(file), tokenizer, config.data)
        columns = collate_fn([data[number] for number in range(len(indices))])
    columns["uid"] = np.array([f"{'val' if validate else 'uid'}{index}" for index in indices], dtype=object)
    batch = tu.get_tensordict(columns)
    tu.assign_non_tensor_data(batch, "global_steps", 5)
    if validate:
        tu.assign_non_tensor_data(batch, "validate", True)
    return batch


async def step(worker: Any, batch: TensorDict) -> None:
    await worker.generate_sequences(batch)
    await asyncio.gather(*worker.background_tasks)


async def cancelled_step(worker: Any, batch: TensorDict, server: Server) -> None:
    await worker.generate_sequences(batch)
    await server.asked.wait()
    tasks = list(worker.background_tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def seen(queue: Queue) -> dict[str, Any]:
    return {
        key: {
            "reward": row["rm_scores"].sum().item(),
            "trained": int(row["response_mask"].sum()),
            "length": len(row["response_mask"]),
            "partition": row["partition"],
            "versions": [row["tag"]["min_global_steps"], row["tag"]["max_global_steps"]],
        }
        for key, row in sorted(queue.rows.items())
    }


def advantages(queue: Queue) -> dict[str, float]:
    """verl's own advantages of GRPO over what is in the queue: the greatest amount of each row."""
    keys = sorted(queue.rows)
    padded = {
        name: torch.nn.utils.rnn.pad_sequence([queue.rows[key][name] for key in keys], batch_first=True)
        for name in ("response_mask", "rm_scores")
    }
    data = DataProto(batch=TensorDict({"response_mask": padded["response_mask"], "token_level_rewards": padded["rm_scores"]}, len(keys)))
    data.non_tensor_batch["uid"] = np.array([key.split("_")[0] for key in keys], dtype=object)
    scored = compute_advantage_for_multi_trajectories(data, keys, "grpo", num_repeat=2)
    return {key: float(row[row.abs().argmax()]) for key, row in zip(keys, scored.batch["advantages"], strict=True)}


async def play(mode: str, environment: str, config: Any, told: dict[str, Any]) -> None:
    """`train`: two groups of two and a validation. `model`: the language model fails. `cancel`: the trainer cancels a step. `fail`: one
    of two samples loses its environment.
    """
    os.environ["PALESTRA_RUN"] = f"verl-{mode}"
    queue, tokenizer = Queue(), tiny_model.tokenizer()
    tq.init, tq.async_kv_put, tq.async_kv_batch_put = (lambda *_, **__: None), queue.put, queue.put_batch
    server = Server(tokenizer, mode, queue)
    worker = AgentLoopWorkerTQ.__ray_metadata__.modified_class(config, server)

    def batch(*indices: int, validate: bool = False) -> TensorDict:
        return batch_of(environment, list(indices), config, tokenizer, validate=validate)

    if mode == "train":
        await step(worker, batch(0, 1))
        await step(worker, batch(2, validate=True))
    elif mode == "model":
        await step(worker, batch(0))
    elif mode == "cancel":
        await cancelled_step(worker, batch(0), server)
    else:
        palestra.client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        await step(worker, batch(1))
    told[mode] = {"statuses": queue.statuses, "rows": seen(queue), "advantages": advantages(queue) if queue.rows else {}}


async def main(whodunit: str, fragile: str) -> None:
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        config = configured(tiny_model.save(folder))
        for mode in ("train", "model", "cancel"):
            await play(mode, whodunit, config, told)
        await play("fail", fragile, config, told)
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
