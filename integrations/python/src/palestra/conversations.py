"""Episodes of trainers that run the model and the calls themselves, and return the conversation at the end."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from palestra import background
from palestra.client import Client, environment_path
from palestra.episode import Call, Episode, StopReason
from palestra.failures import Failure
from palestra.messages import Message, Reply, RequestedCall, ToolSpec, requested_calls
from palestra.record import Rollout
from palestra.steps import Steps


def play_last(steps: Steps, completion: Sequence[Message], *, truncated: bool = False) -> StopReason:
    """Hands the model's last message to an environment with a terminal tool, and returns why the episode ends.

    Args:
        completion: the messages after the prompt.
        truncated: the trainer's limit of tokens cut the last one off.
    """
    last = completion[-1] if completion else {}
    if last.get("role") == "assistant" and not last.get("tool_calls"):
        step = steps.reply_sync(dict(last))
        if step.calls:
            return step.stop or "finished"
    if truncated or last.get("role") != "assistant":
        return "max_tokens"
    # Calls that the trainer did not run: its limit of turns.
    return "max_turns" if last.get("tool_calls") else "no_tool_call"


def record_conversation(
    rollout: Rollout,
    prompt: Sequence[Message],
    completion: Sequence[Message],
    episode: Episode,
    *,
    stop: StopReason,
    total: float | None,
    failure: Failure | None = None,
) -> None:
    """Records an episode that is over: the trainer's messages, and each call with the reward that the environment gave.

    Args:
        completion: the messages after the prompt; empty for a trainer that does not show them.
        stop: why it ended according to the trainer. An end by the environment, and a failure, replace it.
        total: the reward that the trainer gets.
        failure: of the opening; otherwise that of the episode.
    """
    rollout.begin(episode.session_id, prompt)
    turns = _write(rollout, completion, deque(episode.calls))
    failure = failure or episode.failure
    ended = episode.stop if failure is not None or episode.finished else stop
    rollout.finish(ended, total=total, failure=failure, num_turns=turns, duration_ms=round(episode.duration_s * 1000))


def _write(rollout: Rollout, completion: Sequence[Message], calls: deque[Call]) -> int:
    """Returns the number of generations, of calls if the trainer shows no messages."""
    turns, made = 0, len(calls)
    waiting: deque[RequestedCall] = deque()
    for message in completion:
        if message["role"] == "assistant":
            turns += 1
            reply = Reply(dict(message))
            waiting = deque(requested_calls(reply, turns))
            rollout.reply(reply, list(waiting))
        elif message["role"] == "tool" and waiting:
            asked, text = waiting.popleft(), Reply(dict(message)).text
            if calls and (calls[0].tool, calls[0].arguments) == (asked.name, asked.arguments):
                rollout.result(replace(calls.popleft(), id=asked.id), text, None)
            else:  # An unknown tool, which the trainer answered itself.
                rollout.log("tool_result", text, call_id=asked.id, metadata={"error": "not_sent", "failure_class": "policy"})
    # Those of a terminal tool, those whose results the trainer cut off, and all if it shows no messages.
    for call in calls:
        rollout.log("tool_call", json.dumps(call.arguments), name=call.tool, call_id=call.id)
        failed = "" if call.failure is None else f"Error: {call.failure.detail}"
        rollout.result(call, failed if call.output is None else call.output.text, None)
    return turns or made


def tools_of(client: Client, environment: str, split: str, probe: Sequence[int] | None) -> list[ToolSpec]:
    """The tools of an environment in the order of their first task, for trainers that offer the same tools in all tasks.

    Args:
        probe: indexes of the tasks to read; None reads the first, the middle and the last one. Each opens a session for a moment.
    """

    async def read() -> list[ToolSpec]:
        indexes = probe if probe is not None else await _spread(client, environment, split)
        tools: dict[str, ToolSpec] = {}
        for index in indexes:
            async with client.session(environment, split=split, index=index, ping_s=0) as session:
                for tool in await session.tools():
                    tools.setdefault(tool.name, tool)
        return list(tools.values())

    return background.worker.run(read())


async def count_tasks(client: Client, environment: str, split: str) -> int:
    """Number of tasks of a split; 1 for an environment that does not count them."""
    page = await client.get(f"{environment_path(environment)}/tasks", split=split, start=0, limit=1)
    total = page["total"]
    return max(1, int(total)) if total is not None else 1


async def _spread(client: Client, environment: str, split: str) -> list[int]:
    total = await count_tasks(client, environment, split)
    return sorted({0, total // 2, total - 1})
