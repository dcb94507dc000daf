"""`play` for trainers that generate themselves: the trainer passes each reply and gets the observations that answer it.

There is one loop, in palestra.play. Here it runs in the package's own event loop, with a model that waits for the trainer.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import json
import multiprocessing
import multiprocessing.util
import os
import sys
import weakref
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from palestra import background
from palestra.episode import Call, Episode, Event, StopEpisode, StopReason
from palestra.failures import Failure, session_ended
from palestra.forms import Parse
from palestra.messages import Message, Reply, tool_call
from palestra.play import play
from palestra.record import Rollout

T = TypeVar("T")

# For the end of a session when the process ends.
CLOSE_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Opened:
    """What the model gets first: the conversation, and the tools in OpenAI's format (none in the text forms)."""

    messages: list[Message]
    tools: list[dict[str, Any]]


@dataclass(frozen=True)
class Step:
    """What came back for one reply.

    Attributes:
        observations: messages in OpenAI's format that answer it.
        reward: of this turn, as `Turn.reward` has it; None without any, and for an episode that failed.
        done: the episode is over, for the reason `stop`.
        failure: of the environment or the infrastructure. Leave such an episode out of the loss; its reward is not 0.
        calls: that were run for this reply.
    """

    observations: list[Message] = field(default_factory=list)
    reward: float | None = None
    done: bool = False
    stop: StopReason | None = None
    failure: Failure | None = None
    calls: list[Call] = field(default_factory=list)


class Steps:
    """One episode that a trainer drives. From any thread or event loop; one reply at a time.

    The session is closed and the rollout is ended when the episode is over, by `close`, when this object is dropped, and when the process
    ends; after `kill -9` the server ends the session by its lease.

    Args:
        session, record, parse, options: those of `palestra.play`, but without a limit of turns if `max_turns` is not given.
    """

    def __init__(
        self,
        session: Any,
        *,
        record: Rollout | None = None,
        parse: Parse = "openai",
        max_turns: int = sys.maxsize,
        **options: Any,
    ) -> None:
        self._talk = _Talk(session, {"record": record, "parse": parse, "max_turns": max_turns, **options})
        weakref.finalize(self, _Talk.abandon, self._talk).atexit = False

    @property
    def episode(self) -> Episode:
        """As far as it was played."""
        return self._talk.episode

    async def open(self) -> Opened:
        """Opens the session. Raises `Failure`, which also ends the episode."""
        return await _here(self._talk.open())

    async def reply(self, reply: Any) -> Step:
        """Plays what the model generated: text, an assistant message, a chat completion, or a `Reply`. Opens the session if needed. Raises
        no `Failure`: the step has it. After the end every reply is answered by a step that is done.
        """
        return await _here(self._talk.reply(reply))

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> Call:
        """Runs one tool, for trainers that call tools themselves. The call has `output` or `failure`; a `PolicyFailure` does not end the
        episode. Calls at the same time run one after another. Only with `parse="openai"`.
        """
        return await _here(self._talk.call(tool, dict(arguments or {})))

    async def close(self, stop: StopReason = "aborted") -> Episode:
        """Ends the episode for the reason `stop`, if it is not over yet, and returns it. Idempotent."""
        return await _here(self._talk.close(stop))

    async def fail(self, error: Exception) -> Episode:
        """Ends the episode because the model failed, if it is not over yet, and returns it. It is a failure of the infrastructure, unless the
        error says that the conversation no longer fits the model's context.
        """
        return await _here(self._talk.close("infra_error", error))

    def open_sync(self) -> Opened:
        """`open`, blocking."""
        return background.worker.run(self._talk.open())

    def reply_sync(self, reply: Any) -> Step:
        """`reply`, blocking."""
        return background.worker.run(self._talk.reply(reply))

    def call_sync(self, tool: str, arguments: dict[str, Any] | None = None) -> Call:
        """`call`, blocking."""
        return background.worker.run(self._talk.call(tool, dict(arguments or {})))

    def close_sync(self, stop: StopReason = "aborted") -> Episode:
        """`close`, blocking."""
        return background.worker.run(self._talk.close(stop))


async def _here(work: Coroutine[Any, Any, T]) -> T:
    """Awaits in the caller's loop what runs in the worker's."""
    return await asyncio.wrap_future(background.worker.submit(work))


