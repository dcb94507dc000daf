"""Trains on palestra/whodunit with tinker-cookbook 0.6.1. Needs PALESTRA_URL, PALESTRA_API_KEY, TINKER_API_KEY, and two files of tasks:

palestra prepare-tasks --env palestra/whodunit --split train --format tinker --out train.jsonl
palestra prepare-tasks --env palestra/whodunit --split validation --format tinker --out validation.jsonl
"""

import asyncio
import os

from tinker_cookbook.rl import train
from tinker_cookbook.rl.rollout_strategy import MinViableGroup

from palestra.tinker import PalestraDatasetBuilder

os.environ.setdefault("PALESTRA_RUN", "tinker-whodunit")
MODEL = "Qwen/Qwen3-30B-A3B-Instruct-2507"

config = train.Config(
    model_name=MODEL,
    recipe_name="palestra",
    learning_rate=4e-5,
    max_tokens=2048,
    log_path="~/tinker-whodunit",
    # Leaves samples that lost their environment out of their group; the default ends the training.
    rollout_error_tolerance=MinViableGroup(),
    dataset_builder=PalestraDatasetBuilder(
        tasks="train.jsonl",
        test_tasks="validation.jsonl",
        model_name=MODEL,
        renderer_name="qwen3_instruct",
        groups_per_batch=16,
        group_size=8,
    ),
)

if __name__ == "__main__":
    asyncio.run(train.main(config))
