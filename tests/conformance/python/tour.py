"""Everything a trainer does with the official client, once; prints what it saw as one JSON document.

usage: tour.py '{"mode": "sync"|"async", "deployment", "variant", "split", "index", "calls": [[tool, input], ...], "secrets"}'
"""

import asyncio
import inspect
import json
import sys

from openreward import AsyncOpenReward, OpenReward


async def settle(value):
    """The asynchronous client returns awaitables, the synchronous one values."""
    return await value if inspect.isawaitable(value) else value


def spec(tool) -> dict:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def blocks(given) -> list[dict]:
    return [{"type": block.type, "text": getattr(block, "text", None)} for block in given]


async def discover(environment, split: str, index: int) -> dict:
    task = await settle(environment.get_task(split, index))
    ranged = await settle(environment.get_task_range(split, start=0, stop=3))
    return {
        "splits": await settle(environment.list_splits()),
        "num_tasks": await settle(environment.num_tasks(split)),
        "task": task.task_spec,
        "environment_name": task.environment_name,
        "range": [ranged_task.task_spec for ranged_task in ranged],
        "tools": [spec(tool) for tool in await settle(environment.list_tools())],
    }


async def play(session, calls) -> dict:
    seen = {
        "prompt": blocks(await settle(session.get_prompt())),
        "session_tools": [spec(tool) for tool in await settle(session.list_tools())],
        "results": [],
    }
    for name, given in calls:
        try:
            output = await settle(session.call_tool(name, given))
            seen["results"].append(
                {"blocks": blocks(output.blocks), "reward": output.reward, "finished": output.finished, "metadata": output.metadata}
            )
        except Exception as error:  # what the trainer would see, by its type
            seen["results"].append({"error": type(error).__name__, "reason": getattr(error, "reason", None), "text": str(error)})
    return seen


async def run_async(given: dict) -> dict:
    environment = AsyncOpenReward().environments.get(given["deployment"], variant=given.get("variant"))
    seen = await discover(environment, given["split"], given["index"])
    async with environment.session(split=given["split"], index=given["index"], secrets=given.get("secrets")) as session:
        return seen | await play(session, given["calls"])


def run_sync(given: dict) -> dict:
    # The synchronous client brings its own event loop; these coroutines never really wait.
    def drive(coroutine):
        try:
            coroutine.send(None)
        except StopIteration as finished:
            return finished.value
        raise RuntimeError("the synchronous client returned an awaitable")

    environment = OpenReward().environments.get(given["deployment"], variant=given.get("variant"))
    seen = drive(discover(environment, given["split"], given["index"]))
    with environment.session(split=given["split"], index=given["index"], secrets=given.get("secrets")) as session:
        return seen | drive(play(session, given["calls"]))


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    report = asyncio.run(run_async(arguments)) if arguments["mode"] == "async" else run_sync(arguments)
    print(json.dumps(report))
