"""The shape of miles: its samples, and agentic_tool_call.generate around a custom agent function (miles/rollout/generate_hub).

`FRAGILE [wheel]`: with the samples of the wheel, which import torch. `flags`: those of the page and of the example, as miles parses them.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import shlex
import sys
import threading
import types
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import policy
import shapes

from palestra import client_of, rows

if sys.argv[1:] == ["flags"] or sys.argv[2:] == ["wheel"]:
    sys.path.append(str(Path(os.environ["PALESTRA_TRAINERS_DIR"]) / "miles"))
else:
    shapes.install("miles", "0.1.0", {"miles.utils.types": {"Sample": shapes.MilesSample}})

from miles.utils.types import Sample  # noqa: E402

from palestra import miles  # noqa: E402

args = types.SimpleNamespace(
    n_samples_per_prompt=2, reward_key=None, rewards_normalization=True, advantage_estimator="grpo", grpo_std_normalization=True
)


async def generate(base_url: str, sample: Sample) -> Sample:
    """What the driver does with the agent function of a session: an exception of it is logged, and the tokens are collected anyway."""
    metadata = {**sample.metadata, "session_server_id": "127.0.0.1:1"}
    agent_metadata = None
    try:
        agent_metadata = await miles.run(
            base_url=base_url, prompt=sample.prompt, request_kwargs={"temperature": 1.0, "max_tokens": 64}, metadata=metadata
        )
    except Exception:
        pass
    collected = copy.deepcopy(sample)
    collected.tokens, collected.response_length, collected.loss_mask = [1, 2, 3, 4], 3, [1, 0, 1]
    collected.status, collected.weight_versions = Sample.Status.COMPLETED, ["6", "5"]
    collected.metadata.update(agent_metadata or {})
    collected.non_generation_time = (collected.metadata.get("agent_metrics") or {}).get("total_tool_time", 0.0)
    collected.reward = await miles.reward(args, collected)
    return collected


def sample_of(row: dict[str, Any], group: int, index: int) -> Sample:
    return Sample(group_index=group, index=index, prompt=row["prompt"], metadata=copy.deepcopy(row["metadata"]))


def told(samples: list[Sample]) -> dict[str, Any]:
    raw, normalised = miles.post_process_rewards(args, samples)
    return {
        "rewards": [sample.reward for sample in samples],
        "status": [sample.status.value for sample in samples],
        "removed": [sample.remove_sample for sample in samples],
        "failures": [sample.metadata.get("palestra_failure", {}).get("code") for sample in samples],
        "tool_time": [sample.non_generation_time > 0 for sample in samples],
        "raw": raw,
        "normalised": normalised,
    }


async def aborted(url: str, row: dict[str, Any]) -> list[str]:
    """miles has enough samples while an episode waits for the model."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    plain = policy.completion

    def silent(body: dict[str, Any]) -> dict[str, Any]:
        loop.call_soon_threadsafe(asked.set)
        threading.Event().wait(60)
        return plain(body)

    policy.completion = silent
    playing = asyncio.ensure_future(generate(f"{url}/sessions/9", sample_of(row, 9, 18)))
    await asked.wait()
    await miles.abort(args)
    sample = await playing
    policy.completion = plain
    return [sample.status.value, sample.metadata["palestra_failure"]["code"]]


async def main(fragile: str) -> dict[str, Any]:
    run = os.environ["PALESTRA_RUN"]
    tasks, broken = list(rows("palestra/whodunit", "miles", stop=2)), list(rows(fragile, "miles", stop=2))
    with policy.endpoint() as address:
        url = address.removesuffix("/v1")
        samples = [await generate(f"{url}/sessions/{index}", sample_of(tasks[index // 2], index // 2, index)) for index in range(4)]
        miles.log_rollouts(5, args, samples, {}, 1.0)
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        os.environ["PALESTRA_RUN"] = f"{run}-fragile"
        failed = [await generate(f"{url}/sessions/{index}", sample_of(broken[index], 0, index)) for index in range(2)]
        failed.append(await generate(f"{url}/sessions/2", Sample(group_index=0, index=2)))
        miles.log_rollouts(0, args, failed, {}, 1.0)
        os.environ["PALESTRA_RUN"] = f"{run}-aborted"
        return {"played": told(samples), "fragile": told(failed), "aborted": await aborted(url, tasks[0])}


def flags() -> list[list[Any]]:
    """Without the flags of Megatron, SGLang and its router, of which the example has none of its own."""
    for name, members in {
        "sglang_router.launch_router": {"RouterArgs": types.SimpleNamespace(add_cli_args=lambda *_, **__: None)},
        "miles.backends.sglang_utils.arguments": {"add_sglang_arguments": lambda parser: parser, "validate_args": None},
        "sglang.srt.entrypoints.openai.protocol": {"ChatCompletionRequest": None, "Tool": None},
    }.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(members)
    from miles.utils.arguments import get_miles_extra_args_provider

    root = Path(__file__).parents[3]
    page = re.findall(r"```text\n(.*?)```", (root / "docs/trainers/miles.md").read_text(), re.DOTALL)[0]
    example = (root / "examples/miles/train.sh").read_text().split('"${MODEL_ARGS[@]}"')[1]
    parsed = []
    for text in (page, example):
        # The only flag that it demands besides those of the page.
        sys.argv[1:] = [*shlex.split(text.replace("\\\n", " ")), "--rollout-batch-size", "1"]
        parser = get_miles_extra_args_provider()(ArgumentParser())
        chosen = vars(parser.parse_args())
        parsed.append([name for name, value in sorted(chosen.items()) if "palestra.miles" in str(value)])
    return parsed


print(json.dumps(flags() if sys.argv[1:] == ["flags"] else asyncio.run(main(sys.argv[1]))))
