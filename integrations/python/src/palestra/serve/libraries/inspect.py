"""`inspect:TASK`: the samples of an Inspect task, played by its solver and scored by its scorer. `TASK` is `package/name` or `file.py@name`.

The policy replaces the model: where the solver generates, the episode waits for a call or an answer. Settings are arguments of the
task. Solvers that call a model themselves (`react`, `basic_agent`), and tasks with a sandbox, are refused.
"""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai._eval.loader import load_tasks
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput, execute_tools
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolCall, ToolDef

from palestra.serve.background_loop import BackgroundLoop
from palestra.serve.library import Episode, Json, Library, Options, Output, Tool, UsageError, text_argument

SUBMIT = Tool.of_text("submit", "Gives the answer that a message without a call would give.", "answer", "The whole answer.")


class Inspect(Library):
    """A task. Its dataset is one split, `test`."""

    tools = [SUBMIT]
    terminal = ("submit", "answer")

    def __init__(self, options: Options) -> None:
        self._loop = BackgroundLoop()
        try:
            tasks = load_tasks([options.id], options.settings)
        except (ImportError, LookupError, OSError, TypeError, ValueError) as error:
            raise UsageError(f"inspect cannot load the task {options.id!r}: {error}") from error
        if len(tasks) != 1:
            raise UsageError(f"{options.id!r} names {len(tasks)} tasks. Expected one, as package/name or file.py@name.")
        self._task = tasks[0]
        if self._task.sandbox is not None or any(sample.sandbox is not None for sample in self._task.dataset):
            raise UsageError(f"The task {options.id} needs a sandbox, which this server does not start.")
        if not self._task.scorer:
            raise UsageError(f"The task {options.id} has no scorer.")
        self._samples = list(self._task.dataset)[: options.size]

    def splits(self) -> dict[str, int]:
        return {"test": len(self._samples)}

    def task(self, split: str, index: int) -> Json:
        sample = self._samples[index]
        text = sample.input if isinstance(sample.input, str) else "\n".join(message.text for message in sample.input)
        return {"id": index + 1 if sample.id is None else sample.id, "input": text}

    def open(self, split: str, index: int) -> Solve:
        return Solve(self._loop, self._task, self._samples[index], index)


class Solve(Episode):
    """Runs the solver in the background loop. It waits in `_generate` for the policy."""

    def __init__(self, loop: BackgroundLoop, task: Any, sample: Any, index: int) -> None:
        self._loop = loop
        self._task = task
        self._sample = sample
        messages = [ChatMessageUser(content=sample.input)] if isinstance(sample.input, str) else list(sample.input)
        self._state = TaskState(
            model=ModelName("palestra/policy"),
            sample_id=index + 1 if sample.id is None else sample.id,
            epoch=1,
            input=sample.input,
            messages=messages,
            target=Target(sample.target),
            choices=sample.choices,
            metadata=sample.metadata or {},
        )
        self._seen = 0
        self._calls = 0
        self._output: Output | None = None
        loop.run(self._begin())
        if self._output is not None:
            raise ValueError("the solver ended without a turn of the policy")

    async def _begin(self) -> None:
        self._replies: asyncio.Queue[ChatMessageAssistant] = asyncio.Queue()
        self._turn = asyncio.Event()
        self._solving = asyncio.ensure_future(self._solve())
        await self._until_turn()
        self._start = [{"role": message.role, "content": message.text} for message in self._state.messages]
        self._seen = len(self._state.messages)
        self._tools = [SUBMIT, *(tool_of(ToolDef(tool)) for tool in self._state.tools)]

    async def _solve(self) -> None:
        state = self._state
        for solver in [*([] if self._task.setup is None else [self._task.setup]), self._task.solver]:
            state = await solver(state, self._generate)
        state.completed = True
        scores = {}
        for position, scorer in enumerate(self._task.scorer):
            score = await scorer(state, Target(self._sample.target))
            if score is not None:
                scores[str(position)] = score
        if not scores:
            raise ValueError("no scorer of the task scored the answer")
        score = next(iter(scores.values()))
        if isinstance(score.value, (dict, list)):
            raise ValueError("the first scorer of the task returns several values, which are not one reward")
        metadata = {"value": score.value, "answer": score.answer, "explanation": score.explanation}
        self._output = Output("The answer was submitted.", value_to_float()(score.value), finished=True, metadata=metadata)

    async def _generate(self, state: TaskState, tool_calls: str = "loop", **_: Any) -> TaskState:
        """Inspect's `generate`, with the policy as the model."""
        while True:
            self._state = state
            self._turn.set()
            reply = await self._replies.get()
            state.messages.append(reply)
            state.output = ModelOutput.from_message(reply)
            if not reply.tool_calls or tool_calls == "none":
                return state
            result = await execute_tools(state.messages, state.tools)
            state.messages.extend(result.messages)
            if tool_calls == "single" or state.completed:
                return state

    async def _until_turn(self) -> None:
        """Waits until the solver needs a generation, or ends. Raises what it raised."""
        waiting = asyncio.ensure_future(self._turn.wait())
        await asyncio.wait({waiting, self._solving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._solving.done():
            self._solving.result()
        self._turn.clear()

    def messages(self) -> list[Json]:
        return self._start

    def tools(self) -> list[Tool]:
        return self._tools

    def call(self, name: str, arguments: Json) -> Output:
        if name == SUBMIT.name:
            reply = ChatMessageAssistant(content=text_argument(arguments, "answer"))
        else:
            self._calls += 1
            reply = ChatMessageAssistant(content="", tool_calls=[ToolCall(id=f"call_{self._calls}", function=name, arguments=arguments)])
        return self._loop.run(self._reply(reply))

    async def _reply(self, reply: ChatMessageAssistant) -> Output:
        self._replies.put_nowait(reply)
        await self._until_turn()
        if self._output is not None:
            return self._output
        new = [message for message in self._state.messages[self._seen :] if message.role != "assistant"]
        self._seen = len(self._state.messages)
        return Output("\n".join(message.text or str(getattr(message, "error", "")) for message in new))

    def close(self) -> None:
        self._loop.run(self._stop())

    async def _stop(self) -> None:
        self._solving.cancel()
        await asyncio.wait({self._solving})
        if self._task.cleanup is not None:
            await self._task.cleanup(self._state)


def tool_of(definition: Any) -> Tool:
    return Tool(definition.name, definition.description, definition.parameters.model_dump(exclude_none=True))


def load(options: Options) -> Inspect:
    return Inspect(options)
