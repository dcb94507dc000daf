"""Unsloth's GRPO on palestra/whodunit. Tasks: palestra prepare-tasks --env palestra/whodunit --split train --format trl --out train.jsonl"""

# Before TRL, which it patches.
from unsloth import FastLanguageModel  # isort: skip

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from palestra.trl import environment_factory, record_rollouts

MODEL = "unsloth/Qwen3-1.7B"
model, tokenizer = FastLanguageModel.from_pretrained(MODEL, max_seq_length=8192, load_in_4bit=True, fast_inference=True)
model = FastLanguageModel.get_peft_model(model, r=16, use_gradient_checkpointing="unsloth")
args = GRPOConfig(
    output_dir="output",
    num_generations=8,
    per_device_train_batch_size=8,
    max_completion_length=4096,
    max_tool_calling_iterations=12,
)
trainer = GRPOTrainer(
    model=model,
    processing_class=tokenizer,
    args=args,
    train_dataset=load_dataset("json", data_files="train.jsonl", split="train"),
    environment_factory=environment_factory("palestra/whodunit"),
    reward_funcs=record_rollouts(args, model_name=MODEL),
)
trainer.train()
