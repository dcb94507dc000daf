"""OpenEnv's harness: sessions for TRL's `openenv_harness`, `openenv collect` and every other harness of OpenEnv 0.10.

    HarnessRolloutWorker(
        harness_session_factory=functools.partial(PalestraSessionFactory, "palestra/whodunit"),
        harness_adapter=MCPHarnessAdapter(),
        …
    )
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from palestra import background
from palestra.conversations import count_tasks, play_last, record_conversation
from palestra.episode import StopReason
from palestra.failures import Failure, PolicyFailure
from palestra.messages import Message
from palestra.places import session_of, task_of
from palestra.runs import client_of, recorder_of
from palestra.steps import Steps
from palestra.tasks import TaskRef
from palestra.versions import require

VERSION = require("openenv", ">=0.10,<0.11", extra="openenv")

from openenv.core.env_server.mcp_types import Tool  # noqa: E402
from openenv.core.harness import ResourceSession, ResourceSessionFactory, ToolResult, VerifyResult  # noqa: E402

# Groups whose samples are counted at the same time.
MAX_GROUPS = 10_000


class PalestraSessionFactory(ResourceSessionFactory):  # type: ignore[misc]
    """Opens sessions of an environment. Pickles, without a connection.

    Args:
        environment: `owner/name`.
        split: whose tasks are played.
        run: name of the run that episodes are recorded in, by default PALESTRA_RUN, then `openenv`.
        samples: size of a group, recorded with each rollout.
        unrewarded: reward of an episode that ended without any reward; None leaves it unscored.
        options: of `palestra.play` for each episode, such as `call_timeout_s`.
        sampling: ignored; harnesses that own the model's loop pass it.
    """

    def __init__(
        self,
        environment: str,
        *,
        split: str = "train",
        run: str | None = None,
        samples: int | None = None,
        unrewarded: float | None = 0.0,
        sampling: Any = None,
        **options: Any,
    ) -> None:
        self.environment, self.split, self.run, self.samples = environment, split, run, samples
        self.unrewarded, self.options = unrewarded, options
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[int, int] = OrderedDict()
        self._created = 0
        self._total: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> PalestraSession:
        """Opens a session of `task`: a TaskRef, a row of `palestra.rows`, or messages or text with such a row as JSON. Any other task, such
        as a prompt of TRL's data set, means the task number `seed` of the split, modulo their number; without a seed the next one.

        Args:
            seed: id of the group: all its samples play the same task.
            episode_id: stored with the rollout.

        Raises `Failure`, which TRL takes as unscorable.
        """
        with self._lock:
            number = self._created if seed is None else seed
            self._created += 1
            sample = None if seed is None else self._seen.pop(seed, 0)
            if seed is not None and sample is not None:
                self._seen[seed] = sample + 1
                if len(self._seen) > MAX_GROUPS:
                    self._seen.popitem(last=False)
        place = {"group": seed, "sample": sample, "samples": self.samples, "metadata": {"episode_id": episode_id} if episode_id else None}
        session = PalestraSession(self, self._task(task, number), place)
        session.open()
        return session

    def _task(self, task: Any, number: int) -> TaskRef:
        if isinstance(task, TaskRef):
            return task
        if isinstance(task, Sequence) and not isinstance(task, str) and task and isinstance(task[-1], Mapping):
            task = task[-1].get("content")
        try:
            return task_of({"task": task})
        except ValueError:
            owner, _, env = self.environment.partition("/")
            return TaskRef(owner, env, self.split, number % self._count(), "")

    def _count(self) -> int:
        if self._total is None:
            self._total = background.worker.run(count_tasks(client_of(), self.environment, self.split))
        return self._total


class PalestraSession(ResourceSession):  # type: ignore[misc]
    """One episode. Any thread may close it."""

    def __init__(self, factory: PalestraSessionFactory, task: TaskRef, place: dict[str, Any]) -> None:
        self.task = task
        self._factory = factory
        self._place = place
        self._steps = Steps(session_of(client_of(), task), **factory.options)
        self._messages: list[Message] = []
        self._tools: list[Tool] = []
        self._lock = threading.Lock()
        self._recorded = False

    def open(self) -> None:
        try:
            opened = self._steps.open_sync()
        except PolicyFailure:  # A mistake of the program, such as an unknown split.
            self._recorded = True
            raise
        except Failure:
            self._end("infra_error", [])
            raise
        self._messages = opened.messages
        functions = [tool["function"] for tool in opened.tools]
        self._tools = [Tool(name=one["name"], description=one["description"], input_schema=one["parameters"]) for one in functions]

    def initial_messages(self) -> list[Message]:
        return [dict(message) for message in self._messages]

    def list_tools(self) -> list[Tool]:
        return list(self._tools)

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Runs a tool. A mistake of the model is a result with `error`; any other failure is raised, and the episode is over."""
        call = self._steps.call_sync(name, arguments)
        if call.output is not None:
            # Not `reward`: OpenEnv takes the last one for the reward of the whole episode.
            step = {} if call.output.reward is None else {"step_reward": call.output.reward}
            return ToolResult(call.output.text, call.output.finished, {**(call.output.metadata or {}), **step})
        failure = self._steps.episode.failure or call.failure
        if failure is not None and not isinstance(failure, PolicyFailure) and failure.code != "episode_finished":
            raise failure
        detail = "" if failure is None else failure.detail
        return ToolResult(f"Error: {detail}", error=detail)

    def verify(self, transcript: list[Message], final_state: Any | None = None) -> VerifyResult:
        """Ends and records the episode. `env_reward`: the sum of its rewards. Raises the failure that ended it, which is no reward of 0."""
        completion = transcript[len(self._messages) :]
        self._end(play_last(self._steps, completion), completion)
        episode = self._steps.episode
        episode.raise_for_failure()
        metrics = {"turns": len(episode.turns), "calls": len(episode.calls), "stop": episode.stop}
        return VerifyResult(self._reward(), episode.finished, metrics)

    def close(self) -> None:
        """Ends the session. Idempotent."""
        self._end("aborted", [])

    def _reward(self) -> float | None:
        episode = self._steps.episode
        if episode.failure is not None:
            return None
        return self._factory.unrewarded if episode.total is None else episode.total

    def _end(self, stop: StopReason, completion: Sequence[Message]) -> None:
        with self._lock:
            recorded, self._recorded = self._recorded, True
        episode = self._steps.close_sync(stop)
        if recorded:
            return
        rollout = recorder_of(self._factory.run, "openenv").rollout(self.task, **self._place)
        total = self._reward() if stop != "aborted" or episode.finished else None
        record_conversation(rollout, self._messages, completion, episode, stop=stop, total=total)
