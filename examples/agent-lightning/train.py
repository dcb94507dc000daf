"""GRPO on a hosted environment with agent-lightning: `pip install 'palestra[agent-lightning]' verl`, then beside its server and controller
(`python -m agentlightning.server`, `python -m agentlightning.controller runner_type=local`):

    python train.py agentlightning.local.agent_class=palestra.agentlightning.Agent \
        agentlightning.hooks=$(python -c "import palestra.agentlightning_hooks as hooks; print(hooks.__file__)") \
        actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.rollout.n=8 data.train_batch_size=32
"""

import json
from typing import Any

import hydra
from agentlightning.verl.entrypoint import run_ppo


@hydra.main(config_path="pkg://agentlightning.verl", config_name="config", version_base=None)
def main(config: Any) -> None:
    with open("tasks.jsonl", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    run_ppo(config, train_dataset=tasks[32:], val_dataset=tasks[:32])


if __name__ == "__main__":
    main()
