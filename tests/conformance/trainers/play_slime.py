"""The shape of slime: its samples, its OpenAI adapter and the order in which it calls custom functions (slime/rollout/sglang_rollout.py)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import types
from typing import Any
from urllib.parse import urlsplit

import policy
import shapes
from shapes import SlimeSample as Sample

from palestra import client_of, rows

opened: dict[str, dict[str, Any]] = {}
ports: list[int] = []


class OpenAIAdapter:
    """slime/agent/adapters: an endpoint of which each API key is a session, and which makes samples of what it generated."""

    def __init__(self, *, tokenizer: Any, sglang_url: Any, tool_parser: Any = None, reasoning_parser: Any = None) -> None:
        self.app = object()

    def open_session(self, sid: str, *, sampling_defaults: dict[str, Any] | None = None, max_context_tokens: int = 0) -> None:
        if sid in opened:
            raise ValueError(f"session_id {sid!r} already exists")
        opened[sid] = dict(sampling_defaults or {})

    async def finish_session(
        self, sid: str, *, base_sample: Sample, reward: float = 0.0, extra_metadata: dict[str, Any] | None = None, wait_timeout: float = 5.0
    ) -> list[Sample]:
        if opened.pop(sid, None) is None:
            return []
        # As TrajectoryManager makes them (slime/agent/trajectory.py): without the metadata of the sample.
        sample = Sample(
            index=base_sample.index,
            group_index=base_sample.group_index,
            rollout_id=base_sample.index if base_sample.rollout_id is None else base_sample.rollout_id,
            prompt=base_sample.prompt,
            label=base_sample.label,
            tokens=[1, 2, 3, 4],
            response_length=3,
            loss_mask=[1, 0, 1],
            rollout_log_probs=[-0.1, 0.0, -0.2],
            reward=reward,
            status=Sample.Status.COMPLETED,
            metadata=dict(extra_metadata or {}),
        )
        return [sample]

    async def drop_session(self, sid: str, *, wait_timeout: float = 5.0) -> None:
        opened.pop(sid, None)


def run_app_in_thread(app: Any, *, host: str = "0.0.0.0", port: int = 0, runner_kwargs: dict[str, Any] | None = None) -> Any:
    return types.SimpleNamespace(port=ports[0])


hooks: dict[str, Any] = {"_current_rollout_id": None}
shapes.install(
    "slime",
    "0.3.1",
    {
        "slime.agent.adapters": {"OpenAIAdapter": OpenAIAdapter},
        "slime.agent.aiohttp_threaded": {"run_app_in_thread": run_app_in_thread},
        "slime.rollout.sample_hooks": hooks,
        "slime.utils.processing_utils": {"load_tokenizer": lambda path, **_: path},
        "slime.utils.types": {"Sample": Sample},
    },
)

from palestra import slime  # noqa: E402

args = types.SimpleNamespace(
    hf_checkpoint="tiny",
    sglang_router_ip="127.0.0.1",
    sglang_router_port=1,
    n_samples_per_prompt=2,
    reward_key=None,
    rewards_normalization=True,
    advantage_estimator="grpo",
    grpo_std_normalization=False,
)


def groups_of(environment: str, first: int) -> list[list[Sample]]:
    """What slime's data source makes of rows."""
    listed = list(rows(environment, "slime", stop=2))
    numbered = [(group, sample) for group in range(len(listed)) for sample in range(2)]
    samples = [
        Sample(group_index=first + group, index=2 * (first + group) + sample, prompt=listed[group]["prompt"], metadata=dict(listed[group]["metadata"]))
        for group, sample in numbered
    ]
    return [samples[:2], samples[2:]]


async def generate_and_rm(sample: Sample, evaluation: bool) -> Any:
    generated = await slime.generate(args, sample, {"temperature": 1.0, "max_new_tokens": 64}, evaluation=evaluation)
    if generated.reward is None:
        generated.reward = await slime.reward(args, generated)
    return generated


async def step(rollout_id: int, groups: list[list[Sample]], trained_at: int | None = None) -> list[Sample]:
    sys.modules["slime.rollout.sample_hooks"]._current_rollout_id = rollout_id  # type: ignore[attr-defined]
    samples = [await generate_and_rm(sample, False) for group in groups for sample in group]
    slime.log_rollouts(rollout_id if trained_at is None else trained_at, args, [samples[:2], samples[2:]], None, 1.0)
    return samples


def told(samples: list[Sample]) -> dict[str, Any]:
    raw, normalised = slime.post_process_rewards(args, samples)
    return {
        "rewards": [sample.reward for sample in samples],
        "status": [sample.status.value for sample in samples],
        "removed": [sample.remove_sample for sample in samples],
        "trainable": [0 if sample.remove_sample else sum(sample.loss_mask) for sample in samples],
        "lengths": [sample.response_length == len(sample.loss_mask) == len(sample.rollout_log_probs) for sample in samples],
        "failures": [sample.metadata.get("palestra_failure", {}).get("failure_class") for sample in samples],
        "raw": raw,
        "normalised": normalised,
    }


async def main(fragile: str) -> dict[str, Any]:
    # Generated at step 3, and trained on at step 4, as in a fully asynchronous training.
    played = told(await step(3, groups_of("palestra/whodunit", 10), trained_at=4))
    os.environ["PALESTRA_RUN"] = "slime-eval"
    one = Sample(index=0, metadata=groups_of("palestra/whodunit", 0)[0][0].metadata)
    evaluated = await generate_and_rm(one, True)
    slime.log_evaluation(3, args, {"whodunit": {"samples": [evaluated], "rewards": [evaluated.reward]}}, None)
    client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
    os.environ["PALESTRA_RUN"] = "slime-fragile"
    # One group of a finished and a failed episode.
    mixed = groups_of(fragile, 0)
    mixed[1][0].group_index = 0
    failed = told(await step(0, [mixed[0][:1], mixed[1][:1]]))
    return {"played": played, "evaluated": evaluated.reward, "fragile": failed, "open": len(opened)}


with policy.endpoint() as address:
    ports.append(urlsplit(address).port or 0)
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
