"""GRPO on a hosted environment with ART: `pip install 'palestra[art]' 'openpipe-art[backend]'`, then `python train.py tasks.jsonl`."""

import asyncio
import json
import sys

import art
from art.local import LocalBackend
from palestra.art import rollout_group

STEPS, TASKS_PER_STEP, SAMPLES = 100, 8, 8


async def main(path: str) -> None:
    with open(path, encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    model = art.TrainableModel(name="whodunit", run_name="whodunit", project="palestra", base_model="Qwen/Qwen2.5-7B-Instruct")
    backend = LocalBackend()
    await model.register(backend)
    for step in range(await model.get_step(), STEPS):
        chosen = [tasks[(step * TASKS_PER_STEP + number) % len(tasks)] for number in range(TASKS_PER_STEP)]
        groups = await art.gather_trajectory_groups([rollout_group(model, task, samples=SAMPLES, step=step) for task in chosen])
        result = await backend.train(model, groups, learning_rate=1e-5)
        await model.log(groups, metrics=result.metrics, step=result.step, split="train")
    await backend.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
