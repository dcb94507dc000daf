"""tinker-cookbook's own rollouts with our groups and a scripted policy of tokens: `WHODUNIT FRAGILE`, two names of environments.

Each mode is a run `tinker-MODE`. Prints what the trainer saw of each.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import policy
import tiny_model
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.metric_util import RLTestSetEvaluator
from tinker_cookbook.rl.rollout_strategy import FailFast, MinViableGroup, RetryOnFailure
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.tokenizer_utils import register_tokenizer

import palestra
from palestra.tinker import PalestraDatasetBuilder, PlayOptions

register_tokenizer("tiny", tiny_model.tokenizer)


class Policy(TokenCompleter):
    """Reads the conversation from the tokens. `mode` as in `main`."""

    def __init__(self, mode: str = "train") -> None:
        self.asked = asyncio.Event()
        self._tokenizer = tiny_model.tokenizer()
        self._mode = mode
        self._vanishing = 0
        self._generations = 0
        self._finished = asyncio.Event()

    async def __call__(self, model_input: Any, stop: Any, *, max_tokens: int | None = None) -> TokensWithLogprobs:
        self.asked.set()
        self._generations += 1
        if self._mode == "cancel":
            await asyncio.Event().wait()
        if self._mode == "retry" and self._generations == 1:
            raise RuntimeError("the sampler has died")
        name, arguments = policy.next_call(tiny_model.conversation(self._tokenizer.decode(model_input.to_ints())))
        if name == "vanish":
            name = await self._one_of_two()
        call = json.dumps({"name": name, "arguments": arguments})
        tokens = self._tokenizer.encode(f"I {name} now.\n<tool_call>\n{call}\n</tool_call><|im_end|>", add_special_tokens=False)
        if self._mode == "length":
            return TokensWithLogprobs(tokens[:5], [-0.5] * 5, stop_reason="length")
        return TokensWithLogprobs(tokens, [-0.5] * len(tokens))

    async def _one_of_two(self) -> str:
        """The first sample finishes before the server disappears under the second."""
        self._vanishing += 1
        if self._vanishing == 1:
            asyncio.get_running_loop().call_later(2, self._finished.set)
            return "finish"
        await self._finished.wait()
        return "vanish"


def builder_of(environment: str, folder: str, indices: list[int], **options: Any) -> PalestraDatasetBuilder:
    rows = list(palestra.rows(environment, "tinker", stop=max(indices) + 1))
    file = str(Path(folder, f"{environment.replace('/', '_')}-{'-'.join(map(str, indices))}.jsonl"))
    palestra.write_rows(file, [rows[index] for index in indices])
    shared: dict[str, Any] = {"model_name": "tiny", "renderer_name": "qwen3_instruct", "group_size": 2, "groups_per_batch": 1, "seed": None}
    return PalestraDatasetBuilder(tasks=file, **{**shared, **options})


def seen(group: Any) -> dict[str, Any]:
    return {
        "rewards": group.get_total_rewards(),
        "turns": [len(played.transitions) for played in group.trajectories_G],
        "stops": [played.stop_reason for played in group.trajectories_G],
        "errors": [error.error_type for error in group.rollout_errors],
    }


async def train(environment: str, folder: str) -> Any:
    tests = builder_of(environment, folder, [2]).tasks
    dataset, test = await builder_of(environment, folder, [0, 1], test_tasks=tests)()
    assert test is not None
    evaluator = RLTestSetEvaluator(test, max_tokens=100)
    groups = []
    for step in range(len(dataset)):
        for builder in dataset.get_batch(step):
            # As a pool of processes gets it.
            groups.append(seen(await do_group_rollout(pickle.loads(pickle.dumps(builder)), Policy(), MinViableGroup())))
    evaluations = [await evaluator.eval_token_completer(Policy()) for _ in range(2)]
    return {"groups": groups, "evaluations": [evaluation["test/env/all/reward/total"] for evaluation in evaluations]}


async def one_group(environment: str, folder: str, index: int, mode: str, strategy: Any, **options: Any) -> Any:
    dataset, _ = await builder_of(environment, folder, [index], play=PlayOptions(**options))()
    [builder] = dataset.get_batch(0)
    try:
        return seen(await do_group_rollout(builder, Policy(mode), strategy))
    except Exception as error:
        return type(error).__name__
    finally:
        await builder.cleanup()


async def cancel(environment: str, folder: str) -> Any:
    dataset, _ = await builder_of(environment, folder, [0])()
    [builder] = dataset.get_batch(0)
    never = Policy("cancel")
    rollout = asyncio.ensure_future(do_group_rollout(builder, never, MinViableGroup()))
    await never.asked.wait()
    rollout.cancel()
    [ended] = await asyncio.gather(rollout, return_exceptions=True)
    return type(ended).__name__


def example() -> dict[str, Any]:
    """The configuration of the example, read by tinker-cookbook's own class."""
    config = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "tinker" / "train.py"))["config"]
    return {"model": config.model_name, "tolerance": type(config.rollout_error_tolerance).__name__}


async def main(whodunit: str, fragile: str) -> None:
    told: dict[str, Any] = {}

    async def play(mode: str, work: Any) -> None:
        os.environ["PALESTRA_RUN"] = f"tinker-{mode}"
        told[mode] = await work

    with tempfile.TemporaryDirectory() as folder:
        await play("train", train(whodunit, folder))
        await play("text", one_group(whodunit, folder, 0, "train", FailFast(), parse="tool_call"))
        await play("length", one_group(whodunit, folder, 0, "length", FailFast()))
        await play("retry", one_group(whodunit, folder, 0, "retry", RetryOnFailure(max_retries=1)))
        await play("cancel", cancel(whodunit, folder))
        palestra.client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        await play("fail", one_group(fragile, folder, 1, "fail", MinViableGroup(min_successful=1, max_retries=0)))
    told["example"] = example()
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
