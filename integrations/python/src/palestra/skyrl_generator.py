"""SkyRL's generator with the place of each episode in the training, and with failed episodes left out of the loss."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from palestra.skyrl import PLACE, Place
from palestra.versions import require

require("skyrl", ">=0.4.0,<0.5", extra="skyrl")

from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator  # noqa: E402


class PalestraGenerator(SkyRLGymGenerator):  # type: ignore[misc, unused-ignore]
    """Returned from `BasePPOExp.get_generator`, with the arguments of `SkyRLGymGenerator`.

    Rollouts get step, phase, group, sample and policy version. An episode that failed without fault of the policy gets a loss mask of zeros,
    the stop reason `error`, and the mean reward of the other samples of its group, so that it moves neither the loss nor the baseline of its
    group. Every session is closed when a batch ends, also when SkyRL raises.
    """

    async def generate(self, input_batch: Any, disable_tqdm: bool = False) -> Any:
        places = _places(input_batch, getattr(self.inference_engine_client, "weight_version", None))
        extras = [{**row, PLACE: place} for row, place in zip(input_batch["env_extras"], places)]
        try:
            output = await super().generate({**input_batch, "env_extras": extras}, disable_tqdm)
        finally:
            # Most have ended already. The others wait for the service, which may be away.
            await asyncio.shield(asyncio.gather(*(asyncio.to_thread(place.end) for place in places)))
        return _mask_failures(output, input_batch, places)


def _places(batch: Any, weight_version: Any) -> list[Place]:
    ids, metadata = batch.get("trajectory_ids"), batch.get("batch_metadata")
    step, phase = (None, None) if metadata is None else (metadata.global_step, metadata.training_phase)
    version = weight_version if isinstance(weight_version, int) else None
    if ids is None:
        return [Place(step, phase, policy_version=version) for _ in batch["prompts"]]
    sizes = Counter(one.instance_id for one in ids)
    # The same row of the data set comes again in each epoch, and in evaluations.
    return [
        Place(step, phase, f"{phase}-{step}-{one.instance_id}", one.repetition_id, sizes[one.instance_id], version) for one in ids
    ]


def _mask_failures(output: Any, batch: Any, places: Sequence[Place]) -> Any:
    """Masks the rows of failed episodes: one for each episode, or, with `step_wise_trajectories`, one for each turn."""
    failed = {index for index, place in enumerate(places) if place.failure is not None}
    if not failed:
        return output
    ids, rewards = output.get("trajectory_ids"), output["rewards"]
    episodes = list(range(len(places)))
    if ids is not None:
        index_of = {(one.instance_id, one.repetition_id): index for index, one in enumerate(batch["trajectory_ids"])}
        episodes = [index_of[one.instance_id, one.repetition_id] for one in ids]
    last = output.get("is_last_step") or [True] * len(rewards)
    scored: dict[str | None, list[float]] = {}
    for row, index in enumerate(episodes):
        if last[row] and index not in failed:
            scored.setdefault(places[index].group, []).append(_total(rewards[row]))
    for row, index in enumerate(episodes):
        if index in failed:
            neutral = _neutral(scored, places[index].group) if last[row] else 0.0
            rewards[row] = [*[0.0] * (len(rewards[row]) - 1), neutral] if isinstance(rewards[row], list) else neutral
            output["loss_masks"][row] = [0] * len(output["loss_masks"][row])
            output["stop_reasons"][row] = "error"
    output["rollout_metrics"] = {**(output["rollout_metrics"] or {}), "environment/failed_episodes": len(failed)}
    return output


def _total(reward: float | list[float]) -> float:
    return float(sum(reward)) if isinstance(reward, list) else float(reward)


def _neutral(scored: dict[str | None, list[float]], group: str | None) -> float:
    """The mean of the group; of the batch, if the whole group failed; 0.0, which nothing counts, if the whole batch did."""
    counted = scored.get(group) or [reward for rewards in scored.values() for reward in rewards]
    return sum(counted) / len(counted) if counted else 0.0
