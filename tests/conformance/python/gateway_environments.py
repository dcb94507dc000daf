"""Environments that show what a gateway must keep and mend; for every generation of the official server."""

import asyncio

try:
    from openreward.environments import Environment, Split, TextBlock, ToolOutput, tool
except ImportError:
    from ors import Environment, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Answer(BaseModel):
    answer: str


class Spaces(BaseModel):
    spaces: int


class Seconds(BaseModel):
    seconds: float


def text(value: str, **output) -> ToolOutput:
    output.setdefault("reward", None)
    output.setdefault("finished", False)
    return ToolOutput(blocks=[TextBlock(text=value)], **output)


class Base(Environment):
    def __init__(self, task_spec=None, secrets=None, **rest):
        super().__init__(task_spec=task_spec, secrets=secrets or {}, **rest)
        self.runs = 0
        self.given = dict(secrets or {})

    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train")]

    def get_prompt(self):
        return [TextBlock(text=f"task {self.task_spec['id']}")]

    @tool
    async def crash(self) -> ToolOutput:
        """Raises."""
        raise ValueError("tool crashed")

    @tool
    async def secret(self) -> ToolOutput:
        """Tells the secret TOKEN."""
        return text(str(self.given.get("TOKEN")))

    @tool
    async def slow(self, params: Seconds) -> ToolOutput:
        """Takes its time and counts how often it ran."""
        self.runs += 1
        await asyncio.sleep(params.seconds)
        return text(f"runs: {self.runs}")

    @tool
    async def submit(self, params: Answer) -> ToolOutput:
        """Ends the episode."""
        return text(params.answer, reward=1.0, finished=True)

    @tool
    async def wide(self, params: Spaces) -> ToolOutput:
        """Returns the task and a long run of spaces."""
        return text(" " * params.spaces, metadata=dict(self.task_spec))


class Gateway(Base):
    @classmethod
    def list_tasks(cls, split):
        return [{"id": 0}, {"id": 1, "big": 12345678901234567890, "one": 1.0}, {"id": 2}]


class Indexed(Base):
    @classmethod
    def list_tasks(cls, split):
        raise NotImplementedError

    @classmethod
    async def num_tasks(cls, split):
        return 7

    @classmethod
    async def get_task(cls, split, index):
        if not 0 <= index < 7:
            raise IndexError(index)
        return {"id": index}


class Failing(Gateway):
    async def setup(self):
        raise ValueError("no setup")
