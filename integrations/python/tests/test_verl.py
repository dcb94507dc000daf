"""The agent loop over the recorded shapes of verl 0.9.1; the real package is in tests/conformance/trainers/verl.torch.spec.ts."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from adapters import adapter_of
from service import Service

from palestra import Recorder

ROW = {"env_name": "a/lamp", "split": "train", "task_index": 3, "uid": "g", "session_id": 0, "global_steps": 5}
TRAINING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "logprobs": True}


class Config(SimpleNamespace):
    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


@dataclass
class LoopMetrics:
    generate_sequences: float
    tool_calls: float
    num_preempted: int


@dataclass
class LoopOutput:
    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    metrics: LoopMetrics
    response_logprobs: list[float] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    extra_fields: dict[str, Any] = field(default_factory=dict)


@dataclass
class Merged:
    token_ids: list[int]


def tokens(text: str) -> list[int]:
    return list(text.encode())


class LoopBase:
    """Tokens are bytes. A message is rendered as `role:content;`."""

    def __init__(self, server_manager: Any, response_length: int = 1000) -> None:
        sampling = {"temperature": 0, "top_p": 1.0, "top_k": -1, "n": 1}
        turns = Config(max_assistant_turns=None, format="bytes")
        rollout = Config(**{**TRAINING, "n": 2}, response_length=response_length, multi_turn=turns, val_kwargs=Config(**sampling))
        self.config = Config(actor_rollout_ref=Config(rollout=rollout, model=Config(path="org/tiny")))
        self.rollout_config = rollout
        self.server_manager = server_manager
        self.tokenizer = SimpleNamespace(eos_token_id=0, all_special_tokens=["<end>"])

    def render(self, messages: list[dict[str, Any]]) -> list[int]:
        return tokens("".join(f"{message['role']}:{message['content']};" for message in messages))

    async def ct_build_initial_tokens(self, messages: list[dict[str, Any]], tools: Any = None) -> list[int]:
        return self.render(messages)

    async def ct_merge_assistant_token(
        self, ids: list[int], new: list[int], mask: list[int], logprobs: Any = None, assistant_logprobs: Any = None
    ) -> tuple[Merged, list[int], Any]:
        return Merged(ids + new), mask + [1] * len(new), None if logprobs is None else logprobs + assistant_logprobs

    async def ct_merge_context_msg(
        self, before: list[Any], after: list[Any], ids: list[int], mask: list[int], logprobs: Any = None, tools: Any = None
    ) -> tuple[Merged, list[int], Any]:
        assert after[: len(before)] == before
        new = self.render(after[len(before) :])
        return Merged(ids + new), mask + [0] * len(new), None if logprobs is None else logprobs + [0.0] * len(new)


class Parser:
    """A reply is `name=argument`."""

    stop_token_ids = [7]

    @staticmethod
    def get_tool_parser(name: str, tokenizer: Any) -> Parser:
        assert name == "bytes"
        return Parser()

    async def extract_tool_calls(self, ids: list[int], tools: Any) -> tuple[str, list[Any]]:
        name, _, argument = bytes(ids).decode().partition("=")
        return "", [SimpleNamespace(name=name, arguments=argument, tool_call_id=None)]


class Server:
    """Generates the given texts in their order."""

    def __init__(self, *replies: str) -> None:
        self.left = list(replies)
        self.sampling: list[dict[str, Any]] = []
        self.ids: set[str] = set()

    async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        self.ids.add(request_id)
        self.sampling.append(sampling_params)
        reply = self.left.pop(0)
        if reply == "raise":
            raise RuntimeError("no server")
        ids = tokens(reply)
        return SimpleNamespace(token_ids=ids, log_probs=[-1.0] * len(ids), num_preempted=None, extra_fields={"min_global_steps": 4, "max_global_steps": 4})


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, service: Service) -> Iterator[Any]:
    shapes: dict[str, dict[str, Any]] = {
        "verl.experimental.agent_loop.agent_loop": {
            "AgentLoopBase": LoopBase,
            "AgentLoopMetrics": LoopMetrics,
            "AgentLoopOutput": LoopOutput,
            "register": lambda _name: lambda cls: cls,
        },
        "verl.experimental.agent_loop.tool_parser": {"ToolParser": Parser},
        "verl.tools.schemas": {"OpenAIFunctionToolSchema": SimpleNamespace(model_validate=lambda tool: tool)},
    }
    recorder = Recorder("run", url=service.url, api_key="or_key", spool_dir=tmp_path)
    with adapter_of(monkeypatch, "verl", "0.9.1", shapes, recorder.rollout) as module:
        yield module
    recorder.close()


async def test_a_trajectory_has_the_tokens_of_the_model_and_those_of_the_environment(adapter: Any) -> None:
    server = Server('lamp={"on": false}', 'lamp={"on": true}')
    output = await adapter.PalestraAgentLoop(server).run(TRAINING, **ROW)
    assert bytes(output.prompt_ids) == b"user:Light the lamp.;"
    assert bytes(output.response_ids) == b'lamp={"on": false}tool:dark;lamp={"on": true}'
    assert output.response_mask == [1] * 18 + [0] * 10 + [1] * 17
    assert output.response_logprobs == [-1.0] * 18 + [0.0] * 10 + [-1.0] * 17
    assert (output.reward_score, output.num_turns) == (1.0, 4)
    assert output.extra_fields == {"min_global_steps": 4, "max_global_steps": 4, "turn_scores": [0.5, 0.5], "tool_rewards": []}
    assert len(server.ids) == 1
    assert server.sampling[0]["stop_token_ids"] == [7]
    assert [session.closed for session in adapter.sessions] == [1]
    assert adapter.rollouts == [{"step": 5, "group": "g", "sample": 0, "samples": 2, "phase": "train"}]


@pytest.mark.parametrize(
    ("sampling", "split", "phase"),
    [
        (TRAINING, "train", "train"),
        (TRAINING, "test", "train"),
        ({**TRAINING, "temperature": 0}, "test", "eval"),
        ({**TRAINING, "temperature": 0}, "train", "eval"),
    ],
)
async def test_validation_is_known_by_its_sampling(adapter: Any, sampling: Any, split: str, phase: str) -> None:
    await adapter.PalestraAgentLoop(Server('lamp={"on": true}')).run(sampling, **{**ROW, "split": split})
    assert adapter.rollouts[0]["phase"] == phase
    assert adapter.rollouts[0]["samples"] == (2 if phase == "train" else 1)


@pytest.mark.parametrize(("split", "phase"), [("train", "train"), ("validation", "eval")])
async def test_with_one_sampling_for_both_the_split_decides(adapter: Any, split: str, phase: str) -> None:
    loop = adapter.PalestraAgentLoop(Server('lamp={"on": true}'))
    loop.rollout_config.val_kwargs.temperature = 1.0
    await loop.run(TRAINING, **{**ROW, "split": split})
    assert adapter.rollouts[0]["phase"] == phase


@pytest.mark.parametrize("failing", ["break={}", "raise"])
async def test_a_failed_sample_is_left_out_of_its_group(adapter: Any, failing: str) -> None:
    good = adapter.PalestraAgentLoop(Server('lamp={"on": true}')).run(TRAINING, **ROW)
    bad = adapter.PalestraAgentLoop(Server('lamp={"on": false}', failing)).run(TRAINING, **{**ROW, "session_id": 1})
    scored, left_out = await asyncio.gather(good, bad)
    assert (scored.reward_score, left_out) == (0.5, [])
    assert [session.closed for session in adapter.sessions] == [1, 1]


async def test_of_a_failed_group_one_sample_without_a_trained_token_is_left(adapter: Any) -> None:
    runs = [adapter.PalestraAgentLoop(Server("break={}")).run(TRAINING, **{**ROW, "session_id": sample}) for sample in range(3)]
    outputs = await asyncio.gather(*runs)
    [masked] = [output for output in outputs if output != []]
    assert (masked.response_mask, masked.response_ids, masked.response_logprobs) == ([0], [0], [0.0])
    assert masked.extra_fields["min_global_steps"] == masked.extra_fields["max_global_steps"] == 4
    assert [session.closed for session in adapter.sessions] == [1, 1, 1]


async def test_the_legacy_trainer_gets_a_masked_sample(adapter: Any) -> None:
    row = {name: value for name, value in ROW.items() if name not in ("session_id", "uid")}
    output = await adapter.PalestraAgentLoop(Server("break={}")).run(TRAINING, **row)
    assert output.response_mask == [0]


async def test_an_answer_that_fills_the_response_is_not_played(adapter: Any) -> None:
    output = await adapter.PalestraAgentLoop(Server('lamp={"on": true}'), response_length=5).run(TRAINING, **ROW)
    assert (output.response_mask, output.reward_score) == ([1] * 5, 0)
    assert [session.closed for session in adapter.sessions] == [1]


async def test_an_observation_that_fills_the_response_ends_the_episode(adapter: Any) -> None:
    output = await adapter.PalestraAgentLoop(Server('lamp={"on": false}'), response_length=20).run(TRAINING, **ROW)
    assert (output.response_mask, output.reward_score) == ([1] * 18, 0.5)


async def test_a_row_without_a_task_is_an_error(adapter: Any) -> None:
    with pytest.raises(ValueError, match="No task in this row"):
        await adapter.PalestraAgentLoop(Server()).run(TRAINING, uid="g")


async def test_a_cancelled_sample_closes_its_session(adapter: Any) -> None:
    class Never(Server):
        asked = asyncio.Event()

        async def generate(self, *_: Any, **__: Any) -> Any:
            self.asked.set()
            await asyncio.Event().wait()

    server = Never()
    running = asyncio.ensure_future(adapter.PalestraAgentLoop(server).run(TRAINING, **ROW))
    await server.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [session.closed for session in adapter.sessions] == [1]


@pytest.mark.parametrize(("module", "package"), [("palestra.verl", "verl >=0.9.1"), ("palestra.tinker", "tinker-cookbook >=0.6.1")])
def test_without_the_trainer_the_import_names_what_is_supported(module: str, package: str) -> None:
    sys.modules.pop(module, None)
    with pytest.raises(ImportError, match=f"needs {package}"):
        importlib.import_module(module)
