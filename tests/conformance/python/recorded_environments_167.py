"""The environments behind the exchanges that were recorded with openreward 0.1.167."""

import asyncio
import json

from openreward.environments import Environment, Split, TextBlock, ToolOutput, terminal, tool
from openreward.environments.types import GroupScore, Message
from pydantic import BaseModel

TASKS = [{"q": "1+1", "a": "2"}, {"q": "2+2", "a": "4"}]
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CONVERSATION = [
    {"role": "system", "blocks": [{"type": "text", "text": "Be brief."}]},
    {
        "role": "user",
        "blocks": [
            {"type": "text", "text": "What is on the picture?"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
        ],
    },
    {
        "role": "assistant",
        "blocks": [
            {"type": "reasoning", "text": "I should look."},
            {"type": "text", "text": "One moment."},
            {"type": "tool_call", "id": "c1", "name": "look", "input": {"zoom": 2}},
        ],
    },
    {
        "role": "user",
        "detail": {"turn": 2},
        "blocks": [
            {"type": "tool_result", "tool_call_id": "c1", "blocks": [{"type": "text", "text": "a dot"}]},
            {"type": "text", "text": "QUESTION"},
        ],
    },
]


class N(BaseModel):
    n: float = 0


class A(BaseModel):
    answer: str


def text(value: str, **output) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=value)], **output)


class Tasks(Environment):
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


class Prompted(Tasks):
    def get_prompt(self):
        return [TextBlock(text=self.task_spec["q"])]


class MathTools(Prompted):
    @tool
    async def boom(self) -> ToolOutput:
        raise RuntimeError("kaboom")

    @tool(concurrent=True)
    async def par(self, params: N) -> ToolOutput:
        """concurrent"""
        await asyncio.sleep(params.n)
        return text("par done")

    @tool
    async def probe(self) -> ToolOutput:
        """look"""
        return text("probed")

    @tool
    async def slow(self, params: N) -> ToolOutput:
        """serialised"""
        await asyncio.sleep(params.n)
        return text("slow done")

    @tool
    async def submit(self, params: A) -> ToolOutput:
        """Submit an answer"""
        right = params.answer == self.task_spec["a"]
        return text("ok" if right else "no", reward=1.0 if right else 0.0, finished=True, metadata={"k": 1})


class MathEnv(MathTools):
    pass


class OtherEnv(MathTools):
    pass


class SlowEnv(MathTools):
    async def setup(self):
        await asyncio.sleep(self.task_spec.get("setup", 0))


class BrokenEnv(MathTools):
    def setup(self):
        raise ValueError("setup exploded")


class CtorEnv(MathTools):
    def __init__(self, task_spec={}, secrets={}) -> None:
        raise ValueError("ctor exploded")


class LateSandboxEnv(MathTools):
    def setup(self):
        self.sandbox = object()


class SandboxEnv(MathTools):
    def __init__(self, task_spec={}, secrets={}) -> None:
        super().__init__(task_spec, secrets)
        self.sandbox = object()


class ConvEnv(Tasks):
    def get_messages(self):
        asked = json.loads(json.dumps(CONVERSATION).replace("QUESTION", self.task_spec["q"]))
        return [Message.model_validate(message) for message in asked]

    async def score_group(self, candidates):
        if len(candidates) == 1:
            raise RuntimeError("need two")
        scores = [
            GroupScore(reward=float(index), metadata=None if index == 0 else {"n": len(candidate.messages)})
            for index, candidate in enumerate(candidates)
        ]
        return scores[:1] if len(candidates) == 4 else scores

    @tool(exclusive=True)
    async def submit(self, params: A) -> ToolOutput:
        """Submit"""
        return text("ok", reward=1.0, finished=True)


class TermEnv(Prompted):
    @terminal
    @tool
    async def answer(self, params: A) -> ToolOutput:
        """Final answer"""
        return text(params.answer, reward=1.0, finished=True)
