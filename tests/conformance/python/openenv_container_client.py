"""Plays two virtual containers of Palestra with the client of OpenEnv 0.1; prints one JSON document.

Arguments: URL of the service, namespace, API key.
"""

import json
import sys

import requests
from openenv_core.client_types import StepResult
from openenv_core.http_env_client import HTTPEnvClient

service, owner, key = sys.argv[1:4]


class Client(HTTPEnvClient):
    def _step_payload(self, action):
        return action

    def _parse_result(self, payload):
        return StepResult(observation=payload["observation"], reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload):
        return payload


def container(env, name, by_path=True):
    if by_path:
        return Client(f"{service}/k/{key}/openenv/{owner}/{env}/container/{name}")
    url = f"{service}/openenv/{owner}/{env}/container/{name}"
    return Client(url, default_headers={"Authorization": f"Bearer {key}"})


def shown(result):
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


def call(text):
    return {"type": "call_tool", "tool_name": "echo", "arguments": {"text": text}}


def status(play):
    try:
        return shown(play())
    except requests.HTTPError as error:
        return error.response.status_code


first, second = container("echo", "one"), container("echo", "two", by_path=False)
before = status(lambda: first.step(call("early")))
openings = [shown(first.reset()), shown(second.reset())]
steps = [shown(first.step(call("a"))), shown(first.step(call("b"))), shown(second.step(call("c")))]
states = [first.state(), second.state()]
bad = [status(lambda: first.step({"bogus": 1})), status(lambda: first.step({"type": "call_tool", "tool_name": "nope"}))]
bench = container("bench", "three")
bench.reset()
waits = [shown(bench.step({"wait_seconds": 0})), status(lambda: bench.step({"wait_seconds": -1}))]
gone = requests.delete(f"{service}/k/{key}/openenv/{owner}/echo/container/one").status_code
after = status(lambda: first.step(call("late")))
again = shown(first.reset())
health = requests.get(f"{service}/k/{key}/openenv/{owner}/echo/container/one/health").json()
print(
    json.dumps(
        {
            "before": before,
            "openings": openings,
            "steps": steps,
            "states": states,
            "bad": bad,
            "waits": waits,
            "gone": gone,
            "after": after,
            "again": again,
            "health": health,
        }
    )
)
