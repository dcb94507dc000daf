"""The play loop over sessions and models that are scripted here; the real service is in tests/conformance/python-package.spec.ts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from palestra import Episode, Event, InfrastructureFailure, Reply, play, play_sync
from palestra.failures import EnvironmentFailure


@dataclass
class Tool:
    name: str
    description: str
    input_schema: dict[str, Any] | None


@dataclass
class Block:
    text: str
    type: str = "text"
    detail: None = None


@dataclass
class Output:
    blocks: list[Block]
    metadata: dict[str, Any] | None = None
    reward: float | None = None
    finished: bool = False


class ToolCallError(Exception):
    """As the official client raises it."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class ToolFailed(Exception):
    pass


class OfficialSession:
    """With the methods of an async session of `openreward`. `lamp` gives .5 and ends with `on: true`."""

    terminal: Any = None

    def __init__(self) -> None:
        self.sid: str | None = None
        self.calls: list[tuple[str, Any]] = []
        self.closed = 0
        self.hold = asyncio.Event()

    async def __aenter__(self) -> OfficialSession:
        self.sid = "sid-1"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.closed += 1

    async def get_prompt(self) -> list[Block]:
        return [Block("Light "), Block("the lamp.")]

    async def list_tools(self) -> list[Tool]:
        return [Tool("lamp", "A lamp", {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]})]

    async def terminal_tool(self) -> Any:
        return self.terminal

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Output:
        self.calls.append((name, arguments))
        if name == "answer":
            return Output([Block("graded")], reward=2.0, finished=True)
        if name != "lamp":
            raise ToolCallError("not_found", f"'{name}' is not a valid tool")
        if arguments.get("on") == "break":
            raise ToolFailed("the lamp fell")
        if arguments.get("on") == "wait":
            await self.hold.wait()
        return Output([Block("it shines" if arguments["on"] else "dark")], {"lux": 3}, 0.5, bool(arguments["on"]))


