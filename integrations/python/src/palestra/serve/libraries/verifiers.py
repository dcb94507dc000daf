"""`verifiers:ID`: the tasks of a verifiers 0.4 taskset, with its tools, scored by its rewards through the tool `submit`.

Settings are those of the taskset's config. `--data SPLIT=VALUE` names splits: `VALUE` is the `split` of the config. A taskset whose package
plays the turns itself (with its own `Env`), or whose tasks need a container, is refused.
"""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.runtimes import make_runtime
from verifiers.v1.state import state_cls
from verifiers.v1.utils.decorators import invoke

from palestra.serve.background_loop import BackgroundLoop
from palestra.serve.library import Episode, InvalidInput, Json, Library, Options, Output, Tool, UsageError, text_argument

SUBMIT = Tool.of_text("submit", "Submits the final answer and ends the episode.", "answer", "The final answer, as the task asks for it.")

#: Tasks of an infinite taskset.
DEFAULT_SIZE = 1_000


class Verifiers(Library):
    """A taskset, loaded once for each split."""

    tools = [SUBMIT]
    terminal = ("submit", "answer")

    def __init__(self, options: Options) -> None:
        self._loop = BackgroundLoop()
        try:
            config = vf.taskset_config_type(options.id)
            own = vf.environment_class(options.id)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise UsageError(f"verifiers cannot load the taskset {options.id!r}: {error}") from error
        if own is not SingleAgentEnv:
            raise UsageError(f"The package of {options.id} plays the turns itself, with {own.__name__}. Only tasksets can be served.")
        self._tasks: dict[str, list[Any]] = {}
        for split, value in (options.data or {"train": ""}).items():
            settings = {**options.settings, **({"split": value} if value else {}), "id": options.id}
            try:
                taskset = vf.load_taskset(config.model_validate(settings))
            except (TypeError, ValueError) as error:
                raise UsageError(f"verifiers refuses the settings of {options.id}: {error}") from error
            size = options.size or (DEFAULT_SIZE if taskset.INFINITE else None)
            self._tasks[split] = list(itertools.islice(taskset, size))
        if any(task.NEEDS_CONTAINER or task.data.image for tasks in self._tasks.values() for task in tasks[:1]):
            raise UsageError(f"The tasks of {options.id} need a container, which this server does not start.")

    def splits(self) -> dict[str, int]:
        return {split: len(tasks) for split, tasks in self._tasks.items()}

    def task(self, split: str, index: int) -> Json:
        # Not the whole data: it may have the solution.
        task = self._tasks[split][index]
        return {"key": task.key, "name": task.data.name, "prompt": task.data.prompt_text}

    def open(self, split: str, index: int) -> Solve:
        return Solve(self._loop, self._tasks[split][index])


class Solve(Episode):
    def __init__(self, loop: BackgroundLoop, task: Any) -> None:
        self._loop = loop
        self._task = task
        self._runtime: Any = None
        info = vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        self._trace = vf.Trace(task=info, state=state_cls(type(task))(), agent=vf.AgentInfo(config=vf.AgentConfig()))
        self._servers: dict[str, tuple[MCPServer, str]] = {}
        self._tools = [SUBMIT]
        self._start = messages_of(task.data)
        for message in self._start:
            kinds = {"system": vf.SystemMessage, "user": vf.UserMessage, "assistant": vf.AssistantMessage}
            self._add(kinds[message["role"]](content=message["content"]))
        try:
            loop.run(self._set_up())
        except BaseException:
            self.close()
            raise

    def _add(self, message: Any, sampled: bool = False) -> None:
        nodes = self._trace.nodes
        nodes.append(vf.MessageNode(parent=len(nodes) - 1 if nodes else None, message=message, sampled=sampled))

    async def _set_up(self) -> None:
        if needs_runtime(self._task):
            self._runtime = make_runtime(vf.SubprocessConfig(), name=self._trace.id)
            await self._runtime.start()
        await invoke(self._task.setup, {"trace": self._trace, "runtime": self._runtime})
        for toolset in self._task.toolsets(self._task.config):
            await self._serve_tools(toolset)

    async def _serve_tools(self, toolset: Any) -> None:
        """Runs the tools in this process, with the state of this episode where their server would fetch it over HTTP."""

        async def state() -> Any:
            return self._trace.state

        toolset._pull_state = state
        await toolset.setup()
        await toolset.setup_task(self._task)
        server = MCPServer(toolset.server_name or "tools")
        toolset.register(server)
        prefix = f"{toolset.server_name}_" if toolset.server_name else ""
        for tool in await server.list_tools():
            name = f"{prefix}{tool.name}"
            self._servers[name] = (server, tool.name)
            self._tools.append(Tool(name, tool.description or "", tool.input_schema))

    def messages(self) -> list[Json]:
        return self._start

    def tools(self) -> list[Tool]:
        return self._tools

    def call(self, name: str, arguments: Json) -> Output:
        if name == SUBMIT.name:
            return self._loop.run(self._score(text_argument(arguments, "answer")))
        return self._loop.run(self._call(name, arguments))

    async def _call(self, name: str, arguments: Json) -> Output:
        server, tool = self._servers[name]
        try:
            result: Any = await server.call_tool(tool, arguments)
        except ToolError as error:
            if error.__cause__ is None or type(error.__cause__).__name__ == "ValidationError":
                raise InvalidInput(str(error)) from error
            raise
        blocks = getattr(result, "content", [])
        images = [(block.mime_type, block.data) for block in blocks if block.type == "image"]
        return Output("\n".join(block.text for block in blocks if block.type == "text"), images=images)

    async def _score(self, answer: str) -> Output:
        self._add(vf.AssistantMessage(content=answer), sampled=True)
        self._trace.is_completed = True
        await invoke(self._task.finalize, {"trace": self._trace, "runtime": self._runtime})
        await self._task.score(self._trace, self._runtime)
        unscored = [name for name, reward in self._trace.rewards.items() if reward is None]
        if unscored or not self._trace.rewards:
            raise ValueError(f"the rewards {', '.join(unscored)} were not computed" if unscored else "the task has no rewards")
        rewards = {name: reward.value for name, reward in self._trace.rewards.items()}
        metadata = {"rewards": rewards, "metrics": dict(self._trace.metrics)}
        return Output("The answer was submitted.", float(self._trace.reward), finished=True, metadata=metadata)

    def close(self) -> None:
        if self._runtime is not None:
            self._loop.run(self._runtime.stop())
            self._runtime = None


def messages_of(data: Any) -> list[Json]:
    """The conversation at the start, as text."""
    start = [] if data.system_prompt is None else [{"role": "system", "content": data.system_prompt}]
    if isinstance(data.prompt, str):
        return [*start, {"role": "user", "content": data.prompt}]
    return start + [{"role": message.role, "content": vf.types.content_text(message.content)} for message in data.prompt or []]


def needs_runtime(task: Any) -> bool:
    """Whether a hook of the task uses the machine that a policy would work on."""
    overridden = any(getattr(type(task), hook) is not getattr(vf.Task, hook) for hook in ("setup", "finalize"))
    scored = [*task.hooks("reward"), *task.hooks("metric")]
    return overridden or any("runtime" in inspect.signature(hook).parameters for hook in scored)


def load(options: Options) -> Verifiers:
    return Verifiers(options)
