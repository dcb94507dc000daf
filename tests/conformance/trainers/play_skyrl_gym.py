"""`palestra.skyrl.PalestraEnv` through SkyRL-Gym, as SkyRL's generator uses it. Prints one JSON document."""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import policy
import skyrl_gym
from skyrl_gym.envs import register

from palestra import rows
from palestra.skyrl import PLACE, Place

register(id="openreward", entry_point="palestra.skyrl:PalestraEnv")


def make(row: dict[str, Any], **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    """An environment and its prompt, from a row of the data set as the generator splits it."""
    columns = dict(row)
    prompt, env_class = columns.pop("prompt"), columns.pop("env_class")
    return skyrl_gym.make(env_class, env_config={}, extras={**columns, "max_turns": 9, **more}), prompt


def run(env: Any, prompt: Any, steps: int = 9) -> dict[str, Any]:
    """Plays at most `steps` turns, and closes on success only, as the generator does."""
    conversation, _ = env.init(prompt)
    conversation, outputs = list(conversation), []
    while len(outputs) < steps and not (outputs and outputs[-1]["done"]):
        text = policy.text_reply(conversation)
        outputs.append(env.step(text))
        conversation += [{"role": "assistant", "content": text}, *outputs[-1]["observations"]]
    metrics = env.get_metrics()
    env.close()
    env.close()
    return {"outputs": outputs, "metrics": metrics}


def play(environment: str) -> Any:
    """Two samples of two tasks; the prompt once as a list and once as JSON text, as SkyRL's own script writes it."""
    played = []
    for index, row in enumerate(rows(environment, "skyrl", stop=2)):
        for sample in range(2):
            place = Place(step=4, phase="train", group=f"train-4-{index}", sample=sample, samples=2, policy_version=3)
            env, prompt = make(row, **{PLACE: place})
            played.append(run(env, json.dumps(prompt) if sample else prompt))
    return played


def fragile(environment: str) -> Any:
    """A server that disappears in the middle of an episode."""
    env, prompt = make(list(rows(environment, "skyrl", stop=2))[1])
    return {**run(env, prompt), "after": env.step("more")}


def missing(_environment: str) -> Any:
    """An environment that does not exist, and rows without a task."""
    row = {"prompt": [{"role": "user", "content": "x"}], "env_class": "openreward"}
    task = {"env_name": "nobody/nothing", "split": "train", "task_index": 0}
    env, prompt = make({**row, **task})
    output = env.init(prompt), env.step("x")
    env.close()
    errors = []
    for bad in (row, {**row, **task, "parse": "xml"}):
        try:
            make(bad)
        except ValueError as error:
            errors.append(str(error))
    return {"init": output[0], "step": output[1], "errors": errors}


def length(environment: str) -> Any:
    """The context is full after one turn: SkyRL closes an episode that is not over."""
    return run(*make(next(rows(environment, "skyrl", stop=1))), steps=1)


def begin(environment: str) -> Any:
    env, prompt = make(next(rows(environment, "skyrl", stop=1)))
    env.init(prompt)
    env.step(policy.text_reply(prompt))
    return env


def dropped(environment: str) -> Any:
    """SkyRL lost an episode by an exception: nobody closes its environment."""
    env = begin(environment)
    del env
    gc.collect()


def raises(environment: str) -> Any:
    """The trainer itself fails, with an episode under way."""
    globals()["kept"] = begin(environment)
    raise RuntimeError("the trainer fails")


print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
