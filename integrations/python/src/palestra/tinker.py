"""tinker-cookbook: an `RLDatasetBuilder` whose groups play the environments of a Palestra service (docs/trainers/tinker.md).

`PalestraDatasetBuilder` is the `dataset_builder` of `tinker_cookbook.rl.train.Config`. The tasks are a file of
`palestra.write_rows(..., rows(..., "tinker"))`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from palestra.versions import require

VERSION = require("tinker-cookbook", ">=0.6.1,<0.7", extra="tinker")

import chz  # noqa: E402
from tinker_cookbook.renderers import Message as RendererMessage  # noqa: E402
from tinker_cookbook.renderers import Renderer, ToolSpec, get_renderer  # noqa: E402
from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult  # noqa: E402
from tinker_cookbook.rl.types import (  # noqa: E402
    STOP_METRIC_PREFIX,
    Env,
    EnvGroupBuilder,
    Metrics,
    RLDataset,
    RLDatasetBuilder,
    Trajectory,
)
from tinker_cookbook.rl.types import StopReason as TinkerStop  # noqa: E402
from tinker_cookbook.tokenizer_utils import get_tokenizer  # noqa: E402

from palestra.episode import StopReason  # noqa: E402
from palestra.failures import Failure  # noqa: E402
from palestra.forms import Parse  # noqa: E402
from palestra.messages import Message, tool_call  # noqa: E402
from palestra.places import session_of, task_of  # noqa: E402
from palestra.runs import client_of, recorder_of  # noqa: E402
from palestra.steps import Steps  # noqa: E402
from palestra.tasks import TaskRef  # noqa: E402

_TINKER_STOPS: dict[str, TinkerStop] = {
    "finished": TinkerStop.TOOL_STOPPED,
    "no_tool_call": TinkerStop.COMPLETED,
    "max_turns": TinkerStop.MAX_TURNS,
    "max_tokens": TinkerStop.MAX_TOKENS,
    "parse_error": TinkerStop.PARSE_ERROR,
}
_STOPS: dict[str, StopReason] = {
    TinkerStop.MAX_TURNS: "max_turns",
    TinkerStop.MAX_TOKENS: "max_tokens",
    TinkerStop.MAX_SAMPLED_TOKENS: "max_tokens",
    TinkerStop.CONTEXT_OVERFLOW: "context_length",
    TinkerStop.PARSE_ERROR: "parse_error",
    TinkerStop.ROLLOUT_TIMEOUT: "timeout",
}


class PalestraMessageEnv(MessageEnv):  # type: ignore[misc]
    """One episode. Nothing is opened before `initial_observation`.

    A failure of the infrastructure or of the environment is raised, so that `RetryOnFailure` plays the sample again, `MinViableGroup`
    leaves it out of the group, and both list it in `rollout_errors`.
    """

    def __init__(self, steps: Steps, renderer: Renderer, sample: int, *, calls_by_text: bool) -> None:
        self.sample = sample
        self.failed = False
        self._steps = steps
        self._renderer = renderer
        self._calls_by_text = calls_by_text
        self._messages: list[RendererMessage] = []
        self._names: dict[str, str] = {}

    async def initial_observation(self) -> list[RendererMessage]:
        try:
            opened = await self._steps.open()
        except Failure:
            self.failed = True
            raise
        messages = [self._to_renderer(message) for message in opened.messages]
        self._messages = self._with_tools(messages, opened.tools) if opened.tools else messages
        return list(self._messages)

    async def step(self, message: RendererMessage) -> MessageStepResult:
        step = await self._steps.reply(_generated(message) if self._calls_by_text else self._to_openai(message))
        if step.failure is not None:
            self.failed = True
            raise step.failure
        self._messages += [message, *map(self._to_renderer, step.observations)]
        stop = _TINKER_STOPS.get(step.stop or "")
        return MessageStepResult(
            reward=step.reward or 0.0,
            episode_done=step.done,
            next_messages=list(self._messages),
            metrics={f"{STOP_METRIC_PREFIX}{stop}": 1.0} if step.done and stop else {},
        )

    async def close(self, stop: StopReason = "aborted") -> None:
        """Ends session and rollout; `stop` counts if the environment did not end the episode. Idempotent."""
        await self._steps.close(stop=stop)

    def _with_tools(self, messages: list[RendererMessage], tools: Sequence[Mapping[str, Any]]) -> list[RendererMessage]:
        """The renderer writes the tools into the system prompt. Raises NotImplementedError for a renderer without tool calls: use the
        `parse` `tool_call` with it.
        """
        system = ""
        if messages and messages[0]["role"] == "system":
            system, messages = _text(messages[0]["content"]), messages[1:]
        specs: list[ToolSpec] = [tool["function"] for tool in tools]
        return [*self._renderer.create_conversation_prefix_with_tools(specs, system), *messages]

    def _to_openai(self, message: RendererMessage) -> Message:
        converted: Message = self._renderer.to_openai_message(message)
        calls = list(converted.get("tool_calls") or [])
        # What the renderer could not read as a call is the policy's mistake, which it gets to see.
        calls += [tool_call("", "", unparsed.raw_text) for unparsed in message.get("unparsed_tool_calls") or []]
        for call in calls:
            call["id"] = call.get("id") or f"call_{uuid.uuid4().hex[:8]}"
            self._names[call["id"]] = call["function"]["name"]
        return {**converted, "tool_calls": calls} if calls else converted

    def _to_renderer(self, message: Message) -> RendererMessage:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = [_part(part) for part in content]
        converted = RendererMessage(role=message["role"], content=content)
        call_id = message.get("tool_call_id")
        if call_id is not None:
            converted["tool_call_id"] = call_id
            converted["name"] = self._names.get(call_id, "")
        return converted


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "image", "image": part["image_url"]["url"]} if part["type"] == "image_url" else dict(part)


def _generated(message: RendererMessage) -> str:
    """The text with the calls in it, which a renderer with tool calls has taken out."""
    calls = [f'{{"name": {json.dumps(call.function.name)}, "arguments": {call.function.arguments}}}' for call in message.get("tool_calls") or []]
    unparsed = [unparsed.raw_text for unparsed in message.get("unparsed_tool_calls") or []]
    return "\n".join([_text(message["content"]), *(f"<tool_call>\n{call}\n</tool_call>" for call in calls), *unparsed])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


@chz.chz
class PlayOptions:
    """How episodes are played.

    Attributes:
        run: name of the run; defaults to PALESTRA_RUN, then to `tinker`.
        parse: `openai` (tool calls of the renderer), `tool_call` or `action` (text, as docs/text.md describes).
        max_turns: generations; without a limit by default.
        timeout_s, call_timeout_s: seconds of the whole episode, and of one call.
        max_trajectory_tokens, max_generation_tokens, context_overflow_reward, failed_parse_reward: of `EnvFromMessageEnv`.
    """

    run: str | None = None
    parse: Parse = "openai"
    max_turns: int | None = None
    timeout_s: float | None = None
    call_timeout_s: float | None = None
    max_trajectory_tokens: int | None = None
    max_generation_tokens: int | None = None
    context_overflow_reward: float = -0.1
    failed_parse_reward: float = -1.0


@dataclasses.dataclass
class Progress:
    """Number of batches that the training has taken, which is the step of an evaluation that begins now."""

    batches: int = 0


@dataclasses.dataclass
class PalestraEnvGroupBuilder(EnvGroupBuilder):  # type: ignore[misc]
    """A group: `size` samples of one task. Pickles, without what it has made; a copy cleans up what the copy makes.

    Attributes:
        model_name: of the tokenizer and of the run.
        step: of the training; for an evaluation the progress of the training.
    """

    task: TaskRef
    size: int
    model_name: str
    renderer_name: str
    step: int | Progress
    phase: Literal["train", "eval"]
    options: PlayOptions
    group: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
    _made: list[PalestraMessageEnv] = dataclasses.field(default_factory=list, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": []}

    async def make_envs(self) -> Sequence[Env]:
        """One environment for each sample; a strategy that plays a sample again takes the first of a further call."""
        renderer = await asyncio.to_thread(self._renderer)
        made = [self._env(renderer, sample) for sample in (self._again() if self._made else range(self.size))]
        self._made += made
        return [self._wrapped(renderer, env) for env in made]

    def _again(self) -> list[int]:
        """The sample that failed; tinker does not report which one timed out."""
        for env in self._made:
            if env.failed:
                env.failed = False
                return [env.sample]
        return [len(self._made)]

    async def compute_group_rewards(
        self, trajectory_group: list[Trajectory], env_group: Sequence[Env]
    ) -> list[tuple[float, Metrics]]:
        """No reward beside those of the steps. Ends the sessions that tinker ended, with its reason."""
        pairs = zip(trajectory_group, env_group, strict=True)
        await asyncio.gather(*(env.message_env.close(_STOPS.get(played.stop_reason or "", "unknown")) for played, env in pairs))
        return [(0.0, {}) for _ in trajectory_group]

    async def cleanup(self) -> None:
        """Ends every session and rollout that is still open. Idempotent; never raises."""
        made, self._made = self._made, []
        self.group = uuid.uuid4().hex
        await asyncio.gather(*(env.close() for env in made), return_exceptions=True)

    def logging_tags(self) -> list[str]:
        return [self.task.environment.replace("/", "_")]

    def _renderer(self) -> Renderer:
        return get_renderer(self.renderer_name, get_tokenizer(self.model_name), model_name=self.model_name)

    def _env(self, renderer: Renderer, sample: int) -> PalestraMessageEnv:
        options = self.options
        rollout = recorder_of(options.run, "tinker", framework_version=VERSION, model_name=self.model_name).rollout(
            self.task,
            step=self.step if isinstance(self.step, int) else self.step.batches,
            group=self.group,
            sample=sample,
            samples=self.size,
            phase=self.phase,
        )
        limits = {"max_turns": options.max_turns, "timeout_s": options.timeout_s, "call_timeout_s": options.call_timeout_s}
        given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        steps = Steps(session_of(client_of(), self.task), record=rollout, parse=options.parse, **given)
        return PalestraMessageEnv(steps, renderer, sample, calls_by_text=options.parse != "openai")

    def _wrapped(self, renderer: Renderer, env: PalestraMessageEnv) -> Env:
        options = self.options
        return EnvFromMessageEnv(
            renderer,
            env,
            failed_parse_reward=options.failed_parse_reward,
            max_trajectory_tokens=options.max_trajectory_tokens,
            max_generation_tokens=options.max_generation_tokens,
            context_overflow_reward=options.context_overflow_reward,
        )


class PalestraDataset(RLDataset):  # type: ignore[misc]
    """Batch `i` is step `i` of the training. `epochs` passes, each in another order; a resumed training continues in the same one."""

    def __init__(
        self,
        tasks: Sequence[TaskRef],
        groups_per_batch: int,
        *,
        size: int,
        model_name: str,
        renderer_name: str,
        phase: Literal["train", "eval"],
        options: PlayOptions,
        progress: Progress,
        epochs: int = 1,
        seed: int | None = None,
    ) -> None:
        if not tasks:
            raise ValueError("The file of tasks is empty.")
        self._tasks = list(tasks)
        self._groups_per_batch = groups_per_batch
        self._facts: dict[str, Any] = {
            "size": size,
            "model_name": model_name,
            "renderer_name": renderer_name,
            "phase": phase,
            "options": options,
        }
        self._phase = phase
        self._progress = progress
        self._epochs = epochs
        self._seed = seed

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        epoch, batch = divmod(index, self._batches)
        order = list(range(len(self._tasks)))
        if self._seed is not None:
            random.Random(f"{self._seed}:{epoch}").shuffle(order)
        first = batch * self._groups_per_batch
        places = order[first : first + self._groups_per_batch]
        step: int | Progress = self._progress
        if self._phase == "train":
            self._progress.batches, step = index + 1, index
        return [PalestraEnvGroupBuilder(task=self._tasks[place], step=step, **self._facts) for place in places]

    def __len__(self) -> int:
        return self._batches * self._epochs

    @property
    def _batches(self) -> int:
        return -(-len(self._tasks) // self._groups_per_batch)


@chz.chz
class PalestraDatasetBuilder(RLDatasetBuilder):  # type: ignore[misc]
    """The `dataset_builder` of `tinker_cookbook.rl.train.Config`.

    Attributes:
        tasks, test_tasks: JSON lines of `palestra prepare-tasks --format tinker`; test tasks are played once per evaluation.
        groups_per_batch: tasks per step; group_size: samples per task.
        epochs: passes over the tasks. Leave `num_epochs` of `Config` at 1: it would hide the step from the rollouts.
        seed: of the order; None keeps that of the file.
    """

    tasks: str
    test_tasks: str | None = None
    model_name: str
    renderer_name: str
    groups_per_batch: int = 8
    group_size: int = 8
    epochs: int = 1
    seed: int | None = 0
    play: PlayOptions = chz.field(default_factory=PlayOptions)

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        shared: dict[str, Any] = {
            "model_name": self.model_name,
            "renderer_name": self.renderer_name,
            "options": self.play,
            "progress": Progress(),
        }
        train = PalestraDataset(
            read_tasks(self.tasks),
            self.groups_per_batch,
            size=self.group_size,
            phase="train",
            epochs=self.epochs,
            seed=self.seed,
            **shared,
        )
        if self.test_tasks is None:
            return train, None
        return train, PalestraDataset(read_tasks(self.test_tasks), self.groups_per_batch, size=1, phase="eval", **shared)


def read_tasks(path: str) -> list[TaskRef]:
    """The tasks of a file of JSON lines. Raises ValueError with the number of a line that names no task."""
    tasks = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                tasks.append(task_of(json.loads(line)))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from error
    return tasks