class _Talk:
    """Connects the two sides of an episode: `play` with its model, and the trainer. Runs in the worker's loop; holds no reference to `Steps`."""

    def __init__(self, session: Any, options: dict[str, Any]) -> None:
        self.episode = Episode()
        self._session = session
        self._options = options
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._playing: asyncio.Task[Episode] | None = None
        self._waiting: asyncio.Future[Any] | None = None
        """Set while the model waits for the trainer."""
        self._turned = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._closed_as: StopReason | None = None

    async def _chat(self, _messages: Sequence[Message], _tools: Sequence[dict[str, Any]]) -> Any:
        if self._closed_as is not None:
            raise StopEpisode(self._closed_as)
        self._waiting = asyncio.get_running_loop().create_future()
        self._turned.set()
        return await self._waiting

    def _notice(self, event: Event) -> None:
        if event.kind == "start":
            self.episode = event.value

    async def _play(self) -> Episode:
        try:
            return await play(self._session, self._chat, on_event=self._notice, **self._options)
        finally:
            _open_talks.discard(self)
            self._turned.set()

    async def _next(self) -> None:
        """Waits until the model waits for a reply, or the episode is over."""
        await self._turned.wait()
        if self._playing is not None and self._waiting is None:
            await self._settle()

    async def _settle(self) -> None:
        """Waits for the end. A mistake of the caller, such as an unknown form, is raised here."""
        if self._playing is not None:
            await asyncio.wait({self._playing})
            if not self._playing.cancelled():
                self.episode = self._playing.result()

    async def open(self) -> Opened:
        async with self._one_at_a_time:
            await self._start()
        if self.episode.failure is not None:
            raise self.episode.failure
        return Opened(list(self.episode.messages[: self.episode.prompt_messages]), self.episode.tools)

    async def _start(self) -> None:
        if self._closed_as is not None:
            return
        if self._playing is None:
            self._loop = asyncio.get_running_loop()
            self._playing = asyncio.ensure_future(self._play())
            _open_talks.add(self)
            _close_with_process()
        await self._next()

    async def reply(self, reply: Any) -> Step:
        async with self._one_at_a_time:
            await self._start()
            return await self._reply(reply)

    async def _reply(self, reply: Any) -> Step:
        told = Reply.of(reply)
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return Step(done=True, stop=self._stop(), failure=self.episode.failure)
        played = len(self.episode.calls)
        self._turned.clear()
        waiting.set_result(told)
        await self._next()
        turn, done = self.episode.turns[-1], self._waiting is None
        failure = self.episode.failure
        calls = self.episode.calls[played:]
        reward = None if failure is not None else turn.reward
        return Step(list(turn.observations), reward, done, self._stop() if done else None, failure, calls)

    def _stop(self) -> StopReason:
        return self._closed_as or self.episode.stop

    async def call(self, tool: str, arguments: dict[str, Any]) -> Call:
        async with self._one_at_a_time:
            await self._start()
            requested = tool_call(f"call_{len(self.episode.calls) + 1}", tool, json.dumps(arguments))
            step = await self._reply({"role": "assistant", "content": None, "tool_calls": [requested]})
        if step.calls:
            return step.calls[-1]
        failure = step.failure or session_ended(f"{tool!r} was not run: the episode has ended ({step.stop}).", "episode_finished")
        return Call(requested["id"], tool, arguments, len(self.episode.turns), failure=failure)

    async def close(self, stop: StopReason, error: Exception | None = None) -> Episode:
        is_first, self._closed_as = self._closed_as is None, self._closed_as or stop
        if self._playing is None:
            return self.episode
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.set_exception(error or StopEpisode(stop))
        elif is_first:
            # A call or the opening runs, and no caller waits for its result. Does nothing after the end.
            self._playing.cancel()
        with contextlib.suppress(Exception):
            await self._settle()
        return self.episode

    def abandon(self) -> Future[Episode] | None:
        """Closes from any thread, also from the garbage collector, without waiting. A session of the parent process is left to it."""
        if self._loop is None or self._pid != os.getpid():
            return None
        return asyncio.run_coroutine_threadsafe(self.close("aborted"), self._loop)


_open_talks: set[_Talk] = set()


def close_all() -> None:
    """Ends the episodes of this process that are still open."""
    ending = [future for future in (talk.abandon() for talk in list(_open_talks)) if future is not None]
    # The lease of a session ends it if this cannot.
    concurrent.futures.wait(ending, CLOSE_TIMEOUT_S)


atexit.register(close_all)
_closes_with = 0


def _close_with_process() -> None:
    """A process of `multiprocessing` ends without `atexit`."""
    global _closes_with
    if multiprocessing.parent_process() is not None and _closes_with != os.getpid():
        _closes_with = os.getpid()
        # Before the recorders, whose priority is 1.
        multiprocessing.util.Finalize(None, close_all, exitpriority=2)
