"""miles: functions for its flags (docs/trainers/miles.md).

miles records tokens behind the URL of a session, so the agent function only plays. It does not get the sample; the reward function leaves a
failed one out of the loss, and the log function reports its step, group and number to the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from palestra.episode import Episode
from palestra.failures import ADVICE, InfrastructureFailure
from palestra.rollouts import play_row_at, reward_of
from palestra.samples import FAILURE, ROLLOUT, log_functions, normalise_rewards, play_options
from palestra.versions import installed_name, require

# `miles` from its repository, `miles-rl` on the package index.
require(installed_name("miles", "miles-rl"), ">=0.0.2,<0.2", extra=None)

from miles.utils.types import Sample  # noqa: E402

FRAMEWORK = "miles"
REWARD = "palestra_reward"

_running: set[asyncio.Task[tuple[Episode, str]]] = set()


async def run(
    base_url: str, prompt: Any = None, request_kwargs: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None, **_: Any
) -> dict[str, Any]:
    """`--custom-agent-function-path palestra.miles.run`: plays the task of `metadata` (format `miles` of `palestra.rows`).

    PALESTRA_MAX_TURNS and PALESTRA_TIMEOUT_S (of an episode) are options of `palestra.play`, PALESTRA_RUN names the run.

    Returns what miles adds to the metadata of the sample, for `reward`.
    """
    sampling = {name: value for name, value in (request_kwargs or {}).items() if name not in ("tools", "stream")}
    playing = asyncio.ensure_future(
        play_row_at(metadata or {}, f"{base_url.rstrip('/')}/v1", FRAMEWORK, sampling=sampling, options=play_options())
    )
    _running.add(playing)
    try:
        await asyncio.wait({playing})
    except asyncio.CancelledError:
        playing.cancel()
        await asyncio.wait({playing})
        raise
    finally:
        _running.discard(playing)
    if playing.cancelled():
        failure = InfrastructureFailure("aborted", "miles had enough samples and aborted this episode.", ADVICE["chat"])
        return {FAILURE: failure.to_dict()}
    episode, rollout_id = playing.result()
    played = {ROLLOUT: rollout_id, "exit_status": episode.stop, "agent_metrics": _metrics(episode)}
    if episode.failure is not None:
        return {**played, FAILURE: episode.failure.to_dict()}
    return {**played, REWARD: reward_of(episode)}


async def abort(_args: Any) -> None:
    """Called by miles when it has enough samples: ends the episodes of this process."""
    for playing in list(_running):
        playing.get_loop().call_soon_threadsafe(playing.cancel)


async def reward(_args: Any, sample: Sample | list[Sample], **_: Any) -> float | list[float]:
    """`--custom-rm-path palestra.miles.reward`: the reward of the episode. A failed sample is left out of the loss; the number that it needs is
    not counted by `post_process_rewards`.
    """
    return [_reward(one) for one in sample] if isinstance(sample, list) else _reward(sample)


def _reward(sample: Sample) -> float:
    told = sample.metadata.get(REWARD)
    if told is not None:
        return float(told)
    # `run` raised: it returned neither a reward nor a failure.
    sample.metadata.setdefault(FAILURE, InfrastructureFailure("chat_failed", "The agent function failed.", ADVICE["chat"]).to_dict())
    sample.remove_sample, sample.status = True, Sample.Status.FAILED
    return 0.0


log_rollouts, log_evaluation = log_functions(FRAMEWORK)
"""`--custom-rollout-log-function-path palestra.miles.log_rollouts`, `--custom-eval-rollout-log-function-path palestra.miles.log_evaluation`."""

post_process_rewards = normalise_rewards
"""`--custom-reward-post-process-path palestra.miles.post_process_rewards`: keeps failed episodes out of the mean of their group."""


def _metrics(episode: Episode) -> dict[str, float]:
    return {"turns": len(episode.turns), "total_tool_time": sum(call.duration_s for call in episode.calls)}
