"""Plays echo and bench of Palestra with the official OpenEnv clients of the installed version; prints one JSON document.

Arguments: URL of the service, namespace, API key. Every client gets its key by another carrier.
"""

import asyncio
import inspect
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

service, owner, key = sys.argv[1:4]
host = urlsplit(service).netloc


def userinfo(env):
    return f"http://key:{key}@{host}/openenv/{owner}/{env}"


def path_token(env):
    return f"{service}/k/{key}/openenv/{owner}/{env}"


def call(text):
    return {"type": "call_tool", "tool_name": "echo", "arguments": {"text": text}}


def shown(result):
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


def generic_sync():
    with GenericEnvClient(base_url=userinfo("echo")).sync() as env:
        listed = env.step({"type": "list_tools"})
        opening = env.reset(split="train", index=3, episode_id="ep-sync")
        steps = [shown(env.step(call("hi"))), shown(env.step({"type": "call_tool", "tool_name": "nope", "arguments": {}}))]
        state = env.state()
        again = env.reset(seed=1007)
        return {
            "tools": [tool["name"] for tool in listed.observation["tools"]],
            "opening": shown(opening),
            "steps": steps,
            "state": state,
            "again": again.observation["prompt"],
        }


async def generic_async():
    async with GenericEnvClient(base_url=path_token("echo")) as env:
        await env.reset(task_id="5")
        step = shown(await env.step(call("hi")))
        errors = []
        for action in ({"bogus": 1}, {"type": "call_tool", "tool_name": "echo", "arguments": {"text": 1}}):
            try:
                errors.append(shown(await env.step(action)))
            except RuntimeError as error:
                errors.append(str(error))
        return {"step": step, "state": await env.state(), "errors": errors}


async def actions():
    async with GenericEnvClient(base_url=userinfo("bench")) as env:
        opening = shown(await env.reset())
        step = shown(await env.step({"wait_seconds": 0}))
        try:
            refused = shown(await env.step({"wait_seconds": "x"}))
        except RuntimeError as error:
            refused = str(error)
        return {"opening": opening, "step": step, "refused": refused}


async def tools(production):
    client = MCPToolClient(base_url=userinfo("echo"))
    client.use_production_mode = production
    async with client as env:
        if hasattr(client, "_mode"):
            opening = await env.reset(split="train", index=4)
            prompt = getattr(opening.observation, "prompt", None)
        else:
            prompt = None
        listed = [tool.name for tool in await env.list_tools()]
        said = await env.call_tool("echo", text="said")
        try:
            unknown = await env.call_tool("nope")
        except RuntimeError as error:
            unknown = str(error)
        state = await env.state()
        return {"prompt": prompt, "tools": listed, "said": said, "unknown": unknown, "split": getattr(state, "split", None)}


async def tools_sync():
    def play():
        with MCPToolClient(base_url=path_token("echo")).sync() as env:
            env.reset()
            return env.call_tool("echo", text="sync")

    return await asyncio.to_thread(play)


async def refused():
    texts = []
    for url in (f"http://key:wrong@{host}/openenv/{owner}/echo", f"{service}/openenv/{owner}/echo"):
        try:
            async with GenericEnvClient(base_url=url) as env:
                await env.reset()
            texts.append("connected")
        except ConnectionError as error:
            texts.append(str(error).replace(key, "KEY"))
    return texts


async def auto():
    from openenv.auto import AutoEnv

    def make():
        made = AutoEnv.from_env(f"{owner}/echo", skip_install=True, base_url=userinfo("echo"))
        with made.sync() if hasattr(made, "sync") else made as env:
            return env.reset(index=9).observation["prompt"]

    return await asyncio.to_thread(make)


async def headers():
    if "headers" not in inspect.signature(GenericEnvClient.__init__).parameters:
        return None
    url = f"{service}/openenv/{owner}/echo"
    bearer = {"Authorization": f"Bearer {key}", "X-Palestra-Run": "openenv-run", "X-Palestra-Rollout": "by-headers"}
    async with GenericEnvClient(base_url=url, headers=bearer) as env:
        await env.reset(index=1)
        generic = shown(await env.step(call("by header")))
    async with MCPToolClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as env:
        await env.reset()
        return {"generic": generic["reward"], "mcp": await env.call_tool("echo", text="by header")}


async def siblings():
    """From 0.4 on a client opens more sessions on its address."""
    client = GenericEnvClient(base_url=userinfo("echo"))
    if not hasattr(client, "new_session"):
        return None
    async with client as first:
        await first.reset(index=1)
        second = client.new_session()
        second = await second if inspect.isawaitable(second) else second
        await second.reset(index=2)
        states = [await first.state(), await second.state()]
        await second.close()
        return [state["index"] for state in states]


def plain_with():
    """From 0.4 on a client is sync where it is used so."""
    client = GenericEnvClient(base_url=userinfo("echo"))
    if not hasattr(client, "new_session"):
        return None
    with client as env:
        return env.reset(index=6).observation["prompt"]


async def both():
    return {
        "generic_async": await generic_async(),
        "actions": await actions(),
        "tools_simulation": await tools(False),
        "tools_production": await tools(True),
        "tools_sync": await tools_sync(),
        "refused": await refused(),
        "auto": await auto(),
        "headers": await headers(),
        "siblings": await siblings(),
    }


def installed():
    for name in ("openenv", "openenv-core"):
        try:
            return version(name)
        except PackageNotFoundError:
            pass


result = {"version": installed(), "generic_sync": generic_sync(), "plain_with": plain_with(), **asyncio.run(both())}
print(json.dumps(result, default=str))
