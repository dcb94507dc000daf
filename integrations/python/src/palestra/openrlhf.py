"""Hosted environments in OpenRLHF, for the file of `--train.agent_func_path`, whose whole content is

    from palestra.openrlhf import AgentExecutor

The label of a row is the JSON text of its task, as `palestra.rows` writes it in the format `openrlhf`. docs/trainers/openrlhf.md is the guide.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from palestra.failures import Failure
from palestra.places import session_of, task_of
from palestra.runs import client_of, recorder_of
from palestra.steps import Steps
from palestra.versions import require

require("openrlhf", ">=0.11.2,<0.12", extra="openrlhf")

import torch  # noqa: E402
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor  # noqa: E402

logger = logging.getLogger(__name__)


@dataclass
class _Group:
    """The samples of one prompt: OpenRLHF generates them in one call, with one object of sampling parameters."""

    parameters: Any
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    samples: int = 0
    ended: int = 0
    scores: list[float] = field(default_factory=list)
    all_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Counts an episode that has ended."""
        self.ended += 1
        if self.ended == self.samples:
            self.all_ended.set()


@dataclass
class _Place:
    executor: AgentExecutor
    group: _Group
    sample: int
    tokenizer: Any
    agent: AgentInstance | None = None

    @property
    def failure(self) -> Failure | None:
        return None if self.agent is None else self.agent.failure

    async def end(self) -> None:
        if self.agent is not None:
            await asyncio.shield(self.agent.close())


_place: contextvars.ContextVar[_Place] = contextvars.ContextVar("palestra_openrlhf_place")


class AgentInstance(AgentInstanceBase):  # type: ignore[misc, unused-ignore]
    """One episode. Made by `AgentExecutor` only, which closes it on every path. `step` never raises a failure of environment or service."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._place = _place.get()
        self._place.agent = self
        self._steps: Steps | None = None
        self.failure: Failure | None = None

    async def reset(self, states: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
        """Opens the session; the prompt stays that of the data set. Raises ValueError for a label without a task."""
        executor, group = self._place.executor, self._place.group
        task = task_of({"label": states["label"]})
        rollout = recorder_of(executor.run, "openrlhf").rollout(task, group=group.id, sample=self._place.sample)
        prompt = [{"role": "user", "content": states["observation"]}]
        session = session_of(client_of(), task)
        self._steps = Steps(session, record=rollout, parse=executor.parse, max_turns=executor.max_turns, messages=prompt)
        try:
            await self._steps.open()
        except Failure as failure:
            self._fail(failure)
        return states

    async def step(self, state_dict: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
        if self._steps is None or self.failure is not None:
            return _step(0.0, "", True)
        step = await self._steps.reply(state_dict["action_text"])
        if step.failure is not None:
            self._fail(step.failure)
            return _step(0.0, "", True)
        feedback = "" if step.done else feedback_text(self._place.tokenizer, step.observations)
        return _step(step.reward or 0.0, feedback, step.done)

    async def close(self) -> None:
        """Ends the session. OpenRLHF stops before the end of an episode only when its context is full."""
        if self._steps is not None:
            await self._steps.close("context_length")

    def _fail(self, failure: Failure) -> None:
        logger.warning("palestra: an episode does not count: %s", failure)
        self.failure = failure


def _step(reward: float, feedback: str, done: bool) -> dict[str, Any]:
    return {"rewards": torch.tensor(reward), "environment_feedback": feedback, "done": done}


class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc, unused-ignore]
    """Plays the episodes of one worker. Subclass it to change an attribute.

    Attributes:
        parse: how the model calls tools in its text, `tool_call` or `action` (docs/text.md).
        max_turns: generations of an episode; OpenRLHF itself has no limit.
        run: name of the run, by default PALESTRA_RUN, then `openrlhf`.

    OpenRLHF cannot leave a sample out: without any trained token its KL is NaN. So an episode that failed without fault of the policy trains
    its last token only, with the mean reward of the other samples of its prompt, and `palestra_failed` is 1 in the logs.
    """

    parse: Literal["tool_call", "action"] = "tool_call"
    max_turns: int = 10
    run: str | None = None

    def __init__(self) -> None:
        super().__init__(AgentInstance)
        self._groups: dict[int, _Group] = {}

    async def execute(
        self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any, images: Any = None
    ) -> dict[str, Any]:
        # The group holds its parameters, so that their id is not used again before its last episode has ended.
        group = self._groups.setdefault(id(sampling_params), _Group(sampling_params))
        place = _Place(self, group, group.samples, hf_tokenizer)
        group.samples += 1
        token = _place.set(place)
        try:
            response: dict[str, Any] = await super().execute(
                prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images
            )
            if place.failure is None:
                group.scores.append(float(response["reward"]))
        finally:
            _place.reset(token)
            group.end()
            if group.all_ended.is_set():
                self._groups.pop(id(sampling_params), None)
            await place.end()
        if place.failure is not None:
            await group.all_ended.wait()
            _make_neutral(response, group.scores)
        response["extra_logs"] = {**response["extra_logs"], "palestra_failed": float(place.failure is not None)}
        return response


def _make_neutral(response: dict[str, Any], scores: Sequence[float]) -> None:
    last = len(response["observation_tokens"])
    response["action_ranges"] = [(last - 1, last)]
    response["reward"] = response["scores"] = sum(scores) / len(scores) if scores else 0.0


def feedback_text(tokenizer: Any, observations: Sequence[dict[str, Any]]) -> str:
    """What follows the model's message in the text of a conversation: the observations, and the start of the next message. The chat template
    writes it; a tokenizer without one gets the texts between line breaks.
    """
    if not getattr(tokenizer, "chat_template", None):
        return "".join(f"\n{message['content']}\n" for message in observations)
    before = [{"role": "user", "content": "."}, {"role": "assistant", "content": "."}]
    head = tokenizer.apply_chat_template(before, tokenize=False)
    whole = tokenizer.apply_chat_template([*before, *observations], tokenize=False, add_generation_prompt=True)
    # The model generated the end of its own message.
    end = head.rfind(tokenizer.eos_token) if tokenizer.eos_token else -1
    return str(whole[len(head) if end == -1 else end + len(tokenizer.eos_token) :])
