"""
Plays the six environments as SkyRL's OpenEnv integration does: `from_docker_image("<env_name>:latest")`, `reset`, `step` with the action made from
the model's text, `close`. Arguments: JSON list of [env_name, text]. Last line: JSON list of what each showed.
"""

import ast
import dataclasses
import json
import subprocess
import sys

from envs.atari_env import AtariAction, AtariEnv
from envs.coding_env import CodeAction, CodingEnv
from envs.echo_env import EchoAction, EchoEnv
from envs.finrl_env import FinRLAction, FinRLEnv
from envs.openspiel_env import OpenSpielAction, OpenSpielEnv
from envs.sumo_rl_env import SumoAction, SumoRLEnv

KINDS = {
    "echo_env": (EchoEnv, lambda text: EchoAction(message=text)),
    "coding_env": (CodingEnv, lambda text: CodeAction(code=text)),
    "openspiel-env": (OpenSpielEnv, lambda text: OpenSpielAction(action_id=int(text))),
    "atari-env": (AtariEnv, lambda text: AtariAction(action_id=int(text))),
    "sumo-rl-env": (SumoRLEnv, lambda text: SumoAction(phase_id=int(text))),
    "finrl-env": (FinRLEnv, lambda text: FinRLAction(actions=list(ast.literal_eval(text)))),
}


def shown(result):
    fields = dataclasses.asdict(result.observation)
    return {"fields": list(fields), "observation": fields, "reward": result.reward, "done": result.done}


def play(env_name, texts):
    client, action = KINDS[env_name]
    env = client.from_docker_image(f"{env_name}:latest")
    container = env._provider._id
    # The first program waits for an interpreter: on a busy machine longer than the 15 s that training uses.
    env._timeout = 120.0
    try:
        played = {"env_name": env_name, "reset": shown(env.reset())}
        played["steps"] = [shown(env.step(action(text))) for text in texts]
        played["state"] = dataclasses.asdict(env.state())
    finally:
        env.close()
    env.close()
    again = [subprocess.run(["docker", verb, container], capture_output=True).returncode for verb in ("stop", "rm")]
    return {**played, "after": again}


def main():
    # As the installer does before training.
    for command in (["docker", "pull", "ghcr.io/meta-pytorch/openenv-echo-env:sha-0"], ["docker", "tag", "a", "echo-env:latest"]):
        subprocess.run(command, check=True, capture_output=True)
    print(json.dumps([play(env_name, texts) for env_name, texts in json.loads(sys.argv[1])]))


main()
