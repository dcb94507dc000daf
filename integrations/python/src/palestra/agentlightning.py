"""Agent Lightning: the agent of one rollout, as a class for its local runner and as a program for its Kubernetes jobs
(docs/trainers/agent-lightning.md).

The reward is posted as an event. After a failure of environment or infrastructure no reward is posted, the model requests of the rollout
are marked as errors, so that the trainer makes no sample of them, and the process fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import sys
from typing import Any

from palestra.failures import Failure
from palestra.rollouts import play_row_at, reward_of
from palestra.settings import Settings
from palestra.transport import Request, Transport
from palestra.versions import require

# The image of a Kubernetes job needs this package only.
if importlib.util.find_spec("agentlightning") is not None:
    require("agentlightning", ">=1.0.2,<2", extra="agent-lightning")

FRAMEWORK = "agent-lightning"
# The gateway refuses generations with 429 while weights are updated.
RETRY_FOR_S = 600.0
# For the end of an episode before the runner kills the process.
MARGIN_S = 30.0


class Agent:
    """For `agentlightning.local.agent_class: palestra.agentlightning.Agent`."""

    async def run(self) -> None:
        """Plays the rollout that the variables AGL_EVENT_URL, AGL_OPENAI_BASE_URL and AGL_KEY name.

        The task is the rollout's `input`, or PALESTRA_TASK (JSON text). PALESTRA_PARSE and PALESTRA_MAX_TURNS are options of
        `palestra.play`, PALESTRA_RUN names the run.

        Raises `Failure` of environment or infrastructure, and KeyError without a variable.
        """
        current = asyncio.current_task()
        if current is not None:
            with contextlib.suppress(NotImplementedError, ValueError):
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
        await _Attempt().run()


class _Attempt:
    def __init__(self) -> None:
        self._events = os.environ["AGL_EVENT_URL"].rstrip("/")
        self._rollout = self._events.partition("/attempt/")[0]
        self._key = os.environ.get("AGL_KEY") or None
        self._headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        self._transport = Transport(Settings(self._rollout, self._rollout, None), retry_for_s=RETRY_FOR_S)

    async def run(self) -> None:
        try:
            await self._play((await self._get(""))["rollout"])
        finally:
            await self._transport.close()

    async def _play(self, rollout: dict[str, Any]) -> None:
        told = os.environ.get("PALESTRA_TASK")
        metadata = rollout.get("metadata") or {}
        limit_s = float(rollout["config"].get("timeout_seconds") or 0)
        turns = os.environ.get("PALESTRA_MAX_TURNS")
        try:
            episode, rollout_id = await play_row_at(
                json.loads(told) if told else rollout["input"],
                os.environ["AGL_OPENAI_BASE_URL"],
                FRAMEWORK,
                api_key=self._key,
                place={
                    "step": metadata.get("batch_idx"),
                    "group": metadata.get("data_id"),
                    "sample": metadata.get("sample_idx_in_batch"),
                    "phase": "train" if rollout["is_train"] else "eval",
                },
                options={
                    "parse": os.environ.get("PALESTRA_PARSE") or "openai",
                    "max_turns": int(turns) if turns else None,
                    "timeout_s": max(limit_s - MARGIN_S, limit_s / 2) if limit_s else None,
                },
            )
            reward = reward_of(episode)
        except BaseException:
            await asyncio.shield(self._mask())
            raise
        message = f"{episode.stop} after {len(episode.turns)} turns"
        await self._post("reward", {"value": reward, "source": "palestra", "message": message, "rollout": rollout_id})

    async def _mask(self) -> None:
        """Follows each recorded model request with one of the same prompt and `status` error. The trainer keeps the last request of a prompt
        and skips errors; without this it would train on the tokens of a failed rollout with `reward_fillna_value`.
        """
        with contextlib.suppress(Failure):
            for event in await self._get("/events?event_type=model_request&format=triplet"):
                prompt = event["data"].get("prompt_token_ids")
                if prompt and event["data"].get("status") != "error":
                    await self._post("model_request", {"status": "error", "response": {"prompt_token_ids": prompt}})

    async def _get(self, path: str) -> Any:
        return await self._transport.json(Request("GET", path, self._headers))

    async def _post(self, kind: str, data: dict[str, Any]) -> None:
        # A repeated event changes nothing: the last of a kind counts.
        path = self._events[len(self._rollout) :]
        await self._transport.json(Request("POST", path, self._headers, {"event_type": kind, "data": data}))


def main() -> int:
    """Runs the agent. Returns the status of the process: 1 after a failure, which it prints."""
    try:
        asyncio.run(Agent().run())
    except (Failure, KeyError, ValueError) as error:
        print(f"palestra.agentlightning: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    sys.exit(main())
