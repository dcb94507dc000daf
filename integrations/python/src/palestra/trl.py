"""TRL: a class for `environment_factory` of GRPOTrainer and AsyncGRPOTrainer, and a reward function that records what was played.

    args = GRPOConfig(num_generations=8, …)
    GRPOTrainer(
        args=args,
        train_dataset=dataset,  # palestra.rows("palestra/whodunit", "trl")
        environment_factory=environment_factory("palestra/whodunit"),
        reward_funcs=record_rollouts(args),
        …
    )

The reward is that of the environment: TRL asks its `get_reward`; before TRL 1.8 `record_rollouts` gives it. TRL creates environments once
and resets them for every episode; a session ends with its reward, at the next reset, when its environment is dropped, and when the process ends.
"""

from __future__ import annotations

import atexit
import base64
import concurrent.futures
import io
import itertools
import logging
import os
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

from palestra import background
from palestra.conversations import play_last, record_conversation, tools_of
from palestra.episode import StopReason
from palestra.failures import Failure, PolicyFailure
from palestra.messages import Message, Reply, ToolSpec, openai_content
from palestra.places import session_of, task_of
from palestra.runs import client_of, recorder_of
from palestra.steps import CLOSE_TIMEOUT_S, Steps
from palestra.tasks import TaskRef
from palestra.tool_methods import tool_method
from palestra.versions import require

# Oumi has TRL 1.6, Unsloth 1.15.
VERSION = require("trl", ">=1.6,<2", extra="trl")
# Before, `get_reward` would be a tool.
ASKS_ENVIRONMENTS = tuple(map(int, VERSION.split(".")[:2])) >= (1, 8)
RESERVED = frozenset({"reset", "get_reward"})

logger = logging.getLogger("palestra")


def environment_factory(
    environment: str,
    *,
    split: str = "train",
    run: str | None = None,
    samples: int | None = None,
    unrewarded: float | None = 0.0,
    probe: Sequence[int] | None = None,
    **options: Any,
) -> EnvironmentFactory:
    """A factory for `environment_factory` of both trainers, also as a value of its dict. Opens sessions to read the tools.

    Args:
        environment: `owner/name`.
        split: that is trained on, and that of rows without `split`. Rollouts of other splits are recorded with the phase `eval`.
        run: name of the run that episodes are recorded in, by default PALESTRA_RUN, then `trl`.
        samples: size of a group, `num_generations`, for AsyncGRPOTrainer: it resets environments group by group, which are recorded so.
            With GRPOTrainer `record_rollouts` has the size.
        unrewarded: reward of an episode that ended without any reward; None leaves it out of the loss. An episode that failed has None.
        probe: indexes of the tasks whose tools are offered, by default the first, the middle and the last one. TRL shows the model the same
            tools in all tasks.
        options: of `palestra.play` for each episode, such as `call_timeout_s`.

    Raises `Failure` if the tools cannot be read, ValueError for a tool named `reset` or `get_reward`.
    """
    # In the text form `action` the model calls by text.
    calls = options.get("parse", "openai") == "openai"
    tools = tools_of(client_of(), environment, split, probe) if calls else []
    return EnvironmentFactory(environment, tools, split, run, samples, unrewarded, options)


class EnvironmentFactory:
    """Makes environments of one class, whose methods are the tools. Pickles, for AsyncGRPOTrainer, without a connection."""

    def __init__(
        self,
        environment: str,
        tools: Sequence[ToolSpec],
        split: str,
        run: str | None,
        samples: int | None,
        unrewarded: float | None,
        options: Mapping[str, Any],
    ) -> None:
        self.environment, self.tools, self.split, self.run = environment, list(tools), split, run
        self.samples, self.unrewarded, self.options = samples, unrewarded, dict(options)
        self._resets = itertools.count()
        methods = {tool.name: tool_method(tool, Environment._call) for tool in self.tools if not tool.name.startswith("_")}
        taken = sorted(RESERVED & methods.keys())
        if taken:
            raise ValueError(f"TRL cannot offer the tool {taken[0]!r} of {environment}: its environments have a method of this name.")
        members = {name: method for name, method in methods.items() if method is not None}
        asked = {"get_reward": Environment._get_reward} if ASKS_ENVIRONMENTS else {}
        # TRL names the column of the reward after the class.
        self._class: type[Environment] = type(environment.partition("/")[2], (Environment,), {"_factory": self, **members, **asked})

    def __reduce__(self) -> tuple[Any, ...]:
        return EnvironmentFactory, (self.environment, self.tools, self.split, self.run, self.samples, self.unrewarded, self.options)

    def __call__(self) -> Environment:
        return self._class()

    def place(self, task: TaskRef) -> dict[str, Any]:
        """Place of the next reset, as far as an environment can know it."""
        phase = "train" if task.split == self.split else "eval"
        if self.samples is None:
            return {"phase": phase}
        group, sample = divmod(next(self._resets), self.samples)
        return {"phase": phase, "group": group, "sample": sample, "samples": self.samples}

    def task_of(self, row: Mapping[str, Any]) -> TaskRef:
        """The task of a row. One that has only `task_index` is of this environment's split."""
        task = task_of(row if "env_name" in row else {"env_name": self.environment, "split": self.split, **row})
        if task.environment != self.environment:
            raise ValueError(f"A row of {task.environment} cannot be played in {self.environment}. Pass a dict of factories to TRL.")
        return task