def call(name: str = "lamp", *, call_id: str = "c1", arguments: Any = None) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps({"on": False} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def says(*calls: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


ON = says(call(arguments={"on": True}))
OFF = says(call())


def script(*replies: Any) -> Callable[..., Any]:
    """A model that gives one reply after another, then repeats the last one."""
    left = list(replies)

    async def chat(messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(messages, tools) if callable(reply) else reply

    return chat


async def test_an_episode_that_the_environment_finishes() -> None:
    session = OfficialSession()
    offered: list[Any] = []

    def first(messages: Sequence[Any], tools: Sequence[Any]) -> Any:
        offered.append((list(messages), list(tools)))
        return OFF

    episode = await play(session, script(first, ON))
    assert (episode.stop, episode.total, episode.rewards, episode.finished) == ("finished", 1.0, [0.5, 0.5], True)
    assert [message["role"] for message in episode.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert episode.messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "dark"}
    assert (episode.prompt_messages, episode.session_id, len(episode.turns)) == (1, "sid-1", 2)
    assert episode.turns[1].done and not episode.turns[0].done
    parameters = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
    function = {"name": "lamp", "description": "A lamp", "parameters": parameters}
    assert offered == [([{"role": "user", "content": "Light the lamp."}], [{"type": "function", "function": function}])]
    # It was opened here, so it is closed here.
    assert session.closed == 1


async def test_an_open_session_stays_open() -> None:
    async with OfficialSession() as session:
        await play(session, script(ON))
        assert session.closed == 0


@pytest.mark.parametrize(
    ("replies", "options", "stop", "total"),
    [
        ([OFF], {"max_turns": 2}, "max_turns", 1.0),
        ([OFF], {"max_turns": 0}, "max_turns", None),
        ([OFF, says(text="I am done.")], {}, "no_tool_call", 0.5),
        ([says(text="I am done.")], {}, "no_tool_call", None),
        ([Reply(OFF, completion_tokens=30)], {"max_tokens": 50}, "max_tokens", 1.0),
        ([Reply(says(text="Well"), finish_reason="length")], {}, "max_tokens", None),
    ],
)
async def test_the_other_ends(replies: list[Any], options: dict[str, Any], stop: str, total: float | None) -> None:
    episode = await play(OfficialSession(), script(*replies), **options)
    assert (episode.stop, episode.total, episode.failure) == (stop, total, None)


async def test_mistakes_of_the_policy_are_shown_to_it() -> None:
    replies = [says(call("lump")), says(call(arguments="{on")), says(call(arguments="[1]")), says(call(arguments='{"on": NaN}')), ON]
    session = OfficialSession()
    episode = await play(session, script(*replies))
    told = [message["content"] for message in episode.messages if message["role"] == "tool"]
    assert told[0] == "Error: not_found: 'lump' is not a valid tool"
    assert told[1].startswith("Error: The arguments of lamp are invalid: Expecting property name")
    assert told[2] == "Error: The arguments of lamp are invalid: expected an object, got list"
    assert told[3].startswith("Error: The arguments of lamp are invalid: Out of range float values")
    assert [getattr(one.failure, "failure_class", None) for one in episode.calls] == ["policy"] * 4 + [None]
    assert (episode.stop, episode.total, episode.failure) == ("finished", 0.5, None)
    # What cannot be sent is not sent.
    assert session.calls == [("lump", {"on": False}), ("lamp", {"on": True})]


async def test_calls_of_one_reply_run_in_order_and_stop_at_the_end() -> None:
    reply = says(call(call_id="a"), call(call_id="b", arguments={"on": True}), call(call_id="c"))
    episode = await play(session := OfficialSession(), script(reply))
    assert [arguments["on"] for _, arguments in session.calls] == [False, True]
    assert [message.get("tool_call_id") for message in episode.messages[2:]] == ["a", "b", "c"]
    assert "episode_finished" in episode.messages[-1]["content"]
    assert (episode.turns[0].reward, episode.total, episode.stop) == (1.0, 1.0, "finished")


async def test_a_last_message_goes_to_the_terminal_tool() -> None:
    session = OfficialSession()
    session.terminal = type("Terminal", (), {"name": "answer", "arg": "text"})()
    episode = await play(session, script(says(text="It shines.")))
    assert session.calls == [("answer", {"text": "It shines."})]
    assert (episode.stop, episode.total, episode.turns[0].reward) == ("finished", 2.0, 2.0)


async def test_a_tool_that_raises_leaves_the_episode_unscored() -> None:
    episode = await play(OfficialSession(), script(OFF, says(call(arguments={"on": "break"}))))
    assert (episode.stop, episode.total) == ("env_error", None)
    assert episode.failure is not None and episode.failure.code == "tool_failed"
    # What it earned before is still there.
    assert episode.rewards == [0.5, None]
    with pytest.raises(EnvironmentFailure):
        episode.raise_for_failure()


async def test_a_session_that_cannot_be_opened() -> None:
    class Refusing(OfficialSession):
        async def __aenter__(self) -> OfficialSession:
            raise ConnectionRefusedError("nothing listens")

    episode = await play(Refusing(), script(ON))
    assert (episode.stop, episode.failure and episode.failure.code, episode.messages) == ("infra_error", "unreachable", [])


async def test_a_model_that_fails_is_not_the_policy() -> None:
    async def broken(_messages: Any, _tools: Any) -> Any:
        raise KeyError("weights")

    episode = await play(OfficialSession(), broken)
    assert (episode.stop, type(episode.failure)) == ("infra_error", InfrastructureFailure)
    assert episode.failure is not None and episode.failure.code == "chat_failed" and "KeyError" in episode.failure.detail


@pytest.mark.parametrize(
    "told",
    [
        "This model's maximum context length is 4096 tokens",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "len of prompt tokens 17000 exceeds max_total_tokens 16384",
        "Your input exceeds the context window of this model.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    ],
)
async def test_a_full_context_ends_the_episode_without_a_failure(told: str) -> None:
    async def full(_messages: Any, _tools: Any) -> Any:
        raise ValueError(told)

    episode = await play(OfficialSession(), full)
    assert (episode.stop, episode.failure) == ("context_length", None)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"timeout_s": 0.5}, "episode_timeout"),
        ({"call_timeout_s": 0.05}, "call_timeout"),
        ({"call_timeout_s": 9, "timeout_s": 0.5}, "episode_timeout"),
    ],
)
async def test_deadlines(options: dict[str, Any], code: str) -> None:
    session = OfficialSession()
    episode = await play(session, script(says(call(arguments={"on": "wait"}))), **options)
    assert (episode.stop, episode.failure and episode.failure.code, session.closed) == ("timeout", code, 1)


async def test_a_deadline_of_the_model() -> None:
    async def slow(_messages: Any, _tools: Any) -> Any:
        await asyncio.Event().wait()

    episode = await play(OfficialSession(), slow, chat_timeout_s=0.05)
    assert (episode.stop, episode.failure and episode.failure.code) == ("timeout", "chat_timeout")


