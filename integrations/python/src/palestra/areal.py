"""AReaL: an agent for its OpenAI proxy, and a workflow on its engine (docs/trainers/areal.md).

After a failure of environment or infrastructure `Agent.run` raises and `Workflow.arun_episode` returns None. Both make AReaL reject the
trajectory; in a group only the second keeps the other samples.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from palestra.messages import Message
from palestra.rollouts import play_row, play_row_at, reward_of
from palestra.versions import require

require("areal", ">=1.0.4,<2", extra="areal")

from areal.api.workflow_api import RolloutWorkflow  # noqa: E402

FRAMEWORK = "areal"


class Agent:
    """`workflow="palestra.areal.Agent"`; its arguments are `workflow_kwargs`. Pickles, for the mode `subproc`.

    Args:
        run: name of the run.
        sampling: further fields of requests to the model, such as `temperature`.
        options: those of `palestra.play`, such as `max_turns`.
    """

    def __init__(self, run: str | None = None, sampling: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._run = run
        self._sampling = dict(sampling or {})
        self._options = options

    async def run(self, data: Mapping[str, Any], *, base_url: str | None = None, api_key: str | None = None, **_: Any) -> float:
        """Plays the task of a row and returns the reward. Raises `Failure` of environment or infrastructure.

        Without `base_url` and `api_key` the variables OPENAI_BASE_URL and OPENAI_API_KEY count, which the mode `subproc` sets.
        """
        episode, _rollout = await play_row_at(
            data,
            base_url or os.environ["OPENAI_BASE_URL"],
            FRAMEWORK,
            api_key=api_key or os.environ.get("OPENAI_API_KEY"),
            sampling=self._sampling,
            run=self._run,
            place=_place(),
            options=self._options,
        )
        return reward_of(episode)


class Workflow(RolloutWorkflow):  # type: ignore[misc]
    """`workflow="palestra.areal.Workflow"`, without a proxy. Records the version of the weights.

    Args:
        tokenizer: of the model, or its path.
        client: arguments of `ArealOpenAI`, such as `tool_call_parser`.
        turn_discount, export_style: how the reward is shared among the turns.
        run, sampling, options: as for `Agent`.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        client: Mapping[str, Any] | None = None,
        turn_discount: float = 1.0,
        export_style: str = "individual",
        run: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._tokenizer = tokenizer
        self._client = dict(client or {})
        self._turn_discount = turn_discount
        self._export_style = export_style
        self._run = run
        self._sampling = dict(sampling or {})
        self._options = options

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any] | None:
        from areal.experimental.openai import ArealOpenAI

        if isinstance(self._tokenizer, str):
            from areal.utils.hf_utils import load_hf_tokenizer

            self._tokenizer = load_hf_tokenizer(self._tokenizer)
        client = ArealOpenAI(engine=engine, tokenizer=self._tokenizer, **self._client)

        async def chat(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Any:
            offered = {"tools": list(tools)} if tools else {}
            return await client.chat.completions.create(messages=list(messages), **offered, **self._sampling)

        place = {**_place(), "policy_version": engine.get_version()}
        episode, _ = await play_row(data, chat, FRAMEWORK, run=self._run, place=place, options=self._options)
        if episode.failure is not None or not episode.turns:
            return None
        client.set_last_reward(reward_of(episode))
        client.apply_reward_discount(turn_discount=self._turn_discount)
        exported: dict[str, Any] = client.export_interactions(style=self._export_style)
        return exported


# Task ids count from 0 in each process.
_process = uuid.uuid4().hex


def _place() -> dict[str, Any]:
    """Group and phase of the running episode; AReaL provides neither step nor sample, and nothing in the mode `subproc`."""
    from areal.infra import workflow_context

    context = workflow_context.get()
    if context.task_id is None:
        return {}
    return {"group": f"{_process}-{context.task_id}", "phase": "eval" if context.is_eval else "train"}
