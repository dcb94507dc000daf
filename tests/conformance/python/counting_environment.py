"""Counts how often its tool really ran, in a file that outlives every process: `COUNT_FILE`."""

import asyncio
import os

from openreward.environments import Environment, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Wait(BaseModel):
    wait: bool


def note(line: str) -> None:
    with open(os.environ["COUNT_FILE"], "a") as file:
        file.write(line + "\n")


class CountingEnv(Environment):
    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"id": 0}]

    def get_prompt(self):
        return [TextBlock(text="count")]

    @tool
    async def work(self, params: Wait) -> ToolOutput:
        """Waits for the file COUNT_FILE.end when told to, and must not run twice."""
        note("start")
        while params.wait and not os.path.exists(os.environ["COUNT_FILE"] + ".end"):
            await asyncio.sleep(0.05)
        note("end")
        return ToolOutput(blocks=[TextBlock(text=f"worked {params.wait}")], reward=0.5)
