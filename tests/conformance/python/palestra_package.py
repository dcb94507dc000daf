"""Drives the Python package `palestra` (integrations/python) against a service; prints one JSON document as its last line.

usage: palestra_package.py play ENVIRONMENT...      each with our client, and both clients of `openreward`; recorded
       palestra_package.py forms ENVIRONMENT        the episodes of text_episodes.json
       palestra_package.py count ENVIRONMENT TURNS EPISODES    calls of `count`, recorded, many episodes at once
       palestra_package.py quota ENVIRONMENT        a group of three episodes with a key that may open two sessions
       palestra_package.py tasks ENVIRONMENT        references and rows of its first tasks
       palestra_package.py errors ENVIRONMENT       what a program gets when things go wrong; ENVIRONMENT belongs to the key
       palestra_package.py readme                   the snippets of README.md

The service is found by the variables of the official SDK.
"""

import asyncio
import json
import os
import random
import re
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "integrations/python"
sys.path.insert(0, str(PACKAGE / "src"))

import palestra  # noqa: E402
from palestra import Client, Recorder, play, transport, upload  # noqa: E402
from palestra.settings import settings  # noqa: E402

# A proxy that stalls must not cost half a minute each time.
transport.STALL_S = float(os.environ.get("TEST_STALL_S", "30"))
upload.REQUEST_S = float(os.environ.get("TEST_STALL_S", "60"))


def recorded(run):
    """A recorder, and the events that it was given by rollout."""
    recorder = Recorder(run, spool_dir=tempfile.mkdtemp())
    events = {}
    add = recorder._uploader.add

    def remember(event):
        events.setdefault(event.get("rolloutEventId") or event["eventId"], []).append(event)
        add(event)

    recorder._uploader.add = remember
    return recorder, events


def value_of(schema, chosen):
    if "enum" in schema:
        return chosen.choice(schema["enum"])
    kind = schema.get("type")
    return {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}.get(kind, "x")


