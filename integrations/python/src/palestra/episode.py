"""What a played episode is: its messages, calls, rewards and end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from palestra.failures import Failure
from palestra.messages import Message, Reply, ToolOutput

StopReason = Literal[
    "finished",
    "max_turns",
    "max_tokens",
    "context_length",
    "no_tool_call",
    "parse_error",
    "env_error",
    "infra_error",
    "timeout",
    "aborted",
    "cancelled",
    "unknown",
]
"""Why an episode ended: the words of the service (docs/reference/metrics.md#stop-reason)."""

_TIMEOUTS = frozenset({"episode_timeout", "chat_timeout", "call_timeout", "setup_timeout"})


class StopEpisode(Exception):
    """Raised by a chat function to end the episode without a failure, for the reason `stop`."""

    def __init__(self, stop: StopReason) -> None:
        super().__init__(stop)
        self.stop: StopReason = stop


def stop_of(failure: Failure) -> StopReason:
    if failure.code in _TIMEOUTS:
        return "timeout"
    return "env_error" if failure.failure_class == "environment" else "infra_error"


@dataclass
class Call:
    """One call of a tool, or a request for one that could not be sent.

    Attributes:
        id: the model's id of the call.
        output: result, or None if the call failed.
        failure: why the call failed, or None. A `PolicyFailure` was shown to the model.
        duration_s: seconds until the result, 0.0 if nothing was sent.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    turn: int
    output: ToolOutput | None = None
    failure: Failure | None = None
    duration_s: float = 0.0

    @property
    def reward(self) -> float | None:
        return None if self.output is None else self.output.reward


@dataclass
class Turn:
    """One generation and what came back.

    Attributes:
        reply: what the model generated.
        observations: the messages that answered it, in OpenAI's format.
        reward: what a trainer of turns gets. With `parse="openai"` the sum of the rewards of the calls, None without any. In the two text
            forms as in docs/text.md: 0.0 without a reward, -1.0 for a failed action.
        done: the episode ended with this turn.
    """

    reply: Reply
    observations: list[Message] = field(default_factory=list)
    reward: float | None = None
    done: bool = False


@dataclass
class Episode:
    """A played episode.

    Attributes:
        messages: the whole conversation in OpenAI's format, prompt included.
        prompt_messages: how many of `messages` are the prompt.
        tools: tools as they were offered to the model (`type`, `function`); empty in the text forms.
        turns: one for each generation.
        calls: every call in order.
        stop: why it ended.
        failure: failure of environment or infrastructure that ended it, else None. Leave such an episode out of the loss.
        session_id: id of the session, or None if it was never opened.
        duration_s: seconds from start to end.
    """

    messages: list[Message] = field(default_factory=list)
    prompt_messages: int = 0
    tools: list[dict[str, Any]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    stop: StopReason = "unknown"
    failure: Failure | None = None
    session_id: str | None = None
    duration_s: float = 0.0

    @property
    def rewards(self) -> list[float | None]:
        """The reward of each call; None for a call without one."""
        return [call.reward for call in self.calls]

    @property
    def total(self) -> float | None:
        """Sum of the rewards; None without any reward, and for an episode that failed. None is not 0."""
        known = [reward for reward in self.rewards if reward is not None]
        return sum(known) if known and self.failure is None else None

    @property
    def finished(self) -> bool:
        """Whether the environment ended the episode."""
        return any(call.output is not None and call.output.finished for call in self.calls)

    @property
    def completion_tokens(self) -> int | None:
        """Tokens that the model generated; None if the server of the model does not say."""
        counts = [turn.reply.generated for turn in self.turns]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def raise_for_failure(self) -> None:
        """Raises the failure that ended the episode, if there is one."""
        if self.failure is not None:
            raise self.failure


@dataclass(frozen=True)
class Event:
    """Progress of an episode: `start`, `reply`, `call` (about to be sent), `result` (of a call), `end`.

    `value` is the Episode for `start` and `end`, the Turn for `reply`, the Call for `call` and `result`.
    """

    kind: Literal["start", "reply", "call", "result", "end"]
    turn: int
    value: Any
