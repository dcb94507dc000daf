"""GRPO on a hosted environment with AReaL: `python train.py --config config.yaml`."""

import sys

from areal import PPOTrainer
from areal.api.cli_args import GRPOConfig, load_expr_config
from datasets import load_dataset


def main(arguments: list[str]) -> None:
    config, _ = load_expr_config(arguments, GRPOConfig)
    tasks = load_dataset("parquet", data_files=config.train_dataset.path, split="train")
    workflow = {
        "tokenizer": config.tokenizer_path,
        "client": {"engine_max_tokens": config.sglang.context_length},
        "sampling": {"temperature": config.gconfig.temperature, "max_completion_tokens": config.gconfig.max_new_tokens},
        "max_turns": 10,
    }
    with PPOTrainer(config, train_dataset=tasks) as trainer:
        trainer.train(workflow="palestra.areal.Workflow", workflow_kwargs=workflow)


if __name__ == "__main__":
    main(sys.argv[1:])
