"""Plays episodes of the given environment, CONCURRENCY at a time, each with a few calls that name themselves: at least SESSIONS, and until the
file END exists.

usage: many_sessions.py DEPLOYMENT TOOL SESSIONS CONCURRENCY SEED END

An episode whose session could not be opened begins again in a new one, as trainers do; a call is never made again by us. Prints
{"results": {id: text}, "failed": {id: error}, "reopened": n} as its last line.
"""

import asyncio
import itertools
import json
import os
import random
import sys

from openreward import AsyncOpenReward

deployment, tool, sessions, concurrency, seed, end = *sys.argv[1:3], *map(int, sys.argv[3:6]), sys.argv[6]
results: dict[str, str] = {}
failed: dict[str, str] = {}
reopened: list[str] = []


async def episode(environment, number: int) -> None:
    dice = random.Random(seed * 100_003 + number)
    waits = [dice.choice([0.0, 0.0, 0.01, 0.05, 0.2, 1.0]) for _ in range(dice.randint(2, 5))]
    for attempt in range(6):
        name = f"{number}.{attempt}"
        done = 0
        try:
            async with environment.session(split="train", index=number % 16) as session:
                for position, seconds in enumerate(waits):
                    call = f"{name}.{position}"
                    try:
                        output = await session.call_tool(tool, {"text": call} if tool == "echo" else {"id": call, "seconds": seconds})
                        results[call] = output.blocks[0].text
                    except Exception as error:  # noqa: BLE001
                        failed[call] = f"{type(error).__name__}: {error}"
                        return
                    done += 1
            return
        except Exception as error:  # noqa: BLE001
            if done > 0:
                # All calls are through; only the end of the session failed.
                return
            reopened.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(2**attempt)
    failed[f"{number}"] = "no session: " + reopened[-1]


async def main() -> None:
    client = AsyncOpenReward()
    environment = client.environments.get(deployment)
    numbers = itertools.count()

    async def player() -> None:
        for number in numbers:
            if number >= sessions and os.path.exists(end):
                return
            await episode(environment, number)

    await asyncio.gather(*(player() for _ in range(concurrency)))
    print(json.dumps({"results": results, "failed": failed, "reopened": reopened}))


asyncio.run(main())
