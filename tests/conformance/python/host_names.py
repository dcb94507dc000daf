"""Plays an episode and uploads a rollout with the official client, which knows only OPENREWARD_URL: python host_names.py PORT.

The name resolution of a laptop whose resolver follows RFC 6761: every name below localhost is the loopback address.
"""

import json
import socket
import sys

resolve = socket.getaddrinfo
asked = set()


def resolve_localhost(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name is not None and name.endswith("localhost"):
        asked.add(name)
        host = "127.0.0.1"
    return resolve(host, *args, **kwargs)


socket.getaddrinfo = resolve_localhost

from openreward import OpenReward, UserMessage  # noqa: E402

client = OpenReward(base_url=f"http://localhost:{sys.argv[1]}")
environment = client.environments.get("palestra/echo")
rollout = client.rollout.create(run_name="host names", rollout_name="one", environment="palestra/echo", split="train")
with environment.session(split="train", index=0) as session:
    output = session.call_tool("echo", {"text": "hello"})
    rollout.log(UserMessage(content=output.blocks[0].text), reward=output.reward, is_finished=True)
client.rollout.close()
print(json.dumps({"asked": sorted(asked), "reward": output.reward, "rollout": rollout.event_id}))
