"""The one play loop: any session, any model, three forms of calls."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from palestra import background
from palestra.chat import chat_failure, is_context_length
from palestra.client import Session
from palestra.episode import Call, Episode, Event, StopEpisode, StopReason, Turn, stop_of
from palestra.failures import Failure, no_slot, refused_call, timed_out
from palestra.forms import Form, Parse, Reading, form_of
from palestra.messages import Message, Reply, RequestedCall
from palestra.record import Rollout
from palestra.sessions import AnySession, Opening, call_any

T = TypeVar("T")
Chat = Callable[[Sequence[Message], Sequence[dict[str, Any]]], Any]


async def play(
    session: Session | Any,
    chat: Chat,
    *,
    parse: Parse = "openai",
    max_turns: int | None = None,
    max_tokens: int | None = None,
    timeout_s: float | None = None,
    chat_timeout_s: float | None = None,
    call_timeout_s: float | None = None,
    messages: Sequence[Message] | None = None,
    on_event: Callable[[Event], Any] | None = None,
    record: Rollout | None = None,
) -> Episode:
    """Plays one episode. A mistake of the policy is shown to it as the result of its call; everything else that fails ends the episode and
    is its `failure`, so that no reward of 0 hides it.

    Args:
        session: a session of this package, or a sync or async one of `openreward` or `ors-sdk`. One that is not open yet is opened, and
            closed at the end.
        chat: `chat(messages, tools)`, async or blocking, with messages and tools in OpenAI's format; returns text, an assistant message or
            a chat completion. `OpenAIChat` is one for a URL. It raises `StopEpisode` to end the episode.
        parse: `openai` (tool calls), `tool_call` or `action` (text, as docs/text.md describes).
        max_turns: generations; by default 10, or 1 for `action`.
        max_tokens: generated tokens of the whole episode. The turn that reaches it is still played.
        timeout_s: seconds of the whole episode, with opening. chat_timeout_s, call_timeout_s: of one generation, of one call.
        messages: replaces the prompt of the environment. The form `tool_call` does not add its system prompt then.
        on_event: called with each `Event`, async or not.
        record: a rollout that gets every message, and the end.

    Returns:
        The episode, also if it failed. Only a cancellation, and an exception of `on_event`, are raised.
    """
    options = _Options(parse, max_turns, max_tokens, timeout_s, chat_timeout_s, call_timeout_s, messages, on_event, record)
    return await _Game(AnySession(session), chat, options).play()


def play_sync(session: Session | Any, chat: Chat, **options: Any) -> Episode:
    """`play` for callers without an event loop; the arguments are the same. Blocks; Ctrl-C cancels the episode."""
    return background.worker.run(play(session, chat, **options))


@dataclass(frozen=True)
class _Options:
    parse: Parse
    max_turns: int | None
    max_tokens: int | None
    timeout_s: float | None
    chat_timeout_s: float | None
    call_timeout_s: float | None
    messages: Sequence[Message] | None
    on_event: Callable[[Event], Any] | None
    record: Rollout | None


class _Game:
    def __init__(self, session: AnySession, chat: Chat, options: _Options) -> None:
        self._session = session
        self._chat = chat
        self._options = options
        self._record = options.record
        self._began = time.monotonic()
        self._episode = Episode()
        self._limit = 0

    async def play(self) -> Episode:
        episode = self._episode
        try:
            await self._within(self._session.__aenter__(), None, "")
            try:
                episode.session_id = self._session.sid
                await self._turns()
            finally:
                await self._session.__aexit__()
        except asyncio.CancelledError:
            episode.stop = "cancelled"
            self._end()
            raise
        except Failure as failure:
            episode.failure, episode.stop = failure, stop_of(failure)
        except BaseException:
            # A mistake of the program, such as an exception of `on_event`.
            episode.stop = "aborted"
            if episode.prompt_messages > 0:
                self._end()
            raise
        episode.session_id = episode.session_id or self._session.sid
        self._end()
        await self._tell("end", episode)
        return episode

    async def _turns(self) -> None:
        episode = self._episode
        opening = await self._within(self._session.opening(), None, "")
        form = form_of(self._options.parse, opening.tools)
        self._limit = form.default_turns if self._options.max_turns is None else self._options.max_turns
        prompt = list(self._options.messages) if self._options.messages is not None else form.prompt(opening.messages, opening.tools)
        episode.messages, episode.prompt_messages = prompt, len(prompt)
        episode.tools = [tool.to_openai() for tool in opening.tools] if form.offers_tools else []
        if self._record is not None:
            self._record.begin(episode.session_id, prompt)
        await self._tell("start", episode)
        stop: StopReason | None = "max_turns" if self._limit < 1 else None
        while stop is None:
            stop = await self._turn(form, opening)
        episode.stop = stop

    async def _turn(self, form: Form, opening: Opening) -> StopReason | None:
        """Plays one turn; returns why the episode ends with it, or None."""
        episode = self._episode
        try:
            reply = await self._within(self._generate(), self._options.chat_timeout_s, "chat_timeout")
        except StopEpisode as end:
            return end.stop
        except Failure as failure:
            if is_context_length(failure):
                return "context_length"
            raise
        turn = Turn(reply)
        episode.turns.append(turn)
        episode.messages.append(reply.message)
        number = len(episode.turns)
        reading = form.read(reply, number, number >= self._limit)
        final = self._final_call(reading, reply, opening, number)
        if self._record is not None:
            self._record.reply(reply, reading.calls or final)
        await self._tell("reply", turn)
        if final:
            return await self._play_final(final[0], turn, form)
        turn.observations, turn.reward = list(reading.observations), reading.reward
        finished = await self._calls(reading.calls, turn, form)
        if self._record is not None and not reading.calls:
            self._record.observations(reading.observations)
        episode.messages.extend(turn.observations)
        stop = reading.stop or self._stop_after(finished)
        turn.done = stop is not None
        return stop

    def _final_call(self, reading: Reading, reply: Reply, opening: Opening, turn: int) -> list[RequestedCall]:
        """The call of the terminal tool with a last message, in environments that have one."""
        if reading.stop != "no_tool_call" or opening.terminal is None:
            return []
        name, argument = opening.terminal
        return [RequestedCall(f"final_{turn}", name, {} if argument is None else {argument: reply.text})]

    async def _play_final(self, requested: RequestedCall, turn: Turn, form: Form) -> StopReason:
        call = await self._call(requested)
        turn.reward, turn.done = form.reward([call]), True
        self._record_result(call, "" if call.output is None else call.output.text, turn)
        return "finished" if call.output is not None else "no_tool_call"

    async def _calls(self, requested: Sequence[RequestedCall], turn: Turn, form: Form) -> bool:
        """Runs the calls of a reply one after another. Returns whether one of them finished the episode."""
        played: list[Call] = []
        last = len(self._episode.turns) >= self._limit
        for one in requested:
            if any(call.output is not None and call.output.finished for call in played):
                skipped = Call(one.id, one.name, one.arguments, len(self._episode.turns))
                skipped.failure = refused_call("episode_finished", f"{one.name!r} was not run: the episode has finished.")
                turn.observations.extend(form.observe(skipped, last))
                continue
            call = await self._call(one)
            played.append(call)
            observed = form.observe(call, last)
            turn.observations.extend(observed)
            turn.reward = form.reward(played)
            self._record_result(call, _text(observed), turn)
        return any(call.output is not None and call.output.finished for call in played)

    async def _call(self, requested: RequestedCall) -> Call:
        """Sends one call. Raises every failure that is not the policy's."""
        call = Call(requested.id, requested.name, requested.arguments, len(self._episode.turns), failure=requested.problem)
        self._episode.calls.append(call)
        await self._tell("call", call)
        began = time.monotonic()
        if requested.problem is None:
            try:
                work = self._session.call(requested.name, requested.arguments)
                call.output = await self._within(work, self._options.call_timeout_s, "call_timeout")
            except Failure as failure:
                call.failure = failure
            call.duration_s = time.monotonic() - began
        if call.failure is not None and call.failure.failure_class != "policy":
            self._record_result(call, f"Error: {call.failure.detail}", None)
            raise call.failure
        await self._tell("result", call)
        return call

    def _record_result(self, call: Call, content: str, turn: Turn | None) -> None:
        if self._record is not None:
            self._record.result(call, content, None if turn is None or self._options.parse == "openai" else turn.reward)

    async def _generate(self) -> Reply:
        try:
            return Reply.of(await call_any(self._chat, self._episode.messages, self._episode.tools))
        except (asyncio.CancelledError, StopEpisode):
            raise
        except Exception as error:
            raise chat_failure(error) from error

    def _stop_after(self, finished: bool) -> StopReason | None:
        if finished:
            return "finished"
        if len(self._episode.turns) >= self._limit:
            return "max_turns"
        generated = sum(turn.reply.generated or 0 for turn in self._episode.turns)
        return "max_tokens" if self._options.max_tokens is not None and generated >= self._options.max_tokens else None

    async def _within(self, work: Awaitable[T], limit_s: float | None, code: str) -> T:
        """Awaits `work` at most `limit_s`, and not beyond the deadline of the episode. Raises the failure `code`, `episode_timeout`, or
        `capacity_exhausted` if the session waited for a slot until that deadline.
        """
        left = None if self._options.timeout_s is None else self._options.timeout_s - (time.monotonic() - self._began)
        whole = left is not None and (limit_s is None or left <= limit_s)
        limit = left if whole else limit_s
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=None if limit is None else max(limit, 0))
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        if task in done:
            return task.result()
        await _cancel(task)
        position = self._session.queue_position
        if whole and position is not None:
            told = f"No slot became free within the {self._options.timeout_s:g} s of the episode, which was number {position} in the queue"
            raise no_slot(f"{told}: the environment is full, or a quota of the key or the organisation is reached.")
        if whole:
            raise timed_out("episode_timeout", f"The episode took longer than {self._options.timeout_s:g} s.")
        raise timed_out(code, f"{'The model' if code == 'chat_timeout' else 'The call'} took longer than {limit_s:g} s.")

    def _end(self) -> None:
        self._episode.duration_s = time.monotonic() - self._began
        if self._record is not None:
            self._record.end(self._episode)

    async def _tell(self, kind: Any, value: Any) -> None:
        if self._options.on_event is not None:
            result = self._options.on_event(Event(kind, len(self._episode.turns), value))
            if inspect.isawaitable(result):
                await result


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancels and waits a moment for the cleanup; a blocking call in a thread cannot be interrupted."""
    task.cancel()
    await asyncio.wait({task}, timeout=1.0)
    if task.done() and not task.cancelled():
        task.exception()


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(message["content"] for message in messages if isinstance(message["content"], str))
