"""GRPO on a hosted environment with rLLM: `python train.py rllm/backend=tinker rllm.workflow.raise_on_error=false`."""

import hydra
from omegaconf import DictConfig
from palestra.rllm import agent_flow, evaluator
from rllm.data.dataset import Dataset
from rllm.trainer import AgentTrainer


@hydra.main(config_path="pkg://rllm.trainer.config", config_name="unified", version_base=None)
def main(config: DictConfig) -> None:
    trainer = AgentTrainer(
        config=config,
        agent_flow=agent_flow(max_turns=10),
        evaluator=evaluator,
        train_dataset=Dataset.load_data("tasks.parquet"),
        backend=config.rllm.get("backend", "tinker"),
    )
    trainer.train()


if __name__ == "__main__":
    main()
