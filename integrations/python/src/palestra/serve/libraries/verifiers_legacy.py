"""`verifiers-legacy:MODULE`: the environment that `load_environment()` of a module returns, of verifiers before 0.4.

The library plays the rollout and its rubric scores it. The policy replaces the model: where the environment asks its client for a completion,
the episode waits for a call or a message. Settings are arguments of `load_environment`. Environments with a sandbox, rubrics that ask a model,
and rewards of a group are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import httpx
import openai
import verifiers as vf

from palestra.serve.background_loop import BackgroundLoop
from palestra.serve.library import Episode, InvalidInput, Json, Library, Options, Output, Tool, UsageError, text_argument

SUBMIT = Tool.of_text("submit", "Gives the answer that a message without a call would give.", "answer", "The whole answer.")
#: Of environments that answer messages.
ACT = Tool.of_text("act", "Sends a message, and returns the answer of the environment.", "message", "The message, as the rules ask for it.")

#: Names of base classes of environments that run code on other machines.
SANDBOXES = {"SandboxEnv", "SandboxMixin", "CliAgentEnv", "BrowserEnv", "OpenEnvEnv", "RLMEnv"}

#: What the reward functions of an episode raised. The library logs that and counts 0.
raised: ContextVar[list[Exception] | None] = ContextVar("raised", default=None)


class VerifiersLegacy(Library):
    """An environment. Its datasets are the splits train and test."""

    def __init__(self, options: Options) -> None:
        self._loop = BackgroundLoop()
        self._env = load_environment(options)
        refuse_unsupported(options.id, self._env)
        record_failures(self._env)
        turns = not isinstance(self._env, (vf.SingleTurnEnv, vf.ToolEnv, vf.EnvGroup))
        self._answer = ACT if turns else SUBMIT
        self.tools = [self._answer]
        self.terminal = (self._answer.name, "message" if turns else "answer")
        datasets = {"train": dataset_of(self._env, "dataset"), "test": dataset_of(self._env, "eval_dataset")}
        self._rows = {split: rows.select(range(min(len(rows), options.size or len(rows)))) for split, rows in datasets.items() if rows is not None}

    def splits(self) -> dict[str, int]:
        return {split: len(rows) for split, rows in self._rows.items()}

    def task(self, split: str, index: int) -> Json:
        # Not the whole row: it has the answer.
        row = self._rows[split][index]
        prompt = row["prompt"]
        text = prompt if isinstance(prompt, str) else "\n".join(text_of(message.get("content")) for message in prompt)
        return {"id": row.get("example_id", index), "prompt": text}

    def open(self, split: str, index: int) -> Play:
        return Play(self._loop, self._env, self._rows[split][index], self._answer)


class Play(Episode):
    """Runs the rollout in the background loop. It waits in `Policy` for the policy."""

    def __init__(self, loop: BackgroundLoop, env: Any, row: Json, answer: Tool) -> None:
        self._loop = loop
        self._env = env
        self._row = row
        self._answer = answer
        self._calls = 0
        self._output: Output | None = None
        self._client: Any = None
        self._playing: Any = None
        try:
            loop.run(self._begin())
            if self._output is not None:
                raise ValueError("the environment ended without a turn of the policy")
        except BaseException:
            self.close()
            raise

    async def _begin(self) -> None:
        self._policy = Policy()
        http = httpx.AsyncClient(transport=self._policy)
        self._client = openai.AsyncOpenAI(api_key="none", base_url="http://policy/v1", max_retries=0, http_client=http)
        self._playing = asyncio.ensure_future(self._play())
        await self._until_turn()

    async def _play(self) -> None:
        failures: list[Exception] = []
        raised.set(failures)
        wrapper = getattr(vf, "OpenAIChatCompletionsClient", None)
        client = self._client if wrapper is None else wrapper(self._client)
        state = await self._env.rollout(self._row, client, "policy", {})
        if state.get("error") is not None:
            raise state["error"]
        rubric = self._env.rubric
        await rubric.score_group([state], **scoring_options(rubric.score_group))
        if failures:
            raise failures[0]
        if hasattr(rubric, "cleanup"):
            await rubric.cleanup(state)
        weights = {name_of(function): weight for one in environments_in(self._env) for function, weight in functions_of(one.rubric)}
        values = state.get("metrics") or {}
        metadata = {
            "rewards": {name: value for name, value in values.items() if weights.get(name)},
            "metrics": {name: value for name, value in values.items() if not weights.get(name)},
            "stop_condition": state.get("stop_condition"),
        }
        # The environments of a group may have functions of one name.
        if not isinstance(self._env, vf.EnvGroup):
            metadata["weights"] = {name: weight for name, weight in weights.items() if weight}
        text, images = observation_of(messages_after(state.get("completion")))
        self._output = Output(text or "The episode has ended.", float(state["reward"]), True, metadata, images)

    async def _until_turn(self) -> None:
        """Waits until the environment asks for a completion, or ends. Raises what it raised."""
        waiting = asyncio.ensure_future(self._policy.turn.wait())
        await asyncio.wait({waiting, self._playing}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._playing.done():
            self._playing.result()
        self._policy.turn.clear()

    def messages(self) -> list[Json]:
        return [{"role": one["role"], "content": text_of(one.get("content"))} for one in self._policy.request["messages"]]

    def tools(self) -> list[Tool]:
        named = [one["function"] for one in self._policy.request.get("tools") or []]
        return [self._answer, *(Tool(one["name"], one.get("description") or "", one.get("parameters") or {"type": "object"}) for one in named)]

    def call(self, name: str, arguments: Json) -> Output:
        if name == self._answer.name:
            text = text_argument(arguments, next(iter(self._answer.parameters["properties"])))
            if not text.strip():
                raise InvalidInput("the text is empty")
            return self._loop.run(self._reply({"content": text}))
        self._calls += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        return self._loop.run(self._reply({"content": None, "tool_calls": [{"id": f"call_{self._calls}", "type": "function", "function": function}]}))

    async def _reply(self, message: Json) -> Output:
        self._policy.replies.put_nowait({"role": "assistant", **message})
        await self._until_turn()
        if self._output is not None:
            return self._output
        text, images = observation_of(messages_after(self._policy.request["messages"]))
        return Output(text, images=images)

    def close(self) -> None:
        self._loop.run(self._stop())

    async def _stop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait({self._playing})
        if self._client is not None:
            await self._client.close()


class Policy(httpx.AsyncBaseTransport):
    """The chat completions of a model, whose messages are those of the policy. One request at a time."""

    def __init__(self) -> None:
        self.request: Json = {}
        self.turn = asyncio.Event()
        self.replies: asyncio.Queue[Json] = asyncio.Queue()
        self._lock = asyncio.Lock()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/chat/completions"):
            return httpx.Response(404, json={"error": {"message": f"The policy has no {request.url.path}."}})
        async with self._lock:
            self.request = json.loads(await request.aread())
            self.turn.set()
            message = await self.replies.get()
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        body = {"id": "policy", "object": "chat.completion", "created": 0, "model": "policy", "usage": usage}
        return httpx.Response(200, json={**body, "choices": [{"index": 0, "message": message, "finish_reason": reason}]})


def load_environment(options: Options) -> Any:
    """Calls `load_environment` of the module. Raises `UsageError`."""
    name = options.id.replace("-", "_")
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A rubric that asks a model can be made without a key, and is refused below.
    has_key = "OPENAI_API_KEY" in os.environ
    os.environ.setdefault("OPENAI_API_KEY", "none")
    try:
        env = import_module(name).load_environment(**options.settings)
    except (ImportError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        if "sandbox" in str(error).lower():
            raise UsageError(f"{name} runs in a sandbox, which this server does not start.") from error
        raise UsageError(f"{name}.load_environment() raised {type(error).__name__}: {error}") from error
    finally:
        if not has_key:
            del os.environ["OPENAI_API_KEY"]
        # The library replaces the handlers of its process.
        for number, handler in signals.items():
            signal.signal(number, handler)
    if not isinstance(env, vf.Environment):
        raise UsageError(f"{name}.load_environment() returns {type(env).__name__}, which is no verifiers.Environment.")
    return env


def environments_in(env: Any) -> Iterator[Any]:
    """The environment, and those of a group."""
    yield env
    for one in getattr(env, "envs", None) or []:
        yield from environments_in(one)


def rubrics_in(rubric: Any) -> Iterator[Any]:
    """The rubric, and those of a group."""
    yield rubric
    for one in getattr(rubric, "rubrics", None) or []:
        yield from rubrics_in(one)


def functions_of(rubric: Any) -> list[tuple[Callable[..., Any], float]]:
    """Each reward function with its weight."""
    return [pair for one in rubrics_in(rubric) for pair in zip(one.funcs, one.weights)]


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def refuse_unsupported(name: str, env: Any) -> None:
    """Raises `UsageError` for what this server cannot play."""
    for one in environments_in(env):
        bases = {base.__name__ for base in type(one).__mro__}
        if bases & SANDBOXES:
            raise UsageError(f"{name} is a {min(bases & SANDBOXES)}: it runs in a sandbox, which this server does not start.")
        if getattr(one, "message_type", "chat") != "chat":
            raise UsageError(f"{name} completes text. Only environments of chat messages can be served.")
        for rubric in rubrics_in(one.rubric):
            if isinstance(rubric, vf.JudgeRubric):
                raise UsageError(f"{name} is scored by a model ({type(rubric).__name__}), which this server does not ask.")
            if any(rubric._is_group_func(function) for function in rubric.funcs):
                raise UsageError(f"{name} has rewards of a group of rollouts. Sessions are scored one by one.")
        if not is_scored(one.rubric):
            raise UsageError(f"The rubric of {name} has no reward function.")


def is_scored(rubric: Any) -> bool:
    """Whether there is a reward function, or a rubric that scores in its own way."""
    known = (vf.Rubric.score_group, vf.RubricGroup.score_group)
    return any(weight for _, weight in functions_of(rubric)) or any(type(one).score_group not in known for one in rubrics_in(rubric))


def record_failures(env: Any) -> None:
    """Keeps what reward functions raise for `raised`."""
    for one in environments_in(env):
        for rubric in rubrics_in(one.rubric):
            rubric.funcs = [recorded(function) for function in rubric.funcs]


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            failures = raised.get()
            if failures is not None:
                failures.append(error)
            raise

    return call


def scoring_options(score: Callable[..., Any]) -> Json:
    """Before 0.1.10 a rubric limits its parallel calls."""
    return {"score_sem": contextlib.nullcontext()} if "score_sem" in inspect.signature(score).parameters else {}


def dataset_of(env: Any, name: str) -> Any:
    """The dataset, which newer versions build when it is needed. None if there is none."""
    build = getattr(env, f"build_{name}", None)
    return getattr(env, name) if build is None else build()


def messages_after(messages: Any) -> list[Json]:
    """What follows the last message of the policy, as plain values."""
    plain = [one if isinstance(one, dict) else one.model_dump() for one in messages or [] if not isinstance(one, str)]
    last = max((index for index, one in enumerate(plain) if one.get("role") == "assistant"), default=-1)
    return plain[last + 1 :]


def observation_of(messages: list[Json]) -> tuple[str, list[tuple[str, str]]]:
    """The text, and the images that are part of the messages."""
    parts = [part for one in messages if isinstance(one.get("content"), list) for part in one["content"]]
    images = []
    for part in parts:
        url = (part.get("image_url") or {}).get("url", "")
        kind, comma, data = url.removeprefix("data:").partition(";base64,")
        if comma and url.startswith("data:"):
            images.append((kind, data))
    return "\n".join(text_of(one.get("content")) for one in messages), images


def text_of(content: Any) -> str:
    """The text of the content of a message."""
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return "" if content is None else str(content)


def load(options: Options) -> VerifiersLegacy:
    if not hasattr(vf, "Environment"):
        raise UsageError("This Python has a verifiers without load_environment. Run: pip install 'verifiers<0.4'")
    return VerifiersLegacy(options)
