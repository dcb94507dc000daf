"""Episodes that a trainer drives, through the real service. `play ENVIRONMENT` or `leave ENVIRONMENT`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import policy

from palestra import Failure, Steps, TaskRef, client_of, recorder_of, session_of


def started(environment: str, index: int, sample: int, parse: Any) -> Steps:
    owner, _, env = environment.partition("/")
    task = TaskRef(owner, env, "train", index, "")
    record = recorder_of(None, "steps").rollout(task, step=3, group=index, sample=sample, samples=2, phase="train", policy_version=7)
    return Steps(session_of(client_of(), task), record=record, parse=parse)


async def episode(environment: str, index: int, sample: int, parse: Any) -> dict[str, Any]:
    steps = started(environment, index, sample, parse)
    try:
        opened = await steps.open()
    except Failure as failure:
        return {"total": None, "turns": 0, "stop": steps.episode.stop, "failure": failure.failure_class}
    messages, turns, done, step = list(opened.messages), 0, False, None
    while not done:
        reply = policy.reply(messages) if parse == "openai" else policy.text_reply(messages)
        step = await steps.reply(reply)
        messages += [reply if isinstance(reply, dict) else {"role": "assistant", "content": reply}, *step.observations]
        turns, done = turns + 1, step.done
    ended = await steps.close()
    failure = None if ended.failure is None else ended.failure.failure_class
    return {"total": ended.total, "turns": turns, "stop": step and step.stop, "failure": failure}


async def main(mode: str, environment: str) -> None:
    if mode == "play":
        if "fragile" in environment:
            client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
        plays = [episode(environment, index, sample, parse) for index in range(2) for sample, parse in enumerate(("openai", "tool_call"))]
        print(json.dumps([await play for play in plays]))
        return
    steps = started(environment, 0, 0, "openai")
    await steps.reply(policy.reply((await steps.open()).messages))
    if mode == "raise":
        raise RuntimeError("the trainer fails")
    print(json.dumps(steps.episode.session_id))


asyncio.run(main(*sys.argv[1:]))
