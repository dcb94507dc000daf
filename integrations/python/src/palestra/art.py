"""ART: episodes as trajectories that keep the exchanges with the model (docs/trainers/art.md).

A failure of environment or infrastructure is raised. ART lists it in `TrajectoryGroup.exceptions`, which no loss counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from palestra.messages import Message
from palestra.rollouts import play_row, reward_of
from palestra.runs import recorder_of
from palestra.tasks import TaskRef
from palestra.versions import require

require("openpipe-art", ">=0.5.23,<0.6", extra="art")

import art  # noqa: E402

FRAMEWORK = "art"


async def rollout(
    model: art.Model[Any, Any],
    scenario: Mapping[str, Any] | TaskRef,
    *,
    run: str | None = None,
    step: int | None = None,
    group: str | None = None,
    sample: int | None = None,
    samples: int | None = None,
    phase: Literal["train", "eval"] = "train",
    sampling: Mapping[str, Any] | None = None,
    **options: Any,
) -> art.Trajectory:
    """Plays one episode and records it.

    Args:
        scenario: a row of `palestra.rows`, or a `TaskRef`.
        step: of the training; by default the step of a trainable model.
        group, sample, samples: see `Recorder.rollout`; `rollout_group` fills them in.
        sampling: further arguments of `chat.completions.create`, such as `temperature`.
        options: those of `palestra.play`, such as `max_turns`.

    Raises `Failure` of environment or infrastructure.
    """
    client, name = model.openai_client(), model.get_inference_name()
    version = await model.get_step() if model.trainable else None

    async def chat(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Any:
        offered = {"tools": list(tools)} if tools else {}
        return await client.chat.completions.create(model=name, messages=list(messages), **offered, **(sampling or {}))

    place = {
        "step": version if step is None else step,
        "group": group,
        "sample": sample,
        "samples": samples,
        "phase": phase,
        "policy_version": version,
    }
    with art.Trajectory() as trajectory:
        episode, rollout_id = await play_row(scenario, chat, FRAMEWORK, run=run, place=place, options=options)
    trajectory.reward = reward_of(episode)
    trajectory.metrics.update(num_turns=len(episode.turns), finished=episode.finished)
    trajectory.metadata.update(palestra_rollout=rollout_id, stop=episode.stop)
    final = await model.get_step() if model.trainable else None
    if final != version:
        # Weights were updated while the episode was played.
        recorder_of(run, FRAMEWORK).update(rollout_id, final_policy_step=final)
    return trajectory


async def rollout_group(
    model: art.Model[Any, Any],
    scenario: Mapping[str, Any] | TaskRef,
    _config: Any = None,
    *,
    samples: int,
    group: str | None = None,
    **arguments: Any,
) -> art.TrajectoryGroup:
    """Plays a task `samples` times; for `art.gather_trajectory_groups`, and with `functools.partial(rollout_group, samples=8)` as the
    `rollout_fn` of a PipelineTrainer. Failures are in the group's `exceptions`.

    `group`: id of the group, by default a random one. `arguments`: those of `rollout`.
    """
    name = group or uuid.uuid4().hex
    return await art.trajectory_group(
        [rollout(model, scenario, group=name, sample=sample, samples=samples, **arguments) for sample in range(samples)],
        metadata={"palestra_group": name},
        return_exceptions=True,
    )
