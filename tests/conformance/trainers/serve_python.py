"""Plays episodes of an environment with the official client, all sessions at once.

usage: serve_python.py JSON: {"environment", "episodes": [{"split", "index", "calls": [[tool, input], ...] | "bisect": [tool, argument, form] | "last"}]}
Prints [{"prompt", "tools", "terminal", "spec", "outputs": [[text, reward, finished], ...], "failure"}, ...] as its last line.
"""

import asyncio
import json
import re
import sys
from typing import Any

from openreward import AsyncOpenReward
from openreward.api.errors import ToolCallError


def text_of(blocks: Any) -> str:
    return "\n".join(block.text for block in blocks)


async def play(environment: Any, episode: dict[str, Any], opened: asyncio.Barrier) -> dict[str, Any]:
    split, index = episode["split"], episode["index"]
    async with environment.session(split=split, index=index) as session:
        prompt = text_of(await session.get_prompt())
        tools = sorted(tool.name for tool in await session.list_tools())
        terminal = await session.terminal_tool()
        # Every session is open before the first call, and their calls overlap.
        await opened.wait()
        outputs, failure = [], None

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            output = await session.call_tool(tool, arguments)
            outputs.append([text_of(output.blocks), output.reward, output.finished])
            return output

        for tool, arguments in episode.get("calls", []):
            try:
                await call(tool, arguments)
            except ToolCallError as refused:
                outputs.append([str(refused), None, False])
            except Exception as error:  # noqa: BLE001
                failure = f"{type(error).__name__}: {error}"
                break
        if "last" in episode:
            output = await session.call_terminal_tool(episode["last"])
            outputs.append([text_of(output.blocks), output.reward, output.finished])
        if "bisect" in episode:
            tool, argument, form = episode["bisect"]
            low, high = map(int, re.search(r"between (\d+) and (\d+)", prompt).groups())
            while True:
                guess = (low + high) // 2
                output = await call(tool, {argument: form.replace("N", str(guess))})
                if output.finished:
                    break
                if "higher" in text_of(output.blocks):
                    low = guess + 1
                else:
                    high = guess - 1
    task = await environment.get_task(split, index)
    terminal_name = None if terminal is None else terminal.name
    return {"prompt": prompt, "tools": tools, "terminal": terminal_name, "spec": task.task_spec, "outputs": outputs, "failure": failure}


async def main() -> None:
    work = json.loads(sys.argv[1])
    environment = AsyncOpenReward().environments.get(work["environment"])
    opened = asyncio.Barrier(len(work["episodes"]))
    print(json.dumps(await asyncio.gather(*(play(environment, episode, opened) for episode in work["episodes"]))))


asyncio.run(main())
