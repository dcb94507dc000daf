"""What slime and miles share: samples that carry the id of their rollout, and the functions that see a whole step of them."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from palestra.runs import recorder_of

ROLLOUT = "palestra_rollout"
FAILURE = "palestra_failure"
"""Keys of `sample.metadata`: the id of the recorded rollout, and the failure as `Failure.to_dict` has it."""


def play_options() -> dict[str, Any]:
    """Options of `palestra.play` from PALESTRA_MAX_TURNS and PALESTRA_TIMEOUT_S (of an episode)."""
    turns, seconds = os.environ.get("PALESTRA_MAX_TURNS"), os.environ.get("PALESTRA_TIMEOUT_S")
    return {"max_turns": int(turns) if turns else None, "timeout_s": float(seconds) if seconds else None}


def log_functions(framework: str) -> tuple[Callable[..., bool], Callable[..., bool]]:
    """For `--custom-rollout-log-function-path` and `--custom-eval-rollout-log-function-path`: they record step, group and sample of each
    rollout. They return False, so that the trainer logs as well.
    """

    def log_rollouts(rollout_id: int, args: Any, samples: Sequence[Any], _metrics: Any = None, _time: Any = None) -> bool:
        log_samples(framework, rollout_id, "train", flat(samples), args)
        return False

    def log_evaluation(rollout_id: int, args: Any, data: Mapping[str, Any], _metrics: Any = None) -> bool:
        for one in data.values():
            log_samples(framework, rollout_id, "eval", flat(one.get("samples") or []), args)
        return False

    return log_rollouts, log_evaluation


def log_samples(framework: str, step: int, phase: str, samples: Iterable[Any], args: Any) -> None:
    """Reports to the service which step, group and sample each rollout became, and which weights generated it."""
    recorder = recorder_of(None, framework)
    size = getattr(args, "n_samples_per_prompt", None)
    for sample in samples:
        rollout_id = (sample.metadata or {}).get(ROLLOUT)
        if rollout_id is None:
            continue
        group, index = sample.group_index, sample.index
        versions = [int(version) for version in sample.weight_versions or [] if str(version).isdigit()]
        recorder.update(
            rollout_id,
            current_step=step,
            phase=phase,
            group_id=None if group is None else str(group),
            # Samples of a group are numbered one after another through the whole training.
            sample_idx=None if group is None or index is None or not size else index % size,
            n_samples=size if group is not None else None,
            policy_step=min(versions) if versions else None,
        )


def flat(samples: Iterable[Any]) -> list[Any]:
    """Samples of nested lists: a rollout may have become several of them."""
    return [one for sample in samples for one in (flat(sample) if isinstance(sample, list) else [sample])]


def normalise_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """For `--custom-reward-post-process-path`: the trainer's own group normalisation, without the samples whose episode failed. They get the
    advantage 0, and the mean of their group as reward in the figures.

    Both trainers subtract the mean of the group for `grpo`, `gspo`, `cispo` and `reinforce_plus_plus_baseline`, and divide by the standard
    deviation (with n - 1) for the first three (slime/ray/rollout.py, miles/ray/rollout/train_data_conversion.py). Returns the raw rewards and
    the normalised ones.
    """
    raw = [0.0 if _failed(sample) else float(sample.get_reward_value(args)) for sample in samples]
    groups: dict[Any, dict[Any, int]] = defaultdict(dict)
    for position, sample in enumerate(samples):
        if not _failed(sample):
            # Samples of one rollout share its reward, which counts once.
            groups[sample.group_index].setdefault(_rollout_of(sample, position), position)
    means = {group: sum(raw[one] for one in members.values()) / len(members) for group, members in groups.items()}
    raw = [means.get(sample.group_index, 0.0) if _failed(sample) else raw[position] for position, sample in enumerate(samples)]
    centred = args.rewards_normalization and args.advantage_estimator in _CENTRED
    if not centred:
        return raw, [0.0 if _failed(sample) else raw[position] for position, sample in enumerate(samples)]
    scales = dict.fromkeys(groups, 1.0)
    if args.advantage_estimator in _SCALED and args.grpo_std_normalization:
        scales = {group: _deviation([raw[one] for one in members.values()]) + 1e-6 for group, members in groups.items()}
    return raw, [
        0.0 if _failed(sample) else (raw[position] - means[sample.group_index]) / scales[sample.group_index]
        for position, sample in enumerate(samples)
    ]


_SCALED = ("grpo", "gspo", "cispo")
_CENTRED = (*_SCALED, "reinforce_plus_plus_baseline")


def _failed(sample: Any) -> bool:
    return FAILURE in (sample.metadata or {})


def _rollout_of(sample: Any, position: int) -> Any:
    # miles 0.0.2 has no rollout_id.
    rollout = getattr(sample, "rollout_id", None)
    known = sample.index if rollout is None else rollout
    return ("row", position) if known is None else known


def _deviation(values: Sequence[float]) -> float:
    """Of a sample of the population. 1 for a single value, whose difference from the mean is 0."""
    if len(values) < 2:
        return 1.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
