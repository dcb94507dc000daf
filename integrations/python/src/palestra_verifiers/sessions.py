"""Sessions of this process's rollouts: each is closed on every path and recorded as a rollout."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import verifiers.v1 as vf

from palestra import Client, Failure, Session, TaskRef, background
from palestra.runs import recorder_of
from palestra_verifiers.errors import failure_of_trace

# A page of the call ledger. Rewards of later calls are in the total only.
LEDGER_PAGE = 200
_STOPS = {
    "agent_completed": "no_tool_call",
    "max_turns": "max_turns",
    "max_output_tokens": "max_tokens",
    "max_total_tokens": "max_tokens",
}


@dataclass(frozen=True)
class Opened:
    client: Client
    session: Session
    ref: TaskRef
    run: str | None
    phase: Literal["train", "eval"]


_open: dict[str, Opened] = {}
"""By id of the trace."""
_closing: set[concurrent.futures.Future[None]] = set()
episode_traces: ContextVar[list[vf.Trace] | None] = ContextVar("palestra_episode_traces", default=None)
"""Traces of the episode that `PalestraEnv` plays; None in other environments and in vf-validate."""


def keep(trace: vf.Trace, opened: Opened) -> None:
    """Keeps the session of a trace until one of the functions below ends it, or the trace is garbage."""
    _open[trace.id] = opened
    weakref.finalize(trace, _abandon, trace.id).atexit = False
    traces = episode_traces.get()
    if traces is not None:
        traces.append(trace)


def session_of_trace(trace: vf.Trace) -> Session | None:
    opened = _open.get(trace.id)
    return None if opened is None else opened.session


async def end(trace: vf.Trace) -> None:
    """Closes the session and records the rollout. Idempotent."""
    opened = _open.pop(trace.id, None)
    if opened is not None:
        await opened.session.close()
        await _record(trace, opened)


def _abandon(trace_id: str) -> None:
    opened = _open.pop(trace_id, None)
    if opened is not None:
        closing = background.worker.submit(opened.session.close())
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)


@atexit.register
def _close_all() -> None:
    for trace_id in list(_open):
        _abandon(trace_id)
    with contextlib.suppress(Exception):
        concurrent.futures.wait(list(_closing), timeout=10)


async def _record(trace: vf.Trace, opened: Opened) -> None:
    recorder = recorder_of(opened.run, "verifiers", model_name=trace.agent.config.model)
    rollout = recorder.rollout(
        opened.ref,
        group=opened.ref.key if opened.phase == "eval" else None,
        phase=opened.phase,
        session_id=opened.session.sid,
        metadata={"trace_id": trace.id},
    )
    calls = await _calls(opened)
    asked: dict[str, str] = {}
    # A trace of an agent with sub-agents has several branches. The longest holds its conversation.
    branch = max(trace.branches, key=lambda one: len(one.nodes), default=None)
    for message in map(_openai, [] if branch is None else branch.messages):
        asked.update({call["id"]: call["function"]["name"] for call in message.get("tool_calls", [])})
        call = _take(calls, asked.pop(message["tool_call_id"], None)) if message["role"] == "tool" else {}
        rollout.message(message, reward=call.get("reward"), finished=bool(call.get("finished")))
    # A trace does not hold the results that no turn of the model follows.
    for call_id, tool in asked.items():
        call = _take(calls, tool)
        if call:
            rollout.log("tool_result", call["text"], call_id=call_id, reward=call["reward"], finished=call["finished"])
    failure = failure_of_trace(trace)
    total = trace.reward if failure is None else None
    rollout.finish(_stop(trace, failure), total=total, failure=failure, num_turns=trace.num_turns)


async def _calls(opened: Opened) -> list[dict[str, Any]]:
    """The session's calls in their order, from the ledger: verifiers does not keep the reward of a call."""
    try:
        page = await opened.client.get(f"/v1/sessions/{opened.session.sid}/calls", limit=LEDGER_PAGE)
    except Failure:
        return []
    calls: list[dict[str, Any]] = page["calls"]
    return calls


def _take(calls: list[dict[str, Any]], tool: str | None) -> dict[str, Any]:
    """Removes the first call of a tool and returns it; empty without one."""
    found = next((call for call in calls if call["tool"] == tool), None)
    if found is None:
        return {}
    calls.remove(found)
    return found


def _openai(message: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"content": None, **message.model_dump(exclude_none=True)}
    if plain.get("tool_calls"):
        plain["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in plain["tool_calls"]
        ]
    return plain


def _stop(trace: vf.Trace, failure: Failure | None) -> str:
    if failure is not None:
        return "env_error" if failure.failure_class == "environment" else "infra_error"
    if trace.state.finished:
        return "finished"
    return "timeout" if trace.is_timeout else _STOPS.get(trace.stop_condition or "", "unknown")