def player(seed):
    """A model that calls a random tool with arguments of its schema."""
    chosen = random.Random(seed)

    async def chat(messages, tools):
        function = chosen.choice(tools)["function"]
        properties = function["parameters"].get("properties", {})
        arguments = json.dumps({name: value_of(schema, chosen) for name, schema in properties.items()})
        call = {"id": f"call-{len(messages)}", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
        return {"role": "assistant", "content": "I try.", "tool_calls": [call]}

    return chat


def shown(episode, rollout):
    calls = [[call.tool, call.output.text if call.output else call.failure.detail, call.reward] for call in episode.calls]
    return {
        "stop": episode.stop,
        "failure": episode.failure and episode.failure.to_dict(),
        "total": episode.total,
        "calls": calls,
        "messages": episode.messages,
        "session": episode.session_id,
        "rollout": rollout.id,
    }


async def play_all(environments):
    from openreward import AsyncOpenReward, OpenReward

    recorder, events = recorded("python-package")
    played = []
    official, blocking = AsyncOpenReward(), OpenReward()
    async with Client() as client:
        for environment in environments:
            task = {"split": "train", "index": 0}
            sessions = {
                "palestra": client.session(environment, **task),
                "async": official.environments.get(environment).session(**task),
                "sync": blocking.environments.get(environment).session(**task),
            }
            for kind, session in sessions.items():
                rollout = recorder.rollout(environment=environment, **task, step=3, group="g", sample=len(played), phase="train")
                episode = await play(session, player(5), max_turns=6, record=rollout)
                played.append({"kind": kind, "environment": environment, **shown(episode, rollout)})
    await official.environments.aclose()
    blocking.close()
    report = recorder.close(60)
    return {"played": played, "events": events, "complete": report.complete, "report": str(report)}


async def forms(environment):
    episodes = json.loads((HERE / "text_episodes.json").read_text())
    played = []
    async with Client() as client:
        for one in episodes:
            left = list(one["texts"])
            session = client.session(environment, variant=one["variant"], split="train", index=0)

            async def chat(_messages, _tools, left=left):
                # A model without words fails, after what is compared.
                return left.pop(0)

            options = {"parse": one["parse"], "max_turns": one["max_turns"]}
            episode = await play(session, chat, messages=[{"role": "user", "content": "go"}], **options)
            steps = [{"observations": turn.observations, "reward": turn.reward} for turn in episode.turns]
            played.append({"name": one["name"], "steps": steps, "stop": episode.stop})
    return played


async def counting(messages, _tools):
    """A model that calls `count`."""
    made = sum(message["role"] == "assistant" for message in messages)
    call = {"id": f"c{made}", "type": "function", "function": {"name": "count", "arguments": "{}"}}
    return {"role": "assistant", "content": f"turn {made + 1}", "tool_calls": [call]}


async def count(environment, turns, episodes):
    recorder, events = recorded("counted")

    async with Client(retry_for_s=240) as client:

        async def one(sample):
            rollout = recorder.rollout(environment=environment, split="train", index=0, variant="abacus", sample=sample, group="g", step=0)
            session = client.session(environment, variant="abacus", split="train", index=0)
            return shown(await play(session, counting, max_turns=turns, record=rollout), rollout)

        played = await asyncio.gather(*map(one, range(episodes)))
    report = recorder.close(120)
    return {"played": played, "events": events, "complete": report.complete, "report": str(report)}


async def quota(environment):
    recorder, events = recorded("quota")
    limited = ask("POST", "/v1/keys", {"name": "limited", "max_sessions": 2})
    refused = asyncio.Event()

    async def chat(messages, tools):
        """The two that have a session keep it until the third is refused."""
        if messages[-1]["role"] == "tool":
            await refused.wait()
        return await counting(messages, tools)

    async with Client(api_key=limited["key"], retry_for_s=0) as client:

        async def one(sample):
            rollout = recorder.rollout(environment=environment, split="train", index=0, variant="abacus", sample=sample, group="g", step=0)
            session = client.session(environment, variant="abacus", split="train", index=0)
            episode = await play(session, chat, max_turns=3, record=rollout)
            if episode.failure is not None:
                refused.set()
            return shown(episode, rollout)

        played = await asyncio.gather(*map(one, range(3)))
    report = recorder.close(60)
    return {"played": played, "events": events, "complete": report.complete, "report": str(report)}


def tasks(environment):
    refs = list(palestra.iter_tasks(environment, "train", stop=4))
    formats = {name: list(palestra.rows(refs, name)) for name in palestra.FORMATS}
    again = {name: list(palestra.rows(environment, name, stop=4, concurrency=1)) for name in palestra.FORMATS}
    script = "".join(json.dumps(row) + "\n" for row in formats["skyrl-script"])
    difficulty = [row["metadata"] for row in palestra.rows(refs, "messages", difficulty=True)]
    return {
        "refs": [ref.to_dict() for ref in refs],
        "second_page": [ref.index for ref in palestra.iter_tasks(environment, "train", start=2, stop=4)],
        "rows": formats,
        "same": formats == again,
        "script": script,
        "difficulty": difficulty,
    }


def ask(method, route, body=None, key=None):
    headers = {"x-api-key": key or os.environ["OPENREWARD_API_KEY"], "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["OPENREWARD_URL"] + route, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


async def errors(environment):
    results = {}
    spool = tempfile.mkdtemp()

    async def during(name, event, key, **options):
        """Plays `count` three times; `event` happens before the second call."""
        turn = 0

        async def chat(_messages, _tools):
            nonlocal turn
            turn += 1
            if turn == 2:
                await event()
            call = {"id": f"c{turn}", "type": "function", "function": {"name": "count", "arguments": "{}"}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}

        recorder = Recorder("errors", api_key=key["key"], spool_dir=spool)
        rollout = recorder.rollout(environment=environment, split="train", index=0)
        async with Client(api_key=key["key"], retry_for_s=options.pop("retry_for_s", 5)) as client:
            session = client.session(options.pop("environment", environment), variant="abacus", split="train", index=0)
            episode = await play(session, chat, max_turns=3, record=rollout)
        report = recorder.close(options.get("close_s", 20))
        seen = {**shown(episode, rollout), "stored": report.stored, "spilled": report.spilled}
        results[name] = {**seen, "report_error": report.error and report.error.code}

    def key_of(name, **settings):
        return ask("POST", "/v1/keys", {"name": name, **settings})

    revoked = key_of("revoked")

    async def revoke():
        ask("DELETE", f"/v1/keys/{revoked['id']}")

    await during("key_revoked", revoke, revoked, close_s=5)
    with_new_key = upload.Uploader(settings(), Path(spool), any_owner=True).close(20)
    results["uploaded_later"] = {"stored": with_new_key.stored, "complete": with_new_key.complete}

    limited = key_of("limited", max_sessions=1)

    async def open_another():
        async with Client(api_key=limited["key"], retry_for_s=0) as client:
            session = client.session(environment, variant="abacus", split="train", index=0)
            # The service does not refuse: a session waits until the key has a slot.
            second = await play(session, lambda _messages, _tools: "no", timeout_s=5)
            results["quota_reached"] = {"stop": second.stop, "failure": second.failure and second.failure.to_dict()}

    await during("beside_the_quota", open_another, limited)

    name = environment.split("/")[1]

    async def rename():
        ask("PUT", f"/v1/environments/{environment}/details", {"new_name": f"{name}-renamed"})

    await during("renamed_while_playing", rename, key_of("renaming"))
    await during("after_the_renaming", rename, key_of("late"))
    async with Client(url="http://127.0.0.1:9", retry_for_s=0) as nowhere:
        lost = await play(nowhere.session(environment, split="train", index=0), lambda _messages, _tools: "x")
    results["service_down"] = {"stop": lost.stop, "failure": lost.failure and lost.failure.to_dict()}
    return results


def readme():
    """Runs every Python block of the README in order, in one namespace, as a reader types them."""
    text = (PACKAGE / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    namespace = {"__name__": "__main__"}
    os.chdir(tempfile.mkdtemp())
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    return {"blocks": len(blocks), "files": sorted(file.name for file in Path().iterdir())}


MODES = {
    "play": lambda *environments: asyncio.run(play_all(environments)),
    "forms": lambda environment: asyncio.run(forms(environment)),
    "count": lambda environment, turns, episodes: asyncio.run(count(environment, int(turns), int(episodes))),
    "quota": lambda environment: asyncio.run(quota(environment)),
    "tasks": tasks,
    "errors": lambda environment: asyncio.run(errors(environment)),
    "readme": readme,
}

if __name__ == "__main__":
    result = MODES[sys.argv[1]](*sys.argv[2:])
    sys.stdout.flush()
    print(json.dumps(result))
