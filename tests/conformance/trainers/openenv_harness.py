"""OpenEnv's harness with sessions of PalestraSessionFactory. `play ENVIRONMENT`, `fail ENVIRONMENT`, `leave ENVIRONMENT`."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import policy
from openenv.core.harness import HarnessRunLimits, MCPHarnessAdapter, ModelStepResult
from openenv.core.llm_client import LLMResponse, ToolCall

from palestra import Failure, client_of
from palestra.openenv import PalestraSessionFactory


def model_step(messages: list[dict[str, Any]], tools: list[Any], sampling: dict[str, Any]) -> ModelStepResult:
    name, arguments = policy.next_call(messages)
    assert name in {tool.name for tool in tools}
    return ModelStepResult(LLMResponse(f"I {name} now.", [ToolCall(f"call_{len(messages)}", name, arguments)]))


def rollout(factory: PalestraSessionFactory, task: Any, seed: int, episode: str) -> Any:
    """What `_HarnessRolloutLoop._run_session` of trl 1.16.0 does."""
    try:
        session = factory.create(task, seed=seed, episode_id=episode)
    except Exception as failure:
        return ["not created", getattr(failure, "failure_class", repr(failure))]
    try:
        result = MCPHarnessAdapter().run_white_box(model_step, session, HarnessRunLimits(max_turns=4))
        verified = session.verify(result.messages)
        return [verified.env_reward, verified.done, verified.metrics]
    except Failure as failure:
        return ["unscorable", failure.failure_class]
    finally:
        session.close()


def main(mode: str, environment: str) -> Any:
    if mode == "fail":
        client_of().transport._retry_for_s = 1.0  # Not the two minutes of a restart.
    factory = pickle.loads(pickle.dumps(PalestraSessionFactory(environment, samples=2, sampling={"temperature": 1.0})))
    prompt = [{"role": "user", "content": "Solve it."}]
    if mode == "leave":
        factory.create(prompt, seed=0).call_tool(*policy.next_call(factory.create(prompt, seed=0).initial_messages()))
        return None
    played = [rollout(factory, prompt, group, f"{group}-{sample}") for group in range(2) for sample in range(2)]
    named = {"env_name": environment, "split": "train", "task_index": 1}
    played.append(rollout(factory, [{"role": "user", "content": json.dumps(named)}], 7, "7-0"))
    return played


print(json.dumps(main(*sys.argv[1:])))
