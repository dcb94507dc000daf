"""GRPO on palestra/whodunit. Tasks: palestra prepare-tasks --env palestra/whodunit --split train --format trl --out train.jsonl"""

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from palestra.trl import environment_factory, record_rollouts

MODEL = "Qwen/Qwen3-1.7B"
args = GRPOConfig(
    output_dir="output",
    num_generations=8,
    per_device_train_batch_size=8,
    max_completion_length=4096,
    max_tool_calling_iterations=12,
    use_vllm=True,
    vllm_mode="colocate",
)
trainer = GRPOTrainer(
    model=MODEL,
    args=args,
    train_dataset=load_dataset("json", data_files="train.jsonl", split="train"),
    environment_factory=environment_factory("palestra/whodunit"),
    reward_funcs=record_rollouts(args, model_name=MODEL),
)
trainer.train()