class _Episode:
    """From a reset until it is recorded."""

    def __init__(self, factory: EnvironmentFactory, task: TaskRef, given: list[Message]) -> None:
        self.factory, self.task, self.place = factory, task, factory.place(task)
        self.steps = Steps(session_of(client_of(), task), **factory.options)
        self.prompt = given
        self.opening_failed: Failure | None = None
        self.recorded = False

    @property
    def reward(self) -> float | None:
        if self.opening_failed is not None or self.steps.episode.failure is not None:
            return None
        total = self.steps.episode.total
        return self.factory.unrewarded if total is None else total

    def end(self, stop: StopReason, completion: Sequence[Message] = (), *, run_info: Mapping[str, Any] | None = None, **place: Any) -> None:
        """Ends the session, and records the episode once. `place`: step, group, sample and so on of the rollout."""
        self.steps.close_sync(stop)
        self.record(stop, completion, run_info or {}, place)

    def record(self, stop: StopReason, completion: Sequence[Message], run_info: Mapping[str, Any], place: Mapping[str, Any]) -> None:
        if self.recorded:
            return
        self.recorded = True
        episode = self.steps.episode
        total = self.reward if stop != "aborted" or episode.finished else None
        rollout = recorder_of(self.factory.run, "trl", **run_info).rollout(self.task, **{**self.place, **place})
        record_conversation(rollout, self.prompt, completion, episode, stop=stop, total=total, failure=self.opening_failed)

    async def leave(self) -> None:
        """Ends an episode whose environment is gone."""
        await self.steps.close("aborted")
        self.record("aborted", (), {}, {})


class Environment:
    """One slot of TRL's pool. Every public function of a subclass but `reset` and `get_reward` is a tool."""

    _factory: ClassVar[EnvironmentFactory]

    def __init__(self) -> None:
        # In a list, because the finalizer must not hold this object.
        self._played: list[_Episode] = []
        weakref.finalize(self, _leave, self._played).atexit = False
        _slots[id(self._played)] = self._played

    @property
    def _episode(self) -> _Episode | None:
        return self._played[0] if self._played else None

    def reset(self, **row: Any) -> str | list[dict[str, Any]] | None:
        """Opens a session of the row's task. Returns its prompt, or None if the row's own prompt contains it."""
        if self._episode is not None:
            self._episode.end("aborted")
            self._played.clear()
        given = [dict(message) for message in row.get("prompt") or []]
        episode = _Episode(self._factory, self._factory.task_of(row), given)
        try:
            opened = episode.steps.open_sync()
        except PolicyFailure:
            # An unknown split or task: a mistake of the program, which every step would repeat.
            raise
        except Failure as failure:
            logger.warning("palestra: %s %s/%d is left out: %s", episode.task.environment, episode.task.split, episode.task.index, failure)
            episode.opening_failed = failure
            self._played.append(episode)
            return None
        episode.prompt = opened.messages
        self._played.append(episode)
        return _observation(opened.messages, given)

    def _get_reward(self) -> float | None:
        """The reward of the episode, which ends. None, which TRL leaves out of the loss, for one that failed."""
        if self._episode is None:
            return None
        self._episode.end("unknown")
        return self._episode.reward

    def _call(self, name: str, arguments: dict[str, Any]) -> str | list[dict[str, Any]]:
        """Runs a tool. TRL shows the model what this raises."""
        if self._episode is None or self._episode.opening_failed is not None:
            raise RuntimeError("The environment has no open session.")
        call = self._episode.steps.call_sync(name, arguments)
        if call.output is None:
            raise RuntimeError("" if call.failure is None else call.failure.detail)
        return _content(call.output.blocks)