async def test_cancellation_closes_the_session() -> None:
    session = OfficialSession()
    reached = asyncio.Event()
    events: list[Event] = []

    def watch(event: Event) -> None:
        events.append(event)
        if event.kind == "call":
            reached.set()

    task = asyncio.create_task(play(session, script(says(call(arguments={"on": "wait"}))), on_event=watch))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.closed == 1
    assert [event.kind for event in events] == ["start", "reply", "call"]


async def test_events() -> None:
    seen: list[tuple[str, int, str]] = []

    async def watch(event: Event) -> None:
        seen.append((event.kind, event.turn, type(event.value).__name__))

    await play(OfficialSession(), script(ON), on_event=watch)
    assert seen == [("start", 0, "Episode"), ("reply", 1, "Turn"), ("call", 1, "Call"), ("result", 1, "Call"), ("end", 1, "Episode")]


@pytest.mark.parametrize("garbage", [[{}], [None], [{"function": 7}], [{"function": {"name": None, "arguments": 5}}]])
async def test_garbage_of_a_model_is_refused_not_raised(garbage: Any) -> None:
    episode = await play(OfficialSession(), script({"role": "assistant", "content": None, "tool_calls": garbage}), max_turns=1)
    assert (episode.stop, episode.calls[0].failure and episode.calls[0].failure.failure_class) == ("max_turns", "policy")


async def test_an_exception_of_the_program_is_raised_after_the_session_is_closed() -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError(event.kind)

    session = OfficialSession()
    with pytest.raises(ZeroDivisionError, match="start"):
        await play(session, script(ON), on_event=broken)
    assert session.closed == 1


class BlockingSession:
    """The same session with blocking methods."""

    def __init__(self) -> None:
        self._inner = OfficialSession()
        self.threads: set[int] = set()

    sid = property(lambda self: self._inner.sid)

    def _run(self, work: Any) -> Any:
        self.threads.add(threading.get_ident())
        return asyncio.run(work)

    def __enter__(self) -> BlockingSession:
        self._run(self._inner.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._inner.__aexit__(*error))

    def get_prompt(self) -> Any:
        return self._run(self._inner.get_prompt())

    def list_tools(self) -> Any:
        return self._run(self._inner.list_tools())

    def call_tool(self, name: str, arguments: Any) -> Any:
        return self._run(self._inner.call_tool(name, arguments))


async def test_a_blocking_session_does_not_block_the_loop() -> None:
    session = BlockingSession()
    episode = await play(session, lambda _messages, _tools: ON)
    assert (episode.stop, episode.total, session._inner.closed) == ("finished", 0.5, 1)
    assert threading.get_ident() not in session.threads


def test_a_blocking_call_that_never_returns_does_not_keep_the_process() -> None:
    script = "import asyncio, threading; from palestra.sessions import call_any\n"
    script += "async def main(): await asyncio.wait({asyncio.ensure_future(call_any(threading.Event().wait))}, timeout=0.1)\n"
    script += "asyncio.run(main())"
    finished = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert finished.returncode == 0


def test_without_an_event_loop() -> None:
    episode: Episode = play_sync(BlockingSession(), lambda _messages, _tools: ON)
    assert (episode.stop, episode.total) == ("finished", 0.5)


async def test_many_episodes_at_once() -> None:
    episodes = await asyncio.gather(*(play(OfficialSession(), script(OFF, ON)) for _ in range(200)))
    assert {(episode.stop, episode.total) for episode in episodes} == {("finished", 1.0)}


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        ({"choices": [{"message": OFF, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}, 7),
        ({"choices": [{"message": OFF, "token_ids": [1, 2, 3]}], "prompt_token_ids": [9]}, 3),
        (OFF, None),
    ],
)
async def test_tokens_are_counted_where_they_are_known(reply: Any, tokens: int | None) -> None:
    episode = await play(OfficialSession(), script(reply), max_turns=1)
    assert episode.completion_tokens == tokens


async def test_what_is_no_session_and_no_form() -> None:
    with pytest.raises(TypeError, match="object is no session"):
        await play(object(), script(ON))
    session = OfficialSession()
    with pytest.raises(ValueError, match="Unknown form 'xml'. Available: openai, tool_call, action"):
        await play(session, script(ON), parse="xml")  # type: ignore[arg-type]
    assert session.closed == 1
