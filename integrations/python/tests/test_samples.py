"""What slime and miles share. The expected numbers are those of their own normalisation for groups without a failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from palestra.samples import FAILURE, flat, normalise_rewards


def sample(group: int, reward: float, failed: bool = False, rollout: int | None = None) -> Any:
    metadata = {FAILURE: {"code": "unreachable"}} if failed else {}
    fields = {"group_index": group, "index": None, "rollout_id": rollout, "reward": reward, "metadata": metadata}
    return SimpleNamespace(get_reward_value=lambda _args: reward, **fields)


def settings(estimator: str = "grpo", deviation: bool = False, normalised: bool = True) -> Any:
    return SimpleNamespace(advantage_estimator=estimator, grpo_std_normalization=deviation, rewards_normalization=normalised)


WHOLE = [sample(0, 1.0), sample(0, 0.0), sample(1, 2.0), sample(1, 5.0)]
BROKEN = [sample(0, 1.0), sample(0, 0.5), sample(0, 0.0, failed=True), sample(1, 0.0, failed=True)]


def test_samples_of_miles_0_0_2_have_no_rollout_id() -> None:
    samples = [SimpleNamespace(**{name: value for name, value in vars(one).items() if name != "rollout_id"}) for one in WHOLE]
    assert normalise_rewards(settings(), samples) == normalise_rewards(settings(), WHOLE)


@pytest.mark.parametrize(
    ("args", "samples", "raw", "normalised"),
    [
        (settings(), WHOLE, [1.0, 0.0, 2.0, 5.0], [0.5, -0.5, -1.5, 1.5]),
        (settings(deviation=True), WHOLE, [1.0, 0.0, 2.0, 5.0], [0.70711, -0.70711, -0.70711, 0.70711]),
        (settings("reinforce_plus_plus_baseline", deviation=True), WHOLE, [1.0, 0.0, 2.0, 5.0], [0.5, -0.5, -1.5, 1.5]),
        (settings("ppo"), WHOLE, [1.0, 0.0, 2.0, 5.0], [1.0, 0.0, 2.0, 5.0]),
        (settings(normalised=False), WHOLE, [1.0, 0.0, 2.0, 5.0], [1.0, 0.0, 2.0, 5.0]),
        # A failed sample gets the mean of its group as reward, and no advantage; a group of failures has no mean.
        (settings(), BROKEN, [1.0, 0.5, 0.75, 0.0], [0.25, -0.25, 0.0, 0.0]),
        (settings("ppo"), BROKEN, [1.0, 0.5, 0.75, 0.0], [1.0, 0.5, 0.0, 0.0]),
        # Two samples of one rollout count once.
        (settings(), [sample(0, 1.0, rollout=1), sample(0, 1.0, rollout=1), sample(0, 0.0, rollout=2)], [1.0, 1.0, 0.0], [0.5, 0.5, -0.5]),
        (settings(deviation=True), [sample(0, 1.0), sample(0, 0.0, failed=True)], [1.0, 1.0], [0.0, 0.0]),
    ],
)
def test_failed_samples_do_not_count_in_the_mean_of_their_group(args: Any, samples: list[Any], raw: list[float], normalised: list[float]) -> None:
    told = normalise_rewards(args, samples)
    assert told == (pytest.approx(raw), pytest.approx(normalised, abs=1e-5))


def test_nested_samples_are_one_list() -> None:
    assert flat([1, [2, [3]], 4]) == [1, 2, 3, 4]
