"""Groups over the recorded shapes of tinker-cookbook 0.6.1; the real package is in tests/conformance/trainers/tinker.torch.spec.ts."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from adapters import adapter_of

from palestra import EnvironmentFailure

FACTS = {"env_name": "a/lamp", "split": "train"}


class Stop(str, enum.Enum):
    COMPLETED = "completed"
    TOOL_STOPPED = "tool_stopped"
    MAX_TURNS = "max_turns"
    MAX_TOKENS = "max_tokens"
    MAX_SAMPLED_TOKENS = "max_sampled_tokens"
    CONTEXT_OVERFLOW = "context_overflow"
    PARSE_ERROR = "parse_error"
    ROLLOUT_TIMEOUT = "rollout_timeout"

    __str__ = str.__str__


class Renderer:
    def create_conversation_prefix_with_tools(self, tools: Any, system: str) -> list[dict[str, Any]]:
        return [{"role": "system", "content": f"{system}{[tool['name'] for tool in tools]}"}]

    def to_openai_message(self, message: dict[str, Any]) -> dict[str, Any]:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in message.get("tool_calls") or []
        ]
        return {"role": message["role"], "content": message["content"], **({"tool_calls": calls} if calls else {})}


@dataclasses.dataclass
class StepResult:
    reward: float
    episode_done: bool
    next_messages: list[Any]
    metrics: dict[str, float]


class Wrapped:
    def __init__(self, renderer: Any, message_env: Any, **options: Any) -> None:
        self.message_env = message_env


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    function = SimpleNamespace(name=name, arguments=json.dumps(arguments))
    return {"role": "assistant", "content": "", "tool_calls": [SimpleNamespace(id=None, function=function)]}


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    shapes: dict[str, dict[str, Any]] = {
        "chz": {"chz": dataclasses.dataclass(kw_only=True), "field": dataclasses.field},
        "tinker_cookbook.renderers": {"Message": dict, "Renderer": Renderer, "ToolSpec": dict, "get_renderer": lambda *_, **__: Renderer()},
        "tinker_cookbook.rl.message_env": {"EnvFromMessageEnv": Wrapped, "MessageEnv": object, "MessageStepResult": StepResult},
        "tinker_cookbook.rl.types": {
            "STOP_METRIC_PREFIX": "stop/",
            "Env": object,
            "EnvGroupBuilder": object,
            "Metrics": dict,
            "RLDataset": object,
            "RLDatasetBuilder": object,
            "StopReason": Stop,
            "Trajectory": object,
        },
        "tinker_cookbook.tokenizer_utils": {"get_tokenizer": lambda _name: None},
    }
    with adapter_of(monkeypatch, "tinker", "0.6.1", shapes, lambda _task, **_facts: None) as module:
        yield module


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps({"palestra": {**FACTS, "task_index": index}}) + "\n" for index in range(5)))
    return str(file)


async def datasets(adapter: Any, tasks: str, **options: Any) -> tuple[Any, Any]:
    shared = {"model_name": "org/tiny", "renderer_name": "r", "groups_per_batch": 2, "group_size": 2}
    pair: tuple[Any, Any] = await adapter.PalestraDatasetBuilder(tasks=tasks, **{**shared, **options})()
    return pair


async def test_a_batch_is_a_step(adapter: Any, tasks: str) -> None:
    train, test = await datasets(adapter, tasks, test_tasks=tasks, epochs=2, seed=None)
    assert (len(train), len(test)) == (6, 3)
    batches = [train.get_batch(step) for step in range(6)]
    assert [[builder.task.index for builder in batch] for batch in batches] == [[0, 1], [2, 3], [4]] * 2
    assert [{builder.step for builder in batch} for batch in batches] == [{step} for step in range(6)]
    assert len({builder.group for batch in batches for builder in batch}) == 10
    [evaluated, _] = test.get_batch(0)
    await evaluated.make_envs()
    assert adapter.rollouts == [{"step": 6, "group": evaluated.group, "sample": 0, "samples": 1, "phase": "eval"}]


async def test_epochs_have_different_orders_which_a_resumed_training_repeats(adapter: Any, tasks: str) -> None:
    train, _ = await datasets(adapter, tasks, epochs=2, groups_per_batch=5)
    again, _ = await datasets(adapter, tasks, epochs=2, groups_per_batch=5)
    first, second = ([builder.task.index for builder in train.get_batch(step)] for step in range(2))
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4]
    assert first != second
    assert [builder.task.index for builder in again.get_batch(1)] == second


async def group(adapter: Any, tasks: str) -> Any:
    train, _ = await datasets(adapter, tasks)
    return train.get_batch(0)[0]


async def test_an_episode_in_messages_of_the_renderer(adapter: Any, tasks: str) -> None:
    builder = await group(adapter, tasks)
    [first, _] = [env.message_env for env in await builder.make_envs()]
    prompt = await first.initial_observation()
    assert prompt == [{"role": "system", "content": "['lamp']"}, {"role": "user", "content": "Light the lamp."}]
    step = await first.step(calls("lamp", on=False))
    assert (step.reward, step.episode_done, step.metrics) == (0.5, False, {})
    assert step.next_messages[-1] == {"role": "tool", "content": "dark", "tool_call_id": step.next_messages[-1]["tool_call_id"], "name": "lamp"}
    last = await first.step(calls("lamp", on=True))
    assert (last.reward, last.episode_done, last.metrics) == (0.5, True, {"stop/tool_stopped": 1.0})
    await builder.cleanup()
    # Of the second nothing was opened.
    assert [session.closed for session in adapter.sessions] == [1, 0]
    assert [session.sid for session in adapter.sessions] == ["sid-1", None]


async def test_a_call_that_the_renderer_cannot_read_is_shown_to_the_policy(adapter: Any, tasks: str) -> None:
    [env, _] = [env.message_env for env in await (await group(adapter, tasks)).make_envs()]
    await env.initial_observation()
    unparsed = SimpleNamespace(raw_text="<tool_call>{", error="no JSON")
    step = await env.step({"role": "assistant", "content": "", "unparsed_tool_calls": [unparsed]})
    assert "are invalid" in step.next_messages[-1]["content"]
    assert not step.episode_done


async def test_in_the_text_form_the_calls_that_the_renderer_has_read_are_text_again(adapter: Any, tasks: str) -> None:
    train, _ = await datasets(adapter, tasks, play=adapter.PlayOptions(parse="tool_call"))
    [env, _] = [env.message_env for env in await train.get_batch(0)[0].make_envs()]
    assert (await env.initial_observation())[0]["role"] == "system"
    step = await env.step(calls("lamp", on=False))
    assert (step.reward, step.next_messages[-1]["content"]) == (0.5, "<tool_response>\ndark\n</tool_response>")
    unparsed = SimpleNamespace(raw_text="<tool_call>{", error="no JSON")
    step = await env.step({"role": "assistant", "content": [{"type": "text", "text": "so"}], "unparsed_tool_calls": [unparsed]})
    assert "Error parsing tool call" in step.next_messages[-1]["content"]


async def test_a_failure_is_raised_and_its_sample_is_played_again(adapter: Any, tasks: str) -> None:
    builder = await group(adapter, tasks)
    [_, env] = [env.message_env for env in await builder.make_envs()]
    await env.initial_observation()
    with pytest.raises(EnvironmentFailure, match="broken"):
        await env.step(calls("break"))
    await builder.make_envs()
    await builder.make_envs()
    assert [facts["sample"] for facts in adapter.rollouts] == [0, 1, 1, 3]
    assert len({facts["group"] for facts in adapter.rollouts}) == 1


@pytest.mark.parametrize("stop", ["max_tokens", "context_overflow", "parse_error"])
async def test_tinker_ends_an_episode_for_a_reason(adapter: Any, tasks: str, stop: str) -> None:
    builder = await group(adapter, tasks)
    envs = await builder.make_envs()
    await envs[0].message_env.initial_observation()
    rewards = await builder.compute_group_rewards([SimpleNamespace(stop_reason=stop)], envs[:1])
    ended = envs[0].message_env._steps.episode.stop
    assert (rewards, ended) == ([(0.0, {})], {"context_overflow": "context_length"}.get(stop, stop))


async def test_cleanup_closes_everything_that_was_made_and_can_be_repeated(adapter: Any, tasks: str) -> None:
    builder = await group(adapter, tasks)
    made = [*await builder.make_envs(), *await builder.make_envs()]
    await asyncio.gather(*(env.message_env.initial_observation() for env in made))
    before = builder.group
    await builder.cleanup()
    await builder.cleanup()
    assert [session.closed for session in adapter.sessions] == [1, 1, 1]
    # A builder of an evaluation is used again: another group.
    await builder.make_envs()
    assert len(adapter.rollouts) == 5 and builder.group != before


async def test_a_builder_pickles_without_what_it_made(adapter: Any, tasks: str) -> None:
    builder = await group(adapter, tasks)
    await builder.make_envs()
    copy = pickle.loads(pickle.dumps(builder))
    assert (copy.task, copy.step, copy.group, copy._made) == (builder.task, 0, builder.group, [])
    assert len(builder._made) == 2


def test_a_line_without_a_task_is_named(adapter: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"palestra": {"env_name": "a/b", "split": "train", "task_index": 0}}\n{"prompt": []}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl:2: No task in this row"):
        adapter.read_tasks(str(file))
