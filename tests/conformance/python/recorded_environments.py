"""The environments behind the exchanges that were recorded with openreward 0.1.112."""

import asyncio

from openreward.environments import Environment, ImageBlock, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel

TASKS = [{"q": "1+1", "a": "2"}, {"q": "2+2", "a": "4"}]
PNG = "iVBORw0KGgo="


class N(BaseModel):
    n: int
    lead: str = ""


class A(BaseModel):
    answer: str


def text(value: str, **output) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=value)], **output)


class MathTools(Environment):
    def __init__(self, task_spec={}, secrets={}) -> None:
        super().__init__(task_spec, secrets)
        self.given_secrets = secrets

    @classmethod
    def list_splits(cls):
        return [
            Split(name="train", type="train"),
            Split(name="test", type="test"),
            Split(name="hard", type="validation"),
        ]

    @classmethod
    def list_tasks(cls, split: str):
        return TASKS

    def get_prompt(self):
        return [TextBlock(text=self.task_spec["q"])]

    @tool
    async def big(self, params: N) -> ToolOutput:
        """big output"""
        return text(params.lead + "x" * params.n)

    @tool
    async def boom(self) -> ToolOutput:
        raise RuntimeError("kaboom")

    @tool
    async def secretz(self) -> ToolOutput:
        """s"""
        return text(str(self.given_secrets))

    @tool
    async def slow(self, params: N) -> ToolOutput:
        """slow"""
        await asyncio.sleep(params.n)
        return text("slow done")

    @tool
    async def spaces(self, params: N) -> ToolOutput:
        """spaces"""
        return text(" " * params.n)

    @tool
    async def submit(self, params: A) -> ToolOutput:
        """Submit an answer"""
        right = params.answer == self.task_spec["a"]
        return text("ok" if right else "no", reward=1.0 if right else 0.0, finished=True, metadata={"k": 1})


class MathEnv(MathTools):
    pass


class OtherEnv(MathTools):
    pass


class RawMathEnv(MathTools):
    @classmethod
    def name(cls) -> str:
        return "mathenv"

    @tool
    async def boom_empty(self) -> ToolOutput:
        """empty error"""
        raise RuntimeError("")

    @tool
    async def boom_lines(self) -> ToolOutput:
        """multi-line error"""
        raise RuntimeError("line one\nline two")

    @tool
    async def image(self) -> ToolOutput:
        """image and detail"""
        return ToolOutput(
            blocks=[TextBlock(text="see image", detail={"lang": "en"}), ImageBlock(data=PNG, mimeType="image/png")]
        )


class BrokenEnv(MathTools):
    def setup(self):
        raise ValueError("setup exploded")


class IndexEnv(Environment):
    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train")]

    @classmethod
    def list_tasks(cls, split: str):
        raise NotImplementedError

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return 1000

    @classmethod
    async def get_task(cls, split: str, index: int):
        if not 0 <= index < 1000:
            raise IndexError(index)
        return {"id": index}

    def get_prompt(self):
        return [TextBlock(text=str(self.task_spec["id"])), ImageBlock(data=PNG, mimeType="image/png")]

    @tool
    async def submit(self, params: A) -> ToolOutput:
        """Submit an answer"""
        return text("ok", reward=1.0, finished=True)
