"""verl: an agent loop that plays the environments of a Palestra service (docs/trainers/verl.md).

Named in the file of `actor_rollout_ref.rollout.agent.agent_loop_config_path`; the arguments of `PalestraAgentLoop` are keys beside these::

    - name: palestra_agent
      _target_: palestra.verl.PalestraAgentLoop

The rows are those of `palestra.write_rows(..., rows(..., "verl"))`, whose column `agent_name` is `palestra_agent`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from palestra.versions import require

VERSION = require("verl", ">=0.9.1,<0.10", extra="verl")

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register  # noqa: E402
from verl.experimental.agent_loop.tool_parser import ToolParser  # noqa: E402
from verl.tools.schemas import OpenAIFunctionToolSchema  # noqa: E402

from palestra.episode import StopReason  # noqa: E402
from palestra.forms import Parse  # noqa: E402
from palestra.messages import Message, Reply, tool_call  # noqa: E402
from palestra.places import session_of, task_of  # noqa: E402
from palestra.record import Rollout  # noqa: E402
from palestra.runs import client_of, recorder_of  # noqa: E402
from palestra.steps import Steps  # noqa: E402
from palestra.tasks import TaskRef  # noqa: E402

logger = logging.getLogger(__name__)


@register("palestra_agent")
class PalestraAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays the task of a row. Every episode is a rollout of the run, with step, group, sample and phase.

    An infrastructure or environment failure is no reward 0: verl's trainer leaves the sample out of its group. If no sample of the group
    is left, one with an empty `response_mask` replaces it, because verl stops at a batch without samples.

    Args:
        run: name of the run; defaults to PALESTRA_RUN, then to `verl`.
        parse: `openai` (the model's own tool calls, read by verl's parser for `multi_turn.format`), `tool_call` or `action` (text, as
            docs/text.md describes).
        max_turns: generations; defaults to `multi_turn.max_assistant_turns`, which has no limit by default.
        timeout_s, call_timeout_s: seconds of the whole episode, and of one call.
    """

    def __init__(
        self,
        *args: Any,
        run: str | None = None,
        parse: Parse = "openai",
        max_turns: int | None = None,
        timeout_s: float | None = None,
        call_timeout_s: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        options = {
            "parse": parse,
            "max_turns": max_turns or self.rollout_config.multi_turn.max_assistant_turns,
            "timeout_s": timeout_s,
            "call_timeout_s": call_timeout_s,
        }
        self._run = run
        self._options: dict[str, Any] = {name: value for name, value in options.items() if value is not None}

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Returns the trajectory, or no trajectory after a failure. Raises ValueError if the row names no task."""
        task = task_of(row)
        with _group_of(row) as group:
            played = _Played(self._rollout(task, sampling_params, row))
            steps = Steps(session_of(client_of(), task), record=played.record, **self._options)
            try:
                await steps.close(await self._play(steps, sampling_params, played))
            except Exception as error:
                # verl drops all samples of the group if one of them raises.
                await steps.fail(error)
            finally:
                await steps.close("cancelled")
            failure = steps.episode.failure
            if failure is None and played.mask:
                group.scored += 1
                return self._output(played)
            logger.warning("%s %s:%d is left out of its group: %s", task.environment, task.split, task.index, failure)
            return self._left_out(played, group, sampling_params, row)

    def _rollout(self, task: TaskRef, sampling_params: Mapping[str, Any], row: Mapping[str, Any]) -> Rollout:
        phase = self._phase(sampling_params, task)
        recorder = recorder_of(self._run, "verl", framework_version=VERSION, model_name=self._model_name())
        return recorder.rollout(
            task,
            step=_int(row.get("global_steps")),
            group=None if row.get("uid") is None else str(row["uid"]),
            sample=_int(row.get("session_id")),
            samples=_int(self.rollout_config.n if phase == "train" else self.rollout_config.val_kwargs.n),
            phase=phase,
        )

    def _phase(self, sampling_params: Mapping[str, Any], task: TaskRef) -> Literal["train", "eval"]:
        """verl does not tell an agent loop that it validates, but it samples with `val_kwargs` then. If these equal the settings of the
        training, the split of the task decides.
        """
        names = ("temperature", "top_p", "top_k")
        trains = [self.rollout_config.get(name) for name in names]
        validates = [self.rollout_config.val_kwargs.get(name) for name in names]
        if trains == validates:
            return "train" if task.split == "train" else "eval"
        return "eval" if [sampling_params.get(name) for name in names] == validates else "train"

    def _model_name(self) -> str | None:
        path = self.config.actor_rollout_ref.model.get("path")
        return None if path is None else str(path).rstrip("/").rsplit("/", 1)[-1]

    async def _play(self, steps: Steps, sampling_params: dict[str, Any], played: _Played) -> StopReason:
        """Returns why verl ends the episode, unless it has ended. Raises what the model raises, and the failure of an opening."""
        opened = await steps.open()
        messages, tools = list(map(_text_only, opened.messages)), opened.tools or None
        played.token_ids = await self.ct_build_initial_tokens(messages, tools=tools)
        parser = ToolParser.get_tool_parser(self.rollout_config.multi_turn.format, self.tokenizer) if tools else None
        params = _with_stops(sampling_params, parser)
        while True:
            reply = await self._generate(played, params, parser, tools)
            if len(played.mask) >= self.rollout_config.response_length:
                return "max_tokens"
            began = time.monotonic()
            step = await steps.reply(reply)
            played.calls_s += time.monotonic() - began
            played.turn_scores.append(step.reward or 0.0)
            if step.done:
                return "unknown"
            before = [*messages, reply.message]
            messages = [*before, *map(_text_only, step.observations)]
            if not await self._merge(played, before, messages, tools):
                return "max_tokens"

    async def _generate(self, played: _Played, params: dict[str, Any], parser: Any, tools: list[dict[str, Any]] | None) -> Reply:
        began = time.monotonic()
        output = await self.server_manager.generate(
            request_id=played.request_id, prompt_ids=played.token_ids, sampling_params=params
        )
        played.generate_s += time.monotonic() - began
        played.add_facts(output)
        prompt_ids = played.token_ids
        merged, played.mask, played.logprobs = await self.ct_merge_assistant_token(
            prompt_ids,
            output.token_ids,
            played.mask,
            (played.logprobs or [0.0] * len(played.mask)) if output.log_probs else played.logprobs,
            assistant_logprobs=output.log_probs or None,
        )
        played.token_ids = merged.token_ids
        return Reply(
            await self._message(output.token_ids, parser, tools),
            prompt_tokens=len(prompt_ids),
            prompt_token_ids=list(prompt_ids),
            token_ids=list(output.token_ids),
            logprobs=list(output.log_probs) if output.log_probs else None,
        )

    async def _message(self, token_ids: list[int], parser: Any, tools: list[dict[str, Any]] | None) -> Message:
        if parser is None:
            return {"role": "assistant", "content": self.tokenizer.decode(token_ids, skip_special_tokens=True)}
        text, calls = await parser.extract_tool_calls(token_ids, _schemas(tools or []))
        for token in self.tokenizer.all_special_tokens:
            text = text.replace(token, "")
        message: Message = {"role": "assistant", "content": text}
        if calls:
            ids = [call.tool_call_id or f"call_{uuid4().hex[:8]}" for call in calls]
            message["tool_calls"] = [tool_call(id, call.name, call.arguments) for id, call in zip(ids, calls, strict=True)]
        return message

    async def _merge(self, played: _Played, before: list[Message], after: list[Message], tools: list[dict[str, Any]] | None) -> bool:
        """Appends the tokens of the observations. False if they leave no room for another generation."""
        merged, mask, logprobs = await self.ct_merge_context_msg(
            list(map(_for_template, before)),
            list(map(_for_template, after)),
            played.token_ids,
            played.mask,
            played.logprobs,
            tools=tools,
        )
        if len(mask) >= self.rollout_config.response_length:
            return False
        played.token_ids, played.mask, played.logprobs = merged.token_ids, mask, logprobs
        return True

    def _output(self, played: _Played) -> AgentLoopOutput:
        length, limit = len(played.mask), self.rollout_config.response_length
        split = len(played.token_ids) - length
        return AgentLoopOutput(
            prompt_ids=played.token_ids[:split],
            response_ids=played.token_ids[split:][:limit],
            response_mask=played.mask[:limit],
            response_logprobs=played.logprobs[:limit] if played.logprobs is not None else None,
            reward_score=sum(played.turn_scores),
            num_turns=2 * played.turns,
            metrics=played.metrics(),
            extra_fields={**played.facts, "turn_scores": played.turn_scores, "tool_rewards": []},
        )

    def _left_out(
        self, played: _Played, group: _Group, sampling_params: Mapping[str, Any], row: Mapping[str, Any]
    ) -> AgentLoopOutput | list[AgentLoopOutput]:
        # Only the trainer that numbers the samples (`trainer.use_v1`) accepts none.
        if row.get("session_id") is not None and (group.running > 1 or group.scored > 0):
            return []
        empty = self.tokenizer.eos_token_id or 0
        # The trainer computes with these numbers. The weights of step n have number n - 1.
        version = (_int(row.get("global_steps")) or 1) - 1
        return AgentLoopOutput(
            prompt_ids=[empty],
            response_ids=[empty],
            response_mask=[0],
            response_logprobs=[0.0] if sampling_params.get("logprobs") else None,
            reward_score=0.0,
            num_turns=2 * played.turns,
            metrics=played.metrics(),
            extra_fields={
                "min_global_steps": version,
                "max_global_steps": version,
                **played.facts,
                "turn_scores": [],
                "tool_rewards": [],
            },
        )


@dataclass
class _Played:
    """What verl needs of an episode."""

    record: Rollout
    request_id: str = field(default_factory=lambda: uuid4().hex)
    """The same for all generations, so that a server with the prefix in its cache gets them."""
    token_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    """Of the tokens after the prompt: 1 for tokens of the model."""
    logprobs: list[float] | None = None
    turn_scores: list[float] = field(default_factory=list)
    turns: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    """`extra_fields` of the generations; `min_global_steps` is that of the first, `max_global_steps` that of the last."""
    generate_s: float = 0.0
    calls_s: float = 0.0
    preempted: int = -1

    def add_facts(self, output: Any) -> None:
        self.turns += 1
        version = output.extra_fields.get("min_global_steps")
        if self.turns == 1 and version is not None:
            self.record.update(policy_step=int(version))
        last = output.extra_fields.get("max_global_steps")
        self.facts = {**output.extra_fields, **self.facts}
        if last is not None:
            self.facts["max_global_steps"] = last
        if output.num_preempted is not None:
            self.preempted = max(self.preempted, 0) + output.num_preempted

    def metrics(self) -> AgentLoopMetrics:
        return AgentLoopMetrics(generate_sequences=self.generate_s, tool_calls=self.calls_s, num_preempted=self.preempted)


@dataclass
class _Group:
    """Samples of one prompt. verl runs all of them in one process and starts them together."""

    running: int = 0
    scored: int = 0


_groups: dict[str, _Group] = {}


@contextmanager
def _group_of(row: Mapping[str, Any]) -> Iterator[_Group]:
    key = str(row.get("uid") or uuid4().hex)
    group = _groups.setdefault(key, _Group())
    group.running += 1
    try:
        yield group
    finally:
        group.running -= 1
        if group.running == 0:
            _groups.pop(key, None)


def _int(value: Any) -> int | None:
    """Columns arrive as numbers of Python, NumPy or torch."""
    return None if value is None else int(value)


def _with_stops(sampling_params: dict[str, Any], parser: Any) -> dict[str, Any]:
    stops = [] if parser is None else parser.stop_token_ids
    if not stops:
        return sampling_params
    return {**sampling_params, "stop_token_ids": sorted({*(sampling_params.get("stop_token_ids") or []), *stops})}


def _schemas(tools: list[dict[str, Any]]) -> list[Any]:
    """verl's schema has fewer keywords than JSON Schema. A tool that does not fit is one whose argument types the parser does not know."""
    known = []
    for tool in tools:
        try:
            known.append(OpenAIFunctionToolSchema.model_validate(tool))
        except ValueError:
            continue
    return known


def _text_only(message: Message) -> Message:
    """Templates of text models take text. Images of an environment are not shown to the model."""
    content = message.get("content")
    return {**message, "content": Reply(message).text} if isinstance(content, list) else message


def _for_template(message: Message) -> Message:
    """Templates need arguments that are objects as objects, not as text."""
    if "tool_calls" not in message:
        return message
    return {**message, "tool_calls": [_parsed(call) for call in message["tool_calls"]]}


def _parsed(call: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return call
    return {**call, "function": {**call["function"], "arguments": arguments}} if isinstance(arguments, dict) else call
