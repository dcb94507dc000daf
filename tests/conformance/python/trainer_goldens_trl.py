"""TRL's GRPOTrainer on given rewards: a model of a thousand random numbers, a tokenizer of bytes, no network. Imported by trainer_goldens.py."""

import json
import tempfile
from pathlib import Path

import torch
import trl
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

WANTED = ("reward", "reward_std", "frac_reward_zero_std", "tools/call_frequency", "tools/failure_frequency")


def byte_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: at for at, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<|endoftext|>", eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"],
    )
    # A template that TRL finds tool calls in.
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    return tokenizer


TOKENIZER = byte_tokenizer()


def small_model():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=len(TOKENIZER), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=8192, pad_token_id=TOKENIZER.pad_token_id, eos_token_id=TOKENIZER.eos_token_id, bos_token_id=None,
    ))


def numbered(task):
    """How often each task came so far in the batch: the samples of a group, counted."""
    seen = {}
    for one in task:
        seen[one] = seen.get(one, -1) + 1
        yield one, seen[one]


def reward_function(name, groups):
    def function(prompts, completions, task, **_):
        return [groups[group][sample] for group, sample in numbered(task)]

    function.__name__ = name
    return function


def work(number: int) -> str:
    """
    Works, or does not.

    Args:
        number: How far, of at most 9.
    """
    if number > 9:
        raise ValueError("too far")
    return "worked"


class WithCalls(GRPOTrainer):
    """Its model says what the set wants: so many calls in its first turn, nothing more after their results."""

    calls: dict

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields, num_generations, has_tool_images=False):
        first = not any("<tool_response>" in text for text in TOKENIZER.batch_decode(prompt_ids))
        if not first:
            texts = ["done"] * len(prompt_ids)
        else:
            asked = [text.split("task ")[-1].split("<")[0] for text in TOKENIZER.batch_decode(prompt_ids)]
            texts = [said(*self.calls[int(group)][sample]) for group, sample in numbered(asked)]
        return TOKENIZER([text + TOKENIZER.eos_token for text in texts])["input_ids"], None


def said(calls, failing):
    arguments = [{"number": 99 if at < failing else 1} for at in range(calls)]
    blocks = [f'<tool_call>\n{json.dumps({"name": "work", "arguments": one})}\n</tool_call>' for one in arguments]
    return "\n".join(blocks) or "no call"


def figures(given, mode, **settings):
    """What the trainer logs of one step, or of one evaluation, whose batch is the whole set."""
    groups = given["rewards"]
    n = len(groups[0])
    with_calls = "calls" in given
    prompt = (lambda index: [{"role": "user", "content": f"task {index}"}]) if with_calls else (lambda index: f"task {index}")
    rows = Dataset.from_list([{"prompt": prompt(index), "task": index} for index in range(len(groups))])
    functions = [reward_function("given", groups)]
    if "parts" in given:
        functions = [reward_function(f"part{at}", [[pair[at] for pair in group] for group in given["parts"]]) for at in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=1, max_steps=1,
            gradient_checkpointing=False, max_completion_length=2048 if with_calls else 2, shuffle_dataset=False,
            # In training there are no groups of one.
            num_generations=max(n, 2), num_generations_eval=n, reward_weights=given.get("weights"),
            per_device_train_batch_size=len(groups) * max(n, 2), per_device_eval_batch_size=len(groups) * n, **settings,
        )
        trainer = (WithCalls if with_calls else GRPOTrainer)(
            model=small_model(), reward_funcs=functions, args=arguments, train_dataset=rows, eval_dataset=rows, processing_class=TOKENIZER,
            tools=[work] if with_calls else None,
        )
        if with_calls:
            trainer.calls = [list(zip(*pair, strict=True)) for pair in zip(given["calls"], given["callErrors"], strict=True)]
        if mode == "train":
            trainer.train()
        else:
            trainer.evaluate()
        logged = trainer.state.log_history[0]
    return {key: value for key, value in logged.items() if key.removeprefix("eval_") in WANTED}


def runs(sets, run):
    torch.set_num_threads(1)
    made = []
    for name, given in sets.items():
        size = {len(group) for group in given["rewards"]}
        # TRL has one size of group; and of a rollout that failed it knows what its reward is, nothing else.
        if len(size) > 1 or "stops" in given:
            continue
        for mode in ["eval"] if size == {1} else ["train", "eval"]:
            made.append(run(name, {"mode": mode}, lambda: figures(given, mode)))
    for scale in ("none", "batch"):
        for name in ("vector 8", "equal by three"):
            made.append(run(name, {"mode": "train", "scale_rewards": scale}, lambda: figures(sets[name], "train", scale_rewards=scale)))
    return made
