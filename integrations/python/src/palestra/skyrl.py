"""Hosted environments in SkyRL: an environment class for SkyRL-Gym, and a generator that passes it its place in the training.

    from skyrl_gym.envs import register
    register(id="openreward", entry_point="palestra.skyrl:PalestraEnv")

`openreward` is the `env_class` of rows in the formats `skyrl` and `skyrl-script`. `PalestraGenerator` is imported from here, too. It needs
the package `skyrl` with torch; the environment needs `skyrl-gym` only. docs/trainers/skyrl.md is the guide.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from palestra.failures import Failure, failure_of
from palestra.places import session_of, task_of
from palestra.runs import client_of, recorder_of
from palestra.steps import Step, Steps
from palestra.versions import require

require("skyrl-gym", ">=0.4.0,<0.5", extra="skyrl")

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput  # noqa: E402

if TYPE_CHECKING:
    from palestra.skyrl_generator import PalestraGenerator as PalestraGenerator

logger = logging.getLogger(__name__)

PLACE = "palestra_place"
"""The key of `extras` below which `PalestraGenerator` puts a `Place`."""

_DEFAULT_TURNS = 10
_PARSES: dict[str, Literal["tool_call", "action"]] = {"tool_call": "tool_call", "action": "action"}


@dataclass
class Place:
    """Where an episode is in the training.

    Attributes:
        step: SkyRL's `global_step`, or None if it is unknown.
        group: of the episodes that are compared with each other.
        sample: number in the group, from 0; samples: size of the group.
        policy_version: how many times the weights were synchronised before the episode, or None.
        env: the environment of the episode, once it exists.
        ended: no further session may be opened.
    """

    step: int | None = None
    phase: Literal["train", "eval"] | None = None
    group: str | None = None
    sample: int | None = None
    samples: int | None = None
    policy_version: int | None = None
    env: PalestraEnv | None = None
    ended: bool = False

    @property
    def failure(self) -> Failure | None:
        return None if self.env is None else self.env.failure

    def end(self) -> None:
        """Ends the episode, also one that has not begun. Blocks."""
        self.ended = True
        if self.env is not None:
            self.env.abort()


class PalestraEnv(BaseTextEnv):  # type: ignore[misc, unused-ignore]
    """One episode of a hosted environment.

    `extras` are the other columns of the data set: those of `palestra.rows`, optionally `parse` (`tool_call` by default, or `action`), and
    `max_turns`, which SkyRL sets. The prompt is that of the data set; an empty one is replaced by the environment's.

    `step` never raises, because SkyRL would lose the whole training step. A failure of environment or infrastructure ends the episode with
    reward 0.0 and metadata with `mask`, `failure_class` and `code`; `PalestraGenerator` leaves such an episode out of the loss. The session
    ends with the episode, by `close`, when this object is dropped, and when the process ends.

    The constructor raises ValueError for a row without a task, and for an unknown `parse`.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        row = dict(extras or {})
        self._place: Place = row.pop(PLACE, None) or Place()
        self._task = task_of(row)
        self._parse = _parse_of(row)
        self.max_turns = int(row.get("max_turns") or _DEFAULT_TURNS)
        self.failure: Failure | None = None
        self._steps: Steps | None = None
        self._aborted = self._place.ended
        self._rewards: list[float] = []
        if PLACE in (extras or {}):
            self._place.env = self

    def init(self, prompt: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Opens the session. If that fails, the first step reports the failure."""
        messages: list[dict[str, Any]] = json.loads(prompt) if isinstance(prompt, str) else list(prompt)
        place = self._place
        rollout = recorder_of(None, "skyrl").rollout(
            self._task,
            step=place.step,
            group=place.group,
            sample=place.sample,
            samples=place.samples,
            phase=place.phase,
            policy_version=place.policy_version,
        )
        session = session_of(client_of(), self._task)
        self._steps = Steps(session, record=rollout, parse=self._parse, max_turns=self.max_turns, messages=messages or None)
        if self._aborted:
            self.abort()
        try:
            opened = self._steps.open_sync()
        except Failure as failure:
            self._fail(failure)
            return messages, {}
        return messages or opened.messages, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        if self._steps is None or self.failure is not None:
            return self._failed_step()
        try:
            step = self._steps.reply_sync(action)
        except Exception as error:
            self._fail(failure_of(error))
            return self._failed_step()
        if step.failure is not None:
            self._fail(step.failure)
            return self._failed_step()
        if self._parse == "action" or step.calls:
            self._rewards.append(step.reward or 0.0)
        return _output(step.observations, step.reward or 0.0, step.done, _facts(step))

    def get_metrics(self) -> dict[str, Any]:
        """`turns`, `total_reward` and `num_rewards`; empty for a failed episode, so that no mean counts it."""
        if self.failure is not None:
            return {}
        return {"turns": self.turns, "total_reward": sum(self._rewards), "num_rewards": len(self._rewards)}

    def close(self) -> None:
        """Ends the session. Idempotent; never raises. SkyRL calls it before the end of an episode only when its context is full."""
        self._end("context_length")

    def abort(self) -> None:
        """Ends an episode that the trainer gave up. Idempotent; never raises."""
        self._aborted = True
        self._end("aborted")

    def _end(self, stop: Literal["context_length", "aborted"]) -> None:
        if self._steps is None:
            return
        try:
            self._steps.close_sync(stop)
        except Exception as error:  # The server ends an idle session by itself.
            logger.warning("palestra: the session of %s was not closed: %s", self._task.environment, error)

    def _fail(self, failure: Failure) -> None:
        logger.warning("palestra: the episode of %s does not count: %s", self._task.environment, failure)
        self.failure = failure

    def _failed_step(self) -> BaseTextEnvStepOutput:
        told = {} if self.failure is None else self.failure.to_dict()
        return _output([], 0.0, True, {"mask": True, **told})


def _parse_of(row: Mapping[str, Any]) -> Literal["tool_call", "action"]:
    parse = _PARSES.get(row.get("parse") or "tool_call")
    if parse is None:
        raise ValueError(f"Unknown parse {row['parse']!r}. Available: {', '.join(_PARSES)}.")
    return parse


def _output(observations: list[dict[str, Any]], reward: float, done: bool, metadata: dict[str, Any]) -> BaseTextEnvStepOutput:
    return BaseTextEnvStepOutput(observations=observations, reward=reward, done=done, metadata=metadata)


def _facts(step: Step) -> dict[str, Any]:
    called = {"tool_name": step.calls[0].tool, "tool_args": step.calls[0].arguments} if step.calls else {}
    return {**called, **({"stop_reason": step.stop} if step.stop is not None else {})}


def __getattr__(name: str) -> Any:
    if name != "PalestraGenerator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from palestra.skyrl_generator import PalestraGenerator

    return PalestraGenerator
