"""Trains a softmax policy with GRPO on an environment of a Palestra server, through the official `openreward` client.

usage: learn.py [--environment palestra/whodunit] [--run learn] [--steps 24] [--untrained] ...

The server is found by PALESTRA_URL and PALESTRA_API_KEY. Every episode is uploaded as a rollout of the run. Prints one line per step, and
the mean rewards as JSON at the end. The same seed gives the same run.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

# The official client and the recorder read different variables.
for name in ("URL", "API_URL", "SESSION_URL"):
    os.environ.setdefault(f"OPENREWARD_{name}", os.environ.get("PALESTRA_URL", "http://127.0.0.1:8080"))
os.environ.setdefault("OPENREWARD_API_KEY", os.environ.get("PALESTRA_API_KEY", ""))

import numpy as np  # noqa: E402
from openreward import AsyncOpenReward  # noqa: E402
from palestra import Recorder, play  # noqa: E402

import answers  # noqa: E402
import whodunit  # noqa: E402
from policy import Policy  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", default="palestra/whodunit", help="owner/name: WhoDunit, or a reasoning-gym task of numbers")
    parser.add_argument("--split", default="train")
    parser.add_argument("--run", default="learn", help="name of the run")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--tasks", type=int, default=4, help="tasks, and so groups, of a step")
    parser.add_argument("--first-task", type=int, default=0)
    parser.add_argument("--samples", type=int, default=8, help="episodes of a group")
    parser.add_argument("--learning-rate", type=float, default=4.0)
    parser.add_argument("--untrained", action="store_true", help="play the same steps without learning, to compare with")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=8, help="episodes at the same time")
    return parser.parse_args()


class Training:
    def __init__(self, options, environment, recorder):
        self.options = options
        self.policy = Policy()
        self._environment, self._recorder = environment, recorder
        self._kind = whodunit if "whodunit" in options.environment else answers
        self._failure = None
        self._free = asyncio.Semaphore(options.at_once)

    async def step(self, step):
        """Plays the groups of a step, learns from them, and returns their rewards. An episode that fails has none (None) and is left out.
        While the server is away most of them fail: then those are played again, after a pause.
        """
        played = {(task, sample): (None, []) for task in range(self.options.tasks) for sample in range(self.options.samples)}
        for attempt in range(20):
            missing = [place for place, (reward, _) in played.items() if reward is None]
            played.update(zip(missing, await asyncio.gather(*(self._episode(step, *place) for place in missing))))
            failed = sum(reward is None for reward, _ in played.values())
            if 2 * failed < len(played):
                break
            print(f"step {step}: {failed} of {len(played)} episodes failed ({self._failure}), playing them again", file=sys.stderr, flush=True)
            # A session that the outage ended (410) is the failure of its episode only.
            if self._failure is not None and not self._failure.retryable and self._failure.status != 410:
                break
            await asyncio.sleep(min(2**attempt, 10))
        if 2 * failed >= len(played):
            raise SystemExit(f"Most episodes of step {step} failed: {self._failure}")
        groups = [[played[task, sample] for sample in range(self.options.samples)] for task in range(self.options.tasks)]
        if not self.options.untrained:
            self.policy.learn(groups, self.options.learning_rate)
        return [[reward for reward, _ in group if reward is not None] for group in groups]

    async def _episode(self, step, task, sample):
        options = self.options
        place = {"split": options.split, "index": options.first_task + task}
        # Not one generator for all: which episode ends first must not matter.
        player = self._kind.Player(self.policy, np.random.default_rng([options.seed, step, task, sample]))
        rollout = self._recorder.rollout(
            environment=options.environment,
            **place,
            step=step,
            group=f"{step}-{task}",
            sample=sample,
            samples=options.samples,
            phase="train",
            policy_version=0 if options.untrained else step,
        )
        async with self._free:
            session = self._environment.session(**place)
            episode = await play(session, chat_of(player), max_turns=self._kind.MAX_TURNS, record=rollout)
        self._failure = episode.failure or self._failure
        return episode.total, player.choices


def chat_of(player):
    """The call that a player chooses, as the message of a model."""

    async def chat(messages, tools):
        tool, arguments = player(messages, tools)
        call = {"id": f"call-{len(messages)}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    return chat


async def main():
    options = arguments()
    client = AsyncOpenReward()
    run_info = {"framework": "learn.py", "model_name": "softmax", "learning_rate": 0 if options.untrained else options.learning_rate}
    steps = []
    with Recorder(options.run, run_info=run_info) as recorder:
        training = Training(options, client.environments.get(options.environment), recorder)
        for step in range(options.steps):
            steps.append(await training.step(step))
            print(f"step {step:2}  mean reward {mean(sum(steps[-1], [])):.3f}  n {sum(map(len, steps[-1]))}", flush=True)
        report = recorder.flush(timeout_s=60)
    await client.environments.aclose()
    learned = {
        "means": [mean(sum(groups, [])) for groups in steps],
        "groups": [[mean(rewards) for rewards in groups if rewards] for groups in steps],
        "weights": training.policy.weights(),
    }
    print(json.dumps({"run": options.run, "uploaded": report.complete, **learned}))


def mean(rewards):
    return float(np.mean(rewards))


if __name__ == "__main__":
    asyncio.run(main())