class RecordRollouts:
    """See `record_rollouts`. Pickles."""

    __name__ = "palestra"

    def __init__(self, samples: int, eval_samples: int, max_tokens: int | None, run_info: Mapping[str, Any]) -> None:
        self._samples, self._eval_samples, self._max_tokens = samples, eval_samples, max_tokens
        self._run_info = dict(run_info)
        self._batches = 0

    def __call__(
        self,
        completions: Sequence[Sequence[Message]],
        completion_ids: Sequence[Sequence[int]] | None = None,
        environments: Sequence[Any] | None = None,
        trainer_state: Any = None,
        **_columns: Any,
    ) -> list[float | None]:
        self._batches += 1
        step = getattr(trainer_state, "global_step", None)
        # The samples of a group are neighbours in the batch of all processes.
        first = int(os.environ.get("RANK", "0")) * len(completions)
        for position, environment in enumerate(environments or []):
            episode = environment._episode if isinstance(environment, Environment) else None
            if episode is None:
                continue
            samples = self._samples if episode.place["phase"] == "train" else self._eval_samples
            group, sample = divmod(first + position, samples)
            completion, ids = completions[position], completion_ids[position] if completion_ids else ()
            stop: StopReason = "unknown"
            if episode.opening_failed is None:
                truncated = self._max_tokens is not None and len(ids) >= self._max_tokens
                stop = play_last(episode.steps, completion, truncated=truncated)
            place = {"step": step, "policy_version": step, "group": f"{step}-{self._batches}-{group}", "sample": sample, "samples": samples}
            episode.end(stop, completion, run_info=self._run_info, **place)
        return [None if ASKS_ENVIRONMENTS else _reward_of(one) for one in environments or completions]


def _reward_of(environment: Any) -> float | None:
    episode = environment._episode if isinstance(environment, Environment) else None
    return None if episode is None else episode.reward


def record_rollouts(args: Any, **run_info: Any) -> RecordRollouts:
    """A reward function for GRPOTrainer that gives no reward. It passes the last message of the model to a terminal tool,
    and records whole conversations with step, group, sample and phase. Its column in TRL's log is empty.

    AsyncGRPOTrainer gives reward functions no environments: there the environments themselves record prompts, calls and rewards.

    Args:
        args: the GRPOConfig of the trainer, or `training.grpo` of Oumi.
        run_info: further settings of the run, such as `model_name`.
    """
    samples = args.num_generations or 8
    told = {"temperature": args.temperature, "group_size": samples, "algorithm": "GRPO", "lr": getattr(args, "learning_rate", None)}
    info = {name: value for name, value in {**told, **run_info}.items() if value is not None}
    return RecordRollouts(samples, getattr(args, "num_generations_eval", None) or samples, args.max_completion_length, info)


def _observation(messages: Sequence[Message], given: Sequence[Message]) -> str | list[dict[str, Any]] | None:
    """What TRL appends to the last message of the row's prompt: what that prompt does not contain."""
    parts = [part for message in messages for part in _parts(message.get("content"))]
    images = [part for part in parts if part["type"] == "image"]
    text = _joined(messages)
    missing = text if text and text not in _joined(given) else None
    if images:
        return [*images, *([] if missing is None else [{"type": "text", "text": missing}])]
    return missing


def _joined(messages: Sequence[Message]) -> str:
    texts = (Reply(dict(message)).text for message in messages)
    return "\n\n".join(text for text in texts if text)


def _parts(content: Any) -> list[dict[str, Any]]:
    """Content parts of OpenAI's format as those of transformers."""
    if not isinstance(content, list):
        return [{"type": "text", "text": content}] if content else []
    images = [part["image_url"]["url"].partition(",")[2] for part in content if part.get("type") == "image_url"]
    return [*map(_image, images), *(part for part in content if part.get("type") == "text")]


def _content(blocks: Sequence[Mapping[str, Any]]) -> str | list[dict[str, Any]]:
    """The result of a call: text, or with images a list of content parts."""
    content = openai_content(blocks)
    return content if isinstance(content, str) else _parts(content)


def _image(data: str) -> dict[str, Any]:
    from PIL import Image

    return {"type": "image", "image": Image.open(io.BytesIO(base64.b64decode(data)))}


_slots: dict[int, list[_Episode]] = {}
_leaving: set[Future[None]] = set()


def _leave(played: list[_Episode]) -> None:
    """Ends the episode of a dropped environment, from any thread, also from the garbage collector, without waiting."""
    _slots.pop(id(played), None)
    for episode in played:
        if not episode.recorded:
            leaving = background.worker.submit(episode.leave())
            _leaving.add(leaving)
            leaving.add_done_callback(_leaving.discard)


def _leave_all() -> None:
    """Ends and records the episodes that the trainer left, before the recorders close."""
    for played in list(_slots.values()):
        _leave(played)
    concurrent.futures.wait(list(_leaving), CLOSE_TIMEOUT_S)


atexit.register(_leave_all)
