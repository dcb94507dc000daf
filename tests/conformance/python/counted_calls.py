"""An environment that notes every execution of its tool by the id that the call brings, in a file that outlives every process."""

import asyncio
import os

from openreward.environments import Environment, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Call(BaseModel):
    id: str
    seconds: float


class CountedEnv(Environment):
    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str):
        return [{"id": index} for index in range(16)]

    def get_prompt(self):
        return [TextBlock(text="count")]

    @tool
    async def work(self, params: Call) -> ToolOutput:
        """Must run once for each id."""
        with open(os.environ["COUNT_FILE"], "a") as file:
            file.write(params.id + "\n")
        await asyncio.sleep(params.seconds)
        return ToolOutput(blocks=[TextBlock(text=params.id)], reward=1.0)
