"""`palestra.skyrl.PalestraGenerator` on SkyRL's real generator, with a scripted engine. Prints one JSON document."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import policy
from characters import Characters, messages_of
from live import live_sessions
from skyrl.train.config import GeneratorConfig, SkyRLGymConfig, SkyRLTrainConfig
from skyrl.train.generators.utils import prepare_generator_input

from palestra import rows

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/trainers/skyrl.md").read_text()
# The page's own lines: they import the generator and register the environment.
exec(re.search(r"```python\n(.*?)```", PAGE, re.S)[1])

tokenizer = Characters()


class Engine:
    """Generates what policy.py says. In `fragile` sample 1 makes the server vanish when sample 0 has finished; in `raises` it fails."""

    weight_version = 7
    model_name = "scripted"

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self._finished = {sample: asyncio.Event() for sample in "01"}

    async def generate(self, batch: Any, model: str | None = None) -> dict[str, Any]:
        messages = messages_of(tokenizer.decode(batch["prompt_token_ids"][0]))
        text, sample = policy.text_reply(messages), batch["session_ids"][0][-1]
        if messages[-1]["content"].startswith("<tool_response>") and sample == "1":
            if self._scenario == "raises":
                raise RuntimeError("the engine fails")
            if "fragile" in self._scenario:
                await self._finished["0"].wait()
                text = text.replace("finish", "vanish")
        ids = [*tokenizer.encode(text), tokenizer.eos_token_id]
        return {"responses": [text], "response_ids": [ids], "stop_reasons": ["stop"], "response_logprobs": [[-0.5] * len(ids)]}

    async def finish_session(self, session: str) -> None:
        self._finished[session[-1]].set()


def batch_of(environment: str, tasks: int, phase: str, step: int) -> Any:
    prompts = []
    for uid, row in enumerate(rows(environment, "skyrl", stop=tasks)):
        prompt, env_class = row.pop("prompt"), row.pop("env_class")
        prompts.append({"prompt": prompt, "env_class": env_class, "env_extras": row, "uid": str(uid)})
    return prepare_generator_input(prompts, 2, None, "openreward", phase, step)[0]


def shown(output: Any) -> dict[str, Any]:
    rewards = [sum(reward) for reward in output["rewards"]]
    trained = [sum(mask) for mask in output["loss_masks"]]
    metrics = {name: value for name, value in output["rollout_metrics"].items() if name.startswith("environment/")}
    return {"rewards": rewards, "trained": trained, "stops": output["stop_reasons"], "last": output["is_last_step"], "metrics": metrics}


async def main(scenario: str, environment: str) -> Any:
    step_wise = scenario.endswith("step_wise")
    config = GeneratorConfig(max_turns=9, max_input_length=100_000, step_wise_trajectories=step_wise)
    if scenario == "length":
        prompt = tokenizer.apply_chat_template(next(rows(environment, "skyrl", stop=1))["prompt"])
        config.max_input_length = len(prompt) + 40
    generator = PalestraGenerator(config, SkyRLGymConfig(max_env_workers=4), Engine(scenario), tokenizer)  # noqa: F821
    if scenario == "play":
        train = await generator.generate(batch_of(environment, 2, "train", 5), disable_tqdm=True)
        return [shown(train), shown(await generator.generate(batch_of(environment, 1, "eval", 5), disable_tqdm=True))]
    batch = batch_of(environment, 1, "train", 5)
    try:
        output = await generator.generate(batch, disable_tqdm=True)
    except RuntimeError as error:
        return {"error": str(error), "live": await live_sessions()}
    for rows_of in zip(output["response_ids"], output["loss_masks"], output["rewards"], output["rollout_logprobs"], strict=True):
        # What SkyRL's `validate_generator_output` demands of each row; importing it needs ray.
        assert len({len(one) for one in rows_of}) == 1, rows_of
    return {**shown(output), "live": await live_sessions()}


def settings() -> Any:
    """The settings of the page and of the example, as SkyRL's own parser reads them."""
    texts = [PAGE, (ROOT / "examples/skyrl/train.sh").read_text()]
    commands = [re.search(r"^python -m skyrl\S+ ((?:.*\\\n)*.*)$", text, re.M)[1] for text in texts]
    configs = []
    for command in commands:
        arguments = shlex.split(command.replace("\\\n", " "))
        assert arguments[0] == "trainer.override_entrypoint=palestra.skyrl_main", arguments
        config = SkyRLTrainConfig.from_cli_overrides(arguments[1:])
        configs.append([config.data.train_data, config.generator.max_turns, config.environment.env_class])
    return configs


print(json.dumps(settings() if sys.argv[1] == "settings" else asyncio.run(main(sys.argv[1], sys.argv[2]))))
