"""Trains a randomly initialised transformer of 20 000 weights with TRL's GRPOTrainer on a CPU. README.md says how to start it."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer

from palestra import iter_tasks
from palestra.trl import environment_factory, record_rollouts

WORDS = ["colour", "red", "orange", "yellow", "green", "blue", "indigo", "violet", "white", "user", "assistant", "tool"]
# TRL needs a template with tool calls, even if the model makes none.
TEMPLATE = """{% for message in messages %}{{ message['role'] }} {{ message['content'] or '' }} \
{% for call in message['tool_calls'] or [] %}{{ call['function']['name'] }} {{ call['function']['arguments'] | tojson }} {% endfor %}\
{% endfor %}{% if add_generation_prompt %}assistant {% endif %}"""


def small_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word."""
    vocabulary = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unknown>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unknown>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **special)


def small_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 64}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **shape, **heads, **special))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("environment", help="owner/name, such as local/colours")
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    set_seed(chosen.seed)
    args = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        seed=chosen.seed,
        max_steps=chosen.steps,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=1,
        learning_rate=5e-3,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    tasks = [{"prompt": [{"role": "user", "content": ""}], "task_index": task.index} for task in iter_tasks(chosen.environment)]
    tokenizer = small_tokenizer()
    trainer = GRPOTrainer(
        model=small_model(tokenizer),
        processing_class=tokenizer,
        args=args,
        train_dataset=Dataset.from_list(tasks),
        environment_factory=environment_factory(chosen.environment),
        reward_funcs=record_rollouts(args, model_name="random-20k"),
    )
    began = time.monotonic()
    trainer.train()
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    print(
        json.dumps(
            {
                "seconds": round(time.monotonic() - began, 1),
                "rollouts": len(rewards) * args.per_device_train_batch_size,
                "first": round(mean(rewards[:5]), 3),
                "last": round(mean(rewards[-5:]), 3),
                "rewards": [round(reward, 3) for reward in itertools.islice(rewards, 0, None)],
            }
        )
    )


if __name__ == "__main__":
    main()
