"""Hosted environments as tasks of Inspect (docs/trainers/inspect.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from palestra.versions import require

require("inspect-ai", ">=0.3.285,<0.4", extra="inspect")

from inspect_ai import Task  # noqa: E402
from inspect_ai.dataset import Dataset, MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import ModelOutput, get_model, messages_from_openai  # noqa: E402
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr  # noqa: E402
from inspect_ai.solver import Generate, Solver, TaskState, solver  # noqa: E402
from inspect_ai.tool import ToolInfo  # noqa: E402
from inspect_ai.util import LimitExceededError  # noqa: E402

from palestra import background  # noqa: E402
from palestra.client import environment_path  # noqa: E402
from palestra.episode import Episode, Event, StopEpisode  # noqa: E402
from palestra.forms import Parse  # noqa: E402
from palestra.messages import Message, Reply, tool_call  # noqa: E402
from palestra.places import session_of, task_of  # noqa: E402
from palestra.play import play  # noqa: E402
from palestra.runs import client_of, recorder_of  # noqa: E402
from palestra.tasks import TaskRef, iter_tasks  # noqa: E402

# Key of `TaskState.store`, by which the solver passes the episode to the scorer.
_EPISODE = "palestra"
_FINISH = {"max_tokens": "length", "model_length": "length"}


def palestra_task(
    environment: str,
    split: str = "test",
    *,
    limit: int | None = None,
    variant: str | None = None,
    max_turns: int | None = None,
    parse: Parse = "openai",
    run: str | None = None,
    **task: Any,
) -> Task:
    """A task of Inspect that plays `environment` (`owner/name`) with the model of the evaluation.

    Args:
        limit: of tasks. They are read page by page, so that `--limit` reads no more either.
        max_turns, parse: those of `palestra.play`.
        run: that records the episodes as an evaluation. Defaults to PALESTRA_RUN, then to `inspect`.
        task: further arguments of `inspect_ai.Task`, such as `epochs` and `fail_on_error`.
    """
    dataset = palestra_dataset(environment, split, limit=limit, variant=variant)
    solve = palestra_solver(max_turns=max_turns, parse=parse, run=run)
    return Task(**{"dataset": dataset, "solver": solve, "scorer": palestra_scorer(), "name": environment.replace("/", "-"), **task})


def palestra_dataset(environment: str, split: str = "test", *, limit: int | None = None, variant: str | None = None) -> Dataset:
    """The tasks of a split. A sample has the place of its task; its messages begin when the solver opens its session."""
    return _Tasks(environment, split, variant, limit)


@solver
def palestra_solver(*, max_turns: int | None = None, parse: Parse = "openai", run: str | None = None) -> Solver:
    """Plays the episode of a sample, whose metadata has the facts that `palestra.rows` writes.

    A failure of the environment or the infrastructure is raised, so that the sample has an error and no score; see `fail_on_error` and
    `retry_on_error` of Inspect.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, task = get_model(), task_of(state.metadata or {})
        recorder = recorder_of(run, "inspect", model_name=str(model))
        record = recorder.rollout(task, group=task.key or f"{task.environment}/{task.split}/{task.index}", sample=state.epoch - 1, phase="eval")
        limits: list[LimitExceededError] = []

        async def chat(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Reply:
            try:
                output = await model.generate(await messages_from_openai(list(messages)), tools=[_tool(tool) for tool in tools])
            except LimitExceededError as error:
                limits.append(error)
                raise StopEpisode("max_turns" if error.type in ("message", "turn") else "max_tokens") from error
            state.output = output
            return _reply(output)

        episodes: list[Episode] = []
        remember: Callable[[Event], None] = lambda event: episodes.append(event.value) if event.kind == "start" else None
        session = session_of(client_of(), task)
        try:
            episode = await play(session, chat, max_turns=max_turns, parse=parse, record=record, on_event=remember)
        except asyncio.CancelledError:
            # If a time limit of Inspect has cancelled the solver, Inspect still scores the sample.
            state.store.set(_EPISODE, _told(episodes[0] if episodes else Episode(stop="cancelled"), record.id))
            raise
        finally:
            # Also of an episode that failed or was cancelled.
            if episodes:
                messages = await messages_from_openai(episodes[0].messages)
                try:
                    state.messages = messages
                except LimitExceededError as error:
                    # Inspect accepts no more messages than its limit. The results of the last reply can exceed it.
                    state.messages = messages[: int(error.limit)]
                    limits.append(error)
        state.store.set(_EPISODE, _told(episode, record.id))
        episode.raise_for_failure()
        if limits:
            raise limits[0]
        state.completed = True
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def palestra_scorer() -> Scorer:
    """The sum of the rewards of all steps; 0 for an episode without any. A cancelled episode is unscored."""

    async def score(state: TaskState, target: Target) -> Score:
        played = state.store.get(_EPISODE)
        if played is None or played["failure"] is not None:
            raise RuntimeError("The sample has no episode to score: palestra_solver did not play it to its end.")
        if played["stop"] == "cancelled":
            return Score.unscored(answer=state.output.completion, explanation=played["stop"], metadata=played)
        return Score(value=played["total"] or 0.0, answer=state.output.completion, explanation=played["stop"], metadata=played)

    return score


def _told(episode: Episode, rollout: str) -> dict[str, Any]:
    return {
        "total": episode.total,
        "rewards": episode.rewards,
        "turns": len(episode.turns),
        "stop": episode.stop,
        "session": episode.session_id,
        "rollout": rollout,
        "failure": None if episode.failure is None else episode.failure.to_dict(),
    }


def _tool(tool: dict[str, Any]) -> ToolInfo:
    return ToolInfo.model_validate(tool["function"])


def _reply(output: ModelOutput) -> Reply:
    message: Message = {"role": "assistant", "content": output.completion or None}
    reasoning = "".join(part.reasoning for part in _parts(output) if part.type == "reasoning")
    if reasoning:
        message["reasoning_content"] = reasoning
    calls = [
        # What is no JSON is shown to the policy as its mistake.
        tool_call(call.id, call.function, json.dumps(call.arguments) if call.parse_error is None else call.parse_error)
        for call in output.message.tool_calls or []
    ]
    if calls:
        message["tool_calls"] = calls
    usage = output.usage
    return Reply(
        message,
        finish_reason=_FINISH.get(output.stop_reason, output.stop_reason),
        prompt_tokens=None if usage is None else usage.input_tokens,
        completion_tokens=None if usage is None else usage.output_tokens,
    )


def _parts(output: ModelOutput) -> list[Any]:
    content = output.message.content
    return [] if isinstance(content, str) else list(content)


def _sample(task: TaskRef) -> Sample:
    facts = {
        "env_name": task.environment,
        "env_version": task.version,
        "split": task.split,
        "task_index": task.index,
        "task_key": task.key,
        "variant": task.variant,
    }
    place = f"{task.environment}/{task.split}/{task.index}"
    return Sample(input=place, id=place, metadata={name: value for name, value in facts.items() if value is not None})


class _Tasks(MemoryDataset):
    """Reads its samples at their first use, and for a slice only those of the slice."""

    def __init__(self, environment: str, split: str, variant: str | None, limit: int | None) -> None:
        self._place = (environment, split, variant)
        self._limit = limit
        self._loaded: list[Sample] | None = None
        super().__init__([], name=environment, location=f"{environment}/{split}")
        self._loaded = None

    @property
    def samples(self) -> list[Sample]:
        if self._loaded is None:
            self._loaded = self._read(0, self._limit)
        return self._loaded

    @samples.setter
    def samples(self, samples: list[Sample]) -> None:
        self._loaded = samples

    def _read(self, start: int, stop: int | None) -> list[Sample]:
        environment, split, variant = self._place
        count = None if stop is None else max(stop - start, 0)
        tasks = iter_tasks(environment, split, start=start, stop=stop, variant=variant, client=client_of())
        return [_sample(task) for task in islice(tasks, count)]

    def __getitem__(self, index: Any) -> Any:
        if self._loaded is not None or not isinstance(index, slice) or index.step not in (None, 1):
            return super().__getitem__(index)
        start, stop, _ = index.indices(len(self))
        return MemoryDataset(self._read(start, stop), name=self.name, location=self.location)

    def __len__(self) -> int:
        if self._loaded is not None:
            return len(self._loaded)
        environment, split, variant = self._place
        query = {"split": split, "variant": variant, "start": 0, "limit": 1}
        total = background.worker.run(client_of().get(f"{environment_path(environment)}/tasks", **query))["total"]
        if total is None:
            return len(self.samples)
        return int(total) if self._limit is None else min(int(total), self._limit)
