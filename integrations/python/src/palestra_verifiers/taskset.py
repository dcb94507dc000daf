"""Tasks of a hosted environment, read page by page; each rollout plays one session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import verifiers.v1 as vf

from palestra import Client, Failure, PolicyFailure, TaskRef, iter_tasks
from palestra.failures import ADVICE, CLASSES, FailureClass
from palestra.runs import client_of
from palestra.sessions import AnySession
from palestra_verifiers.errors import error_of, failure_from
from palestra_verifiers.sessions import Opened, keep, session_of_trace
from palestra_verifiers.toolset import PalestraState, PalestraToolset


class PalestraTaskConfig(vf.TaskConfig):
    url: str | None = None
    """Address of the service. Defaults to PALESTRA_URL."""
    api_key_var: str = "PALESTRA_API_KEY"
    """Environment variable that has the API key, because verifiers writes configurations to disk."""
    run: str | None = None
    """Run that records the episodes. Defaults to PALESTRA_RUN, then to `verifiers`."""
    phase: Literal["train", "eval"] = "eval"
    """`train` for the sources of a trainer. In an evaluation all rollouts of a task are one group."""


class PalestraConfig(vf.TasksetConfig):
    environment: str = ""
    """`owner/name`"""
    split: str = "train"
    start: int = 0
    stop: int | None = None
    """Index of the first task that is not read. None reads the whole split, page by page."""
    variant: str | None = None
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()
    task: PalestraTaskConfig = PalestraTaskConfig()


class PalestraData(vf.TaskData):
    ref: dict[str, Any]
    """`TaskRef.to_dict`"""


class PalestraTask(vf.Task[PalestraData, PalestraState, PalestraTaskConfig]):
    @property
    def key(self) -> str:
        """The hash of the task's content, equal in all versions of the environment and in all lists and exports of Palestra."""
        return str(self.data.ref["key"])

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        client, ref, state = _client(self.config), TaskRef(**self.data.ref), trace.state
        session = client.session(ref.environment, split=ref.split, index=ref.index, variant=ref.variant)
        try:
            await session.open()
            keep(trace, Opened(client, session, ref, self.config.run, self.config.phase))
            opening = await AnySession(session).opening()
        except Failure as failure:
            raise error_of(failure, trace) from failure
        state.url, state.api_key = client.settings.url, client.settings.api_key
        state.environment, state.variant, state.session_id = ref.environment, ref.variant, session.sid
        state.tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in opening.tools
        ]
        state.terminal = opening.terminal
        # Only a session has the prompt. The harness reads it from the trace after this hook.
        data = trace.task.data.model_dump() | {"prompt": _prompt(opening.messages)}
        trace.task.data = PalestraData.model_validate(data)

    @vf.stop
    async def finished(self, trace: vf.Trace) -> bool:
        return bool(trace.state.finished)

    @vf.stop
    async def failed(self, trace: vf.Trace) -> bool:
        return trace.state.failure is not None

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        session, state = session_of_trace(trace), trace.state
        if session is None:
            return
        if state.terminal is not None and not state.finished and state.failure is None and trace.last_reply:
            name, argument = state.terminal
            try:
                output = await session.call(name, {} if argument is None else {argument: trace.last_reply})
                state.finished = output.finished
            except PolicyFailure:
                pass
            except Failure as failure:
                state.failure = failure.to_dict()
        await session.close()

    @vf.reward(weight=1.0)
    async def total_reward(self, trace: vf.Trace) -> float:
        """The total of the session's rewards in the ledger of the service; 0 without any reward. A failure that the policy did not cause
        is an error of the trace.
        """
        state = trace.state
        if state.failure is not None:
            raise error_of(failure_from(state.failure), trace)
        try:
            session = await _client(self.config).get(f"/v1/sessions/{state.session_id}")
        except Failure as failure:
            raise error_of(failure, trace) from failure
        told = session["failure"] or {"code": "session_lost", "detail": "A call of the session failed."}
        classes: tuple[FailureClass, ...] = ("infrastructure", "environment")
        for failure_class in classes:
            if session["failure_class"] == failure_class or session["calls"][failure_class] > 0:
                raise error_of(CLASSES[failure_class](told["code"], str(told["detail"]), ADVICE["session"]), trace)
        return float(session["total_reward"] or 0.0)


class PalestraTaskset(vf.Taskset[PalestraTask, PalestraConfig]):
    """The tasks of one split of one environment."""

    @classmethod
    def toolsets(cls, config: PalestraConfig) -> list[vf.Toolset[Any, Any]]:
        return [PalestraToolset(config.tools)]

    def load(self) -> Iterator[PalestraTask]:
        config = self.config
        if not config.environment:
            raise ValueError("Set the environment: --env.taskset.environment owner/name")
        place: dict[str, Any] = {"start": config.start, "stop": config.stop, "variant": config.variant}
        for ref in iter_tasks(config.environment, config.split, client=_client(config.task), **place):
            name = f"{ref.environment}/{ref.split}/{ref.index}"
            # `setup` replaces the prompt: reading it here would open a session for every task.
            yield PalestraTask(PalestraData(id=ref.key, name=name, prompt=name, ref=ref.to_dict()), config.task)


def _client(config: PalestraTaskConfig) -> Client:
    return client_of(config.url, os.environ.get(config.api_key_var))


def _prompt(messages: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Text where possible, because only some harnesses take messages."""
    first = messages[0] if len(messages) == 1 else {}
    return first["content"] if first.get("role") == "user" and isinstance(first["content"], str) else messages
