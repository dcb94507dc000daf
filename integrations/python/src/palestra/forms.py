"""How a model writes calls and reads results: OpenAI's tool calls, `<tool_call>` text, or `<action>` text (docs/text.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from palestra.episode import Call, StopReason
from palestra.failures import Failure, refused_call
from palestra.messages import Message, Reply, RequestedCall, ToolSpec, requested_calls, tool_messages
from palestra.text import (
    ActionTool,
    action_tool_of,
    find_action,
    parse_tool_call,
    render_result,
    system_prompt,
    to_action,
    tool_response,
)

Parse = Literal["openai", "tool_call", "action"]

_FAILED_ACTION = -1.0


@dataclass(frozen=True)
class Reading:
    """What a reply asks for. `stop`: it ends the episode. `observations` and `reward` belong to a reply without a call."""

    calls: list[RequestedCall] = field(default_factory=list)
    observations: list[Message] = field(default_factory=list)
    reward: float | None = None
    stop: StopReason | None = None


class Form(Protocol):
    default_turns: int
    offers_tools: bool

    def prompt(self, messages: list[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """The conversation that the model gets first."""

    def read(self, reply: Reply, turn: int, last: bool) -> Reading: ...

    def observe(self, call: Call, last: bool) -> list[Message]:
        """The answer to a call that was sent, or refused."""

    def reward(self, calls: Sequence[Call]) -> float | None:
        """The reward of a turn with calls."""


class OpenAIForm:
    default_turns, offers_tools = 10, True

    def prompt(self, messages: list[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        return messages

    def read(self, reply: Reply, turn: int, last: bool) -> Reading:
        calls = requested_calls(reply, turn)
        if calls:
            return Reading(calls)
        return Reading(stop="max_tokens" if reply.finish_reason == "length" else "no_tool_call")

    def observe(self, call: Call, last: bool) -> list[Message]:
        if call.output is not None:
            return tool_messages(call.id, call.output.blocks)
        return tool_messages(call.id, [{"type": "text", "text": f"Error: {_told(call.failure)}"}])

    def reward(self, calls: Sequence[Call]) -> float | None:
        known = [call.reward for call in calls if call.reward is not None]
        return sum(known) if known else None


class ToolCallForm:
    """The first `<tool_call>` of a text, as SkyRL's OpenRewardEnv reads it."""

    default_turns, offers_tools = 10, False

    def prompt(self, messages: list[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        return [{"role": "system", "content": system_prompt(tools)}, *messages]

    def read(self, reply: Reply, turn: int, last: bool) -> Reading:
        parsed = parse_tool_call(reply.text)
        if parsed is None:
            return Reading(reward=0.0, stop="no_tool_call")
        if parsed.kind == "malformed":
            return Reading(observations=[_user(tool_response(f"Error parsing tool call: {parsed.error}"))], reward=0.0)
        problem = refused_call("invalid_arguments", parsed.error) if parsed.kind == "impossible" else None
        return Reading([RequestedCall(f"call_{turn}", str(parsed.name), parsed.arguments, problem)])

    def observe(self, call: Call, last: bool) -> list[Message]:
        return [_user(tool_response(call.output.text if call.output is not None else f"Error: {_told(call.failure)}"))]

    def reward(self, calls: Sequence[Call]) -> float | None:
        return calls[0].reward or 0.0


class ActionForm:
    """The last `<action>` of a text, as SkyRL's OpenEnv reads it. A failed action has the reward -1; the last turn has no observation."""

    default_turns, offers_tools = 1, False

    def __init__(self, tool: ActionTool) -> None:
        self._tool = tool

    def prompt(self, messages: list[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        return messages

    def read(self, reply: Reply, turn: int, last: bool) -> Reading:
        try:
            action = to_action(self._tool, find_action(reply.text))
        except (ValueError, TypeError) as error:
            return Reading(observations=self._say(str(error), last), reward=_FAILED_ACTION)
        return Reading([RequestedCall(f"call_{turn}", self._tool.name, action)])

    def observe(self, call: Call, last: bool) -> list[Message]:
        if call.output is None:
            return self._say("" if call.failure is None else call.failure.detail, last)
        output = call.output
        return self._say(render_result(output.text, done=output.finished, reward=output.reward, metadata=output.metadata), last)

    def reward(self, calls: Sequence[Call]) -> float | None:
        return _FAILED_ACTION if calls[0].output is None else calls[0].reward or 0.0

    def _say(self, text: str, last: bool) -> list[Message]:
        return [] if last or text == "" else [_user(text)]


def form_of(parse: Parse, tools: Sequence[ToolSpec]) -> Form:
    """Raises ValueError for another word, and for `action` with an environment that has no single action."""
    if parse == "openai":
        return OpenAIForm()
    if parse == "tool_call":
        return ToolCallForm()
    if parse != "action":
        raise ValueError(f"Unknown form {parse!r}. Available: openai, tool_call, action.")
    tool = action_tool_of(tools)
    if tool is None:
        raise ValueError('parse="action" needs an environment of actions, or one whose only tool takes one argument.')
    return ActionForm(tool)


def _told(failure: Failure | None) -> str:
    """The text of a failed call for the model, as the official client prints a refusal."""
    if failure is None:
        return ""
    return failure.detail if failure.status is not None or failure.code == "invalid_arguments" else f"{failure.code}: {failure.detail}"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
