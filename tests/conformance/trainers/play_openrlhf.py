"""examples/openrlhf/agent.py in OpenRLHF's real executor, with a scripted engine. Prints one JSON document."""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib.util
import json
import re
import shlex
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import policy
from characters import Characters, messages_of
from live import live_sessions
from openrlhf.datasets.prompts_dataset import preprocess_data

from palestra import rows

ROOT = Path(__file__).resolve().parents[3]
tokenizer = Characters()


def executor() -> Any:
    """As OpenRLHF's rollout worker loads `--train.agent_func_path`."""
    spec = importlib.util.spec_from_file_location("agent_module", ROOT / "examples/openrlhf/agent.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.AgentExecutor()


class Engine:
    """Generates what policy.py says. In `fragile` the second sample makes the server vanish when the first has finished."""

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self.samples: dict[Any, int] = {}
        self.texts: list[str] = []
        self.group: Any = None

    async def generate(self, tokens: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        sample = self.samples[asyncio.current_task()]
        text = tokenizer.decode(tokens)
        self.texts.append(text)
        said = policy.text_reply(messages_of(text))
        if sample == 1 and "<tool_response>" in text:
            if self._scenario == "raises":
                raise RuntimeError("the engine fails")
            if self._scenario == "fragile":
                while self.group.ended == 0:
                    await asyncio.sleep(0.01)
                said = said.replace("finish", "vanish")
        ids = [*tokenizer.encode(said), tokenizer.eos_token_id]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=ids, text=said + tokenizer.eos_token, finish_reason="stop", logprobs=None)])


async def generate_responses(agent: Any, engine: Engine, row: Any, max_length: int, samples: int = 2) -> Any:
    """As OpenRLHF's rollout worker does: one object of sampling parameters for all samples of a prompt."""
    prompt, label = preprocess_data(row, None, "input", "label", tokenizer.apply_chat_template)
    params = SimpleNamespace(max_tokens=64, logprobs=None)
    tasks = [asyncio.ensure_future(agent.execute(prompt, label, params, max_length, tokenizer, engine)) for _ in range(samples)]
    # Which of them generates first is open.
    engine.samples = {task: sample for sample, task in enumerate(tasks)}
    gathered = asyncio.gather(*tasks)
    await asyncio.sleep(0)
    engine.group = agent._groups[id(params)]
    return await gathered


def shown(response: Any) -> dict[str, Any]:
    trained = sum(end - start for start, end in response["action_ranges"])
    kept = {name: response[name] for name in ("reward", "scores", "extra_logs")}
    return {**kept, "turns": len(response["action_ranges"]), "trained": trained}


async def main(scenario: str, environment: str) -> Any:
    agent, engine = executor(), Engine(scenario)
    tasks = list(rows(environment, "openrlhf", stop=2 if scenario == "play" else 1))
    length = 100_000
    if scenario == "length":
        length = len(tokenizer.apply_chat_template(tasks[0]["input"], add_generation_prompt=True)) + 80
    try:
        played = [await generate_responses(agent, engine, row, length) for row in tasks]
    except RuntimeError as error:
        return {"error": str(error), "live": await live_sessions(), "groups": len(agent._groups)}
    responses = [shown(response) for group in played for response in group]
    return {"responses": responses, "live": await live_sessions(), "groups": len(agent._groups), "text": engine.texts[-1]}


def settings() -> Any:
    """The flags of the page and of the example, as OpenRLHF's own parser reads them: it is within `if __name__ == "__main__"`."""
    spec = importlib.util.find_spec("openrlhf")
    assert spec is not None and spec.submodule_search_locations
    tree = ast.parse((Path(spec.submodule_search_locations[0]) / "cli/train_ppo_ray.py").read_text())
    main_block = next(node for node in tree.body if isinstance(node, ast.If))
    parser_lines = [node for node in main_block.body if "parser" in ast.unparse(node) and "parse_args" not in ast.unparse(node)]
    scope: dict[str, Any] = {"argparse": argparse, "datetime": datetime}
    exec(compile(ast.Module([node for node in parser_lines if isinstance(node, (ast.Assign, ast.Expr))], []), "parser", "exec"), scope)
    text = (ROOT / "docs/trainers/openrlhf.md").read_text()
    assert re.findall(r"```python\n(.*?)  # agent.py\n```", text)[0] in (ROOT / "examples/openrlhf/agent.py").read_text()
    page = re.search(r"^--train[^`]*", text, re.M)
    example = re.search(r"train_ppo_ray \\\n(.*)$", (ROOT / "examples/openrlhf/train.sh").read_text(), re.S)
    assert page is not None and example is not None
    parsed = [scope["parser"].parse_args(shlex.split(text.replace("\\\n", " "))) for text in (page[0], example[1])]
    return [[getattr(one, name) for name in ("train.agent_func_path", "data.input_key", "data.label_key")] for one in parsed]


print(json.dumps(settings() if sys.argv[1] == "settings" else asyncio.run(main(sys.argv[1], sys.argv[2]))))
